"""What a user has set up around calls and turns: hooks, a policy engine of their own, and undo.

If nothing is set up, no call waits for anything here. None of it can lift a deny: hooks and the
policy engine are asked only if the gate has not denied the call, and only a person can approve a
guarded one. A hook is somebody else's code: if it raises, or returns anything but a `HookResult`,
the call is denied.
"""

import asyncio
import logging
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridle.engine.engine_config import EngineConfig, PolicyEngine
from bridle.engine.redaction import Redactor
from bridle.errors import HookDenied
from bridle.events import Event, FilesChanged, TraceEvent
from bridle.messages import Part, Text, ToolCall
from bridle.policy import Decision, Mode, Verdict
from bridle.protocols.hooks import HookEvent, HookResult, Hooks, Moment
from bridle.protocols.tool import Tool
from bridle.workspace.fs import is_set_aside
from bridle.workspace.sensitive_paths import protection_of
from bridle.workspace.text import shorten

if TYPE_CHECKING:
    from bridle.engine.gate import JudgedCall
    from bridle.protocols.hooks import ChangeRecorder

log = logging.getLogger(__name__)

_POLICY_ENGINE = "policy engine"  # the rule that its decisions name
_WORDS: dict[str, Verdict] = {"allowed": "allow", "requires_approval": "ask", "denied": "deny"}
_VERDICTS: dict[str, Verdict] = {verdict: verdict for verdict in _WORDS.values()}
_MAX_NOTE = 10_000  # characters of a note for the model
_MAX_FILES = 5  # files that a note names
_NO_OUTPUT = HookResult()


class CallMiddleware:
    """The hooks, the policy engine and the undo of one turn."""

    __slots__ = ("_config", "_emit", "_recorder", "_session_id", "_turn")

    def __init__(
        self, config: EngineConfig, session_id: str, turn: int, emit: Callable[[Event], None]
    ) -> None:
        self._config = config
        self._session_id = session_id
        self._turn = turn
        self._emit = emit
        self._recorder: ChangeRecorder | None = None

    def has_hook(self, moment: Moment) -> bool:
        """Return whether there is a hook for this moment."""
        hooks = self._config.hooks
        return hooks is not None and hooks.handles(moment)

    async def run_hooks(self, moment: Moment, **details: Any) -> HookResult:
        """Run the hooks for this moment, and record what they say."""
        if (hooks := self._config.hooks) is None or not hooks.handles(moment):
            return _NO_OUTPUT
        details.setdefault("cwd", self._config.workspace.root)
        event = HookEvent(moment, self._session_id, turn=self._turn, **details)
        output = await run_hooks(hooks, event, self._config.redactor)
        if (trace := hook_trace(event, output)) is not None:
            self._emit(trace)
        return output

    async def before_call(self, judged: "JudgedCall") -> HookResult:
        """Run the hooks before a call that the gate has not denied."""
        call = judged.call
        return await self.run_hooks(
            "before_tool",
            cwd=judged.cwd,
            tool=call.name,
            call_id=call.id,
            arguments=deepcopy(call.arguments),  # a hook must not alter what was judged
        )

    async def after_call(self, judged: "JudgedCall", text: str, ok: bool) -> HookResult:
        """Run the hooks after a call, with its result."""
        call = judged.call
        return await self.run_hooks(
            "after_tool",
            cwd=judged.cwd,
            tool=call.name,
            call_id=call.id,
            arguments=deepcopy(call.arguments),
            result=text,
            ok=ok,
        )

    async def apply_policy_engine(self, judged: "JudgedCall", mode: Mode) -> "JudgedCall":
        """Return the call with the decision of the user's policy engine taken into account."""
        config = self._config
        if config.judge is None:
            return judged
        return await apply_policy_engine(config.judge, judged, mode, seconds=config.judge_seconds)

    async def begin_undo(self, call: ToolCall) -> "ChangeRecorder | None":
        """Have undo keep what the call may change. Return None if there is no undo."""
        if self._recorder is None:
            if (undo := self._config.undo) is None:
                return None
            self._recorder = undo.record_turn(self._session_id, self._turn)
        await self._recorder.before(call)
        return self._recorder

    async def changed_files(
        self, recorder: "ChangeRecorder", call: ToolCall
    ) -> FilesChanged | None:
        """Report the files that the call has changed. Errors are reported: it has already run."""
        try:
            return await recorder.after(call)
        except Exception as error:
            log.warning("what %s changed could not be saved for undo", call.name, exc_info=True)
            return FilesChanged(self._turn, call.id, uncovered=(f"undo failed: {error!r}",))

    def report_guarded_changes(self, judged: "JudgedCall", changed: FilesChanged) -> str:
        """Record which guarded files a command has changed, and return a note about them."""
        if not judged.tool.policy.runs:
            return ""  # the gate has judged a file tool by the names of its files
        packages = _installed_packages(changed)
        paths = [
            file.path for file in changed.files if not any(map(is_set_aside, file.path.split("/")))
        ]
        cares = ((path, protection_of(path)) for path in paths if not path.startswith(packages))
        guarded = [(path, care.why) for path, care in cares if care.writing]
        if not guarded:
            return ""
        names = ", ".join(f"{path} ({why})" for path, why in guarded[:_MAX_FILES])
        more = f" and {len(guarded) - _MAX_FILES} more" if len(guarded) > _MAX_FILES else ""
        message = (
            f"this command changed files that run by themselves or hold credentials: {names}{more}"
        )
        detail = {"callId": changed.call_id, "paths": [path for path, _ in guarded]}
        self._emit(TraceEvent("guarded_change", {**detail, "message": message}))
        return message


def _installed_packages(changed: FilesChanged) -> tuple[str, ...]:
    """Return the package folders that the command made or removed, whose files are not reported."""
    folders = []
    for file in changed.files:
        if file.how == "changed":
            continue
        folder, mark, _ = file.path.partition("node_modules/")
        if mark and (not folder or folder.endswith("/")):
            folders.append(folder + mark)
        folder, _, name = file.path.rpartition("/")
        if name == "pyvenv.cfg" and folder:
            folders.append(f"{folder}/")
    return tuple(folders)


async def apply_policy_engine(
    engine: PolicyEngine, judged: "JudgedCall", mode: Mode, *, seconds: float
) -> "JudgedCall":
    """Return the call with the policy engine's decision taken into account.

    A deny of the gate stays, and so does an approval that only a person can give. In the mode
    `auto` the user has answered the engine's asks beforehand.
    """
    ours = judged.decision
    theirs = await _evaluate(engine, judged.tool, judged.call, seconds)
    if ours.verdict == "deny" or (ours.once_only and theirs.verdict != "deny"):
        return judged
    if theirs.verdict == "ask":
        if mode == "auto":
            reason = f"{theirs.reason}; the mode auto runs it without asking"
            theirs = Decision("allow", reason, _POLICY_ENGINE)
        elif ours.verdict == "ask":
            return judged
        else:
            theirs = replace(theirs, network=judged.facts.lacks_network)
    return replace(judged, decision=theirs)


async def _evaluate(engine: PolicyEngine, tool: Tool, call: ToolCall, seconds: float) -> Decision:
    try:
        evaluation = asyncio.ensure_future(engine.evaluate(tool, deepcopy(call.arguments)))
        try:
            await asyncio.wait((evaluation,), timeout=seconds)
            if not evaluation.done():
                reason = f"the policy engine did not answer within {seconds:g} s"
                return Decision("deny", reason, _POLICY_ENGINE)
        finally:
            evaluation.cancel()  # one that does not stop is not waited for, either
        answer = evaluation.result()
    except Exception as error:  # a call that cannot be judged does not run
        log.debug("the policy engine failed", exc_info=True)
        return Decision("deny", f"the policy engine failed: {error!r}", _POLICY_ENGINE)
    return parse_policy_answer(answer)


def parse_policy_answer(answer: Any) -> Decision:
    """Return a policy engine's answer as a decision. Anything it may not say is a deny."""
    is_decision = isinstance(answer, Decision)
    verdict_word = getattr(answer, "verdict" if is_decision else "decision", answer)
    verdict_word = getattr(verdict_word, "value", verdict_word)
    verdict = None
    if isinstance(verdict_word, str):
        verdict = (_VERDICTS if is_decision else _WORDS).get(verdict_word)
    if verdict is None:
        reason = f"the policy engine returned {verdict_word!r}, which is not a decision"
        return Decision("deny", reason, _POLICY_ENGINE)
    reason = getattr(answer, "reason", "")
    reason = reason if isinstance(reason, str) and reason else "the policy engine decided so"
    return Decision(verdict, reason, _POLICY_ENGINE)


def note(source: str, text: str) -> str:
    """Return a line for the model that names its source: no tool and no person wrote it."""
    return f"\n[{source}: {shorten(text.strip(), _MAX_NOTE)}]"


def hook_note(text: str) -> str:
    """Return what a hook says as a line for the model."""
    return note("a hook says", text) if text.strip() else ""


async def run_hooks(hooks: Hooks, event: HookEvent, redactor: Redactor | None = None) -> HookResult:
    """Run hooks and return what they say, with secrets taken out. One that breaks has denied."""
    output = await _run_safely(hooks, event)
    if redactor is None or not (output.deny or output.word):
        return output
    return replace(output, deny=redactor.text(output.deny), word=redactor.text(output.word))


async def _run_safely(hooks: Hooks, event: HookEvent) -> HookResult:
    try:
        output: Any = await hooks.run(event)
    except Exception as error:  # somebody else's code, in front of an effect
        log.debug("a hook broke", exc_info=True)
        return HookResult(deny=f"a hook broke: {error!r}")
    return output if _is_valid(output) else HookResult(deny="a hook said what nobody understands")


def _is_valid(output: object) -> bool:
    if not isinstance(output, HookResult):
        return False
    texts = isinstance(output.deny, str) and isinstance(output.word, str)
    prompt = output.prompt is None or isinstance(output.prompt, str)
    return texts and prompt and (output.arguments is None or isinstance(output.arguments, dict))


def hook_trace(event: HookEvent, output: HookResult) -> TraceEvent | None:
    """Return what hooks said as an event for the log, or None if they said nothing."""
    said = {
        "deny": output.deny,
        "word": output.word,
        "arguments": output.arguments,
        "prompt": output.prompt,
    }
    said = {key: deepcopy(value) for key, value in said.items() if value not in ("", None)}
    if not said:
        return None
    about = {"moment": event.moment, "callId": event.call_id, "tool": event.tool}
    return TraceEvent("hook", {key: value for key, value in about.items() if value} | said)


async def apply_prompt_hooks(
    hooks: Hooks, event: HookEvent, parts: tuple[Part, ...], redactor: Redactor | None = None
) -> tuple[tuple[Part, ...], TraceEvent | None]:
    """Return a prompt as the hooks change it, and what they said. Raise `HookDenied`."""
    output = await run_hooks(hooks, event, redactor)
    if output.deny:
        raise HookDenied(f"a hook refused the prompt, and nothing was sent: {output.deny}")
    if output.prompt is not None:
        media = tuple(part for part in parts if not isinstance(part, Text))
        parts = (Text(output.prompt), *media)
    if text := hook_note(output.word):
        parts = (*parts, Text(text))
    return parts, hook_trace(event, output)
