"""What the model reads and writes: messages of ordered parts, and the transcript of a conversation.

Plain values; nothing here performs I/O or knows a vendor.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, overload

from msgspec import Struct, field

Role = Literal["system", "user", "assistant", "tool"]


class Text(Struct, frozen=True, gc=False, tag="text"):
    """Text."""

    text: str


class Image(Struct, frozen=True, gc=False, tag="image", rename="camel", omit_defaults=True):
    """A picture: base64 data with its media type, or a URL."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class File(Struct, frozen=True, gc=False, tag="file", rename="camel", omit_defaults=True):
    """A document: base64 data with its media type and name."""

    media_type: str
    data: str
    name: str = ""


class Thinking(Struct, frozen=True, gc=False, tag="thinking", omit_defaults=True):
    """What the model thought, and what its vendor needs when it is sent back.

    `meta` belongs to the vendor: `api` and `model` say which one; signature, redacted data, item id
    and encrypted content are kept as they came.
    """

    text: str = ""
    meta: dict[str, str] = {}


def _no_arguments() -> dict[str, Any]:
    """Not `dict` itself: the log has the arguments of a call even if there are none."""
    return {}


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", omit_defaults=True):
    """The model asks for a tool.

    `broken` is the beginning of arguments that were not a JSON object: such a call never runs, and
    its result says what is wrong.
    """

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=_no_arguments)
    broken: str = ""


Outcome = Literal[
    "",  # it worked
    "failed",  # it ran, and did not work
    "invalid",  # not run: the call itself is wrong
    "denied",  # not run: the gate, a hook, the policy engine or a person said no
    "refused",  # not run for another reason, such as a limit
    "not_run",  # not run: the turn ended before it began
    "interrupted",  # cut off before it finished
    "not_stopped",  # cut off, and it may still be running
    "unknown",  # nobody knows whether it ran
]


class ToolOutput(
    Struct, frozen=True, gc=False, tag="tool_output", rename="camel", omit_defaults=True
):
    """The one answer to a call: `text` for the model, `data` for interfaces.

    `outcome` says how the call ended. In an answer with `is_error` it is empty only if the log is
    of an earlier version: read it with `outcome_of`.
    """

    call_id: str
    text: str
    is_error: bool = False
    name: str = ""
    data: Any = None
    media: tuple[Image | File, ...] = ()
    outcome: Outcome = ""


_EARLIER_TEXTS: dict[str, Outcome] = {
    "not permitted": "denied",
    "these arguments are not valid": "invalid",
    "there is no tool named": "invalid",
    "not run: the arguments are not valid JSON": "invalid",
    "not run: the turn ended before it began": "not_run",
    "not run": "refused",
    "interrupted, and it did not stop": "not_stopped",
    "interrupted before it finished": "interrupted",
    "no result was recorded": "unknown",
}


def outcome_of(output: ToolOutput) -> Outcome:
    """Return how a call ended. Logs of earlier versions say it in the answer's text alone."""
    if output.outcome or not output.is_error:
        return output.outcome
    for beginning, outcome in _EARLIER_TEXTS.items():
        if output.text.startswith(beginning):
            return outcome
    return "failed"


Part = Text | Image | File | Thinking | ToolCall | ToolOutput


class Message(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()
    id: str = ""
    created_at: str = ""

    @property
    def content(self) -> str:
        """All text, joined."""
        parts = self.parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """All thinking, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    @property
    def reasoning_metadata(self) -> tuple[dict[str, str], ...]:
        """What the vendor attached to the thinking."""
        return tuple(part.meta for part in self.parts if isinstance(part, Thinking) and part.meta)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which they were made."""
        return tuple([part for part in self.parts if type(part) is ToolCall])

    @property
    def tool_results(self) -> tuple[ToolOutput, ...]:
        """The answers, in the order of their calls."""
        return tuple(part for part in self.parts if isinstance(part, ToolOutput))


def has_content(message: Message) -> bool:
    """Whether there is more in it than thinking and white space."""
    for part in message.parts:
        if isinstance(part, Text):
            if part.text.strip():
                return True
        elif not isinstance(part, Thinking):
            return True
    return False


def user(*parts: str | Part) -> Message:
    """Return a message from the person."""
    return Message("user", to_parts(parts))


def to_parts(content: str | Iterable[str | Part]) -> tuple[Part, ...]:
    """Return text, or texts and parts, as parts."""
    if isinstance(content, str):
        return (Text(content),)
    return tuple(Text(part) if isinstance(part, str) else part for part in content)


def escape_surrogates(text: str) -> str:
    """Text that can be written as UTF-8: half of a surrogate pair becomes an escape sequence."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


class _Storage(Struct, eq=False):
    """What transcripts with a common beginning share."""

    messages: list[Message]
    encoding_caches: dict[str, Any] = {}


class Transcript(Sequence[Message]):
    """A conversation that only grows: an immutable sequence with a cheap `plus`.

    Transcripts that grew out of one another share their storage, and with it `encoding_caches`, in
    which each wire format keeps what it has encoded: a message is encoded once, not once a request.
    `turn` is where the turn in progress begins: the last prompt that has content and came when the
    model had no result to answer.
    """

    __slots__ = ("_in_tool_loop", "_length", "_storage", "turn")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._storage = _Storage(list(messages))
        self._length = len(self._storage.messages)
        self.turn, self._in_tool_loop = 0, False
        for index, message in enumerate(self._storage.messages):
            self._update_turn(index, message)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "Transcript":
        """The same messages as a transcript; a transcript is returned as it is."""
        return messages if isinstance(messages, Transcript) else cls(messages)

    @property
    def encoding_caches(self) -> dict[str, Any]:
        """The messages as each wire format has encoded them, by the format's own key."""
        return self._storage.encoding_caches

    def plus(self, message: Message) -> "Transcript":
        """One message more. The old transcript stays as it was."""
        messages = self._storage.messages
        grown = Transcript.__new__(Transcript)
        if len(messages) == self._length:
            messages.append(message)
            grown._storage = self._storage
        else:  # another transcript has grown out of this one already
            grown._storage = _Storage([*messages[: self._length], message])
        grown._length = self._length + 1
        grown.turn, grown._in_tool_loop = self.turn, self._in_tool_loop
        grown._update_turn(self._length, message)
        return grown

    def copy(self) -> "Transcript":
        """The same messages in a storage of their own."""
        other = Transcript.__new__(Transcript)
        other._storage = _Storage(self._storage.messages[: self._length])
        other._length, other.turn, other._in_tool_loop = self._length, self.turn, self._in_tool_loop
        return other

    def _update_turn(self, index: int, message: Message) -> None:
        """Several prompts may steer one step. Messages without content are never sent."""
        if message.role == "user":
            if not self._in_tool_loop and has_content(message):
                self.turn = index
        elif message.role == "tool":
            self._in_tool_loop = True
        elif self._in_tool_loop and message.role == "assistant":
            self._in_tool_loop = not has_content(message)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            messages = self._storage.messages
            start, stop, step = index.indices(self._length)
            if step > 0:
                return tuple(messages[start:stop:step])
            return tuple(messages[position] for position in range(start, stop, step))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._storage.messages[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[Message]:
        messages = self._storage.messages
        for index in range(self._length):
            yield messages[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"
