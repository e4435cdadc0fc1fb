"""The work of `bridle run`: one prompt, its turn, its answer and its exit code."""

import base64
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from bridle.cli import exit_codes as failure
from bridle.cli.approval_prompt import (
    TerminalApprover,
    full_text,
    group_requests,
    is_question,
)
from bridle.cli.find import handle_of, last_part
from bridle.cli.line_reader import LineReader
from bridle.cli.printer import Printer
from bridle.cli.render import json_line, write_json_line
from bridle.cli.setup import Setup
from bridle.cli.signals import interrupt_on_signals, run_async
from bridle.cli.style import paint_for, width_of
from bridle.cli.turn import Watch, print_turn_end
from bridle.engine.session import Session
from bridle.engine.structured_output import AnswerSchema
from bridle.errors import AgentError, BadReply, ConfigError, SessionError, SessionLocked, UsageError
from bridle.events import ApprovalAsked, ChildEnded, TurnEnded, TurnParked
from bridle.messages import Image, Part, Text
from bridle.presentation.approvals import PLAN
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.stores.locks import describe_owner
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import MOST_PICTURE_BYTES, flat, media_type_of, one_line, quantity

_EXIT_CODES = {
    "done": failure.DONE,
    "interrupted": failure.INTERRUPTED,
    "budget": failure.BUDGET,
    "timeout": failure.BUDGET,
    "max_tokens": failure.CUT,
    "parked": failure.PERMISSION,
}


def run_prompt(text: str, flags: dict[str, Any]) -> int:
    """Run a prompt as these flags say, and return the exit code."""
    return run_async(PromptRun(text, flags).run())


class PromptRun:
    """One call of the command. Without a prompt, what was left behind in the session is resumed."""

    def __init__(self, text: str, flags: dict[str, Any]) -> None:
        images = [load_image(Path(image)) for image in flags["images"]]
        path = flags["output_schema"]
        self._schema = read_schema(Path(path)) if path else None
        if images and not text:
            raise UsageError("--image needs a prompt", hint="Write what to do with the image.")
        self._parts: tuple[Part, ...] = (*images, Text(text)) if text else ()
        self._setup = Setup(flags)
        self._json: bool = flags["as_json"]
        self._printer = Printer(
            None if self._json or self._schema is not None else sys.stdout,
            sys.stderr,
            quiet=flags["quiet"] or self._json,
            thinking=flags["thinking"],
            paint=self._setup.paint,
        )
        asks = flags["on_ask"] == "prompt"
        if flags["on_ask"] is None:
            asks = bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())
        self._approver = TerminalApprover(LineReader(), self._printer) if asks else None
        self._on_ask = "park" if flags["on_ask"] == "park" else "deny"
        self._owns_session = False
        self._sent_after: int | None = None  # our prompt comes after this record
        self._children: list[ChildEnded] = []

    async def run(self) -> int:
        """Run the turn, here or in the process that owns the session; return the exit code."""
        if (log := self._setup.log) is not None and describe_owner(log):
            return await self._run_elsewhere()
        seen = self._setup.last_seq
        try:
            if self._parts:
                self._printer.redirect_answers(to_stderr=True)  # prompts of others may come first
            async with self._open() as session, Watch(session, self._show, seen) as watch:
                return await self._run_here(session, watch, seen)
        except SessionLocked:
            if self._owns_session:
                raise
            self._printer.redirect_answers(to_stderr=False)
            return await self._run_elsewhere()  # another process was faster; nothing was sent

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Session]:
        """Open the session here, which takes in its inbox. Raise `SessionLocked`."""
        provider = self._setup.provider()
        if note := self._setup.workspace_note:
            self._printer.line(self._printer.paint.dim(flat(note)))
        extra: dict[str, Any] = {"on_ask": self._on_ask}
        if self._schema is not None:
            extra["schema"] = self._schema.schema
        async with self._setup.engine(provider, self._approver, "run", **extra) as engine:
            session = await self._setup.session(engine)
            self._owns_session = True
            if self._approver is not None:
                self._approver.session = session
            yield session

    @asynccontextmanager
    async def _open_for_inbox(self) -> AsyncIterator[Session]:
        """Open the session here and run the prompts that wait in its inbox, ours among them."""
        async with self._open() as session:
            if session.history.waiting and not (session.is_busy or session.is_parked):
                await session.resume()
            yield session
            with interrupt_on_signals(session.interrupt):
                while session.is_busy:
                    await session.wait(session.turn)

    async def _run_here(self, session: Session, watch: Watch, seen: int) -> int:
        before = session.metrics
        result, is_sent = None, False
        if not self._parts or session.is_parked or session.is_busy:
            result = await self._resume(session, watch, seen)
        is_parked = session.is_parked or (result is not None and result.reason == "parked")
        if self._parts and not is_parked:
            before, self._sent_after = session.metrics, session.seq
            result, is_sent = await watch.send(self._parts), True
        if result is None or result.reason == "parked":
            tell_parked(session, is_unsent=bool(self._parts) and not is_sent)
            return failure.PERMISSION
        if self._schema is not None and result.ok:
            result = self._print_answer(result, self._schema)
        result = replace(result, metrics=session.metrics.since(before))
        if self._approver is not None:  # a request at the end of the input has not been answered
            unanswered = result.permission_needed + self._approver.unanswered
            result = replace(result, permission_needed=unanswered)
        code = self._finish(result, watch.hint, watch.steps.count)
        while session.is_busy:  # others have sent prompts meanwhile, and were told that they run
            self._printer.redirect_answers(to_stderr=True)
            if (await watch.resume()).reason == "interrupted":
                break
        return code

    async def _resume(self, session: Session, watch: Watch, seen: int) -> TurnResult | None:
        """Run what was left behind to its end; None if that needs approval and nobody can give it.

        A short turn may be over already: it is then recorded after `seen`.
        """
        if session.is_parked:
            await session.expire()
        if session.is_parked and session.history.pending:
            if self._approver is None:
                return None
            self._approver.skip_wait(session.history.pending.values())
        result = None
        while session.is_busy or session.history.waiting or (session.is_parked and result is None):
            result = await watch.resume()
            if result.reason == "interrupted":
                break
        if result is not None:
            return result
        events = [record.event for record in self._setup.folder.read(session.id, seen)]
        ended = [event.turn for event in events if isinstance(event, TurnEnded | TurnParked)]
        if ended:
            with suppress(SessionError):  # it was another process that ran it
                return await watch.wait(ended[-1])
        raise UsageError(
            f"session {session.id} has nothing to resume",
            hint=f'Send it a prompt: bridle run --resume {session.id} "…"',
        )

    async def _run_elsewhere(self) -> int:
        """Send the prompt to the process that owns the session, and show its turn."""
        session_id = self._setup.earlier.id if self._setup.earlier is not None else ""
        if not self._parts:
            raise SessionLocked(
                f"session {session_id} is open in another process, which runs it",
                hint=f'Send it a prompt: bridle run --resume {session_id} "…"',
            )
        if self._schema is not None:
            raise UsageError(
                "--output-schema cannot be used while another process has the session open",
                hint="Wait until it has ended, or use a new session.",
            )
        from bridle.cli.inbox_turn import InboxTurn

        say = self._printer.paint.dim
        turn = InboxTurn(
            self._setup.folder, session_id, self._show, lambda text: self._printer.line(say(text))
        )
        result = await turn.run(self._parts, self._open_for_inbox)
        if result.reason == "parked":
            failure.complain(
                "the turn is parked until its approvals are given", "See `bridle approvals list`."
            )
            return failure.PERMISSION
        if not turn.is_begun:
            return failure.INTERRUPTED
        return self._finish(result, turn.hint, turn.steps.count)

    def _finish(self, result: TurnResult, hint: str, steps: int) -> int:
        """Say how the turn ended, and return the exit code."""
        parked = parked_children(self._setup.folder, self._children)
        print_turn_end(
            result,
            self._printer,
            mode=self._setup.settings.mode,
            hint=hint,
            steps=steps,
            again=f"Continue it: bridle run --resume {result.session_id} …",
            parked=parked,
            name=result.session_id,
        )
        if parked and result.ok:
            return failure.PERMISSION
        if result.permission_needed and result.reason in ("done", "stuck"):
            return failure.PERMISSION
        return _EXIT_CODES.get(result.reason, failure.FAILED)

    def _show(self, record: Record) -> None:
        event = record.event
        if self._json:
            write_json_line(json_line(record))
            sys.stdout.buffer.flush()
        if self._sent_after is not None and record.seq > self._sent_after:
            self._sent_after = None
            self._printer.redirect_answers(to_stderr=False)
        self._printer.feed(record)
        if isinstance(event, ChildEnded):
            self._children.append(event)
        is_denied = self._approver is None and self._on_ask != "park"  # parked ones are shown later
        if isinstance(event, ApprovalAsked) and is_denied and is_question(event):
            self._printer.line(full_text([event], self._printer.paint, self._printer.width))

    def _print_answer(self, result: TurnResult, schema: AnswerSchema) -> TurnResult:
        """Print the value in the answer; the engine has had the agent correct it if necessary."""
        try:
            value = schema.fit(result.text)
        except BadReply as error:  # a turn that was resumed began without this schema
            return replace(result, reason="failed", detail=error.message, error=error)
        if not self._json:
            click.echo(json.dumps(value, ensure_ascii=not sys.stdout.isatty(), indent=2))
        return result


def read_schema(path: Path) -> AnswerSchema:
    """Read the JSON Schema of `--output-schema`. Raise `ConfigError` or `UsageError`."""
    try:
        schema = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        hint = "--output-schema takes the path of a file with a JSON Schema."
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint=f"{hint}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: this is not JSON: {error}", hint="The file must contain one JSON Schema."
        ) from None
    if not isinstance(schema, dict):
        raise ConfigError(
            f"{path}: a JSON Schema must be an object", hint='Start with {"type": …}.'
        )
    try:
        return AnswerSchema(schema)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", hint="Fix the schema in that file.") from None


def parked_children(folder: SessionFolder, ended: Iterable[ChildEnded]) -> list[str]:
    """Return the sessions that need approval, among these subagents and those below them."""
    sessions: list[str] = []
    for child in ended:
        if child.reason == "parked":
            sessions.append(child.session_id)
        try:
            events = [record.event for record in folder.read(child.session_id, 0)]
        except AgentError:  # it was deleted since
            continue
        sessions += parked_children(folder, (e for e in events if isinstance(e, ChildEnded)))
    return sessions


def tell_parked(session: Session, *, is_unsent: bool) -> None:
    """Show what needs approval, and say how to answer and to resume.

    `is_unsent`: there is a prompt, which was not sent.
    """
    paint, width = paint_for(sys.stderr), width_of(sys.stderr)
    requests = list(session.history.pending.values())
    for group in group_requests(requests):
        click.echo(full_text(group, paint, width), err=True)
    count = quantity(len(requests), "approval") if len(requests) > 1 else "an approval"
    message = f"the turn is parked: it needs {count}, and nothing runs until then"
    if is_unsent:
        message += "; the prompt was not sent"
    again = f"`bridle run --resume {session.id}`"
    if not requests:
        failure.complain(message, f"Continue it with {again}.")
        return
    first = requests[0]
    answer = f"bridle approvals answer {one_line(handle_of(session.id, first.call.id))}"
    if not is_question(first):
        hint = f"Allow it with `{answer} yes` (or deny it with no)"
    elif first.call.name == PLAN:
        hint = f"Accept it with `{answer} yes`, or say what to change: `{answer} no --word '…'`"
    else:
        hint = f"Answer with `{answer} yes --word 'YOUR ANSWER'` (no leaves it unanswered)"
    if len(requests) > 1:
        hint += f"; `bridle approvals answer {last_part(session.id)} yes --all`"
    failure.complain(message, f"{hint}. Then continue with {again}.")


def load_image(path: Path) -> Image:
    """Read an image for a prompt. Its type is that of its content. Raise `UsageError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_PICTURE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}", hint="--image takes the path of an image."
        ) from None
    if len(data) > MOST_PICTURE_BYTES:
        raise UsageError(
            f"{path}: larger than {MOST_PICTURE_BYTES / 1_000_000} MB, the limit of all vendors",
            hint="Make the image smaller.",
        )
    media_type = media_type_of(data)
    if not media_type:
        raise UsageError(
            f"{path}: this is not a PNG, JPEG, GIF or WebP image", hint="Convert it first."
        )
    return Image(media_type, base64.b64encode(data).decode())
