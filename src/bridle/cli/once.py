"""One run of `bridle run`: the turn, the answer that has to fit a schema, the exit code."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from bridle.cli.asking import Asker
from bridle.cli.below import parked_below, tell_parked_below
from bridle.cli.ending import code_of, tell_ending, tell_unasked, tell_use
from bridle.cli.event_lines import json_line, write_json_line
from bridle.cli.failure import INTERRUPTED, PERMISSION, complain
from bridle.cli.images import load_image
from bridle.cli.lines import Lines
from bridle.cli.parked import carry_on, tell_parked
from bridle.cli.plan_question import is_question, told
from bridle.cli.screen import Screen
from bridle.cli.setup import Setup, is_interactive
from bridle.cli.shape import Shape
from bridle.cli.turn import Seen, Watch, holding_reins, run
from bridle.engine.session import Session
from bridle.errors import BadReply, SessionLocked
from bridle.events import ApprovalAsked, ChildEnded
from bridle.messages import Part, Text
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.stores.locks import describe_owner
from bridle.workspace.text import flat


def run_once(text: str, flags: dict[str, Any]) -> int:
    """Send the prompt with what the flags say; without one, go on with what was left behind."""
    images = [load_image(Path(image)) for image in flags["images"]]
    shape = Shape(Path(flags["output_schema"])) if flags["output_schema"] else None
    if images and not text:
        raise click.UsageError("a picture goes with a prompt, and there is none")
    parts: tuple[Part, ...] = (*images, Text(text)) if text else ()
    return run(Run(Setup(flags), flags, shape).play(parts))


class Run:
    """One run of the command."""

    def __init__(self, setup: Setup, flags: dict[str, Any], shape: Shape | None) -> None:
        self._setup = setup
        self._json: bool = flags["as_json"]
        self._shape = shape
        silent = self._json or shape is not None
        self._screen = Screen(
            None if silent else sys.stdout,
            sys.stderr,
            quiet=flags["quiet"] or self._json,
            thinking=flags["thinking"],
            paint=setup.paint,
        )
        prompts = flags["on_ask"] == "prompt" or (flags["on_ask"] is None and is_interactive())
        self._asker = Asker(Lines(), self._screen) if prompts else None
        self._holds = False
        self._since: int | None = None  # the record after which the prompt is ours
        self._below: list[ChildEnded] = []
        self._on_ask = "park" if flags["on_ask"] == "park" else "deny"

    async def play(self, parts: tuple[Part, ...]) -> int:
        """Run the turn, here or where the session is held; the exit code."""
        if (log := self._setup.log) is not None and describe_owner(log):
            return await self._elsewhere(parts)
        seen = self._setup.seen
        try:
            if parts:
                self._screen.answer_aside()  # what others have sent may come first
            async with self._taken() as session, Watch(session, self._show, seen) as watch:
                return await self._play(session, watch, parts, seen)
        except SessionLocked:
            if self._holds:
                raise
            self._screen.answer_here()
            return await self._elsewhere(parts)  # somebody was faster, and nothing was sent

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Session]:
        """The session, held by us: what lies in its inbox is done. Raise `SessionLocked`."""
        provider = self._setup.provider()
        if self._setup.moved:
            self._screen.line(self._screen.paint.dim(flat(self._setup.moved)))
        extra: dict[str, Any] = {"on_ask": self._on_ask}
        if self._shape is not None:
            extra["schema"] = self._shape.schema
        async with self._setup.engine(provider, self._asker, "run", **extra) as engine:
            session = await self._setup.session(engine)
            self._holds = True
            if self._asker is not None:
                self._asker.session = session
            yield session

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[Session]:
        """The session, held by us for the prompts that wait in it, ours and those of others."""
        async with self._taken() as session:
            if session.history.waiting and not (session.is_busy or session.is_parked):
                await session.resume()
            yield session
            with holding_reins(session.interrupt):
                while session.is_busy:
                    await session.wait(session.turn)

    async def _play(
        self, session: Session, watch: Watch, parts: tuple[Part, ...], seen: int
    ) -> int:
        before = session.metrics
        result, sent = None, False
        if not parts or session.is_parked or session.is_busy:
            news = self._setup.folder.read(session.id, seen)
            result = await carry_on(session, watch, self._asker, news)
        if parts and (result is None or result.reason != "parked") and not session.is_parked:
            before, self._since = session.metrics, session.seq
            result, sent = await watch.play(parts), True
        if result is None or result.reason == "parked":
            tell_parked(session, unsent=bool(parts) and not sent)
            return PERMISSION
        if self._shape is not None and result.ok:
            result = self._print_answer(result, self._shape)
        result = replace(result, metrics=session.metrics.since(before))
        code = self._tell(self._counted(result), watch)
        await self._serve(session, watch)
        return code

    async def _serve(self, session: Session, watch: Watch) -> None:
        """What others have sent while our turn ran is done, too: whoever sent it was told so."""
        while session.is_busy:
            self._screen.answer_aside()
            if (await watch.resume()).reason == "interrupted":
                break

    async def _elsewhere(self, parts: tuple[Part, ...]) -> int:
        """The session is held by another process: the prompt goes there."""
        session_id = self._setup.earlier.id if self._setup.earlier is not None else ""
        if not parts:
            raise SessionLocked(
                f"session {session_id} is held by another process, which carries it on",
                hint=f'Send it a prompt: bridle run --resume {session_id} "…"',
            )
        if self._shape is not None:
            raise click.UsageError("--output-schema cannot be used where another process answers")
        from bridle.cli.following import Elsewhere

        say = self._screen.paint.dim
        watch = Elsewhere(
            self._setup.folder, session_id, self._show, lambda text: self._screen.line(say(text))
        )
        result = await watch.play(parts, self._serving)
        if result.reason == "parked":
            complain("the turn is parked: it waits for answers", "See `bridle approvals list`.")
            return PERMISSION
        if not watch.begun:
            return INTERRUPTED
        return self._tell(result, watch)

    def _tell(self, result: TurnResult, watch: Seen) -> int:
        name = result.session_id
        tell_ending(result, watch, self._screen, f"Go on with: bridle run --resume {name} …")
        tell_unasked(result, self._setup.settings.mode)
        parked = parked_below(self._setup.folder, self._below)
        tell_parked_below(parked)
        tell_use(result, watch, self._screen, name)
        return (PERMISSION if parked and result.ok else 0) or code_of(result)

    def _show(self, record: Record) -> None:
        if self._json:
            write_json_line(json_line(record))
            sys.stdout.buffer.flush()
        if self._since is not None and record.seq > self._since:
            self._since = None
            self._screen.answer_here()
        self._screen.feed(record)
        asked = record.event
        if isinstance(asked, ChildEnded):
            self._below.append(asked)
        unheard = self._asker is None and self._on_ask != "park"  # a parked one is shown at the end
        if isinstance(asked, ApprovalAsked) and unheard and is_question(asked):
            self._screen.line(told(asked, self._screen.paint, self._screen.width))

    def _print_answer(self, result: TurnResult, shape: Shape) -> TurnResult:
        """Print the value in the answer; the engine has had the agent correct it if necessary."""
        try:
            self._print(shape.fit(result.text))
        except BadReply as problem:  # a turn that was resumed began without this schema
            return replace(result, reason="failed", detail=problem.message, error=problem)
        return result

    def _print(self, value: Any) -> None:
        if not self._json:
            import json

            click.echo(json.dumps(value, ensure_ascii=not sys.stdout.isatty(), indent=2))

    def _counted(self, result: TurnResult) -> TurnResult:
        """A question that met the end of the input was put to nobody."""
        unheard = self._asker.unanswered if self._asker is not None else 0
        return replace(result, permission_needed=result.permission_needed + unheard)
