"""What a person has put around every call of a turn: hooks, their own policy, what undo keeps.

Where nothing was set up there is no such thing, and nobody waits. None of it lifts a deny: hooks
and the policy engine are asked when the gate has not denied, and only a person settles a guard.
"""

import asyncio
import logging
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bridle.engine.engine_config import EngineConfig, PolicyEngine
from bridle.events import Event, FilesChanged, TraceEvent
from bridle.messages import ToolCall
from bridle.policy import Decision, Mode, Verdict
from bridle.promises.hooks import Moment, Occasion, Remark

if TYPE_CHECKING:
    from bridle.engine.question import Judged
    from bridle.promises.keeping import Keeping

log = logging.getLogger(__name__)

_WORDS: dict[str, Verdict] = {"allowed": "allow", "requires_approval": "ask", "denied": "deny"}
_VERDICTS: dict[str, Verdict] = {one: one for one in _WORDS.values()}
_RULE = "policy engine"


class Around:
    """Hooks, policy engine and undo of one turn."""

    __slots__ = ("_emit", "_keeping", "_parts", "_session_id", "_turn")

    def __init__(
        self, parts: EngineConfig, session_id: str, turn: int, emit: Callable[[Event], None]
    ) -> None:
        self._parts = parts
        self._session_id = session_id
        self._turn = turn
        self._emit = emit
        self._keeping: Keeping | None = None

    def listens(self, moment: Moment) -> bool:
        """Is there a hook for this moment?"""
        hooks = self._parts.hooks
        return hooks is not None and hooks.listens(moment)

    async def hear(self, moment: Moment, **about: Any) -> Remark:
        """What the hooks say at this moment; it is recorded."""
        if (hooks := self._parts.hooks) is None or not hooks.listens(moment):
            return _NOTHING
        from bridle.engine.remarks import hear, trace

        about.setdefault("cwd", self._parts.workspace.root)
        occasion = Occasion(moment, self._session_id, turn=self._turn, **about)
        remark = await hear(hooks, occasion, self._parts.redactor)
        if (said := trace(occasion, remark)) is not None:
            self._emit(said)
        return remark

    async def before(self, judged: "Judged") -> Remark:
        """What the hooks say of a call that the gate has not denied."""
        call, cwd = judged.call, judged.cwd or self._parts.workspace.root
        return await self.hear(
            "before_tool",
            cwd=cwd,
            tool=call.name,
            call_id=call.id,
            arguments=deepcopy(call.arguments),  # what was judged is not theirs to alter
        )

    async def after(self, judged: "Judged", text: str, ok: bool) -> Remark:
        """What the hooks say of what came of it."""
        call, cwd = judged.call, judged.cwd or self._parts.workspace.root
        given = {"tool": call.name, "call_id": call.id, "arguments": deepcopy(call.arguments)}
        return await self.hear("after_tool", cwd=cwd, result=text, ok=ok, **given)

    async def weighed(self, judged: "Judged", mode: Mode) -> "Judged":
        """The call as the person's own policy engine sees it; a deny and a guard stay."""
        if (judge := self._parts.judge) is None:
            return judged
        said = await _evaluated(judge, judged, self._parts.judge_seconds)
        lacks_network = judged.facts.lacks_network
        decision = _strictest(judged.decision, said, mode, lacks_network=lacks_network)
        return replace(judged, decision=decision)

    async def keep(self, call: ToolCall) -> "Keeping | None":
        """Have what stands there kept before the call has its effect."""
        if self._keeping is None:
            if (keeper := self._parts.keeper) is None:
                return None
            self._keeping = keeper.keep(self._session_id, self._turn)
        await self._keeping.before(call)
        return self._keeping

    async def kept(self, keeping: "Keeping", call: ToolCall) -> FilesChanged | None:
        """What the call has changed; trouble with that takes nothing back."""
        try:
            return await keeping.after(call)
        except Exception as error:  # the effect has happened, and has to have its result
            log.warning("what %s changed could not be kept", call.name, exc_info=True)
            return FilesChanged(self._turn, call.id, uncovered=(f"undo broke: {error!r}",))

    def guarded(self, judged: "Judged", changed: FilesChanged) -> str:
        """Say which guarded files a command has changed on its way: it is recorded."""
        if not judged.tool.policy.runs:
            return ""  # a tool for files was judged by their names
        from bridle.workspace.placing import is_set_aside
        from bridle.workspace.protected import care_of

        own = _installed(changed)
        paths = [
            one.path for one in changed.files if not any(map(is_set_aside, one.path.split("/")))
        ]
        cares = ((path, care_of(path)) for path in paths if not path.startswith(own))
        found = [(path, care.why) for path, care in cares if care.writing]
        if not found:
            return ""
        shown = ", ".join(f"{path} ({why})" for path, why in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        said = (
            f"this command changed files that run by themselves or hold credentials: {shown}{more}"
        )
        detail = {"callId": changed.call_id, "paths": [path for path, _ in found]}
        self._emit(TraceEvent("guarded_change", {**detail, "message": said}))
        return said


def _installed(changed: FilesChanged) -> tuple[str, ...]:
    """Folders of packages that the command made or took away: what is in them is no news."""
    found = []
    for one in changed.files:
        if one.how == "changed":
            continue
        folder, mark, _ = one.path.partition("node_modules/")
        if mark and (not folder or folder.endswith("/")):
            found.append(folder + mark)
        folder, _, name = one.path.rpartition("/")
        if name == "pyvenv.cfg" and folder:
            found.append(f"{folder}/")
    return tuple(found)


_NOTHING = Remark()
_SHOWN = 5  # files that are named


async def _evaluated(judge: PolicyEngine, judged: "Judged", seconds: float) -> Decision:
    try:
        word = asyncio.ensure_future(judge.evaluate(judged.tool, deepcopy(judged.call.arguments)))
        try:
            await asyncio.wait((word,), timeout=seconds)
            if not word.done():
                return Decision("deny", f"the policy engine said nothing in {seconds:g} s", _RULE)
        finally:
            word.cancel()  # nobody waits for one that does not let go, either
        said = word.result()
    except Exception as error:  # what cannot be judged does not run
        log.debug("the policy engine broke", exc_info=True)
        return Decision("deny", f"the policy engine broke: {error!r}", _RULE)
    return understood(said)


def understood(said: Any) -> Decision:
    """What a policy engine said, as a decision. What is none of its words is a deny (A5)."""
    word = getattr(said, "verdict" if isinstance(said, Decision) else "decision", said)
    word = getattr(word, "value", word)
    found = _VERDICTS.get(word) if isinstance(said, Decision) else _worded(word)
    if found is None:
        return Decision("deny", f"the policy engine said {word!r}, which is no decision", _RULE)
    reason = getattr(said, "reason", "")
    reason = reason if isinstance(reason, str) and reason else "the policy engine says so"
    return Decision(found, reason, _RULE)


def _worded(word: object) -> Verdict | None:
    return _WORDS.get(word) if isinstance(word, str) else None


def _strictest(ours: Decision, theirs: Decision, mode: Mode, *, lacks_network: bool) -> Decision:
    """Theirs, but for what they cannot lift. In `auto` the person has answered their asks."""
    if ours.verdict == "deny" or (ours.lasting and theirs.verdict != "deny"):
        return ours
    if theirs.verdict == "ask":
        if mode == "auto":
            return Decision("allow", f"{theirs.reason}; the mode auto runs it unasked", _RULE)
        return ours if ours.verdict == "ask" else replace(theirs, network=lacks_network)
    return theirs
