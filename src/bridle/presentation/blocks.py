"""The blocks of a conversation: prompts, replies, thoughts, calls, notices, ends of turns.

Plain values; `fold.py` makes them from records. The texts are as they came: whoever shows them
makes them harmless.
"""

from typing import Literal
from zlib import compress, decompress

from msgspec import Struct, field

CallState = Literal["writing", "ready", "asked", "running", "done", "failed", "refused", "unknown"]
Tone = Literal["dim", "warn", "bad", "good"]
WORTH_PACKING = 500  # characters
OPEN: tuple[CallState, ...] = ("writing", "ready", "asked", "running")


class Prompt(Struct):
    """What a person asked for. `attached` counts pictures and documents."""

    text: str
    by: str = "me"
    attached: int = 0
    steers: bool = False


class GrowingText(Struct):
    """Text that arrives in pieces. `discarded`: the reply broke off and is not used."""

    pieces: list[str] = field(default_factory=list)
    over: bool = False
    packed: bytes = b""
    discarded: bool = False

    @property
    def text(self) -> str:
        """The text so far."""
        if self.packed:
            return decompress(self.packed).decode("utf-8", "surrogatepass")
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def grow(self, text: str) -> None:
        """Append a piece."""
        if self.packed:
            self.pieces, self.packed = [self.text], b""
        self.pieces.append(text)

    def finish(self, text: str) -> None:
        """Set the final text."""
        self.pieces, self.over, self.packed = [text], True, b""

    def pack(self) -> None:
        """Compress a long text that is out of sight."""
        if self.over and not self.packed and len(self.text) >= WORTH_PACKING:
            self.packed = compress(self.text.encode("utf-8", "surrogatepass"), 1)
            self.pieces = []


class Reply(GrowingText):
    """What the model says, as Markdown."""


class Thought(GrowingText):
    """What the model thinks."""


class Call(Struct):
    """A tool call, from the model's first delta to its one result.

    `note` is why approval is needed, or the answer. `command` is set if `subject` cannot show all
    of it. `output` is the end of the live output, `summary` one line about the result.
    """

    id: str
    name: str
    subject: str = ""
    state: CallState = "writing"
    output: str = ""
    result: str = ""
    summary: str = ""
    diff: str = ""
    note: str = ""
    command: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.state in OPEN


class Notice(Struct):
    """A line about the session itself."""

    text: str
    mark: str = "·"
    tone: Tone = "dim"


class TurnEnd(Struct):
    """The end of a turn. `reason` is empty if it is simply done; `used` is what it used."""

    reason: str = ""
    used: str = ""
    hint: str = ""
    tone: Tone = "dim"


class Removed(Struct):
    """What a rewind left of a block: only the log still has it."""


Block = Prompt | Reply | Thought | Call | Notice | TurnEnd | Removed


def is_foldable(block: Block) -> bool:
    """Whether there is more of it than is shown at first."""
    if isinstance(block, Thought):
        return True
    if isinstance(block, Call):
        return bool(block.result or block.output or block.diff or block.command)
    return isinstance(block, Prompt) and block.text.count("\n") >= 12
