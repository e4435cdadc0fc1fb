"""Lines over two pipes, read and written in threads: nobody here ever waits for the other side.

A line has an end: one that is longer than any message is skipped, and said to be. Who does not
read what is said has us wait with more of it, but not with the end. The threads are left behind
when the process ends.
"""

import asyncio
import json
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, BinaryIO

from acp import RequestError
from msgspec import Struct

from bridle.agents.acp.connection import to_message
from bridle.errors import AgentError, SessionError, UnknownSession

LONGEST = 32 << 20  # bytes of one message: pictures come in prompts
_AHEAD = 64  # lines that are read before somebody has taken them
_FULL = 4 << 20  # bytes that wait to be written, before whoever says more has to wait
_FAREWELL = 2.0  # seconds that the last words have to get out


class JsonLines:
    """Our ends of the two pipes."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._leaving: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ahead = threading.Semaphore(_AHEAD)
        self._written = threading.Event()
        self._waiting = 0  # bytes
        self._room = asyncio.Event()
        self._room.set()
        self._broken = False
        self._hurried = False

    def begin(self) -> None:
        """Read and write from now on."""
        self._loop = asyncio.get_running_loop()
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True, name=f"acp{work.__name__}").start()

    async def line(self) -> bytes | None:
        """The next line; an empty one stands for one that was too long; None at the end."""
        line = await self._arrived.get()
        self._ahead.release()
        if line is None:
            self.hurry()
        return line

    async def put(self, data: bytes) -> None:
        """Write it, in order. Comes back when there is room for more; what cannot be is dropped."""
        if self._broken:
            return
        self._waiting += len(data)
        self._leaving.put(data)
        if self._waiting > _FULL and not self._hurried:
            self._room.clear()
        await self._room.wait()

    def hurry(self) -> None:
        """It ends: from now on nobody waits for the other side to read."""
        self._hurried = True
        self._room.set()

    async def close(self) -> None:
        """The last words get out, where somebody reads them."""
        self._leaving.put(None)
        if self._loop is not None:
            await asyncio.to_thread(self._written.wait, _FAREWELL)

    def _read(self) -> None:
        """In a thread: every line, and None at the end."""
        line: bytes | None = b""
        while line is not None:
            self._ahead.acquire()
            line = self._next()
            if not self._tell(self._arrived.put_nowait, line):
                return

    def _next(self) -> bytes | None:
        try:
            line = self._source.readline(LONGEST)
            if line.endswith(b"\n"):
                return line
            if len(line) < LONGEST:
                return None  # the end; what was cut off is no message
            while line and not line.endswith(b"\n"):
                line = self._source.readline(LONGEST)
        except (OSError, ValueError):
            return None
        return b"" if line else None

    def _write(self) -> None:
        """In a thread: whatever is to be said, until there is nothing, or nobody reads."""
        while (data := self._leaving.get()) is not None:
            try:
                self._sink.write(data)
                self._sink.flush()
            except (OSError, ValueError):
                self._tell(self._break)
                break
            self._tell(self._wrote, len(data))
        self._written.set()

    def _tell(self, act: object, *words: object) -> bool:
        """Have it done in the loop; False where that is closed, and nobody waits any more."""
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act, *words)  # type: ignore[arg-type]  # ours, all of them
            return True
        return False

    def _wrote(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= _FULL:
            self._room.set()

    def _break(self) -> None:
        """Nobody reads: then there is nobody to work for, either."""
        self._broken = True
        self._room.set()
        self._arrived.put_nowait(None)


log = logging.getLogger(__name__)

MOST_AT_ONCE = 256  # requests of the editor that are under way
_CANCELLED = -32800
_UNKNOWN = -32002

Take = Callable[[str, Any], Awaitable[Any]]


class Reply(Struct):
    """A result, and what is to happen once it is said: updates about what it names."""

    result: dict[str, Any]
    then: Callable[[], Awaitable[None]] | None = None


class Peer:
    """One editor. `ask` takes requests and answers them, `tell` takes notifications."""

    def __init__(self, lines: JsonLines, ask: Take, tell: Take) -> None:
        self._lines = lines
        self._ask = ask
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: dict[int | str, asyncio.Task[None]] = {}  # its requests
        self._waiting: dict[str, asyncio.Future[Any]] = {}  # ours
        self._count = 0

    async def serve(self) -> None:
        """Until the input ends. What is under way then is `close`'s."""
        self._lines.begin()
        while (line := await self._lines.line()) is not None:
            await self._take(line)

    def hurry(self) -> None:
        """It ends: nobody waits for the editor to read any more."""
        self._lines.hurry()

    async def close(self) -> None:
        """Give up what is under way, and have the last words said."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._lines.close()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell the editor something; comes back when there is room for more."""
        await self._say({"method": method, "params": params})

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Its answer. Cancelling this takes the request back. Raise `RequestError`."""
        self._count += 1
        number = f"bridle-{self._count}"
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._say({"id": number, "method": method, "params": params})
            return await answer
        except asyncio.CancelledError:
            await self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            del self._waiting[number]

    async def _take(self, line: bytes) -> None:
        if not line:
            await self._refuse(-32700, f"a message has at most {LONGEST:,} bytes")
            return
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            if line.strip():
                await self._refuse(-32700, "that is no JSON")
            return
        if (message := to_message(found)) is None:
            await self._refuse(-32600, "that is no message of JSON-RPC 2.0")
        elif "method" not in message:
            self._heard(message)
        elif (number := message.get("id")) is None:
            self._start(self._notice(message["method"], message.get("params")))
        elif len(self._under_way) >= MOST_AT_ONCE:
            await self._refuse(-32000, "too many requests at once", number)
        else:
            work = self._answer(number, message["method"], message.get("params"))
            self._under_way[number] = self._start(work)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _heard(self, message: dict[str, Any]) -> None:
        """The answer to a request of ours; one to a request that was taken back is late."""
        answer = self._waiting.get(message["id"])
        if answer is None or answer.done():
            return
        if (error := message.get("error")) is not None:
            answer.set_exception(RequestError(error["code"], error["message"], error["data"]))
        else:
            answer.set_result(message.get("result"))

    async def _notice(self, method: str, params: Any) -> None:
        if method == "$/cancel_request" and isinstance(params, dict):
            number = params.get("requestId")
            task = self._under_way.get(number) if isinstance(number, int | str) else None
            if task is not None:
                task.cancel()
            return
        try:
            await self._tell(method, params)
        except (AgentError, RequestError) as error:
            log.info("%s: %s", method, error)
        except Exception:  # a notification has no answer, and the next one may be a good one
            log.exception("the notification %s could not be taken", method)

    async def _answer(self, number: int | str, method: str, params: Any) -> None:
        me = asyncio.current_task()
        then = None
        try:
            found = await self._ask(method, params)
            reply = found if isinstance(found, Reply) else Reply(found)
            then = reply.then
            await self._say({"id": number, "result": reply.result})
        except asyncio.CancelledError:
            await self._refuse(_CANCELLED, "the request was taken back", number)
            raise
        except Exception as error:  # whatever it is, the editor gets an answer and goes on
            await self._say({"id": number, "error": to_error(error, method)})
        finally:
            if self._under_way.get(number) is me:
                del self._under_way[number]
        if then is not None:
            await self._afterwards(method, then)

    async def _afterwards(self, method: str, then: Callable[[], Awaitable[None]]) -> None:
        try:
            await then()
        except AgentError as error:  # it was answered already; whoever looks at the log finds it
            log.warning("after %s: %s", method, error.message)

    async def _refuse(self, code: int, words: str, number: int | str | None = None) -> None:
        await self._say({"id": number, "error": {"code": code, "message": words}})

    async def _say(self, message: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        await self._lines.put(text.encode() + b"\n")


def to_error(error: Exception, method: str) -> dict[str, Any]:
    """What went wrong, for a person: a sentence, and what to do next."""
    if isinstance(error, RequestError):
        found: dict[str, Any] = error.to_error_obj()
        return {name: value for name, value in found.items() if value is not None}
    if not isinstance(error, AgentError):
        log.error("%s could not be answered", method, exc_info=error)
        words = "something in bridle went wrong; what was said before is kept"
        return {"code": -32603, "message": words, "data": {"hint": "Try it again."}}
    code = -32603
    if isinstance(error, UnknownSession):
        code = _UNKNOWN
    elif isinstance(error, SessionError):
        code = -32602
    words = f"{error.message}. {error.hint}" if error.hint else error.message
    return {"code": code, "message": words, "data": {"hint": error.hint, "kind": error.kind}}
