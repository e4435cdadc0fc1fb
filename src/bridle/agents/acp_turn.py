"""One prompt to an ACP agent: what it says, asks and has us do, from the prompt to its end.

Updates are taken in the order in which they came, by one worker; a question waits until everything
that was said before it has been taken. Knows the session by its reins and the program not at all.
"""

import asyncio
import json
from typing import Any, TypeVar

from acp import RequestError, schema
from pydantic import BaseModel, ValidationError

from bridle.agents.acp_desk import Desk
from bridle.agents.acp_map import events_of, money_of, read_update, usage_of
from bridle.agents.acp_opening import Opened
from bridle.agents.acp_reins import Reins
from bridle.agents.acp_tools import Tools
from bridle.errors import AgentError
from bridle.events import TextDelta, TraceEvent, UsageReported
from bridle.usage import Usage
from bridle.workspace.text import one_line

_QUEUE = 1024  # updates that wait; the program waits when there are more
_MOST = 2**26  # characters that it may say in one turn
_LEAST = 64  # of which every update counts for so many at least
_NEWS = 20  # kinds of notification of a vendor's own that are noted, each once
Model = TypeVar("Model", bound=BaseModel)


class Turn:
    """What happens between a prompt and its answer."""

    def __init__(self, reins: Reins, opened: Opened) -> None:
        self._reins = reins
        self._opened = opened
        self._desk = Desk(reins)
        self.tools = Tools(reins, self._desk)
        self._updates: asyncio.Queue[Any] = asyncio.Queue(_QUEUE)
        self._worker = asyncio.create_task(self._work())
        self._texts: list[str] = []  # since the last call
        self._said = 0
        self._news: set[str] = set()
        self.cost = 0.0  # dollars, of this turn
        self.flooded = asyncio.Event()
        self.stopped = asyncio.Event()
        self._asks = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    @property
    def broken(self) -> "asyncio.Task[None]":
        """Is done only where what the agent says can be taken no longer."""
        return self._worker

    @property
    def text(self) -> str:
        """What the agent wrote after its last call."""
        return "".join(self._texts)

    async def told(self, method: str, params: Any) -> None:
        """A notification; the program waits where too many wait already."""
        if method == "session/update":
            await self._updates.put(params)
        elif method not in self._news and len(self._news) < _NEWS:
            self._news.add(method)
            await self._updates.put(TraceEvent("acp", {"notification": one_line(method, 200)}))

    async def asked(self, method: str, params: Any) -> Any:
        """A request, in its place among the updates."""
        answer = self._asks.get(method)
        if answer is None:
            raise RequestError.method_not_found(method)
        await self.caught_up()
        if self.stopped.is_set() and method != "session/request_permission":
            raise RequestError(-32000, "the turn was stopped")
        return await answer(params)

    async def caught_up(self) -> None:
        """Everything that was said so far has been taken. Raise what broke, where it could not."""
        mark = asyncio.Event()
        if not self._worker.done():
            await self._updates.put(mark)
        passed = asyncio.ensure_future(mark.wait())
        try:
            await asyncio.wait({passed, self._worker}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            passed.cancel()
        if self._worker.done():
            self._worker.result()

    async def used(self, response: schema.PromptResponse) -> None:
        """What the prompt used, at its end; what it cost was said on the way, or is not known."""
        usage = usage_of(response)
        cost = 0.0 if self._reins.state.get("cost") is not None else None
        if usage is not None:
            await self._reins.say(UsageReported(usage, cost=cost, priced=True))

    async def close(self) -> None:
        """Nothing runs on."""
        self._worker.cancel()
        await asyncio.wait({self._worker})
        if not self._worker.cancelled():
            self._worker.exception()  # it was said where it happened
        await self._desk.close()

    async def _work(self) -> None:
        while True:
            item = await self._updates.get()
            if isinstance(item, asyncio.Event):
                item.set()
            elif isinstance(item, TraceEvent):
                await self._reins.say(item)
            else:
                await self._take(item)

    async def _take(self, params: Any) -> None:
        found = read_update(params)
        is_call = isinstance(found, schema.SessionNotification) and isinstance(
            found.update, schema.ToolCallStart | schema.ToolCallProgress
        )  # such a one says all of its output again and again; what is new of it is kept
        self._count(_LEAST if is_call else size_of(params))
        if isinstance(found, TraceEvent):
            await self._reins.say(found)
            return
        if found.session_id != self._opened.id or self.flooded.is_set():
            return  # another conversation's, or more than anybody reads
        update = found.update
        if isinstance(update, schema.ToolCallStart | schema.ToolCallProgress):
            if await self.tools.take(update):
                self._texts.clear()
            return
        if isinstance(update, schema.CurrentModeUpdate):
            self._opened.modes.current = update.current_mode_id
        await self._cost(update)
        for event in events_of(update):
            if isinstance(event, TextDelta):
                self._texts.append(event.text)
            await self._reins.say(event)

    def _count(self, size: int) -> None:
        self._said += size
        if self._said > _MOST:
            self.flooded.set()

    async def _cost(self, update: Any) -> None:
        """Costs are the conversation's so far; what is new of them is this turn's."""
        money = money_of(update)
        if money is None:
            return
        if money.currency.upper() != "USD":
            await self._reins.say(TraceEvent("acp_cost", {"currency": money.currency[:10]}))
            return
        before = float(self._reins.state.get("cost") or 0.0)
        more = money.amount - before if money.amount >= before else money.amount
        self.cost += more
        self._reins.keep(cost=money.amount)
        if more > 0:
            await self._reins.say(UsageReported(Usage(), cost=more, priced=True))

    async def _permission(self, params: Any) -> Any:
        return await self.tools.ask(_read(schema.RequestPermissionRequest, params), self.stopped)

    async def _read(self, params: Any) -> Any:
        request = _read(schema.ReadTextFileRequest, params)
        return await self._desk.read(request, self.tools.carrying("read", request.path))

    async def _write(self, params: Any) -> Any:
        request = _read(schema.WriteTextFileRequest, params)
        if self.tools.redeem(request.path, request.content):
            return await self._desk.write(request, "", promised=True)
        call_id = self.tools.carrying("edit", request.path)
        return await self._desk.write(request, call_id, promised=False)

    async def _create(self, params: Any) -> Any:
        request = _read(schema.CreateTerminalRequest, params)
        line, limit = self._desk.command_of(request), request.output_byte_limit
        if allowed := self.tools.handed_over(line):
            return await self._desk.run(line, limit, "", allowed)
        return await self._desk.run(line, limit, self.tools.carrying("execute", ""), "")

    async def _output(self, params: Any) -> Any:
        return self._desk.output(_read(schema.TerminalOutputRequest, params).terminal_id)

    async def _wait(self, params: Any) -> Any:
        return await self._desk.wait(_read(schema.WaitForTerminalExitRequest, params).terminal_id)

    async def _kill(self, params: Any) -> Any:
        return await self._desk.kill(_read(schema.KillTerminalRequest, params).terminal_id)

    async def _release(self, params: Any) -> Any:
        return await self._desk.release(_read(schema.ReleaseTerminalRequest, params).terminal_id)


def _read(model: type[Model], params: Any) -> Model:
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise RequestError.invalid_params({"details": str(error.error_count())}) from error


def size_of(params: Any) -> int:
    """How much was said, whatever of it is kept."""
    try:
        return max(_LEAST, len(json.dumps(params)))
    except RecursionError:
        return _MOST // 64


def flood() -> AgentError:
    """The error for an agent that never stops."""
    return AgentError(
        "agent",
        f"The agent said more than {_MOST:,} characters in one turn, and was stopped.",
        hint="What it did until then is in the log. Ask for less at once.",
    )
