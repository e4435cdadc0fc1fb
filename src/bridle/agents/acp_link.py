"""The line to an ACP program: JSON messages over its pipes, bounded, in order, and with deadlines.

Knows the official library's connection and what a line may look like. Does not know what the
methods mean: what the program asks goes to whoever takes it (`Taker`).

The library's own reader takes a line of any length, hands every notification to a task of its own
and logs what it does not understand; here a line has an end, notifications are handed over in the
order in which they came, a program that floods waits, and nothing is written to anybody's terminal.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from acp import RequestError
from acp.connection import Connection

from bridle.agents.acp_process import LIMIT, died
from bridle.errors import AgentError
from bridle.workspace.process.supervised import GRACE, SupervisedProcess
from bridle.workspace.text import one_line

log = logging.getLogger(__name__)

MOST_AT_ONCE = 64  # requests of the program that are under way
_NOISE = 1000  # lines that are no message, before it is clear that it speaks something else
_BREATH = 64  # messages, after which others have a turn
_SAID = 200  # characters of a line that is no message


class Taker(Protocol):
    """Whoever takes what the program says of its own accord."""

    async def told(self, method: str, params: Any) -> None:
        """A notification. Whoever waits here has the program wait."""
        ...

    async def asked(self, method: str, params: Any) -> Any:
        """A request; the answer, as JSON. Raise `RequestError` to refuse."""
        ...


class Pipe:
    """Messages over the pipes of a program: what the library calls a transport."""

    def __init__(self, process: SupervisedProcess, taker: Taker) -> None:
        self._process = process
        self._taker = taker
        self._writing = asyncio.Lock()
        self._noise = 0
        self._read = 0
        self.first_noise = ""
        self.trouble = ""

    async def send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._writing:
            try:
                self._process.writer.write(data)
                await self._process.writer.drain()
            except (OSError, RuntimeError) as error:  # its end of the pipe is closed
                raise ConnectionError(str(error)) from error

    async def receive(self) -> dict[str, Any] | None:
        """The next request or answer; None at the end."""
        while (line := await self._line()) is not None:
            self._read += 1
            if self._read % _BREATH == 0:
                await asyncio.sleep(0)  # what is buffered already would be read without a pause
            message = _read(line)
            if message is None:
                if not self._is_patient(line):
                    return None
            elif "method" in message and "id" not in message:
                await self._taker.told(message["method"], message.get("params"))
            else:
                return message
        return None

    async def close(self) -> None:
        """The process is ended by its owner."""

    async def _line(self) -> bytes | None:
        try:
            return await self._process.reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial or None
        except asyncio.LimitOverrunError:
            self.trouble = f"wrote a line of more than {LIMIT:,} bytes"
            return None
        except (OSError, ValueError):
            return None

    def _is_patient(self, line: bytes) -> bool:
        """Programs greet and warn on stdout; one that does nothing else speaks no ACP."""
        if not line.strip():
            return True
        self._noise += 1
        self.first_noise = self.first_noise or one_line(line.decode("utf-8", "replace"), _SAID)
        if self._noise < _NOISE:
            return True
        self.trouble = "writes to its output what is no message of the protocol"
        return False


class Link:
    """A running program and the requests made of it."""

    def __init__(self, process: SupervisedProcess, taker: Taker) -> None:
        self.process = process
        self._taker = taker
        self._pipe = Pipe(process, taker)
        self._under_way = 0
        self._connection = Connection(self._asked, self._pipe)

    async def request(
        self, method: str, params: Mapping[str, Any], seconds: float | None = None
    ) -> Any:
        """Its answer. Raise `RequestError` where it refuses, `AgentError` where none comes."""
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.send_request(method, dict(params))
        except TimeoutError as error:
            raise self._silent(method, seconds or 0.0) from error
        except ConnectionError as error:
            raise await self._broken() from error

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something; one that is gone is not told."""
        with suppress(ConnectionError):
            await self._connection.send_notification(method, dict(params))

    async def close(self, *, at_once: bool = False) -> None:
        """Leave nothing behind."""
        try:
            await self.process.end(patience=0 if at_once else GRACE)
        finally:
            await self._connection.close()

    async def _asked(self, method: str, params: Any, is_notification: bool) -> Any:
        if self._under_way >= MOST_AT_ONCE:
            raise RequestError(-32000, f"more than {MOST_AT_ONCE} requests at once")
        self._under_way += 1
        try:
            return await self._taker.asked(method, params)
        except RequestError:
            raise
        except AgentError as error:
            raise RequestError(-32603, error.message) from error
        except Exception as error:  # somebody else's hook or gate: the library would print it
            log.debug("a request could not be answered: %s", method, exc_info=True)
            raise RequestError(-32603, f"{type(error).__name__} on the client's side") from error
        finally:
            self._under_way -= 1

    def _silent(self, method: str, seconds: float) -> AgentError:
        """A program that does not answer is broken; the limit is ours, and not the person's."""
        said = self.process.stderr_tail() or self._pipe.first_noise
        more = f" It said: {said}" if said else ""
        return AgentError(
            "agent",
            f"The agent's program `{self.process.name}` did not answer `{method}` within "
            f"{seconds:g} seconds.{more}",
            hint="Run it by hand to see whether it waits for something, such as a login, "
            "and whether it needs a flag to speak ACP (such as --acp).",
        )

    async def _broken(self) -> AgentError:
        trouble = self._pipe.trouble or await self.process.describe_exit()
        said = self.process.stderr_tail() or self._pipe.first_noise
        return died(self.process.name, trouble, said)


def _read(line: bytes) -> dict[str, Any] | None:
    """What the line says, where that is a message that the library can take."""
    try:
        return message_of(json.loads(line))
    except (ValueError, RecursionError):
        return None


def message_of(found: Any) -> dict[str, Any] | None:
    """The same, where it is a message of JSON-RPC; its error is one that can be relied on."""
    if not isinstance(found, dict) or not isinstance(found.get("id"), int | str | None):
        return None
    if "method" in found:
        return found if isinstance(found["method"], str) else None
    if "id" not in found:
        return None
    if "error" in found:
        found["error"] = _error(found["error"])
    return found


def _error(found: Any) -> dict[str, Any]:
    said = found if isinstance(found, dict) else {"message": str(found)}
    code, words = said.get("code"), said.get("message")
    return {
        "code": code if isinstance(code, int) else -32603,
        "message": one_line(words, 2000) if isinstance(words, str) else "no reason was given",
        "data": said.get("data"),
    }
