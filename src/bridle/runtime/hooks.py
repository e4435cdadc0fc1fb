"""Hooks: what a person has put before and after a tool, a prompt and a turn.

A function, an object with methods named after the moments, a command of a file, or somebody's own
`Hooks`: all are heard in their order. Before something happens a hook that breaks or takes too long
has denied; afterwards, when there is nothing left to deny, it is said that it did. Knows no engine:
what a deny, a word or changed input comes to is decided there.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any, Protocol, get_args

from msgspec import Struct
from msgspec.structs import replace

from bridle.config.hooks import CommandLine
from bridle.errors import ConfigError
from bridle.promises.hooks import Hooks, Moment, Occasion, Remark
from bridle.runtime.diagnostics import Diagnostics
from bridle.tools.threads import in_thread
from bridle.workspace.text import quantity

log = logging.getLogger(__name__)

MOMENTS: tuple[Moment, ...] = get_args(Moment)
SECONDS = 60.0
_FAREWELL = 0.5  # seconds that a hook which took too long has for letting go

Act = Callable[[Occasion], Remark | Awaitable[Remark | None] | None]


class Broken(Exception):
    """A hook that failed, took too long, or said what nobody understands; the words say which."""


class Hook(Struct, frozen=True):
    """A function that is a hook: `act` is told of an `Occasion`, and says a `Remark` or nothing.

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

    async def speak(self, occasion: Occasion) -> Remark:
        """What it says. Raise `Broken`."""
        return checked(await _in_time(self._called(occasion), self.seconds))

    async def _called(self, occasion: Occasion) -> Any:
        try:
            said: Any = self.act(occasion) if _is_async(self.act) else await self._aside(occasion)
            return await said if inspect.isawaitable(said) else said
        except (SystemExit, KeyboardInterrupt) as error:  # to end the program is not a hook's
            raise Broken(f"it raised {type(error).__name__}") from error

    async def _aside(self, occasion: Occasion) -> Any:
        return await in_thread(self.act, occasion)


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
    async def speak(self, occasion: Occasion) -> Remark:
        """What it says. Raise `Broken`."""
        ...


class InOrder:
    """Hooks that are heard one after the other. Keeps the promise `promises.hooks.Hooks`."""

    def __init__(self, voices: Iterable[Voice]) -> None:
        self.voices = tuple(voices)
        self._moments = frozenset(moment for one in self.voices for moment in one.on)

    def listens(self, moment: Moment) -> bool:
        """Is there one for this moment?"""
        return moment in self._moments

    async def hear(self, occasion: Occasion) -> Remark:
        """Have them speak, in their order; the first that denies beforehand has the last word."""
        heard = _Heard(occasion)
        for one in self.voices:
            if _wants(one, occasion):
                heard.add(await _spoken(one, heard.occasion))
                if heard.denied and heard.is_before:
                    break
        return heard.remark()


class _Heard:
    """What was said so far, and the occasion as the next hook is to see it."""

    def __init__(self, occasion: Occasion) -> None:
        self.is_before = occasion.moment.startswith("before")
        self.denied: list[str] = []
        self._given = occasion
        self._words: list[str] = []
        self._arguments: dict[str, Any] | None = None
        self._prompt: str | None = None

    @property
    def occasion(self) -> Occasion:
        """A copy for each: what one of them keeps, or alters in place, is nobody else's."""
        given = self._given
        return replace(given, arguments=deepcopy(given.arguments)) if given.arguments else given

    def add(self, said: Remark) -> None:
        self._words += [said.word] if said.word.strip() else []
        self.denied += [said.deny] if said.deny else []
        if said.arguments is not None and self._given.moment == "before_tool":
            self._arguments = said.arguments
            self._given = replace(self._given, arguments=self._arguments)
        if said.prompt is not None and self._given.moment == "before_prompt":
            self._prompt = said.prompt
            self._given = replace(self._given, prompt=said.prompt)

    def remark(self) -> Remark:
        words, deny = "\n".join(self._words), "; ".join(self.denied)
        return Remark(deny, words, self._arguments, self._prompt)


def as_hooks(given: Any, root: str) -> Hooks | None:
    """What was handed in as hooks, one or several; None where there is nothing. `ConfigError`.

    `root` is the folder that commands run in.
    """
    several = isinstance(given, Iterable) and not callable(given) and not _is_hooks(given)
    items = list(given) if several else [] if given is None else [given]
    if len(items) == 1 and _is_hooks(items[0]):
        return items[0]  # type: ignore[no-any-return]  # it has the verbs of one
    voices = [voice for item in items for voice in _voices(item, root)]
    return InOrder(voices) if voices else None


def checked(said: Any) -> Remark:
    """A remark, or nothing, as a remark. Raise `Broken` for anything else."""
    if said is None:
        return Remark()
    if not isinstance(said, Remark) or not _is_sound(said):
        raise Broken(f"it said what nobody understands: {type(said).__name__}")
    return replace(said, arguments=deepcopy(said.arguments))  # it may keep what it gave


def _is_sound(said: Remark) -> bool:
    words = isinstance(said.deny, str) and isinstance(said.word, str)
    prompt = said.prompt is None or isinstance(said.prompt, str)
    return words and prompt and (said.arguments is None or isinstance(said.arguments, dict))


def _wants(voice: Voice, occasion: Occasion) -> bool:
    if occasion.moment not in voice.on:
        return False
    if not occasion.moment.endswith("_tool"):
        return True
    return any(fnmatchcase(occasion.tool, one) for one in voice.tools)


async def _spoken(voice: Voice, occasion: Occasion) -> Remark:
    """What one of them says. One that broke has denied; afterwards, it is only said that it did."""
    try:
        return await voice.speak(occasion)
    except Broken as broken:
        why = f"the hook {voice.name} broke: {broken}"
    except Exception as error:  # it is somebody else's code, and it stands before an effect
        log.debug("the hook %s broke", voice.name, exc_info=True)
        why = f"the hook {voice.name} broke: {error!r}"
    return Remark(deny=why) if occasion.moment.startswith("before") else Remark(word=why)


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
    if isinstance(item, Hook | Diagnostics):
        yield item
    elif isinstance(item, CommandLine):
        from bridle.runtime.hook_commands import CommandHook

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
        self.on = tuple(moment for moment in MOMENTS if hooks.listens(moment))

    async def speak(self, occasion: Occasion) -> Remark:
        return checked(await self._hooks.hear(occasion))


def _is_hooks(item: Any) -> bool:
    return callable(getattr(item, "listens", None)) and callable(getattr(item, "hear", None))


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
