"""The connection to an ACP program: JSON messages over its pipes, bounded and in order.

Uses the official library's `Connection`, but reads lines itself. The library's reader takes a line
of any length, hands every notification to a task of its own and logs what it does not understand.
Here a line has a longest length, notifications are passed on in the order in which they came, a
program that floods has to wait, and nothing is written to anybody's terminal. Does not know what
the methods mean.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from acp import RequestError
from acp.connection import Connection

from bridle.agents.acp.program import LINE_LIMIT, program_ended
from bridle.errors import AgentError
from bridle.workspace.process.supervised_process import GRACE, SupervisedProcess
from bridle.workspace.text import one_line, quantity

log = logging.getLogger(__name__)

MAX_REQUESTS = 64  # of the program that are handled at the same time
_MAX_NOISE = 1000  # lines that are not messages, until it is clear that it speaks something else
_BATCH = 64  # messages, after which other tasks run
_SHOWN = 200  # characters of a line that is not a message


class Handler(Protocol):
    """Handles what the program sends of its own accord."""

    async def on_notification(self, method: str, params: Any) -> None:
        """Handle a notification. The program waits until this returns."""
        ...

    async def on_request(self, method: str, params: Any) -> Any:
        """Return the answer to a request, as JSON. Raise `RequestError` to refuse."""
        ...


class Transport:
    """Messages over the pipes of a program, in the shape that the library calls a transport."""

    def __init__(self, process: SupervisedProcess, handler: Handler) -> None:
        self._process = process
        self._handler = handler
        self._writing = asyncio.Lock()
        self._noise = 0
        self._messages = 0
        self.first_noise = ""
        self.trouble = ""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write one message. Raise `ConnectionError` if the program does not read any more."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._writing:
            try:
                self._process.writer.write(data)
                await self._process.writer.drain()
            except (OSError, RuntimeError) as error:  # its end of the pipe is closed
                raise ConnectionError(str(error)) from error

    async def receive(self) -> dict[str, Any] | None:
        """Return the next request or answer; None at the end. Notifications are handled here."""
        while (line := await self._read_line()) is not None:
            self._messages += 1
            if self._messages % _BATCH == 0:
                await asyncio.sleep(0)  # lines that are buffered are read without any pause
            message = _parse(line)
            if message is None:
                if not self._tolerates(line):
                    return None
            elif "method" in message and "id" not in message:
                await self._handler.on_notification(message["method"], message.get("params"))
            else:
                return message
        return None

    async def close(self) -> None:
        """Do nothing: `AgentConnection` ends the process."""

    async def _read_line(self) -> bytes | None:
        try:
            return await self._process.reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial or None
        except asyncio.LimitOverrunError:
            self.trouble = f"wrote a line of more than {LINE_LIMIT:,} bytes"
            return None
        except (OSError, ValueError):
            return None

    def _tolerates(self, line: bytes) -> bool:
        """Count a line that is not a message. Programs greet and warn on stdout, up to a limit."""
        if not line.strip():
            return True
        self._noise += 1
        self.first_noise = self.first_noise or one_line(line.decode("utf-8", "replace"), _SHOWN)
        if self._noise < _MAX_NOISE:
            return True
        self.trouble = "writes lines that are not messages of the protocol"
        return False


class AgentConnection:
    """A running program, and the requests that are made of it."""

    def __init__(self, process: SupervisedProcess, handler: Handler) -> None:
        self.process = process
        self._handler = handler
        self._transport = Transport(process, handler)
        self._open_requests = 0
        self._connection = Connection(self._handle, self._transport)

    async def request(
        self, method: str, params: Mapping[str, Any], seconds: float | None = None
    ) -> Any:
        """Make a request and return its answer.

        Raise `RequestError` if the program refuses, `AgentError` if no answer comes.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.send_request(method, dict(params))
        except TimeoutError as error:
            raise self._no_answer(method, seconds or 0.0) from error
        except ConnectionError as error:
            trouble = self._transport.trouble or await self.process.describe_exit()
            raise program_ended(self.process.name, trouble, self._complaint()) from error

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, unless the program has ended."""
        with suppress(ConnectionError):
            await self._connection.send_notification(method, dict(params))

    async def close(self, *, at_once: bool = False) -> None:
        """End the program and everything it has started."""
        try:
            await self.process.end(patience=0 if at_once else GRACE)
        finally:
            await self._connection.close()

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if self._open_requests >= MAX_REQUESTS:
            raise RequestError(-32000, f"more than {MAX_REQUESTS} requests at once")
        self._open_requests += 1
        try:
            return await self._handler.on_request(method, params)
        except RequestError:
            raise
        except AgentError as error:
            raise RequestError(-32603, error.message) from error
        except Exception as error:  # from a hook or a gate: the library would print it
            log.debug("a request could not be answered: %s", method, exc_info=True)
            raise RequestError(-32603, f"{type(error).__name__} on the client's side") from error
        finally:
            self._open_requests -= 1

    def _complaint(self) -> str:
        return self.process.stderr_tail() or self._transport.first_noise

    def _no_answer(self, method: str, seconds: float) -> AgentError:
        """Return an `AgentError` that is not a timeout: the limit is ours, not the person's."""
        complaint = self._complaint()
        quote = f" It said: {complaint}" if complaint else ""
        return AgentError(
            "agent",
            f"The agent's program `{self.process.name}` did not answer `{method}` within "
            f"{quantity(seconds, 'second')}.{quote}",
            hint="Run it by hand to see whether it waits for something, such as a login, "
            "and whether it needs a flag to speak ACP (such as --acp).",
        )


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        return to_message(json.loads(line))
    except (ValueError, RecursionError):
        return None


def to_message(value: Any) -> dict[str, Any] | None:
    """Return the value if it is a JSON-RPC message that the library can take, else None."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), int | str | None):
        return None
    if "method" in value:
        return value if isinstance(value["method"], str) else None
    if "id" not in value:
        return None
    if "error" in value:
        value["error"] = _normal_error(value["error"])
    return value


def _normal_error(value: Any) -> dict[str, Any]:
    error = value if isinstance(value, dict) else {"message": str(value)}
    code, message = error.get("code"), error.get("message")
    return {
        "code": code if isinstance(code, int) else -32603,
        "message": one_line(message, 2000) if isinstance(message, str) else "no reason was given",
        "data": error.get("data"),
    }
