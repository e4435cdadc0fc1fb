"""Hooks: what a person has put before and after a tool, a prompt and a turn.

A hook is a function, an object with methods named after the moments, a command from a file, or a
`Hooks` object. They are asked one after the other. A hook that fails or takes too long before
something happens denies it; afterwards, when it is too late to deny, its failure is reported. This
module does not know the engine, which decides what a denial, a note or changed input leads to.
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
from bridle.tools.thread_pool import in_thread
from bridle.workspace.fs import is_below
from bridle.workspace.process.command import Command, ExitStatus, clean_environment
from bridle.workspace.sandbox import supervised_start
from bridle.workspace.text import neutral, one_line, quantity, shorten

log = logging.getLogger(__name__)

MOMENTS: tuple[Moment, ...] = get_args(Moment)
SECONDS = 60.0
_CANCEL_SECONDS = 0.5  # for a hook that took too long and was cancelled

Act = Callable[[HookEvent], HookResult | Awaitable[HookResult | None] | None]


class HookFailed(Exception):
    """A hook that failed, took too long, or returned something invalid; the message says which."""


class Hook(Struct, frozen=True):
    """A function that is a hook: `act` is called with a `HookEvent` and may return a `HookResult`.

    `on` are the moments at which it is called, `tools` patterns of the tools whose calls it is
    called for. A function that is not async runs in a thread, which cannot be ended: if it hangs,
    the thread is lost, and after `seconds` the hook has failed.
    """

    act: Act
    on: tuple[Moment, ...] = MOMENTS
    tools: tuple[str, ...] = ("*",)
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        """The name for messages about it."""
        return str(getattr(self.act, "__qualname__", "") or type(self.act).__qualname__)

    async def run(self, event: HookEvent) -> HookResult:
        """Call it. Raise `HookFailed`."""
        return to_result(await _with_timeout(self._call(event), self.seconds))

    async def _call(self, event: HookEvent) -> Any:
        try:
            if _is_async(self.act):
                value: Any = self.act(event)
            else:
                value = await in_thread(self.act, event)
            return await value if inspect.isawaitable(value) else value
        except (SystemExit, KeyboardInterrupt) as error:  # a hook may not end the program
            raise HookFailed(f"it raised {type(error).__name__}") from error


def hook(
    *on: Moment, tool: str | Iterable[str] = "*", seconds: float = SECONDS
) -> Callable[[Act], Hook]:
    """Make a function a hook: `@hook("before_tool", tool="write")`; without a moment, for all."""
    if unknown := [moment for moment in on if moment not in MOMENTS]:
        hint = f'There are {", ".join(MOMENTS)}: @hook("before_tool").'
        raise ConfigError(f"{unknown[0]!r} is no moment", hint=hint)
    return lambda act: Hook(act, on or MOMENTS, _patterns(tool), seconds)


class HookRunner(Protocol):
    """One hook in a chain."""

    @property
    def name(self) -> str: ...
    @property
    def on(self) -> tuple[Moment, ...]: ...
    @property
    def tools(self) -> tuple[str, ...]: ...
    async def run(self, event: HookEvent) -> HookResult:
        """Run it. Raise `HookFailed`."""
        ...


class HookChain:
    """Hooks that run one after the other. Implements `protocols.hooks.Hooks`."""

    def __init__(self, runners: Iterable[HookRunner]) -> None:
        self.runners = tuple(runners)
        self._moments = frozenset(moment for runner in self.runners for moment in runner.on)

    def handles(self, moment: Moment) -> bool:
        """Is there a hook for this moment?"""
        return moment in self._moments

    async def run(self, event: HookEvent) -> HookResult:
        """Run the hooks in order, until one denies what is about to happen."""
        chain = _ChainState(event)
        for runner in self.runners:
            if _applies(runner, event):
                chain.add(await _run(runner, chain.event))
                if chain.denials and chain.is_before:
                    break
        return chain.result()


class _ChainState:
    """What the hooks have returned so far, and the event as the next one is to see it."""

    def __init__(self, event: HookEvent) -> None:
        self.is_before = event.moment.startswith("before")
        self.denials: list[str] = []
        self._event = event
        self._words: list[str] = []
        self._arguments: dict[str, Any] | None = None
        self._prompt: str | None = None

    @property
    def event(self) -> HookEvent:
        """A copy for each hook: if one keeps or changes it, no other is affected."""
        event = self._event
        if not event.arguments:
            return event
        return replace(event, arguments=deepcopy(event.arguments))

    def add(self, result: HookResult) -> None:
        self._words += [result.word] if result.word.strip() else []
        self.denials += [result.deny] if result.deny else []
        if result.arguments is not None and self._event.moment == "before_tool":
            self._arguments = result.arguments
            self._event = replace(self._event, arguments=self._arguments)
        if result.prompt is not None and self._event.moment == "before_prompt":
            self._prompt = result.prompt
            self._event = replace(self._event, prompt=result.prompt)

    def result(self) -> HookResult:
        words, deny = "\n".join(self._words), "; ".join(self.denials)
        return HookResult(deny, words, self._arguments, self._prompt)


def as_hooks(given: Any, root: str, last: HookRunner | None = None) -> Hooks | None:
    """Return one hook or several as one object; None without any. Raise `ConfigError`.

    `root` is the workspace; `last` runs after all others.
    """
    several = isinstance(given, Iterable) and not callable(given) and not _is_hooks(given)
    items = list(given) if several else [] if given is None else [given]
    if len(items) == 1 and last is None and _is_hooks(items[0]):
        return items[0]  # type: ignore[no-any-return]  # it has the methods of one
    runners = [runner for item in items for runner in _runners(item, root)]
    runners += [last] if last is not None else []
    return HookChain(runners) if runners else None


def to_result(value: Any) -> HookResult:
    """Return what a hook returned, or an empty result. Raise `HookFailed` if it is invalid."""
    if value is None:
        return HookResult()
    if not isinstance(value, HookResult) or not _is_valid(value):
        raise HookFailed(f"it said what nobody understands: {type(value).__name__}")
    return replace(value, arguments=deepcopy(value.arguments))  # the hook may keep what it returned


def _is_valid(result: HookResult) -> bool:
    texts = isinstance(result.deny, str) and isinstance(result.word, str)
    prompt = result.prompt is None or isinstance(result.prompt, str)
    return texts and prompt and (result.arguments is None or isinstance(result.arguments, dict))


def _applies(runner: HookRunner, event: HookEvent) -> bool:
    if event.moment not in runner.on:
        return False
    if not event.moment.endswith("_tool"):
        return True
    return any(fnmatchcase(event.tool, pattern) for pattern in runner.tools)


async def _run(runner: HookRunner, event: HookEvent) -> HookResult:
    """Run a hook. A failure denies what is about to happen; afterwards, it is only reported."""
    try:
        return await runner.run(event)
    except HookFailed as failure:
        why = f"the hook {runner.name} broke: {failure}"
    except Exception as error:  # it is somebody else's code
        log.debug("the hook %s broke", runner.name, exc_info=True)
        why = f"the hook {runner.name} broke: {error!r}"
    return HookResult(deny=why) if event.moment.startswith("before") else HookResult(word=why)


async def _with_timeout(work: Awaitable[Any], seconds: float) -> Any:
    """Await the work. If it takes too long, cancel it; if it ignores that, leave it running."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_CANCEL_SECONDS)
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not task.done() or task.cancelled():
        raise HookFailed(f"it did not end within {quantity(seconds, 'second')}")
    return task.result()


def _runners(item: Any, root: str) -> Iterator[HookRunner]:
    if isinstance(item, Hook):
        yield item
    elif isinstance(item, CommandLine):
        yield CommandHook(item, root)
    elif inspect.isclass(item):
        hint = f"Hand in {item.__name__}()."
        raise ConfigError(f"{item.__name__} is a class, not a hook", hint=hint)
    elif _is_hooks(item):
        yield _HooksRunner(item)
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


class _HooksRunner:
    """A `Hooks` object as one hook of a chain."""

    tools = ("*",)

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.name = type(hooks).__qualname__
        self.on = tuple(moment for moment in MOMENTS if hooks.handles(moment))

    async def run(self, event: HookEvent) -> HookResult:
        return to_result(await self._hooks.run(event))


def _is_hooks(item: Any) -> bool:
    return callable(getattr(item, "handles", None)) and callable(getattr(item, "run", None))


def _patterns(tool: str | Iterable[str]) -> tuple[str, ...]:
    return (tool,) if isinstance(tool, str) else tuple(tool)


def _is_async(act: Act) -> bool:
    called = getattr(act, "__call__", None)  # noqa: B004 - an object may have an async one
    return inspect.iscoroutinefunction(act) or inspect.iscoroutinefunction(called)


# --- commands ----------------------------------------------------------------------------------

WORKSPACE = "BRIDLE_WORKSPACE"  # the variable that tells a hook where the workspace is
HINT = "Keep the script beside the file of hooks, in `.bridle/` or in a folder of your own."
_BETWEEN = re.compile(r"""[\s'"`;|&<>()=,]+""")
_ROOT = re.compile(rf"\$(?:{WORKSPACE}\b|\{{{WORKSPACE}\}})")


def working_folder(line: CommandLine) -> str:
    """Return where it runs: in the folder of its file, or in `/` if it comes from no file."""
    file, _, _ = line.origin.rpartition(":")
    return realpath(Path(file).parent) if file else "/"


def refusal(line: CommandLine, root: str) -> str:
    """Return why the command may not run as a hook in that workspace; empty if it may."""
    root, folder = realpath(root), working_folder(line)
    protected = _is_protected_folder(folder, root)
    if is_below(folder, root) and not protected:
        return "its file lies in the workspace, where a call may change it"
    words = tuple(dict.fromkeys(_possible_words(line.run, root)))
    places = {word: _resolve(word, folder) for word in words}
    for word, place in places.items():
        if place != root and is_below(place, root) and not _is_beside(place, folder, protected):
            return f"it names {word}, which a call may change"
    if protected or root in places.values():  # it works there, or above it
        for word in filter(_runs_project_code, words):
            return f"it has {word} run, and that runs what files of the workspace say"
    for word in words if root in places.values() else ():
        if not word.startswith("/") and os.path.isfile(f"{root}/{word}"):  # noqa: PTH113 - never raises
            return f"it names {word}, which a call may change"
    return ""


def _runs_project_code(word: str) -> bool:
    """Is it the name of a program that runs code of the project, such as `make`?"""
    entry = programs.find(word.rpartition("/")[2])
    if entry is None:
        return False
    return "builds" in {entry.does, *(verb.does for verb in entry.subcommands.values())}


def _resolve(word: str, folder: str) -> str:
    """Return the real path of a word, if it is a path."""
    if word.startswith("~/"):
        word = os.environ.get("HOME", "") + word[1:]
    return realpath(word if word.startswith("/") else f"{folder}/{word}")


def _possible_words(run: str | tuple[str, ...], root: str) -> Iterator[str]:
    """Yield whatever a shell could take for a word of it."""
    for argument in (run,) if isinstance(run, str) else run:
        text = _ROOT.sub(lambda _: root, argument)
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
    """Is it directly in the folder of the file? Deeper files are not shown when it is trusted."""
    return (
        protected
        and is_below(place, folder)
        and (place.rpartition("/")[0] == folder or not os.path.lexists(place))
    )


_MAX_OUTPUT = 65_536  # bytes that a hook may print
_MAX_RESULT = 1_000_000  # characters of a tool's result that a hook gets
_MAX_LINES, _MAX_REASON = 5, 2000  # of standard error in a reason
_DENY_CODE = 2
_SHELL = "/bin/sh"
_FIELDS = ("deny", "word", "arguments", "prompt")


class CommandHook:
    """A command from a file."""

    def __init__(self, line: CommandLine, root: str) -> None:
        if why := refusal(line, root):
            raise ConfigError(f"{line.origin or 'a hook'}: it is refused: {why}", hint=HINT)
        self._line = line
        self._root = root
        self.on: tuple[Moment, ...] = line.moments
        self.tools = line.tools
        self.name = f"`{one_line(line.words, 60)}`"

    async def run(self, event: HookEvent) -> HookResult:
        """Run it and read its output. Raise `HookFailed`."""
        if why := refusal(self._line, self._root):  # a file that it names may be new
            raise HookFailed(f"it is refused: {why}")
        process = _CommandRun(self._line, self._root)
        with tempfile.TemporaryFile() as stdin:
            stdin.write(to_json(event))
            stdin.flush()
            status = await process.run(stdin)
        if process.is_over_limit:
            raise HookFailed(f"it printed more than {_MAX_OUTPUT // 1024} KB")
        if status.timed_out:
            raise HookFailed(f"it did not end within {quantity(self._line.seconds, 'second')}")
        strict = event.moment.startswith("before")
        return parse_output(
            status.code, bytes(process.stdout), bytes(process.stderr), strict=strict
        )


class _CommandRun:
    """One run of a command, and what it prints."""

    def __init__(self, line: CommandLine, root: str) -> None:
        self._line = line
        self._root = root
        self.stdout = bytearray()
        self.stderr = bytearray()

    @property
    def is_over_limit(self) -> bool:
        """Did it print more than a hook may?"""
        return len(self.stdout) + len(self.stderr) > _MAX_OUTPUT

    async def run(self, stdin: IO[bytes]) -> ExitStatus:
        """Run it to its end."""
        loop = asyncio.get_running_loop()
        reader, writer = os.pipe()
        try:
            os.set_blocking(reader, False)
            words = _arguments(self._line.run, stdin.fileno(), writer)
            handles = (stdin.fileno(), writer)
            folder = working_folder(self._line)
            command = Command(
                words, folder, self._take_output, starter=supervised_start, handles=handles
            )
            work = command.run(self._line.seconds, _environment(self._root))
            running = asyncio.ensure_future(work)
            loop.add_reader(reader, self._read_stderr, reader, running)
            return await self._wait(running)
        finally:
            loop.remove_reader(reader)
            self._read_stderr(reader, None)
            os.close(writer)
            os.close(reader)

    async def _wait(self, running: "asyncio.Future[ExitStatus]") -> ExitStatus:
        """Wait for its end; `_read_stderr` cancels it if it prints too much."""
        try:
            return await running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_over_limit or (task is not None and task.cancelling()):
                raise
            return ExitStatus(None)

    def _take_output(self, data: bytes) -> bool:
        self.stdout += data[: _MAX_OUTPUT + 1]
        return not self.is_over_limit

    def _read_stderr(self, reader: int, running: "asyncio.Future[ExitStatus] | None") -> None:
        with suppress(BlockingIOError):
            data = os.read(reader, _MAX_OUTPUT)
            self.stderr += data[: _MAX_OUTPUT + 1 - len(self.stderr)]
        if running is not None and self.is_over_limit:
            running.cancel()


def _arguments(run: str | tuple[str, ...], stdin: int, stderr: int) -> list[str]:
    """Return the command with its input and standard error redirected to these handles.

    By their numbers a shell takes only handles of one digit; by their paths it takes any.
    """
    inner = [_SHELL, "-c", run] if isinstance(run, str) else list(run)
    script = f'exec "$@" </dev/fd/{stdin} 2>/dev/fd/{stderr}'
    return [_SHELL, "-c", script, "hook", *inner]


def _environment(root: str) -> dict[str, str]:
    """Return an environment in which no program of the workspace is found by its name."""
    real = os.path.realpath(root)
    return {**clean_environment((real,)), WORKSPACE: real}


def to_json(event: HookEvent) -> bytes:
    """Return the input of a command as JSON: every field, also empty ones."""
    fields = msgspec.structs.asdict(event)
    fields["result"] = shorten(event.result, _MAX_RESULT)
    return msgspec.json.encode(fields, enc_hook=str) + b"\n"


def parse_output(
    code: int | None, stdout: bytes, stderr: bytes, *, strict: bool = True
) -> HookResult:
    """Return what a command says by its exit code and output. Raise `HookFailed`.

    `strict`: the output has to be empty or one JSON object with known fields.
    """
    if code == _DENY_CODE:
        return HookResult(deny=_first_lines(stderr) or "it gave no reason")
    if code != 0:
        how = "it was ended" if code is None else f"exit code {code}"
        raise HookFailed(": ".join(filter(None, (how, _first_lines(stderr)))))
    text = stdout.strip()
    if not text.startswith(b"{"):
        if text and strict:
            raise HookFailed("it printed what is no JSON object; other words go to standard error")
        return HookResult()
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HookFailed(f"it printed what begins like JSON and is none: {error}") from error
    if strict and (unknown := sorted(fields.keys() - set(_FIELDS))):
        raise HookFailed(f"it printed `{one_line(unknown[0], 60)}`; there are {', '.join(_FIELDS)}")
    values = {key: fields[key] for key in _FIELDS if fields.get(key) is not None}
    return to_result(HookResult(**values))


def _first_lines(stderr: bytes) -> str:
    text = stderr[:_MAX_REASON].decode("utf-8", "replace").strip()
    return neutral("\n".join(text.splitlines()[:_MAX_LINES]))
