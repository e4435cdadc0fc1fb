"""The tool calls of one turn of an ACP agent: asked about, done by us, or done without asking.

Each call that the agent announces ends in one of these ways. It asked, and the gate allowed it: its
result is recorded when the agent reports it. It asked, and the gate refused. It had us do the work
(a file, a command): that is recorded there (`client`). Or it did the work without asking: then the
log has the call as one that did not pass the gate, and the person is told once.
"""

import asyncio
from typing import Any, Literal, NamedTuple

from acp import schema
from msgspec import Struct

from bridle.agents.acp.client import Client, Host
from bridle.agents.acp.tool_mapping import MappedCall, map_call, named_paths
from bridle.agents.acp.updates import (
    CallTracker,
    call_output,
    call_result,
    choose_option,
    file_changes,
)
from bridle.events import ResponseCompleted, ToolOutputDelta
from bridle.messages import Message, ToolCall
from bridle.protocols.agent import Permission, ToolActivity
from bridle.tools.unified_diff import unified_diff
from bridle.workspace.text import one_line

State = Literal["open", "asked", "allowed", "refused", "handed over", "over"]
_GRACE = 0.5  # seconds for a question to be withdrawn
_HARMLESS = ("read", "search", "think")
_CHANGED = "not run: a hook changed the call, and this agent cannot be told to make another one"
_NO_ONCE = "not run: the agent offers no way to allow it once"
_AGAIN = "the agent asked for the same again before it reported a result"
_NO_RESULT = "the agent did not report a result"
_OTHER_PART = "not run: another part of the same call was refused"
_UNGATED = (
    "This agent does some things without asking first, so the gate does not see them: {}. "
    "They are in the log. Set the agent to ask, if it can."
)
_DEFIED = "The agent says that it has done `{}`, although that was refused. Check what changed."


class _Verdict(NamedTuple):
    """The gate's answer: the ids of what is allowed, or None for a refusal."""

    ids: tuple[str, ...] | None
    ends_turn: bool = False


class _CallState(Struct):
    """One call as the agent names it, and what the log has of it."""

    state: State = "open"
    kind: str = "other"
    ids: tuple[str, ...] = ()
    calls: tuple[MappedCall, ...] = ()
    shown: str = ""  # output that was passed on while it ran
    changes: list[schema.FileEditToolCallContent] = []  # as they were shown when it was asked


class ToolCalls:
    """Every tool call of one turn."""

    def __init__(self, host: Host, client: Client) -> None:
        self._host = host
        self._client = client
        self._tracker = CallTracker()
        self._states: dict[str, _CallState] = {}
        self._asking: set[str] = set()  # calls about which a question is open
        self._ids: set[str] = set()
        self._activity: ToolActivity | None = None
        self.used: dict[str, None] = {}  # names of the tools, in the order of their first use
        self.count = 0

    async def on_update(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> bool:
        """Handle what the agent says of a call, and return whether the call is new."""
        state = self._states.get(update.tool_call_id)
        if state is not None and state.state == "over":
            if isinstance(update, schema.ToolCallProgress):
                return False
            self._tracker.forget(update.tool_call_id)  # the same id again, for another call
            state = None
        call = self._tracker.merge(update)
        is_new = state is None
        state = self._note(call)
        await self._show(self._activity_of(call))
        if update.status in ("completed", "failed"):
            await self._end(call, state, ok=update.status == "completed")
        elif state.state == "allowed":
            await self._pass_output_on(call, state)
        return is_new

    async def on_permission_request(
        self, request: schema.RequestPermissionRequest, stopped: asyncio.Event
    ) -> dict[str, Any]:
        """Ask the gate, and answer with one of the agent's own options.

        A second question about a call whose first is still open is refused, and nothing of it is
        kept: permission for one must never be taken for the other.
        """
        name = request.tool_call.tool_call_id
        if name in self._asking:
            return _answer(choose_option(request.options, allowed=False))
        self._asking.add(name)
        try:
            return await self._judge(request, stopped)
        finally:
            self._asking.discard(name)

    async def _judge(
        self, request: schema.RequestPermissionRequest, stopped: asyncio.Event
    ) -> dict[str, Any]:
        call = self._tracker.merge(request.tool_call)
        state = self._note(call)
        if stopped.is_set():
            return _answer(None)
        calls, changes = map_call(call, self._host.root), file_changes(call)
        earlier_ids = state.ids
        state.ids, state.calls, state.state = (), (), "asked"
        for call_id in earlier_ids:  # the same call again, such as without the agent's own sandbox
            await self._host.finish(call_id, _AGAIN, ok=False)
        option = choose_option(request.options, allowed=True)
        permitting = self._permit(call.tool_call_id, calls, can_allow=option is not None)
        verdict = await _unless_stopped(stopped, asyncio.ensure_future(permitting))
        if verdict.ids is None:
            state.state = "refused"
        else:  # set together, and only here: what is redeemed later is exactly what was allowed
            state.ids, state.calls = verdict.ids, calls
            state.changes, state.state = changes, "allowed"
        if verdict.ends_turn or stopped.is_set():
            return _answer(None)
        if verdict.ids is None:
            option = choose_option(request.options, allowed=False)
        return _answer(option)

    async def settle(self) -> None:
        """At the end of the turn, record calls that were begun without asking and never ended."""
        for name, state in list(self._states.items()):
            call = self._tracker.get(name)
            if state.state == "open" and call is not None and call.status == "in_progress":
                state.state = "over"
                await self._record_ungated(call, _NO_RESULT, ok=False)

    def hand_over(self, kind: str, path: str) -> str:
        """Return the call id for work that the agent has us do.

        It is the id of the call that the agent is making, if it has announced one; else empty.
        """
        open_calls = [
            (name, state)
            for name, state in self._states.items()
            if state.state == "open" and state.kind in (kind, "other")
        ]
        same_path = [(name, state) for name, state in open_calls if path in self._paths(name)]
        for name, state in same_path or open_calls[:1]:
            state.state = "handed over"
            return self._unique_id(name)
        return ""

    def redeem_change(self, path: str, content: str) -> bool:
        """Was exactly this change allowed, and not made yet? If so, it counts as made now."""
        for state in self._states.values():
            calls = state.calls if state.state == "allowed" and state.ids else ()
            if (allowed := self._client.call_that_writes(calls, path, content)) is not None:
                state.calls = tuple(call for call in calls if call is not allowed)
                return True
        return False

    def redeem_command(self, line: str) -> str:
        """Return the id of the call by which exactly this command was allowed, once; else empty."""
        for state in self._states.values():
            calls = state.calls if state.state == "allowed" and state.ids else ()
            if any(call.name == "shell" and call.arguments == {"command": line} for call in calls):
                state.calls = ()
                return state.ids[0]
        return ""

    def _paths(self, name: str) -> list[str]:
        call = self._tracker.get(name)
        return named_paths(call) if call is not None else []

    def _note(self, call: schema.ToolCallUpdate) -> _CallState:
        state = self._states.get(call.tool_call_id)
        if state is None or (state.state == "over" and call.status not in ("completed", "failed")):
            state = self._states[call.tool_call_id] = _CallState()
            self.count += 1
        state.kind = call.kind or "other"
        return state

    async def _show(self, activity: ToolActivity | None) -> None:
        if activity != self._activity:
            self._activity = activity
            await self._host.show_activity(activity)

    def _activity_of(self, call: schema.ToolCallUpdate) -> ToolActivity:
        name = map_call(call, self._host.root)[0].name
        return ToolActivity(name, one_line(call.title or "", 200))

    def _unique_id(self, name: str) -> str:
        """Return an id that stands for one call in the log."""
        unique, number = name, 2
        while unique in self._ids:
            unique, number = f"{name}-{number}", number + 1
        self._ids.add(unique)
        return unique

    async def _permit(
        self, name: str, calls: tuple[MappedCall, ...], *, can_allow: bool
    ) -> _Verdict:
        """Ask the gate for every part of a call: all of them are allowed, or none."""
        allowed: list[str] = []
        for call in calls:
            self.used[call.name] = None
            permission = await self._permit_part(call, name)
            refusal = _CHANGED if permission.updated_input is not None else ""
            refusal = refusal or ("" if can_allow else _NO_ONCE)
            if permission and refusal and permission.call_id:
                await self._host.finish(permission.call_id, refusal, ok=False)
            if not permission or refusal:
                for call_id in allowed:
                    await self._host.finish(call_id, _OTHER_PART, ok=False)
                return _Verdict(None, permission.stops)
            allowed += [permission.call_id] if permission.call_id else []
        return _Verdict(tuple(allowed))

    async def _permit_part(self, call: MappedCall, name: str) -> Permission:
        call_id = self._unique_id(name)
        if call.name != "exit_plan_mode":
            return await self._host.request_permission(call.name, call.arguments, call_id)
        output = await self._host.run_tool(call.name, call.arguments, call_id)
        return Permission(not output.is_error, output.text)  # done: there is no result to report

    async def _end(self, call: schema.ToolCallUpdate, state: _CallState, *, ok: bool) -> None:
        """Record the result of a call that the agent reports as over."""
        text, before = call_result(call), state.state
        state.state = "over"
        if before == "allowed":
            changes = file_changes(call) or state.changes
            for index, call_id in enumerate(state.ids):
                diff = _diff(changes, self._host.root, index)
                await self._host.finish(call_id, text, ok=ok, data=diff)
        elif before in ("open", "asked"):
            await self._record_ungated(call, text, ok=ok)
        elif before == "refused" and ok:
            title = one_line(call.title or state.kind, 100)
            await self._host.notify("ungated", _DEFIED.format(title))
        self._tracker.forget(call.tool_call_id)
        if all(other.state in ("over", "refused") for other in self._states.values()):
            await self._show(None)

    async def _record_ungated(self, call: schema.ToolCallUpdate, text: str, *, ok: bool) -> None:
        """Record what was done without asking as that."""
        for mapped in map_call(call, self._host.root):
            self.used[mapped.name] = None
            made = ToolCall(self._unique_id(call.tool_call_id), mapped.name, mapped.arguments)
            await self._host.emit(ResponseCompleted("tool_use", Message("assistant", (made,))))
            await self._host.finish(made.id, text, ok=ok)
        if call.kind not in _HARMLESS and not self._host.state.get("ungated"):
            self._host.update_state(ungated=True)
            title = one_line(call.title or call.kind or "a tool", 100)
            await self._host.notify("ungated", _UNGATED.format(f"`{title}` was the first"))

    async def _pass_output_on(self, call: schema.ToolCallUpdate, state: _CallState) -> None:
        """Pass on what is new in the output of a call that runs."""
        text = call_output(call)
        if state.ids and text.startswith(state.shown) and len(text) > len(state.shown):
            await self._host.emit(ToolOutputDelta(state.ids[0], text[len(state.shown) :]))
            state.shown = text


async def _unless_stopped(stopped: asyncio.Event, permitting: "asyncio.Task[_Verdict]") -> _Verdict:
    """Return the gate's verdict; a refusal, soon after the turn was stopped, if none comes."""
    stop = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({permitting, stop}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({permitting}, timeout=_GRACE if stopped.is_set() else None)
        return permitting.result() if permitting.done() else _Verdict(None, ends_turn=True)
    finally:
        for task in (permitting, stop):
            task.cancel()
        await asyncio.wait({permitting, stop})


def _answer(option: str | None) -> dict[str, Any]:
    """Return the answer to a question; without an option, the question is withdrawn."""
    if option is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option}}


def _diff(
    changes: list[schema.FileEditToolCallContent], root: str, index: int
) -> dict[str, Any] | None:
    """Return the difference that the call shows of its file number `index`, if it shows one."""
    paths = list(dict.fromkeys(change.path for change in changes))
    if index >= len(paths):
        return None
    path = paths[index]
    where = path.removeprefix(f"{root.rstrip('/')}/")
    diffs = [
        unified_diff(where, change.old_text or "", change.new_text)
        for change in changes
        if change.path == path
    ]
    return {"path": where, "diff": "\n".join(diffs)}
