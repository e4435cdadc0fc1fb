"""What the gate would decide about a call, with the real tools, facts and rules. Runs nothing.

`DryRun` judges one call; `bridle policy` uses it. `past_calls` judges the newest calls of a
workspace, to preview a rule. `ReEvaluation` judges all calls of a session's log and compares: what
was decided then is read from the log (a request, an intent, a denial), and what would be decided
now is up to `DryRun`, in the folder as it is today.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.gate import ForeignTool, Gate, JudgedCall
from bridle.errors import AgentError
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Event,
    ModeChanged,
    ResponseCompleted,
    ToolResultEvent,
)
from bridle.messages import ToolCall, ToolOutput, outcome_of
from bridle.policy import MODES, Decision, Facts, Mode, Rule, ToolPolicy, Verdict
from bridle.protocols.machine import Machine
from bridle.protocols.store import Record, SessionSummary
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.runtime.assembly import local_folder
from bridle.tools.builtin import builtin_tools
from bridle.workspace.sandbox import Sandbox
from bridle.workspace.workspace import Workspace

_URL_ARGUMENTS = {"web_fetch": "url", "fetch": "url"}
_FETCH_OFF = "there is no tool web_fetch here: it is off as long as the settings name no hosts"
_MOST_CALLS = 200  # past calls that are judged again to preview a rule
_MOST_LOG_BYTES = 32 << 20  # a longer log is not read for that
_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

CallHistory = list[tuple[ToolCall, Facts]]


class DryRun:
    """Judges calls in a folder without running them.

    With `offered_only` it says what would happen here and now: a tool that is off is denied, and
    nothing is taken for granted about an unknown tool, which a program may offer later.
    """

    def __init__(
        self,
        root: str | Path,
        rules: Iterable[Rule] = (),
        *,
        also: Iterable[str | os.PathLike[str]] = (),
        sandbox: str = "auto",
        hosts: Iterable[str] = (),
        offered_only: bool = False,
    ) -> None:
        self._offered_only = offered_only
        self.rules = tuple(rules)
        self._hosts = tuple(hosts)
        workspace = Workspace(root, also=tuple(map(str, also)))
        folder = local_folder(workspace, sandbox=sandbox)
        assert folder is not None  # a `Workspace` is on this machine
        self.sandbox: Sandbox = folder.sandbox
        self.machine: Machine = folder.machine

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """The tools that come with bridle, by name."""
        tools = builtin_tools(sandbox=self.sandbox, hosts=self._hosts)
        return {tool.name: tool for tool in tools}

    def judge(
        self,
        call: ToolCall,
        mode: Mode = "ask",
        rules: tuple[Rule, ...] = (),
        cwd: str = "",
        *,
        foreign: bool = False,
    ) -> JudgedCall:
        """Return what the gate would say of a call, with these rules besides the standing ones.

        `foreign`: another agent would make it by its own means.
        """
        tool = self.tools.get(call.name)
        folder = os.path.normpath(Path(self.machine.root, cwd)) if cwd else ""
        if tool is None and foreign:
            return self._gate(mode, rules).judge(call, ForeignTool(call.name), foreign=True)
        if tool is None and self._offered_only:
            return self._judge_unoffered(call, mode, rules)
        tool = tool or _UnknownTool(call.name)
        return self._gate(mode, rules).judge(call, tool, folder, foreign=foreign)

    def call(self, tool: str, subject: str) -> ToolCall:
        """Return a call of that tool with that command, path or host."""
        known = self.tools.get(tool)
        if known is not None and known.policy.runs:
            return ToolCall("", tool, {known.policy.runs: subject})
        if key := _URL_ARGUMENTS.get(tool):
            url = subject if "://" in subject else f"https://{subject}/"
            return ToolCall("", "web_fetch", {key: url})
        if known is not None and hasattr(known, "touched"):
            tool = "write"  # the paths that it touches stand in a text of its own
        return ToolCall("", tool, {"path": subject})

    def _gate(self, mode: Mode, rules: tuple[Rule, ...]) -> Gate:
        return Gate(
            root=self.machine.root,
            rules=self.rules + rules,
            mode=lambda: mode,
            machine=self.machine,
            sandbox=self.sandbox,
        )

    def _judge_unoffered(self, call: ToolCall, mode: Mode, rules: tuple[Rule, ...]) -> JudgedCall:
        """Judge a call of a tool that is not here. Rules about it hold for when it is."""
        judged = self._gate("ask" if mode == "auto" else mode, rules).judge(
            call, _UnknownTool(call.name)
        )
        if call.name in _URL_ARGUMENTS:
            return replace(judged, decision=Decision("deny", _FETCH_OFF))
        if judged.decision.verdict != "ask" or judged.decision.rule:
            return judged
        reason = f"no tool {call.name} is known here, so nobody knows what it would do"
        return replace(judged, decision=Decision("ask", reason))


class _UnknownTool:
    """A tool of which nothing is known but its name: it asks."""

    description = ""
    parameters: dict[str, Any] = {}
    policy = ToolPolicy(requires_approval=True)

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Refuse: there is nothing to run."""
        return ToolResult.failure(f"there is no tool {self.name}")


class ReadableSessions(Protocol):
    """As much of a store or a catalog as is needed to find past calls."""

    def sessions(self) -> list[SessionSummary]: ...
    def read(self, session_id: str, after: int = 0) -> Iterator[Record]: ...


def past_calls(session_id: str, folder: ReadableSessions) -> CallHistory:
    """The newest finished calls in that session's workspace, as they would be judged today."""
    root = root_of(session_id, folder)
    if not root:
        return []
    sessions = [
        summary
        for summary in folder.sessions()
        if summary.workspace == root and summary.size <= _MOST_LOG_BYTES
    ]
    calls = _newest_calls(sessions, folder)
    try:
        dry_run = DryRun(root)
        return [(call, dry_run.judge(call, cwd=cwd).facts) for call, cwd in calls]
    except AgentError:  # the folder is gone
        return []


def root_of(session_id: str, folder: ReadableSessions) -> str:
    """Return the workspace of that session, or an empty string if it is unknown."""
    return next((each.workspace for each in folder.sessions() if each.id == session_id), "")


def _newest_calls(
    sessions: Sequence[SessionSummary], folder: ReadableSessions
) -> list[tuple[ToolCall, str]]:
    calls: list[tuple[ToolCall, str]] = []
    for summary in sessions:
        try:
            calls += reversed(list(_finished_calls(folder.read(summary.id))))
        except AgentError:  # the log cannot be read
            continue
        if len(calls) >= _MOST_CALLS:
            break
    return calls[:_MOST_CALLS]


def _finished_calls(records: Iterable[Record]) -> Iterator[tuple[ToolCall, str]]:
    """Yield the calls that have a result, each with the folder that its paths are relative to."""
    calls: dict[str, ToolCall] = {}
    cwd = ""
    for record in records:
        match record.event:
            case ResponseCompleted(message=message) if message is not None:
                calls = {call.id: call for call in message.tool_calls if not call.broken}
            case ToolResultEvent(output=output):
                if (call := calls.pop(output.call_id, None)) is not None:
                    yield call, cwd
                if isinstance(output.data, dict) and isinstance(output.data.get("cwd"), str):
                    cwd = output.data["cwd"]


def key_of(call: ToolCall) -> bytes:
    """Return what identifies a recorded call: the tool's name and the exact arguments."""
    return _encode([call.name, call.arguments])


class PastDecision(Struct, frozen=True, omit_defaults=True):
    """A call: what was decided about it then, and what would be now, by which rule and why."""

    session_id: str
    seq: int
    name: str
    arguments: dict[str, Any]
    then: Verdict
    now: Verdict
    reason: str = ""
    rule: str = ""

    @property
    def is_same(self) -> bool:
        """Whether nothing would change."""
        return self.then == self.now


class _OpenCall:
    """A call without a result yet, and what was recorded about it."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.asked = False
        self.begun = False

    def verdict(self, output: ToolOutput) -> Verdict | None:
        """Return what was decided about it, or None if it did not come to a decision."""
        if self.asked:
            return "ask"
        if self.begun:
            return "allow"
        return "deny" if outcome_of(output) == "denied" else None


class ReEvaluation:
    """Goes through the log of one session."""

    def __init__(self, session_id: str, dry_run: DryRun, mode: Mode = "ask") -> None:
        self._session_id = session_id
        self._dry_run = dry_run
        self._mode: Mode = mode
        self._cwd = ""
        self._open: dict[str, _OpenCall] = {}
        self._requests: dict[str, ApprovalAsked] = {}
        self._granted: set[bytes] = set()  # a call that a grant covers was asked about once
        self._covered: set[str] = set()

    def decisions(self, records: Iterable[Record]) -> Iterator[PastDecision]:
        """Yield every call about which something was decided."""
        for record in records:
            if isinstance(record.event, ToolResultEvent):
                yield from self._finish(record.seq, record.event)
            else:
                self._add(record.event)

    def _add(self, event: Event) -> None:
        match event:
            case ResponseCompleted(message=message) if message is not None:
                calls = {call.id: _OpenCall(call) for call in message.tool_calls}
                self._open = {**self._open, **calls} if event.grows else calls
            case ModeChanged(mode=mode) if mode in MODES:
                self._mode = next(known for known in MODES if known == mode)
            case ApprovalAsked(call=call):
                self._requests[event.shown] = event
                if call.id in self._open:
                    self._open[call.id].asked = True
            case ApprovalAnswered(allowed=True):
                self._answered(event)
            case CallIntended(call_id=call_id) if call_id in self._open:
                self._open[call_id].begun = True

    def _answered(self, answer: ApprovalAnswered) -> None:
        request = self._requests.get(answer.shown)
        if request is None:
            return
        if request.covers and answer.until and answer.scope in ("once", "session"):
            self._covered.add(request.covers)
        elif answer.scope == "session":
            self._granted.add(key_of(request.call))

    def _finish(self, seq: int, event: ToolResultEvent) -> Iterator[PastDecision]:
        output = event.output
        known = self._open.pop(output.call_id, None)
        then = known.verdict(output) if known is not None else None
        if known is not None and then is not None:
            call, foreign = known.call, event.foreign
            cwd = "" if foreign else self._cwd
            decision = self._dry_run.judge(call, self._mode, cwd=cwd, foreign=foreign).decision
            granted = key_of(call) in self._granted or decision.covers in self._covered
            if then == "allow" and granted:
                then = "ask"
            yield PastDecision(
                session_id=self._session_id,
                seq=seq,
                name=call.name,
                arguments=call.arguments,
                then=then,
                now=decision.verdict,
                reason=decision.reason,
                rule=decision.rule,
            )
        if isinstance(output.data, dict) and isinstance(output.data.get("cwd"), str):
            self._cwd = output.data["cwd"]
