"""The protocol of a session: three methods in, one stream out. Engine and client implement it.

`shown` is the hash of what a person was shown; an answer to something else is not accepted.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Literal, Protocol

from msgspec import Struct

from bridle.errors import AgentError
from bridle.events import ApprovalAsked, PromptReceived, Reason, When
from bridle.messages import Part
from bridle.policy import Mode
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics

Prompt = str | Iterable[str | Part]


class Answer(Struct, frozen=True, omit_defaults=True):
    """A person's answer to an approval request: yes or no, for how long, and a note to the model.

    `by` is the name of the person who answers. `rule` is the rule that an approval with the scope
    `rule` adds; if it is empty, that is the proposed one.
    """

    allowed: bool
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    by: str = ""
    rule: str = ""


YES = Answer(True)
NO = Answer(False)


class TurnResult(Struct, frozen=True):
    """The result of a whole turn.

    `permission_needed` counts the calls that needed a person's approval and did not get it: those
    that were refused because nobody was available to ask, or, in a parked turn, those that wait.
    """

    text: str
    reason: Reason
    session_id: str
    turn: int
    detail: str = ""
    error: AgentError | None = None
    metrics: ExecutionMetrics = ExecutionMetrics()
    permission_needed: int = 0

    @property
    def ok(self) -> bool:
        """Whether the turn ran to its end."""
        return self.reason == "done"


class Session(Protocol):
    """A conversation that lasts."""

    @property
    def id(self) -> str: ...

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """Return the turn's number, with the prompt on disk. Raise `EmptyPrompt`, `SessionBusy`."""
        ...

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Answer a pending approval; the first answer wins. Raise `UnknownApproval`."""
        ...

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn; the session is usable right after."""
        ...

    def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Yield every record after that number once: first those in the log, then live ones."""
        ...


class SessionState(Protocol):
    """The state of a session, as far as an interface uses it."""

    @property
    def pending(self) -> Mapping[str, ApprovalAsked]:
        """The approval requests that nobody has answered, by what was shown."""
        ...

    @property
    def waiting(self) -> Mapping[int, PromptReceived]:
        """The prompts that wait for a turn, by the numbers of their records."""
        ...


class Conversation(Session, Protocol):
    """A session as an interface needs it, whether it runs in this process or on a server."""

    @property
    def title(self) -> str: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def is_parked(self) -> bool: ...
    @property
    def turn(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def metrics(self) -> ExecutionMetrics: ...
    @property
    def history(self) -> SessionState: ...
    @property
    def window(self) -> int | None:
        """The model's context window in tokens, if it is known."""
        ...

    async def wait(self, turn: int) -> TurnResult: ...
    async def resume(self) -> int: ...
    async def set_mode(self, mode: Mode, *, by: str = "me", reason: str = "") -> None: ...
    async def rename(self, title: str) -> None: ...
    async def rewind(self, to: int, *, by: str = "me") -> None: ...
    async def compact(self, *, by: str = "me") -> bool: ...
    async def withdraw(self, prompt: int, *, by: str = "me") -> None:
        """Take back a prompt that waits, by the number of its record (`history.waiting`)."""
        ...

    async def close(self) -> None: ...
