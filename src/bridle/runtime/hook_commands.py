"""A hook that is a command: told on standard input, heard by its exit code and what it prints.

It runs beside its file with a clean environment, below a supervisor, so that nothing of it is left
when it has ended, took too long or was interrupted, also when bridle is killed. 0 is fine, and a
JSON object on standard output is heard; 2 denies, with the reason on standard error; anything else
is a hook that broke. So is, before something happens, whatever else it prints there: it may have
been meant as a no.
"""

import asyncio
import os
import tempfile
from contextlib import suppress
from typing import IO, Any

import msgspec

from bridle.config.hooks import CommandLine
from bridle.errors import ConfigError
from bridle.promises.hooks import Moment, Occasion, Remark
from bridle.runtime.hook_places import HINT, WORKSPACE, folder_of, why_not
from bridle.runtime.hooks import Broken, checked
from bridle.workspace.process.command import Command, ExitStatus
from bridle.workspace.process.environment import clean_environment
from bridle.workspace.sandbox import Start, supervised
from bridle.workspace.text import neutral, one_line, quantity, shorten

_MOST = 65_536  # bytes that a hook may print
_MOST_RESULT = 1_000_000  # characters of a result that a hook is told
_LINES, _REASON = 5, 2000  # of standard error that are a reason
_DENIES = 2
_SHELL = "/bin/sh"
_HEARD = ("deny", "word", "arguments", "prompt")


class CommandHook:
    """One command of a file."""

    def __init__(self, line: CommandLine, root: str) -> None:
        if why := why_not(line, root):
            raise ConfigError(f"{line.origin or 'a hook'}: it is refused: {why}", hint=HINT)
        self._line = line
        self._root = root
        self.on: tuple[Moment, ...] = line.moments
        self.tools = line.tools
        self.name = f"`{one_line(line.words, 60)}`"

    async def speak(self, occasion: Occasion) -> Remark:
        """Run it, and hear what it says. Raise `Broken`."""
        if why := why_not(self._line, self._root):  # what it names may have come since
            raise Broken(f"it is refused: {why}")
        run = _Run(self._line, self._root)
        with tempfile.TemporaryFile() as told:
            told.write(to_json(occasion))
            told.flush()
            ended = await run.through(told)
        if run.is_too_much:
            raise Broken(f"it printed more than {_MOST // 1024} KB")
        if ended.timed_out:
            raise Broken(f"it did not end within {quantity(self._line.seconds, 'second')}")
        strict = occasion.moment.startswith("before")
        return understood(ended.code, bytes(run.printed), bytes(run.complained), strict=strict)


class _Run:
    """One run of the command: what it prints, and what it complains of."""

    def __init__(self, line: CommandLine, root: str) -> None:
        self._line = line
        self._root = root
        self.printed = bytearray()
        self.complained = bytearray()

    @property
    def is_too_much(self) -> bool:
        """Did it print more than anybody reads?"""
        return len(self.printed) + len(self.complained) > _MOST

    async def through(self, told: IO[bytes]) -> ExitStatus:
        """From its start to its end."""
        loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        try:
            os.set_blocking(reader, False)
            words = _words(self._line.run, told.fileno(), writer)
            handles = (told.fileno(), writer)
            place = folder_of(self._line)
            command = Command(words, place, self._print, starter=_start, handles=handles)
            work = command.run(self._line.seconds, _environment(self._root))
            running = asyncio.ensure_future(work)
            loop.add_reader(reader, self._complaint, reader, running)
            return await self._over(running)
        finally:
            loop.remove_reader(reader)
            self._complaint(reader, None)
            os.close(writer)
            os.close(reader)

    async def _over(self, running: "asyncio.Future[ExitStatus]") -> ExitStatus:
        """How it ended; one that complains without end is ended here."""
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_too_much or (task is not None and task.cancelling()):
                raise
            return ExitStatus(None)

    def _print(self, data: bytes) -> bool:
        self.printed += data[: _MOST + 1]
        return not self.is_too_much

    def _complaint(self, reader: int, running: "asyncio.Future[ExitStatus] | None") -> None:
        with suppress(BlockingIOError):
            data = os.read(reader, _MOST)
            self.complained += data[: _MOST + 1 - len(self.complained)]
        if running is not None and self.is_too_much:
            running.cancel()


def _words(run: str | tuple[str, ...], told: int, complaints: int) -> list[str]:
    """The command with its input and its complaints where they belong.

    A shell takes handles of one digit alone by their number; by their names it takes any.
    """
    inner = [_SHELL, "-c", run] if isinstance(run, str) else list(run)
    script = f'exec "$@" </dev/fd/{told} 2>/dev/fd/{complaints}'
    return [_SHELL, "-c", script, "hook", *inner]


def _environment(root: str) -> dict[str, str]:
    """Programs of the workspace are not found by their names: a call may have written them."""
    real = os.path.realpath(root)
    return {**clean_environment((real,)), WORKSPACE: real}


def _start(words: Any, lifeline: int) -> Start:
    return supervised(words, lifeline)


def to_json(occasion: Occasion) -> bytes:
    """What a command is told: every field, also those that say nothing."""
    found = msgspec.structs.asdict(occasion)
    found["result"] = shorten(occasion.result, _MOST_RESULT)
    return msgspec.json.encode(found, enc_hook=str) + b"\n"


def understood(
    code: int | None, printed: bytes, complained: bytes, *, strict: bool = True
) -> Remark:
    """What a command says by how it ended and what it printed. Raise `Broken`.

    `strict`: what it prints is one JSON object with nothing in it that is not understood.
    """
    if code == _DENIES:
        return Remark(deny=_first_lines(complained) or "it gave no reason")
    if code != 0:
        how = "it was ended" if code is None else f"exit code {code}"
        raise Broken(": ".join(filter(None, (how, _first_lines(complained)))))
    text = printed.strip()
    if not text.startswith(b"{"):
        if text and strict:
            raise Broken("it printed what is no JSON object; other words go to standard error")
        return Remark()
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"it printed what begins like JSON and is none: {error}") from error
    if strict and (strange := sorted(said.keys() - set(_HEARD))):
        raise Broken(f"it printed `{one_line(strange[0], 60)}`; there are {', '.join(_HEARD)}")
    return checked(Remark(**{key: said[key] for key in _HEARD if said.get(key) is not None}))


def _first_lines(complained: bytes) -> str:
    text = complained[:_REASON].decode("utf-8", "replace").strip()
    return neutral("\n".join(text.splitlines()[:_LINES]))
