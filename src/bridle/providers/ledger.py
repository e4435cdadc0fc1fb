"""What was encoded already. A message is encoded for a wire once, not once a request.

A ledger belongs to one wire format and to one shelf of transcripts (`Transcript.wires`). It holds
the joined bytes of all messages so far and where each one ends, so that a request costs the new
messages and one copy. It knows no API: a `Script` says how a message is written.

Thinking goes back only inside the turn in progress. When the next turn begins, the messages of
the turn before are written once more without it, from the first one that had some.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from bridle.messages import Message, Transcript
from bridle.promises.provider import Request


class Written(NamedTuple):
    """One message on the wire: which role it speaks in, and its comma-separated items.

    A message with no items is left out. Neighbours with the same opening become one entry;
    an empty `opening` means that each item is an entry by itself.
    """

    opening: bytes
    items: bytes
    thinks: bool = False


class Script(Protocol):
    """How one API writes messages."""

    key: str
    """The name of the format; differs wherever the bytes do."""
    closing: bytes
    """What ends an entry that has an opening."""
    forewords: Mapping[bytes, bytes]
    """What goes before a first entry with such an opening, where the API wants another first."""

    def write(self, message: Message, thinking: bool) -> Written:
        """The message on this wire, with its thinking or without; `thinks` says if it has some."""
        ...


class Ledger:
    """The bytes of a growing conversation in one format. Not for use by two threads at once."""

    __slots__ = ("_bytes", "_ends", "_openings", "_script", "_thinker", "_turn")

    def __init__(self, script: Script) -> None:
        self._script = script
        self._bytes = bytearray()
        self._ends: list[int] = []  # where message i ends; the entry it is in stays open
        self._openings: list[bytes | None] = []  # of the entry that is open there; None: nothing
        self._turn = 0
        self._thinker: int | None = None  # the first message that was written with thinking

    def join(self, transcript: Transcript, head: bytes, tail: bytes) -> bytes:
        """`head`, the messages, `tail`: a request's body. A head may hold entries already."""
        self._turn_to(transcript.turn)
        length = len(transcript)
        for index in range(len(self._ends), length):
            self._append(index, transcript[index])
        if length == 0 or self._openings[length - 1] is None:
            return head + tail
        glue = b"" if head.endswith(b"[") else b","
        if self._openings[length - 1]:
            tail = self._script.closing + tail
        if length == len(self._ends):
            return b"".join((head, glue, self._bytes, tail))
        with memoryview(self._bytes) as view, view[: self._ends[length - 1]] as messages:
            return b"".join((head, glue, messages, tail))

    def _append(self, index: int, message: Message) -> None:
        opening, items, thinks = self._script.write(message, index >= self._turn)
        current = self._openings[-1] if self._openings else None
        if items:
            if current is None:
                self._bytes += self._script.forewords.get(opening, b"") + opening + items
            elif opening and opening == current:
                self._bytes += b"," + items
            else:
                closing = self._script.closing if current else b""
                self._bytes += closing + b"," + opening + items
            current = opening
        self._ends.append(len(self._bytes))
        self._openings.append(current)
        if thinks and self._thinker is None:
            self._thinker = index

    def _turn_to(self, turn: int) -> None:
        """Forget what a change of the turn in progress makes wrong."""
        if turn > self._turn and self._thinker is not None and self._thinker < turn:
            self._cut(self._thinker)
        elif turn < self._turn:  # a transcript that branched off earlier: its turn thinks again
            self._cut(turn)
        self._turn = turn

    def _cut(self, index: int) -> None:
        if index >= len(self._ends):
            return
        del self._bytes[self._ends[index - 1] if index else 0 :]
        del self._ends[index:]
        del self._openings[index:]
        if self._thinker is not None and self._thinker >= index:
            self._thinker = None


def ledger_of(transcript: Transcript, script: Script) -> Ledger:
    """The ledger that stands on the transcript's shelf for this format."""
    found = transcript.wires.get(script.key)
    if not isinstance(found, Ledger):
        found = transcript.wires[script.key] = Ledger(script)
    return found


class Head:
    """The part of a request that stays the same from step to step, encoded once.

    It is the same while system prompt, tools and settings are the same objects.
    """

    __slots__ = ("_bytes", "_encode", "_request")

    def __init__(self, encode: Callable[[Request], bytes]) -> None:
        self._encode = encode
        self._request: Request | None = None
        self._bytes = b""

    def of(self, request: Request) -> bytes:
        """The head of this request."""
        last = self._request
        if (
            last is None
            or last.tools is not request.tools
            or type(request.tools) is not tuple  # a list may have changed
            or last.config is not request.config
            or last.system is not request.system
        ):
            self._bytes = self._encode(request)
            # Held without its messages: the objects must live as long as they are compared.
            self._request = Request((), request.tools, request.config, request.system)
        return self._bytes
