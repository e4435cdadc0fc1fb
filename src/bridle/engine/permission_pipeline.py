"""May this call run? Check its arguments, then ask the gate, hooks, the policy engine, a person.

The first deny is final. If a hook changes the arguments, the call is judged again from the start. A
call that a person has allowed is judged once more before it runs: if it would now do something else
than what they were shown, it does not run.
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.engine.approvals import CHANGED
from bridle.engine.call_middleware import CallMiddleware, hook_note, note
from bridle.engine.gate import JudgedCall
from bridle.engine.grants import fingerprint
from bridle.engine.json_schema import compile_schema
from bridle.engine.turn_context import Parked, TurnContext, refresh_tools
from bridle.errors import ToolError
from bridle.messages import ToolCall
from bridle.policy import Decision
from bridle.protocols.tool import Tool, ToolResult

log = logging.getLogger(__name__)

Validator = Callable[[Any], list[str]]


class PermissionPipeline:
    """Decides which of a turn's calls may run.

    `foreign` holds the ids of calls that another agent makes by its own means, and `preapproved`
    the fingerprints of calls that a person has allowed already and that may be made once.
    """

    def __init__(self, turn: TurnContext) -> None:
        self._turn = turn
        self._gate = turn.gate
        self._middleware = turn.middleware
        self._validators: dict[str, tuple[Tool, Validator]] = {}
        self.foreign: set[str] = set()
        self.preapproved: set[str] = set()
        self.notes: dict[str, str] = {}  # text that the model reads after a result, by call id

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the turn has now. With sources, they may change with every step."""
        if self._turn.sources:
            refresh_tools(self._turn)
        return self._turn.tools

    async def check(self, call: ToolCall, tool: Tool) -> JudgedCall | ToolResult:
        """Return the call as it may run, or the result if it may not. Raise `Parked`."""
        try:
            if (refusal := self._refuse(call, tool, counts=True)) is not None:
                return refusal
            judged = self._gate.judge(call, tool, **self._place(call, tool))
            if judged.decision.verdict == "deny":
                return _denied(judged.decision)
            if self._middleware is not None:
                changed = await self._apply_middleware(self._middleware, judged)
                if isinstance(changed, ToolResult):
                    return changed
                judged = changed
            if judged.decision.verdict != "ask":
                return judged
            if problem := await self._precheck(judged):
                return ToolResult.failure(problem)
            return await self._ask(judged)
        except Parked:
            raise
        except Exception as error:  # a call that cannot be judged does not run
            log.debug("call of %r could not be judged", call.name, exc_info=True)
            text = f"not run: it could not be judged: {error}"
            return ToolResult.failure(text, outcome="refused")

    async def preview(self, call: ToolCall) -> JudgedCall | None:
        """Return a later call of the step as it is judged now, if it will need approval."""
        tool = self.tools.get(call.name)
        if tool is None or call.broken or self._has_call_hooks():
            return None
        try:
            judged = self._judge(call, tool)
            if self._middleware is not None and isinstance(judged, JudgedCall):
                judged = await self._middleware.apply_policy_engine(judged, self._gate.mode())
        except Exception:  # it is reported when the call is to run
            log.debug("call of %r could not be judged", call.name, exc_info=True)
            return None
        if isinstance(judged, ToolResult) or judged.decision.verdict != "ask":
            return None
        if self._turn.approvals.is_granted(judged) or await self._precheck(judged):
            return None
        return judged

    def reads_only(self, call: ToolCall) -> bool:
        """Return whether a call changes nothing by itself, not even the shell's folder."""
        tool = self.tools.get(call.name)
        if tool is None or tool.policy.delegates:
            return tool is not None
        differs = tool.policy.runs or hasattr(tool, "facts")  # from call to call
        if tool.policy.read_only or not differs or call.broken or self._has_call_hooks():
            return tool.policy.read_only
        try:
            judged = self._judge(call, tool)
        except Exception:  # it is reported when the call is to run
            return False
        return isinstance(judged, JudgedCall) and judged.reads and not judged.changes_folder

    async def request_together(self, judged: JudgedCall) -> None:
        """Request approval of all calls of the step that are shown together with this one."""
        approvals = self._turn.approvals
        call = judged.call
        if not approvals.can_group or self._has_call_hooks() or approvals.is_requested(call.id):
            return
        group = [judged]
        calls = self._turn.tool_calls
        for other in calls.not_begun() if calls is not None else ():
            if other.id != call.id and not approvals.is_requested(other.id):
                later = await self.preview(other)
                if later is not None and later.group_key == judged.group_key:
                    group.append(later)
        if len(group) > 1:
            approvals.request_all(group)

    def redacted(self, text: str) -> str:
        """Return text without secrets. Redact before cutting text, which could split a secret."""
        redactor = self._turn.redactor
        return text if redactor is None else redactor.text(text)

    def add_note(self, call: ToolCall, text: str) -> None:
        """Add text that the model reads after the call's result."""
        if text:
            self.notes[call.id] = self.notes.get(call.id, "") + text

    def _judge(self, call: ToolCall, tool: Tool) -> JudgedCall | ToolResult:
        """Return the call with the gate's decision, or the result of a call that cannot run."""
        if (refusal := self._refuse(call, tool)) is not None:
            return refusal
        judged = self._gate.judge(call, tool, **self._place(call, tool))
        return _denied(judged.decision) if judged.decision.verdict == "deny" else judged

    def _refuse(self, call: ToolCall, tool: Tool, *, counts: bool = False) -> ToolResult | None:
        """Return the result of a call that need not be judged, because it cannot run anyway.

        `counts`: it is counted as one of the turn's calls.
        """
        if problems := self._validator(tool)(call.arguments):
            text = "these arguments are not valid: " + "; ".join(problems)
            return ToolResult.failure(text, outcome="invalid")
        if counts and not self._turn.budget.take_call():
            text = "not run: the limit of tool calls is reached"
            return ToolResult.failure(text, outcome="refused")
        return None

    def _place(self, call: ToolCall, tool: Tool) -> dict[str, Any]:
        """Return where a call would run, for the gate: the shell's folder, or another agent."""
        if call.id in self.foreign:  # in the root, and in no sandbox of ours
            return {"foreign": True}
        return {"cwd": self._turn.tool_state.cwd} if tool.policy.runs else {}

    def _validator(self, tool: Tool) -> Validator:
        """Return the check of a tool's arguments, compiled once."""
        known = self._validators.get(tool.name)
        if known is not None and known[0] is tool:
            return known[1]
        validator = _compiled(msgspec.json.encode(tool.parameters))
        self._validators[tool.name] = (tool, validator)  # a new tool may have an old one's name
        return validator

    async def _precheck(self, judged: JudgedCall) -> str:
        """Return why the call must fail, if its tool knows that before a person is asked.

        Do not ask the tool about files that need approval, because its answer may reveal their
        content; nor once a request was made, because a person may have allowed exactly this; nor
        about a foreign agent's own calls, because the agent has read the files itself.
        """
        precheck = getattr(judged.tool, "precheck", None)
        call, facts = judged.call, judged.facts
        if precheck is None or facts.guard or facts.opaque or call.id in self.foreign:
            return ""
        if self._turn.approvals.is_requested(call.id):
            return ""
        try:
            await precheck(call.arguments, self._turn.context(call))
        except ToolError as error:
            return error.message
        return ""

    async def _apply_middleware(
        self, middleware: CallMiddleware, judged: JudgedCall
    ) -> JudgedCall | ToolResult:
        """Return the call after hooks and the user's policy engine, or a result if they deny it."""
        if middleware.has_hook("before_tool"):
            hook_output = await middleware.before_call(judged)
            if hook_output.deny:
                message = f"not run: a hook denied it: {hook_output.deny}"
                return ToolResult.failure(message, {"rule": "hook"}, outcome="denied")
            self.add_note(judged.call, hook_note(hook_output.word))
            if hook_output.arguments is not None:
                changed = self._with_arguments(judged, hook_output.arguments)
                if isinstance(changed, ToolResult):
                    return changed
                judged = changed
        judged = await middleware.apply_policy_engine(judged, self._gate.mode())
        return _denied(judged.decision) if judged.decision.verdict == "deny" else judged

    def _with_arguments(
        self, judged: JudgedCall, arguments: dict[str, Any]
    ) -> JudgedCall | ToolResult:
        """Judge the call again with a hook's arguments. Hooks are not asked again."""
        written = msgspec.json.encode(arguments)  # a copy that the hook cannot alter afterwards
        call = ToolCall(judged.call.id, judged.call.name, msgspec.json.decode(written))
        if call.arguments == judged.call.arguments:
            return judged
        if (redactor := self._turn.redactor) is not None:  # what runs is what is recorded
            call = redactor.value(call)
        shown = self.redacted(written.decode())
        self.add_note(call, note("a hook changed the arguments to", shown))
        return self._judge(call, judged.tool)

    async def _ask(self, judged: JudgedCall) -> JudgedCall | ToolResult:
        """Ask a person, unless they have allowed exactly this call already."""
        if (key := preapproval_key(judged.call)) in self.preapproved:
            self.preapproved.discard(key)
            return judged
        approvals = self._turn.approvals
        if not approvals.is_granted(judged):
            await self.request_together(judged)
        decision = await approvals.settle(judged)
        if decision.verdict != "allow":
            return _denied(decision)
        if self._has_changed(judged):
            return _denied(Decision("deny", CHANGED.word, judged.decision.rule))
        if decision.word and not judged.tool.policy.asks:
            self.add_note(judged.call, note("the person added", self.redacted(decision.word)))
        return replace(judged, decision=decision)

    def _has_changed(self, judged: JudgedCall) -> bool:
        """Return whether the call would now do anything else than what the person was shown."""
        call, tool = judged.call, judged.tool
        now = self._gate.judge(call, tool, **self._place(call, tool))  # an answer may take days
        if now.decision.verdict == "deny" or now.cwd != judged.cwd:
            return True
        # The same command may need approval for another reason, or run in another sandbox.
        return now.facts != judged.facts or now.decision.once_only > judged.decision.once_only

    def _has_call_hooks(self) -> bool:
        """Return whether a hook may yet change the calls of this step."""
        return self._middleware is not None and self._middleware.has_hook("before_tool")


def preapproval_key(call: ToolCall) -> str:
    """Return what a call has in common with the same call made again."""
    return fingerprint(ToolCall("", call.name, call.arguments))


def _denied(decision: Decision) -> ToolResult:
    text = f"not run: {decision.reason}"
    return ToolResult.failure(text, {"rule": decision.rule}, outcome="denied")


@lru_cache(maxsize=512)
def _compiled(schema: bytes) -> Validator:
    return compile_schema(msgspec.json.decode(schema))
