"""What a conversation is made of, as a person sees it: prompts, answers, thoughts, calls, notices.

Plain values without a screen. A block grows while something is under way; `blocks_fold.py` makes
them of records. The texts are as they came: whoever shows them passes them through `clean.py`.
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
    """Words that come in pieces. `discarded`: the reply broke off, and none of it counts."""

    pieces: list[str] = field(default_factory=list)
    over: bool = False
    packed: bytes = b""
    discarded: bool = False

    @property
    def text(self) -> str:
        """All of it so far."""
        if self.packed:
            return decompress(self.packed).decode("utf-8", "surrogatepass")
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def grow(self, text: str) -> None:
        """Some more came."""
        if self.packed:
            self.pieces, self.packed = [self.text], b""
        self.pieces.append(text)

    def settle(self, text: str) -> None:
        """It is over, and this is what it is."""
        self.pieces, self.over, self.packed = [text], True, b""

    def pack(self) -> None:
        """It is far from what is looked at: keep it small."""
        if self.over and not self.packed and len(self.text) >= WORTH_PACKING:
            self.packed = compress(self.text.encode("utf-8", "surrogatepass"), 1)
            self.pieces = []


class Reply(GrowingText):
    """The model's answer, in markdown."""


class Thought(GrowingText):
    """What the model thought."""


class Call(Struct):
    """A tool at work, from the model's wish to its one result.

    `live` is the end of what it said while it ran, `result` what came of it, `told` how many
    characters it said in all, `word` what a person answered or why they were asked.
    """

    id: str
    name: str
    subject: str = ""
    state: CallState = "writing"
    live: str = ""
    told: int = 0
    result: str = ""
    gist: str = ""
    diff: str = ""
    word: str = ""
    command: str = ""
    began: str = ""
    ended: str = ""

    @property
    def is_open(self) -> bool:
        """Has it no result yet?"""
        return self.state in OPEN


class Notice(Struct):
    """A line about the session itself."""

    text: str
    mark: str = "·"
    tone: Tone = "dim"


class TurnEnd(Struct):
    """A turn is over. `reason` is empty where it came to its end; `used` says what it took."""

    reason: str = ""
    used: str = ""
    hint: str = ""
    tone: Tone = "dim"


class Removed(Struct):
    """The place of something that was taken back: the log has it, the screen no more."""


Block = Prompt | Reply | Thought | Call | Notice | TurnEnd | Removed


def is_foldable(block: Block) -> bool:
    """Is there more of it than is shown at first?"""
    if isinstance(block, Thought):
        return True
    if isinstance(block, Call):
        return bool(block.result or block.live or block.diff or block.command)
    return isinstance(block, Prompt) and block.text.count("\n") >= 12
