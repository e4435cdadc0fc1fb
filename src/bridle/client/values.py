"""What a server answers, as far as a client looks at it. What it does not know it leaves alone.

So a client works with a newer server. A test holds the names against the server's own.
"""

from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import asdict

from bridle.messages import Message
from bridle.usage import ExecutionMetrics


class SessionLine(Struct, frozen=True, rename="camel", kw_only=True):
    """A session in one line."""

    id: str
    title: str = ""
    workspace: str = ""
    model: str = ""
    agent: str = ""
    mode: str = ""
    state: str = "idle"
    reason: str = ""
    waiting: int = 0
    turn: int = 0
    seq: int = 0
    cost: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    created_at: str = ""
    updated_at: str = ""
    tags: tuple[str, ...] = ()
    parent: str = ""
    holder: str = ""


class SessionLines(Struct, frozen=True, rename="camel"):
    """A page of sessions, the newest first; `next` is where the page after begins."""

    sessions: tuple[SessionLine, ...] = ()
    next: str = ""


class Waiting(Struct, frozen=True, rename="camel", kw_only=True):
    """A question that waits for a person; `asked` is the log's own record of it."""

    session_id: str
    call_id: str
    shown: str
    seq: int = 0
    asked: dict[str, Any] = {}
    session_title: str = ""
    parent: str = ""
    diff: str = ""
    expires: str = ""
    posted: bool = False


class AllWaiting(Struct, frozen=True, rename="camel"):
    """The questions of all sessions."""

    approvals: tuple[Waiting, ...] = ()


class Context(Struct, frozen=True, rename="camel"):
    """How full the model's window is; 0 where it is not known."""

    tokens: int = 0
    window: int = 0


class SessionWhole(SessionLine, frozen=True, rename="camel", kw_only=True):
    """A session with what stands beside its conversation."""

    pending: tuple[Waiting, ...] = ()
    metrics: ExecutionMetrics = ExecutionMetrics()
    context: Context = Context()
    children: tuple[str, ...] = ()


class Taken(Struct, frozen=True, rename="camel"):
    """A prompt is on disk, and this is its turn."""

    session_id: str
    turn: int


class Said(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer that counts, and whose it is."""

    call_id: str
    allowed: bool
    by: str = ""
    scope: str = "once"
    word: str = ""
    rule: str = ""


class Page(Struct, frozen=True, rename="camel"):
    """Records as the log has them; `next` is where to go on, 0 at the end."""

    records: tuple[Raw, ...] = ()
    next: int = 0
    last: int = 0


class Found(Struct, frozen=True, rename="camel", kw_only=True):
    """A place where the words were found."""

    session_id: str
    seq: int
    title: str = ""
    text: str = ""
    kind: str = ""


class AllFound(Struct, frozen=True, rename="camel"):
    """Where the words were found."""

    hits: tuple[Found, ...] = ()


class Choice(Struct, frozen=True, rename="camel", kw_only=True):
    """A model, an agent or a workspace that can be chosen; `why_not` where it cannot."""

    name: str
    label: str = ""
    default: bool = False
    why_not: str = ""


class AllChoices(Struct, frozen=True, rename="camel"):
    """What can be chosen."""

    choices: tuple[Choice, ...] = ()


class Covered(Struct, frozen=True, rename="camel"):
    """Past calls that a rule would have covered, in words."""

    calls: tuple[str, ...] = ()


class Restored(Struct, frozen=True, rename="camel", kw_only=True):
    """A file that an undo would put back."""

    path: str
    how: str = "changed"
    diff: str = ""


class Clash(Struct, frozen=True, rename="camel", kw_only=True):
    """A file that changed after the turn: why, and in `diff` what an overwrite would lose."""

    path: str
    why: str = ""
    diff: str = ""
    turn: int = 0
    session_id: str = ""


class Undoing(Struct, frozen=True, rename="camel", kw_only=True):
    """What an undo would do. `token` names what was shown; `clashes` are not put back by itself."""

    turn: int = 0
    files: tuple[Restored, ...] = ()
    uncovered: tuple[str, ...] = ()
    clashes: tuple[Clash, ...] = ()
    token: str = ""


class Caller(Struct, frozen=True, rename="camel", kw_only=True):
    """Who is asking, and what they may."""

    name: str
    role: str
    version: str = ""
    workspaces: tuple[str, ...] = ()


class LimitsOf(Struct, frozen=True, rename="camel", kw_only=True):
    """What a turn, a session and a day may use. None: no limit."""

    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_turn_tokens: int | None = None
    max_cost: float | None = None
    max_session_tokens: int | None = None
    max_session_cost: float | None = None
    max_day_tokens: int | None = None
    max_day_cost: float | None = None

    @property
    def named(self) -> dict[str, float | None]:
        """Each by its name."""
        return asdict(self)


class Budget(Struct, frozen=True, rename="camel"):
    """What may be used, and what was."""

    limits: LimitsOf = LimitsOf()
    metrics: ExecutionMetrics = ExecutionMetrics()


class Lines(Struct, frozen=True, rename="camel"):
    """What was found, a line each."""

    lines: tuple[str, ...] = ()


class Spoken(Struct, frozen=True, rename="camel"):
    """A conversation as it stands."""

    messages: tuple[Message, ...] = ()


class FoundFiles(Struct, frozen=True, rename="camel"):
    """Files of a workspace."""

    paths: tuple[str, ...] = ()
