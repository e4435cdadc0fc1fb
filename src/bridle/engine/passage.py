"""The way of one call to its effect: valid arguments, the gate, hooks, a policy engine, a person.

A deny ends the way wherever it comes from. What a hook changes is judged again from the start, and
what a person has said yes to is looked at once more before it runs: it is what was shown, or it
does not run.
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.engine.approvals import CHANGED
from bridle.engine.around import Around
from bridle.engine.question import Judged
from bridle.engine.remarks import from_hook, line
from bridle.engine.schema import compile_schema
from bridle.engine.tool_sources import refresh_tools
from bridle.engine.turn_context import TurnContext
from bridle.errors import ToolError
from bridle.messages import ToolCall
from bridle.policy import Decision
from bridle.promises.tool import Tool, ToolResult

log = logging.getLogger(__name__)

Check = Callable[[Any], list[str]]


class Passage:
    """Takes calls through the gate, in one turn."""

    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._gate = turn.gate
        self._around = turn.around
        self._checks: dict[str, tuple[Tool, Check]] = {}
        self._words: dict[str, str] = {}  # what is added to a result, by call
        self._begun: set[str] = set()  # calls of this step whose effect may have happened
        self._open: dict[str, ToolCall] = {}

    @property
    def _tools(self) -> Mapping[str, Tool]:
        """Those that the turn knows now: sources may have others with every step."""
        if self._turn.sources:
            refresh_tools(self._turn)
        return self._turn.tools

    def _check(self, tool: Tool) -> Check:
        """The check of a tool's arguments, compiled once."""
        known = self._checks.get(tool.name)
        if known is not None and known[0] is tool:
            return known[1]
        check = _compiled(msgspec.json.encode(tool.parameters))
        self._checks[tool.name] = (tool, check)  # another one of that name takes other arguments
        return check

    def _judged(self, call: ToolCall, tool: Tool, *, counts: bool = True) -> Judged | ToolResult:
        """The call with what the gate says; a result where that, or something before, is a no."""
        if problems := self._check(tool)(call.arguments):
            return ToolResult.failure("these arguments are not valid: " + "; ".join(problems))
        if counts and not self._turn.budget.take_call():
            return ToolResult.failure("not run: the limit of tool calls is reached")
        return _unless_denied(self._look(call, tool))

    def _look(self, call: ToolCall, tool: Tool) -> Judged:
        """What the gate says of it, as it would run now."""
        return self._gate.judge(call, tool, self._cwd(tool))

    def _cwd(self, tool: Tool) -> str:
        return self._turn.tool_state.cwd if tool.policy.runs else ""

    async def _passed(self, call: ToolCall, tool: Tool) -> Judged | ToolResult:
        """The call as it may run; a result where it may not. Raise `Parked`."""
        found = self._judged(call, tool)
        if self._around is not None and isinstance(found, Judged):
            found = await self._weighed(self._around, found)
        if isinstance(found, Judged) and found.decision.verdict == "ask":
            if problem := await self._problem(found):
                return ToolResult.failure(problem)
            return await self._asked(found)
        return found

    async def _problem(self, judged: Judged) -> str:
        """Why the call must fail, if its tool can tell before a person is asked about it.

        Not of files that take a person's word: what the tool says may tell what is in them. And not
        once the question was put: a person may have said yes to exactly this.
        """
        precheck = getattr(judged.tool, "precheck", None)
        call, facts = judged.call, judged.facts
        if precheck is None or facts.guard or facts.opaque:
            return ""
        if self._turn.approvals.is_put(call.id):
            return ""
        try:
            await precheck(call.arguments, self._turn.context(call))
        except ToolError as error:
            return error.message
        return ""

    async def _weighed(self, around: Around, judged: Judged) -> Judged | ToolResult:
        """What hooks and the person's own policy make of it."""
        if around.listens("before_tool"):
            remark = await around.before(judged)
            if remark.deny:
                said = f"not permitted: a hook said no: {remark.deny}"
                return ToolResult.failure(said, {"rule": "hook"})
            self._add(judged.call, from_hook(remark.word))
            if remark.arguments is not None:
                found = self._changed(judged, remark.arguments)
                if isinstance(found, ToolResult):
                    return found
                judged = found
        return _unless_denied(await around.weighed(judged, self._gate.mode()))

    def _changed(self, judged: Judged, arguments: dict[str, Any]) -> Judged | ToolResult:
        """The call with a hook's arguments, judged like any other; hooks are not asked again."""
        written = msgspec.json.encode(arguments)  # a copy that nobody else holds
        call = ToolCall(judged.call.id, judged.call.name, msgspec.json.decode(written))
        if call.arguments == judged.call.arguments:
            return judged
        if self._gate.redactor is not None:  # what runs is what the log can say
            call = self._gate.redactor.value(call)
        self._add(call, line("a hook changed the arguments to", self._clean(written.decode())))
        return self._judged(call, judged.tool, counts=False)

    async def _asked(self, judged: Judged) -> Judged | ToolResult:
        """Have a person say whether it may run."""
        judged = self._gate.placed(judged)
        if self._gate.is_granted(judged):
            self._turn.approvals.settle(judged)
        else:
            await self._put_together(judged)
        decision = await self._gate.ask(judged)
        if decision.verdict != "allow":
            return _denied(decision)
        if self._is_another(judged):
            return _denied(Decision("deny", CHANGED.word, judged.decision.rule))
        if decision.word and not judged.tool.policy.asks:
            self._add(judged.call, line("the person added", self._clean(decision.word)))
        return replace(judged, decision=decision)

    def _is_another(self, judged: Judged) -> bool:
        """Would it do something else by now than what was shown? An answer may take days."""
        now = self._look(judged.call, judged.tool)
        if now.decision.verdict == "deny" or self._gate.placed(now).cwd != judged.cwd:
            return True
        # it is the same line, but why it was asked, or what holds it while it runs, is not
        return now.facts != judged.facts or now.decision.lasting > judged.decision.lasting

    async def _put_together(self, judged: Judged) -> None:
        """Put the questions of this step that belong with this one before it is waited for."""
        approvals = self._turn.approvals
        if not approvals.together or self._hears() or approvals.is_put(judged.call.id):
            return
        kin = [judged]
        for call in list(self._open.values()):
            if call.id not in self._begun and call.id != judged.call.id:
                found = None if approvals.is_put(call.id) else await self._ahead(call)
                kin += [found] if found is not None and found.kin == judged.kin else []
        if len(kin) > 1:
            approvals.put_all(kin)

    async def _ahead(self, call: ToolCall) -> Judged | None:
        """A call that has not had its turn yet, where it will have to be asked about."""
        tool = self._tools.get(call.name)
        if tool is None or call.broken or self._hears():
            return None
        try:
            found = self._judged(call, tool, counts=False)
            if self._around is not None and isinstance(found, Judged):
                found = await self._around.weighed(found, self._gate.mode())
        except Exception:  # it is said when its turn has come
            log.debug("call of %r could not be judged", call.name, exc_info=True)
            return None
        if isinstance(found, ToolResult) or found.decision.verdict != "ask":
            return None
        found = self._gate.placed(found)
        if self._gate.is_granted(found) or await self._problem(found):
            return None
        return found

    def _hears(self) -> bool:
        """Is there a hook that may yet change the calls of this step?"""
        return self._around is not None and self._around.listens("before_tool")

    def _reads(self, call: ToolCall) -> bool:
        """Will it change nothing by itself, not even where the shell stands?"""
        tool = self._tools.get(call.name)
        if tool is None or tool.policy.delegates:
            return tool is not None
        differs = tool.policy.runs or hasattr(tool, "facts")  # from call to call
        if tool.policy.read_only or not differs or call.broken or self._hears():
            return tool.policy.read_only
        try:
            found = self._judged(call, tool, counts=False)
        except Exception:  # it is said when its turn has come
            return False
        return isinstance(found, Judged) and found.reads and not found.moves

    def _clean(self, text: str) -> str:
        """Without secrets, before it is cut: half of one is not found when it is recorded."""
        redactor = self._gate.redactor
        return text if redactor is None else redactor.text(text)

    def _add(self, call: ToolCall, words: str) -> None:
        """Have the model read this after the call's result."""
        if words:
            self._words[call.id] = self._words.get(call.id, "") + words


def _unless_denied(judged: Judged) -> Judged | ToolResult:
    return _denied(judged.decision) if judged.decision.verdict == "deny" else judged


def _denied(decision: Decision) -> ToolResult:
    return ToolResult.failure(f"not permitted: {decision.reason}", {"rule": decision.rule})


@lru_cache(maxsize=512)
def _compiled(schema: bytes) -> Check:
    return compile_schema(msgspec.json.decode(schema))
