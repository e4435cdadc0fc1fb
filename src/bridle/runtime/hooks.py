"""Hooks: what a person has put before and after a tool, a prompt and a turn.

A function, an object with methods named after the moments, a command of a file, or somebody's own
`Hooks`: all are heard in their order. Before something happens a hook that breaks or takes too long
has denied; afterwards, when there is nothing left to deny, it is said that it did. Knows no engine:
what a deny, a word or changed input comes to is decided there.
"""

import asyncio
import inspect
import logging
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from fnmatch import fnmatchcase
from os.path import realpath
from pathlib import Path
from typing import IO, Any, Protocol, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.command_analysis import programs
from bridle.config.hooks import CommandLine
from bridle.config.paths import hooks_file
from bridle.errors import ConfigError
from bridle.protocols.hooks import HookEvent, HookResult, Hooks, Moment
from bridle.tools.threads import in_thread
from bridle.workspace.fs import is_below
from bridle.workspace.process.command import Command, ExitStatus, clean_environment
from bridle.workspace.sandbox import Start, supervised_start
from bridle.workspace.text import neutral, one_line, quantity, shorten

log = logging.getLogger(__name__)

MOMENTS: tuple[Moment, ...] = get_args(Moment)
SECONDS = 60.0
_FAREWELL = 0.5  # seconds that a hook which took too long has for letting go

Act = Callable[[HookEvent], HookResult | Awaitable[HookResult | None] | None]


class Broken(Exception):
    """A hook that failed, took too long, or said what nobody understands; the words say which."""


class Hook(Struct, frozen=True):
    """A function that is a hook: `act` gets a `HookEvent` and returns a `HookResult` or nothing.

    `on` are the moments at which it is asked, `tools` patterns of the names of those tools that it
    is asked about. A function that is not async runs in a thread, which nobody can end: one that
    hangs costs that thread, and has denied after so many `seconds`.
    """

    act: Act
    on: tuple[Moment, ...] = MOMENTS
    tools: tuple[str, ...] = ("*",)
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        """What it is called when something is said of it."""
        return str(getattr(self.act, "__qualname__", "") or type(self.act).__qualname__)

    async def speak(self, event: HookEvent) -> HookResult:
        """What it says. Raise `Broken`."""
        return checked(await _in_time(self._called(event), self.seconds))

    async def _called(self, event: HookEvent) -> Any:
        try:
            said: Any = self.act(event) if _is_async(self.act) else await self._aside(event)
            return await said if inspect.isawaitable(said) else said
        except (SystemExit, KeyboardInterrupt) as error:  # to end the program is not a hook's
            raise Broken(f"it raised {type(error).__name__}") from error

    async def _aside(self, event: HookEvent) -> Any:
        return await in_thread(self.act, event)


def hook(
    *on: Moment, tool: str | Iterable[str] = "*", seconds: float = SECONDS
) -> Callable[[Act], Hook]:
    """Make a hook of a function: `@hook("before_tool", tool="write")`; without a moment, of all."""
    moments = _checked_moments(on)
    return lambda act: Hook(act, moments, _patterns(tool), seconds)


class Voice(Protocol):
    """One hook among others."""

    @property
    def name(self) -> str: ...
    @property
    def on(self) -> tuple[Moment, ...]: ...
    @property
    def tools(self) -> tuple[str, ...]: ...
    async def speak(self, event: HookEvent) -> HookResult:
        """What it says. Raise `Broken`."""
        ...


class InOrder:
    """Hooks that are heard one after the other. Implements `protocols.hooks.Hooks`."""

    def __init__(self, voices: Iterable[Voice]) -> None:
        self.voices = tuple(voices)
        self._moments = frozenset(moment for one in self.voices for moment in one.on)

    def handles(self, moment: Moment) -> bool:
        """Is there one for this moment?"""
        return moment in self._moments

    async def run(self, event: HookEvent) -> HookResult:
        """Have them speak, in their order; the first that denies beforehand has the last word."""
        heard = _Heard(event)
        for one in self.voices:
            if _wants(one, event):
                heard.add(await _spoken(one, heard.event))
                if heard.denied and heard.is_before:
                    break
        return heard.hook_result()


class _Heard:
    """What was said so far, and the event as the next hook is to see it."""

    def __init__(self, event: HookEvent) -> None:
        self.is_before = event.moment.startswith("before")
        self.denied: list[str] = []
        self._given = event
        self._words: list[str] = []
        self._arguments: dict[str, Any] | None = None
        self._prompt: str | None = None

    @property
    def event(self) -> HookEvent:
        """A copy for each: what one of them keeps, or alters in place, is nobody else's."""
        given = self._given
        return replace(given, arguments=deepcopy(given.arguments)) if given.arguments else given

    def add(self, said: HookResult) -> None:
        self._words += [said.word] if said.word.strip() else []
        self.denied += [said.deny] if said.deny else []
        if said.arguments is not None and self._given.moment == "before_tool":
            self._arguments = said.arguments
            self._given = replace(self._given, arguments=self._arguments)
        if said.prompt is not None and self._given.moment == "before_prompt":
            self._prompt = said.prompt
            self._given = replace(self._given, prompt=said.prompt)

    def hook_result(self) -> HookResult:
        words, deny = "\n".join(self._words), "; ".join(self.denied)
        return HookResult(deny, words, self._arguments, self._prompt)


def as_hooks(given: Any, root: str, last: "Voice | None" = None) -> Hooks | None:
    """Return one hook or several as one object; None without any. Raise `ConfigError`.

    `root` is the workspace; `last` is asked after all others.
    """
    several = isinstance(given, Iterable) and not callable(given) and not _is_hooks(given)
    items = list(given) if several else [] if given is None else [given]
    if len(items) == 1 and last is None and _is_hooks(items[0]):
        return items[0]  # type: ignore[no-any-return]  # it has the verbs of one
    voices = [voice for item in items for voice in _voices(item, root)]
    voices += [last] if last is not None else []
    return InOrder(voices) if voices else None


def checked(said: Any) -> HookResult:
    """A hook_result, or nothing, as a hook_result. Raise `Broken` for anything else."""
    if said is None:
        return HookResult()
    if not isinstance(said, HookResult) or not _is_sound(said):
        raise Broken(f"it said what nobody understands: {type(said).__name__}")
    return replace(said, arguments=deepcopy(said.arguments))  # it may keep what it gave


def _is_sound(said: HookResult) -> bool:
    words = isinstance(said.deny, str) and isinstance(said.word, str)
    prompt = said.prompt is None or isinstance(said.prompt, str)
    return words and prompt and (said.arguments is None or isinstance(said.arguments, dict))


def _wants(voice: Voice, event: HookEvent) -> bool:
    if event.moment not in voice.on:
        return False
    if not event.moment.endswith("_tool"):
        return True
    return any(fnmatchcase(event.tool, one) for one in voice.tools)


async def _spoken(voice: Voice, event: HookEvent) -> HookResult:
    """What one of them says. One that broke has denied; afterwards, it is only said that it did."""
    try:
        return await voice.speak(event)
    except Broken as broken:
        why = f"the hook {voice.name} broke: {broken}"
    except Exception as error:  # it is somebody else's code, and it stands before an effect
        log.debug("the hook %s broke", voice.name, exc_info=True)
        why = f"the hook {voice.name} broke: {error!r}"
    return HookResult(deny=why) if event.moment.startswith("before") else HookResult(word=why)


async def _in_time(work: Awaitable[Any], seconds: float) -> Any:
    """What comes of it. One that does not let go when its time is over is left to itself."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_FAREWELL)
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not task.done() or task.cancelled():
        raise Broken(f"it did not end within {quantity(seconds, 'second')}")
    return task.result()


def _voices(item: Any, root: str) -> Iterator[Voice]:
    if isinstance(item, Hook):
        yield item
    elif isinstance(item, CommandLine):
        yield CommandHook(item, root)
    elif inspect.isclass(item):
        hint = f"Hand in {item.__name__}()."
        raise ConfigError(f"{item.__name__} is a class, not a hook", hint=hint)
    elif _is_hooks(item):
        yield _Others(item)
    elif methods := [moment for moment in MOMENTS if callable(getattr(item, moment, None))]:
        tools = _patterns(getattr(item, "tool", "*"))
        for moment in methods:
            yield Hook(getattr(item, moment), (moment,), tools)
    elif callable(item):
        yield Hook(item)
    else:
        raise ConfigError(
            f"{item!r} is no hook",
            hint=f"A hook is a function, or an object with {', '.join(MOMENTS)}.",
        )


class _Others:
    """Somebody's own `Hooks`, among others."""

    tools = ("*",)

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.name = type(hooks).__qualname__
        self.on = tuple(moment for moment in MOMENTS if hooks.handles(moment))

    async def speak(self, event: HookEvent) -> HookResult:
        return checked(await self._hooks.run(event))


def _is_hooks(item: Any) -> bool:
    return callable(getattr(item, "handles", None)) and callable(getattr(item, "run", None))


def _patterns(tool: str | Iterable[str]) -> tuple[str, ...]:
    return (tool,) if isinstance(tool, str) else tuple(tool)


def _is_async(act: Act) -> bool:
    called = getattr(act, "__call__", None)  # noqa: B004 - an object may have an async one
    return inspect.iscoroutinefunction(act) or inspect.iscoroutinefunction(called)


def _checked_moments(on: tuple[Moment, ...]) -> tuple[Moment, ...]:
    if strange := [one for one in on if one not in MOMENTS]:
        hint = f'There are {", ".join(MOMENTS)}: @hook("before_tool").'
        raise ConfigError(f"{strange[0]!r} is no moment", hint=hint)
    return on or MOMENTS


WORKSPACE = "BRIDLE_WORKSPACE"  # the variable that tells a hook where the workspace is
HINT = "Keep the script beside the file of hooks, in `.bridle/` or in a folder of your own."
_BETWEEN = re.compile(r"""[\s'"`;|&<>()=,]+""")
_ROOT = re.compile(rf"\$(?:{WORKSPACE}\b|\{{{WORKSPACE}\}})")


def working_folder(line: CommandLine) -> str:
    """Where it runs: beside its file; one that is from no file, where nothing lies."""
    file, _, _ = line.origin.rpartition(":")
    return realpath(Path(file).parent) if file else "/"


def refusal(line: CommandLine, root: str) -> str:
    """Why that command may not be run as a hook in that workspace; empty where it may."""
    root, folder = realpath(root), working_folder(line)
    protected = _is_protected_folder(folder, root)
    if is_below(folder, root) and not protected:
        return "its file lies in the workspace, where a call may change it"
    words = tuple(dict.fromkeys(_possible_words(line.run, root)))
    places = {word: _path_of(word, folder) for word in words}
    for word, place in places.items():
        if place != root and is_below(place, root) and not _is_beside(place, folder, protected):
            return f"it names {word}, which a call may change"
    if protected or root in places.values():  # it works there, or looks for what lies above it
        for word in filter(_builds, words):
            return f"it has {word} run, and that runs what files of the workspace say"
    for word in words if root in places.values() else ():
        if not word.startswith("/") and os.path.isfile(f"{root}/{word}"):  # noqa: PTH113 - never raises
            return f"it names {word}, which a call may change"
    return ""


def _builds(word: str) -> bool:
    """Is it the name of a program that runs what the files say that it finds?"""
    entry = programs.find(word.rpartition("/")[2])
    if entry is None:
        return False
    return "builds" in {entry.does, *(verb.does for verb in entry.subcommands.values())}


def _path_of(word: str, folder: str) -> str:
    """Where a word leads, if it is a path."""
    if word.startswith("~/"):
        word = os.environ.get("HOME", "") + word[1:]
    return realpath(word if word.startswith("/") else f"{folder}/{word}")


def _possible_words(run: str | tuple[str, ...], root: str) -> Iterator[str]:
    """Whatever could be a word of it for a shell, where one is run at all."""
    for one in (run,) if isinstance(run, str) else run:
        text = _ROOT.sub(lambda _: root, one)
        if not isinstance(run, str):
            yield text
        yield from filter(None, _BETWEEN.split(text))


def _is_protected_folder(folder: str, root: str) -> bool:
    """Is it a folder that no call may write: `.bridle` of the workspace, or the person's own?"""
    if folder == f"{root}/.bridle":
        return True
    own = realpath(hooks_file(os.environ).parent)
    return is_below(folder, root) and folder == own


def _is_beside(place: str, folder: str, protected: bool) -> bool:
    """Directly in the folder of the file: what lies deeper nobody saw when it was trusted."""
    return (
        protected
        and is_below(place, folder)
        and (place.rpartition("/")[0] == folder or not os.path.lexists(place))
    )


_MOST = 65_536  # bytes that a hook may print
_MOST_RESULT = 1_000_000  # characters of a result that a hook is told
_LINES, _REASON = 5, 2000  # of standard error that are a reason
_DENIES = 2
_SHELL = "/bin/sh"
_HEARD = ("deny", "word", "arguments", "prompt")


class CommandHook:
    """One command of a file."""

    def __init__(self, line: CommandLine, root: str) -> None:
        if why := refusal(line, root):
            raise ConfigError(f"{line.origin or 'a hook'}: it is refused: {why}", hint=HINT)
        self._line = line
        self._root = root
        self.on: tuple[Moment, ...] = line.moments
        self.tools = line.tools
        self.name = f"`{one_line(line.words, 60)}`"

    async def speak(self, event: HookEvent) -> HookResult:
        """Run it, and return what it says. Raise `Broken`."""
        if why := refusal(self._line, self._root):  # what it names may have come since
            raise Broken(f"it is refused: {why}")
        run = _Run(self._line, self._root)
        with tempfile.TemporaryFile() as told:
            told.write(to_json(event))
            told.flush()
            ended = await run.through(told)
        if run.is_too_much:
            raise Broken(f"it printed more than {_MOST // 1024} KB")
        if ended.timed_out:
            raise Broken(f"it did not end within {quantity(self._line.seconds, 'second')}")
        strict = event.moment.startswith("before")
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
            place = working_folder(self._line)
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
    return supervised_start(words, lifeline)


def to_json(event: HookEvent) -> bytes:
    """What a command is told: every field, also those that say nothing."""
    found = msgspec.structs.asdict(event)
    found["result"] = shorten(event.result, _MOST_RESULT)
    return msgspec.json.encode(found, enc_hook=str) + b"\n"


def understood(
    code: int | None, printed: bytes, complained: bytes, *, strict: bool = True
) -> HookResult:
    """What a command says by how it ended and what it printed. Raise `Broken`.

    `strict`: what it prints is one JSON object with nothing in it that is not understood.
    """
    if code == _DENIES:
        return HookResult(deny=_first_lines(complained) or "it gave no reason")
    if code != 0:
        how = "it was ended" if code is None else f"exit code {code}"
        raise Broken(": ".join(filter(None, (how, _first_lines(complained)))))
    text = printed.strip()
    if not text.startswith(b"{"):
        if text and strict:
            raise Broken("it printed what is no JSON object; other words go to standard error")
        return HookResult()
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"it printed what begins like JSON and is none: {error}") from error
    if strict and (strange := sorted(said.keys() - set(_HEARD))):
        raise Broken(f"it printed `{one_line(strange[0], 60)}`; there are {', '.join(_HEARD)}")
    return checked(HookResult(**{key: said[key] for key in _HEARD if said.get(key) is not None}))


def _first_lines(complained: bytes) -> str:
    text = complained[:_REASON].decode("utf-8", "replace").strip()
    return neutral("\n".join(text.splitlines()[:_LINES]))
