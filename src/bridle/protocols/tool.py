"""The protocol of tools, and what a tool gets.

A tool knows its arguments and its context. It does not know the engine, the session or the
interface.
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
        """The path from the root, with `/`. Refuses one that leads out, without following links."""
        ...

    def read(self, path: str, limit: int | None = None) -> bytes: ...
    def write(self, path: str, data: bytes) -> None:
        """Replace the file in one step. Missing folders are created."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_folder(self, path: str) -> bool: ...
    def names(self, path: str = ".") -> list[str]:
        """The entries of a folder, sorted; folders end in `/`."""
        ...


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """What a tool returns: `text` for the model, `data` for interfaces, never an exception.

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
        """Return a success. Without `text` the model reads the data: as it is, or as JSON.

        Pydantic models become plain JSON values, both in the text and in the data.
        """
        if data is None or isinstance(data, str):
            return cls(True, text if text is not None else "done" if data is None else data, data)
        if text is not None and "pydantic" not in sys.modules:
            return cls(True, text, data)
        hook = _JsonHook()
        try:
            encoded = msgspec.json.encode(data, enc_hook=hook)
        except (TypeError, ValueError, RecursionError):
            if text is None:
                raise
            return cls(True, text, data)
        if hook.met_model:
            data = msgspec.json.decode(encoded)
        return cls(True, encoded.decode() if text is None else text, data)

    @classmethod
    def failure(
        cls, message: str, diagnostics: Any = None, *, outcome: Outcome = ""
    ) -> "ToolResult":
        """Return a failure. The message says why and, if possible, what to do instead."""
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


def _no_path(path: str) -> bool:
    return False


class Access(Struct, frozen=True):
    """Which guarded files a command may use, because a person or a rule allowed it.

    `reads(path)` is true for credentials that the command may read, `writes(path)` for files that
    run by themselves and that it may change; paths are relative to the root. `git` is not empty if
    the command is git and may write files from its commits: `known` for commits from before the
    session, `any` for later ones, too.
    """

    reads: Callable[[str], bool] = _no_path
    writes: Callable[[str], bool] = _no_path
    git: Literal["", "known", "any"] = ""


class ToolContext(Struct, Generic[Deps]):
    """What a call gets: the workspace, its deadline, and what belongs to its session.

    `deadline` is in the event loop's time (None: no limit). `emit` puts an event into the log;
    `say` shows output while the tool runs. `memory` lasts as long as the session is open;
    `at_close` takes functions that are called when it is closed. `folder` is the session's own,
    outside the workspace (empty: there is none). `word` is the note of the person who approved this
    call; `mode` is the session's. `redact` takes secrets out of text that is stored elsewhere than
    in the log. `was_approved`: a person approved this call before the session was resumed.
    `hidden` says which files a search leaves out because of a rule (None: there is none). A tool
    sets `unfinished` to a function that returns its output so far: if the call is cut off, the
    model gets that output.
    `access` says which guarded files a command may use, because a person or a rule allowed it.
    `network`: this call may use the network, because a person allowed it or wrote a rule for it.
    `origin` is the session that started this one, directly or through others; empty if a person
    started it.
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
    redact: Callable[[str], str] = lambda text: text
    was_approved: bool = False
    hidden: Callable[[str], bool] | None = None
    access: Access = Access()
    unfinished: Callable[[], str] | None = None
    network: bool = False
    origin: str = ""

    def say(self, text: str) -> None:
        """Show some output while the tool is still running."""
        self.emit(ToolOutputDelta(self.call_id, text))


class Tool(Protocol):
    """Something that the model can call.

    A tool may have two more methods. `touched(arguments)` returns the paths that a call would
    touch, if they are not simply its `path`; it raises `ToolError` if it cannot tell. `await
    precheck(arguments, context)` raises `ToolError` if the call is bound to fail, without side
    effects.
    """

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
        """A number that changes whenever `tools` returns other tools."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """The tools that are known now. Starts nothing, and waits for nothing."""
        ...

    async def close(self) -> None:
        """End everything that was started."""
        ...


# The texts of a call about which nothing else is known, against which rules are matched.
#
# It makes no difference whose tool it is, a server's or another agent's. Decides nothing.

MAX_TEXTS, MAX_CHARACTERS = 2_000, 400_000  # that rules are matched against
TOO_MUCH_TEXT = "it has more text than rules can be matched against"


def judge_by_words(
    name: str,
    arguments: dict[str, Any],
    *,
    subject: str = "",
    reason: str = "",
    guard: str = "",
) -> Facts:
    """Return what is known of such a call: its texts, each of which can only forbid or ask.

    How the tool reads them, as a path or otherwise, is unknown. If a call has more text than can be
    matched, no rule allows it, and any rule that forbids some text forbids it.
    """
    texts, is_complete = texts_in(arguments)
    act = Act((name,), subject, reason=reason, also=texts, cut=not is_complete)
    opaque = "" if is_complete else TOO_MUCH_TEXT
    return Facts(ToolPolicy(), acts=(act,), guard=guard, opaque=opaque)


def texts_in(arguments: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """Return the texts among the arguments at any depth, and whether these are all of them.

    The names of the arguments are the tool's; the keys of nested objects may be the caller's.
    """
    texts: dict[str, None] = {}
    size = 0
    values: list[Any] = list(arguments.values())
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.keys()
            values += value.values()
        elif isinstance(value, list | tuple):
            values += value
        elif isinstance(value, str) and value not in texts:
            size += len(value)
            if size > MAX_CHARACTERS or len(texts) >= MAX_TEXTS:
                return tuple(texts), False
            texts[value] = None
    return tuple(texts), True


# Child sessions: the argument and the result of `ToolContext.spawn`.
#
# A tool whose policy says `delegates` has `spawn` in its context: `await context.spawn(Task(…))`
# runs a child session to its end and returns a `TaskResult`. The child may never do what its parent
# may not, and what it uses counts there, too.

SAME = "same"  # the agent that runs the turn of the parent


class Task(Struct, frozen=True):
    """Work for a child session. Zero is no limit beyond what is left of the parent's.

    `agent` is empty for our loop (or, if there is no model for it, the parent's agent), `same` for
    the parent's, or the name of an agent. `title` is shown in lists.
    """

    prompt: str
    title: str = ""
    agent: str = ""
    max_cost: float = 0.0
    max_steps: int = 0
    max_seconds: float = 0.0


class TaskResult(Struct, frozen=True):
    """How a child session ended. `text` is its last reply: it is data, whatever it asks for."""

    session_id: str
    reason: Reason
    text: str = ""
    detail: str = ""
    agent: str = ""
    metrics: ExecutionMetrics = ExecutionMetrics()
