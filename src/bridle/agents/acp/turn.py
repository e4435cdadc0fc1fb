"""One prompt to an ACP agent: what the agent says, asks and has us do until it answers.

Updates are handled in the order in which they came, by one worker task; a request waits until
everything that was said before it has been handled. Does not know how the program is run.

Each tool call that the agent announces ends in one of these ways. It asked, and the gate allowed
it: its result is recorded when the agent reports it. It asked, and the gate refused. It had us do
the work (a file, a command): that is recorded there (`client`). Or it did the work without asking:
then the log has the call as one that did not pass the gate, and the person is told once.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from acp import RequestError, schema
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from bridle.agents.acp.client import Client, Host
from bridle.agents.acp.tool_mapping import MappedCall, map_call, named_paths
from bridle.agents.acp.updates import (
    CallTracker,
    call_output,
    call_result,
    choose_option,
    file_changes,
    parse_update,
    session_cost,
    to_events,
    to_usage,
)
from bridle.errors import AgentError
from bridle.events import ResponseCompleted, TextDelta, ToolOutputDelta, TraceEvent, UsageReported
from bridle.messages import Message, ToolCall
from bridle.protocols.agent import Permission, ToolActivity
from bridle.tools.unified_diff import unified_diff
from bridle.usage import Usage
from bridle.workspace.text import one_line

_QUEUE = 1024  # updates that wait; if there are more, the program has to wait
_MOST = 2**26  # characters that an agent may say in one turn
_LEAST = 64  # characters that every update counts for at least
_MOST_KINDS = 20  # of notifications of a vendor's own that are noted, each once

Model = TypeVar("Model", bound=BaseModel)


class Turn:
    """What happens between a prompt and its answer."""

    def __init__(
        self, host: Host, conversation_id: str, on_mode_change: Callable[[str], None]
    ) -> None:
        self._host = host
        self._conversation_id = conversation_id
        self._on_mode_change = on_mode_change
        self._client = Client(host)
        self.tool_calls = ToolCalls(host, self._client)
        self._updates: asyncio.Queue[Any] = asyncio.Queue(_QUEUE)
        self.worker = asyncio.create_task(self._handle_updates())
        self._texts: list[str] = []  # since the last tool call
        self._size = 0
        self._noted_kinds: set[str] = set()
        self.cost = 0.0  # dollars, of this turn
        self.flooded = asyncio.Event()
        self.stopped = asyncio.Event()
        self._requests = {
            "session/request_permission": self._request_permission,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
            "terminal/create": self._create_terminal,
            "terminal/output": self._terminal_output,
            "terminal/wait_for_exit": self._wait_for_exit,
            "terminal/kill": self._kill_terminal,
            "terminal/release": self._release_terminal,
        }

    @property
    def text(self) -> str:
        """What the agent wrote after its last tool call."""
        return "".join(self._texts)

    async def on_notification(self, method: str, params: Any) -> None:
        """Queue a notification. The program has to wait while the queue is full."""
        if method == "session/update":
            await self._updates.put(params)
        elif method not in self._noted_kinds and len(self._noted_kinds) < _MOST_KINDS:
            self._noted_kinds.add(method)
            await self._updates.put(TraceEvent("acp", {"notification": one_line(method, 200)}))

    async def on_request(self, method: str, params: Any) -> Any:
        """Answer a request, after all updates that came before it."""
        answer = self._requests.get(method)
        if answer is None:
            raise RequestError.method_not_found(method)
        await self.wait_for_updates()
        if self.stopped.is_set() and method != "session/request_permission":
            raise RequestError(-32000, "the turn was stopped")
        return await answer(params)

    async def wait_for_updates(self) -> None:
        """Wait until every update so far was handled. Raise what the worker failed with."""
        marker = asyncio.Event()
        if not self.worker.done():
            await self._updates.put(marker)
        reached = asyncio.ensure_future(marker.wait())
        try:
            await asyncio.wait({reached, self.worker}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reached.cancel()
        if self.worker.done():
            self.worker.result()

    async def report_usage(self, response: schema.PromptResponse) -> None:
        """Report the tokens that the answer names. Its cost came with updates, or is unknown."""
        usage = to_usage(response)
        cost = 0.0 if self._host.state.get("cost") is not None else None
        if usage is not None:
            await self._host.emit(UsageReported(usage, cost=cost, priced=True))

    async def close(self) -> None:
        """Stop the worker and end every command that still runs."""
        self.worker.cancel()
        await asyncio.wait({self.worker})
        if not self.worker.cancelled():
            self.worker.exception()  # it was raised where somebody waited for it
        await self._client.close()

    async def _handle_updates(self) -> None:
        while True:
            item = await self._updates.get()
            if isinstance(item, asyncio.Event):
                item.set()
            elif isinstance(item, TraceEvent):
                await self._host.emit(item)
            else:
                await self._handle_update(item)

    async def _handle_update(self, params: Any) -> None:
        parsed = parse_update(params)
        is_call = isinstance(parsed, schema.SessionNotification) and isinstance(
            parsed.update, schema.ToolCallStart | schema.ToolCallProgress
        )  # repeats all of the call's output each time, of which only the new part is kept
        self._count(_LEAST if is_call else size_of(params))
        if isinstance(parsed, TraceEvent):
            await self._host.emit(parsed)
            return
        if parsed.session_id != self._conversation_id or self.flooded.is_set():
            return
        update = parsed.update
        if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
            if await self.tool_calls.on_update(update):
                self._texts.clear()
            return
        if isinstance(update, schema.CurrentModeUpdate):
            self._on_mode_change(update.current_mode_id)
        await self._report_cost(update)
        for event in to_events(update):
            if isinstance(event, TextDelta):
                self._texts.append(event.text)
            await self._host.emit(event)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > _MOST:
            self.flooded.set()

    async def _report_cost(self, update: Any) -> None:
        """Report what the turn adds to the cost of the conversation, which is what agents say."""
        cost = session_cost(update)
        if cost is None:
            return
        if cost.currency.upper() != "USD":
            await self._host.emit(TraceEvent("acp_cost", {"currency": cost.currency[:10]}))
            return
        before = float(self._host.state.get("cost") or 0.0)
        added = cost.amount - before if cost.amount >= before else cost.amount
        self.cost += added
        self._host.update_state(cost=cost.amount)
        if added > 0:
            await self._host.emit(UsageReported(Usage(), cost=added, priced=True))

    async def _request_permission(self, params: Any) -> Any:
        request = _parse(schema.RequestPermissionRequest, params)
        return await self.tool_calls.on_permission_request(request, self.stopped)

    async def _read_file(self, params: Any) -> Any:
        request = _parse(schema.ReadTextFileRequest, params)
        return await self._client.read(request, self.tool_calls.take_call_id("read", request.path))

    async def _write_file(self, params: Any) -> Any:
        request = _parse(schema.WriteTextFileRequest, params)
        if self.tool_calls.use_change_permission(request.path, request.content):
            return await self._client.write_allowed(request)
        return await self._client.write(request, self.tool_calls.take_call_id("edit", request.path))

    async def _create_terminal(self, params: Any) -> Any:
        request = _parse(schema.CreateTerminalRequest, params)
        line, limit = self._client.shell_line(request), request.output_byte_limit
        if allowed := self.tool_calls.use_command_permission(line):
            return await self._client.run(line, limit, allowed_call_id=allowed)
        call_id = self.tool_calls.take_call_id("execute", "")
        return await self._client.run(line, limit, call_id=call_id)

    async def _terminal_output(self, params: Any) -> Any:
        return self._client.output(_parse(schema.TerminalOutputRequest, params).terminal_id)

    async def _wait_for_exit(self, params: Any) -> Any:
        request = _parse(schema.WaitForTerminalExitRequest, params)
        return await self._client.wait(request.terminal_id)

    async def _kill_terminal(self, params: Any) -> Any:
        return await self._client.kill(_parse(schema.KillTerminalRequest, params).terminal_id)

    async def _release_terminal(self, params: Any) -> Any:
        request = _parse(schema.ReleaseTerminalRequest, params)
        return await self._client.release(request.terminal_id)


def _parse(model: type[Model], params: Any) -> Model:
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise RequestError.invalid_params({"details": str(error.error_count())}) from error


def size_of(params: Any) -> int:
    """Return how many characters an update counts for, however much of it is kept."""
    try:
        return max(_LEAST, len(json.dumps(params)))
    except RecursionError:
        return _MOST // 64


def flood_error() -> AgentError:
    """Return the error for an agent that says more than anybody could read."""
    return AgentError(
        "agent",
        f"The agent said more than {_MOST:,} characters in one turn, and was stopped.",
        hint="What it did until then is in the log. Ask for less at once.",
    )


# The tool calls of a turn

State = Literal["open", "asked", "allowed", "refused", "delegated", "over"]
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
_DONE_ANYWAY = (
    "The agent says that it has done `{}`, although that was refused. Check what changed."
)


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
        else:  # set together, and only here: what is used later is exactly what was allowed
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

    def take_call_id(self, kind: str, path: str) -> str:
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
            state.state = "delegated"
            return self._unique_id(name)
        return ""

    def use_change_permission(self, path: str, content: str) -> bool:
        """Was exactly this change allowed, and not made yet? If so, it counts as made now."""
        for state in self._states.values():
            calls = state.calls if state.state == "allowed" and state.ids else ()
            if (allowed := self._client.call_that_writes(calls, path, content)) is not None:
                state.calls = tuple(call for call in calls if call is not allowed)
                return True
        return False

    def use_command_permission(self, line: str) -> str:
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
        """Return an id that the log has for no other call."""
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
            await self._host.notify("ungated", _DONE_ANYWAY.format(title))
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
