"""One prompt to an ACP agent: what the agent says, asks and has us do until it answers.

Updates are handled in the order in which they came, by one worker task; a request waits until
everything that was said before it has been handled. Does not know how the program is run.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from acp import RequestError, schema
from pydantic import BaseModel, ValidationError

from bridle.agents.acp.client import Client, Host
from bridle.agents.acp.tool_calls import ToolCalls
from bridle.agents.acp.updates import parse_update, session_cost, to_events, to_usage
from bridle.errors import AgentError
from bridle.events import TextDelta, TraceEvent, UsageReported
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
        return await self._client.read(request, self.tool_calls.hand_over("read", request.path))

    async def _write_file(self, params: Any) -> Any:
        request = _parse(schema.WriteTextFileRequest, params)
        if self.tool_calls.redeem_change(request.path, request.content):
            return await self._client.write_allowed(request)
        return await self._client.write(request, self.tool_calls.hand_over("edit", request.path))

    async def _create_terminal(self, params: Any) -> Any:
        request = _parse(schema.CreateTerminalRequest, params)
        line, limit = self._client.shell_line(request), request.output_byte_limit
        if allowed := self.tool_calls.redeem_command(line):
            return await self._client.run(line, limit, allowed_call_id=allowed)
        call_id = self.tool_calls.hand_over("execute", "")
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
