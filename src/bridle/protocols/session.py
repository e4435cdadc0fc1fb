"""The verbs of a session: three in, one stream out. The engine keeps them, and so does the client.

`shown` is the hash of what a person was shown; an answer to something else is no answer.
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
    """What a person says to a question: yes or no, for how long, and a word to the model.

    `by` is the name that an approver answers in. `rule` is what is to be made of a yes with the
    scope `rule`; without it, it is the one that was proposed.
    """

    allowed: bool
    scope: Literal["once", "session", "rule"] = "once"
    word: str = ""
    by: str = ""
    rule: str = ""


YES = Answer(True)
NO = Answer(False)


class TurnResult(Struct, frozen=True):
    """A whole turn, for those who want no stream.

    `permission_needed` counts the calls that needed a person's approval and did not get it: those
    that were refused because nobody was there to ask, or, in a parked turn, those that wait.
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
        """Did the turn come to its end?"""
        return self.reason == "done"


class Session(Protocol):
    """A conversation that lasts."""

    @property
    def id(self) -> str: ...

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """The turn's number, once the prompt is on disk. Raise `EmptyPrompt`, `SessionBusy`."""
        ...

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Settle a pending approval; the first answer wins. Raise `UnknownApproval`."""
        ...

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn; the session is usable right after."""
        ...

    def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Every record after that number: first what was written, then live, no gap, no repeat."""
        ...


class Standing(Protocol):
    """What a session's records add up to, as far as a face looks at it."""

    @property
    def pending(self) -> Mapping[str, ApprovalAsked]:
        """The questions that nobody has answered, by what was shown."""
        ...

    @property
    def waiting(self) -> Mapping[int, PromptReceived]:
        """The prompts that no turn has taken, by their records."""
        ...


class Conversation(Session, Protocol):
    """A session as a face needs it, whether it lives here or on a server."""

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
    def history(self) -> Standing: ...
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
