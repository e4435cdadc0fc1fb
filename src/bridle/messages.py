"""What the model reads and writes: messages of ordered parts, and the transcript that holds them.

Plain values; nothing here performs I/O or knows a vendor.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, overload

from msgspec import Struct, field

Role = Literal["system", "user", "assistant", "tool"]


class Text(Struct, frozen=True, gc=False, tag="text"):
    """Words."""

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
    """What the model thought, and what its vendor needs to take it back.

    `meta` is the vendor's own: `api` and `model` say whose it is; signature, redacted data,
    item id and encrypted content are kept word for word.
    """

    text: str = ""
    meta: dict[str, str] = {}


def _no_arguments() -> dict[str, Any]:
    """Not `dict` itself: a call says its arguments in the log even where there are none."""
    return {}


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", omit_defaults=True):
    """The model asks for a tool.

    `broken` is the beginning of arguments that were no JSON object: such a call never runs, and
    is answered with what is wrong.
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


def says_something(message: Message) -> bool:
    """Is there more than thoughts and white space?"""
    for part in message.parts:
        if isinstance(part, Text):
            if part.text.strip():
                return True
        elif not isinstance(part, Thinking):
            return True
    return False


def user(*parts: str | Part) -> Message:
    """A message from the person."""
    return Message("user", as_parts(parts))


def as_parts(content: str | Iterable[str | Part]) -> tuple[Part, ...]:
    """Text, or parts, as parts."""
    if isinstance(content, str):
        return (Text(content),)
    return tuple(Text(part) if isinstance(part, str) else part for part in content)


def sound(text: str) -> str:
    """Text that can be written as UTF-8: half of a surrogate pair is written out as an escape."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


class _Shelf:
    """The storage that transcripts with a common beginning share."""

    __slots__ = ("messages", "wires")

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.wires: dict[str, Any] = {}


class Transcript(Sequence[Message]):
    """A conversation that only grows: an immutable sequence with a cheap `plus`.

    Transcripts that grew out of one another share a shelf, and on that shelf each wire format
    keeps what it has encoded already (`wires`): a message is encoded once, not once a request.
    `turn` is where the turn in progress begins: the last prompt that says something and came when
    no result waited for the model to do so.
    """

    __slots__ = ("_length", "_looping", "_shelf", "turn")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._shelf = _Shelf(list(messages))
        self._length = len(self._shelf.messages)
        self.turn, self._looping = 0, False
        for index, message in enumerate(self._shelf.messages):
            self._turn_at(index, message)

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "Transcript":
        """The same messages as a transcript; a transcript is handed back as it is."""
        return messages if isinstance(messages, Transcript) else cls(messages)

    @property
    def wires(self) -> dict[str, Any]:
        """What each wire format keeps of this shelf, by its own key."""
        return self._shelf.wires

    def plus(self, message: Message) -> "Transcript":
        """One message more. The old transcript stays as it was."""
        messages = self._shelf.messages
        grown = Transcript.__new__(Transcript)
        if len(messages) == self._length:
            messages.append(message)
            grown._shelf = self._shelf
        else:  # somebody else has gone on from here: part ways
            grown._shelf = _Shelf([*messages[: self._length], message])
        grown._length = self._length + 1
        grown.turn, grown._looping = self.turn, self._looping
        grown._turn_at(self._length, message)
        return grown

    def apart(self) -> "Transcript":
        """The same messages on a shelf of their own: what is added there is nobody else's."""
        other = Transcript.__new__(Transcript)
        other._shelf = _Shelf(self._shelf.messages[: self._length])
        other._length, other.turn, other._looping = self._length, self.turn, self._looping
        return other

    def _turn_at(self, index: int, message: Message) -> None:
        """Several prompts may steer one step. Silence, a reply's or a prompt's, is never sent."""
        if message.role == "user":
            if not self._looping and says_something(message):
                self.turn = index
        elif message.role == "tool":
            self._looping = True
        elif self._looping and message.role == "assistant":
            self._looping = not says_something(message)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            messages = self._shelf.messages
            start, stop, step = index.indices(self._length)
            if step > 0:
                return tuple(messages[start:stop:step])
            return tuple(messages[place] for place in range(start, stop, step))
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._shelf.messages[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[Message]:
        messages = self._shelf.messages
        for index in range(self._length):
            yield messages[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"
