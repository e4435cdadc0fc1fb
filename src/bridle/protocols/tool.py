"""The promise every tool keeps, and what it is handed.

A tool knows its arguments and its context. It does not know the engine, the session or the face.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from bridle.events import Event, Reason, ToolOutputDelta
from bridle.messages import File, Image, Outcome
from bridle.policy import Act, Facts, Mode, ToolPolicy
from bridle.usage import ExecutionMetrics

Deps = TypeVar("Deps")
CWD = "shell.cwd"  # in a context's memory: where the next command starts (absolute)


class Files(Protocol):
    """The workspace, as tools see it. Paths are relative to the root, or absolute inside it.

    Everything raises `OutsideWorkspace` for a path that leads out, `ToolError` for the rest.
    """

    @property
    def root(self) -> str: ...
    def relative(self, path: str) -> str:
        """The path from the root, with `/`; refuses what leads out by its words alone."""
        ...

    def read(self, path: str, limit: int | None = None) -> bytes: ...
    def write(self, path: str, data: bytes) -> None:
        """Replace the file in one step; missing folders are made."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_folder(self, path: str) -> bool: ...
    def names(self, path: str = ".") -> list[str]:
        """The entries of a folder, sorted; folders end in `/`."""
        ...


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """What a tool gives back: `text` for the model, `data` for interfaces, never an exception.

    `stops` says why the turn has to end here, if it has to. `outcome` is set if the call did not
    run, or was cut off.
    """

    ok: bool
    text: str = ""
    data: Any = None
    diagnostics: Any = None
    media: tuple[Image | File, ...] = ()
    stops: str = ""
    outcome: Outcome = ""

    @classmethod
    def success(cls, data: Any = None, *, text: str | None = None) -> "ToolResult":
        """It worked. Without `text` the model reads the data: as it is, or as JSON.

        Pydantic models become plain JSON values, both in the text and in the data.
        """
        if data is None or isinstance(data, str):
            return cls(True, text if text is not None else "done" if data is None else data, data)
        if text is not None and "pydantic" not in sys.modules:
            return cls(True, text, data)
        hook = _JsonHook()
        try:
            written = msgspec.json.encode(data, enc_hook=hook)
        except (TypeError, ValueError, RecursionError):
            if text is None:
                raise
            return cls(True, text, data)
        if hook.met_model:
            data = msgspec.json.decode(written)
        return cls(True, written.decode() if text is None else text, data)

    @classmethod
    def failure(
        cls, message: str, diagnostics: Any = None, *, outcome: Outcome = ""
    ) -> "ToolResult":
        """It did not; the message says why and, best, what to do instead."""
        return cls(False, message, diagnostics=diagnostics, outcome=outcome)


class _JsonHook:
    """Encodes what msgspec cannot: a pydantic model as its fields, anything else as text."""

    def __init__(self) -> None:
        self.met_model = False

    def __call__(self, value: Any) -> Any:
        if hasattr(type(value), "model_dump"):
            self.met_model = True
            return value.model_dump(mode="json")
        return str(value)


def _nothing(path: str) -> bool:
    return False


class Access(Struct, frozen=True):
    """Which guarded files a command may use, because a person or a rule allowed it.

    `reads(path)` is true for credentials that the command may read, `writes(path)` for files that
    run by themselves and that it may change; paths are relative to the root. `git` is not empty if
    the command is git and may write files from its commits: `known` for commits from before the
    session, `any` for later ones, too.
    """

    reads: Callable[[str], bool] = _nothing
    writes: Callable[[str], bool] = _nothing
    git: Literal["", "known", "any"] = ""


class ToolContext(Struct, Generic[Deps]):
    """What a call is handed: the workspace, the deadline, a way to speak, the caller's own things.

    `deadline` is in the event loop's time (None: no limit). `emit` puts an event into the log;
    `say` is output while the tool runs. `memory` lasts as long as the session is open; `at_close`
    is handed what has to be ended with it. `folder` is the session's own, outside the workspace
    (empty: there is none). `word` is what the person said when this call was asked about; `mode`
    is the session's. `clean` takes secrets out of text that is kept elsewhere than in the log.
    `agreed`: a person was shown this call, and said yes to it, before the session was taken up.
    `hidden` says which files a search leaves out, because a rule keeps them (None: there is none).
    A tool sets `unfinished` to a function that returns its output so far: if the call is cut off,
    the model gets that output.
    `access` says which guarded files a command may use, because a person or a rule allowed it.
    `network`: this call may use the network, because a person allowed it or wrote a rule for it.
    `origin` is the session that this one was begun for, directly or through others; empty if a
    person began it.
    """

    workspace: Files
    call_id: str
    session_id: str = ""
    deadline: float | None = None
    deps: Deps = None  # type: ignore[assignment]
    emit: Callable[[Event], None] = lambda event: None
    ask: Callable[[str], Awaitable[str]] | None = None
    spawn: Callable[..., Awaitable[Any]] | None = None
    memory: dict[str, Any] = {}
    at_close: Callable[[Callable[[], Awaitable[None]]], None] = lambda closer: None
    folder: str = ""
    word: str = ""
    mode: Mode = "ask"
    clean: Callable[[str], str] = lambda text: text
    agreed: bool = False
    hidden: Callable[[str], bool] | None = None
    access: Access = Access()
    unfinished: Callable[[], str] | None = None
    network: bool = False
    origin: str = ""

    def say(self, text: str) -> None:
        """Show some output while the tool is still running."""
        self.emit(ToolOutputDelta(self.call_id, text))


class Touching(Protocol):
    """A tool whose paths are not simply its `path` says which ones a call would touch."""

    def touched(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """The paths. Raise `ToolError` where that cannot be said."""
        ...


class Precheck(Protocol):
    """A tool that can tell in advance, without side effects, that a call would fail."""

    async def precheck(self, arguments: dict[str, Any], context: ToolContext[Any]) -> None:
        """Raise `ToolError` if the call must fail as things stand."""
        ...


class Tool(Protocol):
    """Something the model can ask for."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments. They are validated before `execute`."""
        ...

    @property
    def policy(self) -> ToolPolicy: ...

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Do the work. A `ToolError` counts as a failure with its text."""
        ...


class ToolSource(Protocol):
    """Tools that come and go while sessions run, such as those of servers elsewhere."""

    @property
    def version(self) -> int:
        """Another number whenever `tools` gives others."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """Those that are known now. Starts nothing, and waits for nothing."""
        ...

    async def close(self) -> None:
        """Leave nothing running."""
        ...


# The words of a call of which nothing else is known: what a rule about it can be held against.
#
# Whose tool it is, a server's or another agent's, makes no difference. Decides nothing.

MOST, CHARACTERS = 2_000, 400_000  # words, and characters of them all, that rules are held against
TOO_MANY = "it has more words than rules can be held against"


def judge_by_words(
    name: str,
    arguments: dict[str, Any],
    *,
    subject: str = "",
    reason: str = "",
    guard: str = "",
) -> Facts:
    """What is known of such a call: its words, each by itself, and only to forbid or to ask.

    How whoever has the tool reads them, as a path or otherwise, nobody knows. Of a call with more
    words than can be looked at, none is passed over: no rule allows it, and any that forbids some
    words forbids it.
    """
    words, whole = words_of(arguments)
    act = Act((name,), subject, reason=reason, also=words, cut=not whole)
    return Facts(ToolPolicy(), acts=(act,), guard=guard, opaque="" if whole else TOO_MANY)


def words_of(arguments: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The texts among the arguments, however deep they lie, and whether these are all of them.

    The names of the arguments are the tool's; the keys of what lies deeper may be the caller's.
    """
    found: dict[str, None] = {}
    room = CHARACTERS
    waiting: list[Any] = list(arguments.values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, str) and one not in found:
            room -= len(one)
            if room < 0 or len(found) >= MOST:
                return tuple(found), False
            found[one] = None
    return tuple(found), True


# What a tool hands to a child session, and what comes back: the values of `ToolContext.spawn`.
#
# A tool whose policy says `delegates` finds `spawn` in its context: `await context.spawn(Task(…))`
# runs a session of its own to its end and gives an `TaskResult`. The session may never do what the
# one that begins it may not, and what it uses counts there, too.

SAME = "same"  # the agent that carries the turn which begins the child


class Task(Struct, frozen=True):
    """Work for a child session. Zero is no limit beyond what is left of the parent's.

    `agent` is empty for our loop (or, where there is no model for it, the parent's agent), `same`
    for the parent's, or the name of one. `title` is what lists call it.
    """

    prompt: str
    title: str = ""
    agent: str = ""
    money: float = 0.0
    steps: int = 0
    seconds: float = 0.0


class TaskResult(Struct, frozen=True):
    """How it ended. `text` is the last thing that it said; whatever that asks for, it is data."""

    session_id: str
    reason: Reason
    text: str = ""
    detail: str = ""
    agent: str = ""
    metrics: ExecutionMetrics = ExecutionMetrics()
