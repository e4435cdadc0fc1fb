"""Draws blocks as lines of segments for a width: prompts, thoughts, calls, notices, endings.

Knows Rich and the palette, no widget. Every text passes `clean.py`. Two columns on the left hold
the marks, so that a reader's eye runs down one edge.
"""

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from bridle.presentation.blocks import (
    Block,
    Call,
    GrowingText,
    Notice,
    Prompt,
    Removed,
    Reply,
    Thought,
    TurnEnd,
)
from bridle.tui.block_call import CallLines, cut
from bridle.tui.block_said import Growth
from bridle.tui.render.markdown import Piece, pieces_of
from bridle.tui.render.palette import Palette
from bridle.tui.render.pen import Pen
from bridle.tui.render.safe_text import clean, clean_line, spaced
from bridle.workspace.text import quantity

Line = list[Segment]
MARGIN = 2
_PROMPT = 12  # lines of a long prompt that are shown folded
_ENDLESS = 10_000  # columns: nothing is broken
_WIDEST = 110  # columns of prose: longer lines are hard to read


def new_console(palette: Palette) -> Console:
    """Where nothing is printed: it only breaks text into segments."""
    from io import StringIO

    return Console(
        file=StringIO(), force_terminal=True, color_system="truecolor", highlight=False, width=80
    )


class Painter:
    """Draws for one width and one palette; keeps the drawings of answers that grow."""

    def __init__(self, palette: Palette, width: int) -> None:
        self.pen = Pen(palette)
        self.width = max(4, width)
        self.console = new_console(palette)
        self._themed = False
        self._growths: dict[int, Growth] = {}

    def forget(self, place: int) -> None:
        """That block is out of sight."""
        self._growths.pop(place, None)

    def lines(self, place: int, block: Block, *, unfolded: bool) -> list[Line]:
        """What is shown of that block."""
        if isinstance(block, Prompt):
            return self._prompt(block, unfolded)
        if isinstance(block, Reply | Thought):
            lines = (
                self._thought(block, unfolded)
                if isinstance(block, Thought)
                else self._grown(place, block)
            )
            return self._discarded(lines) if block.discarded else lines
        if isinstance(block, Call):
            return CallLines(self.pen, self.console, self.width).draw(block, unfolded=unfolded)
        if isinstance(block, Notice):
            return self._notice(block)
        return [] if isinstance(block, Removed) else self._ending(block)

    def written(self, block: Block) -> list[str]:
        """The lines of the text that a block is drawn from, before they were broken to the width.

        Of Markdown these are the lines of an endlessly wide window.
        """
        if isinstance(block, Reply):
            return [line for piece in pieces_of(clean(block.text)) for line in self._source(piece)]
        if isinstance(block, Prompt | Thought):
            return spaced(clean(block.text)).split("\n")
        if isinstance(block, Call):
            texts = (block.command, block.note, block.diff or block.output or block.result)
            return [row for text in texts if text for row in spaced(clean(text)).split("\n")]
        if isinstance(block, Notice):
            return [clean_line(block.text, 2000)]
        if isinstance(block, TurnEnd):
            return [clean_line(text, 2000) for text in (block.reason, block.hint, block.used)]
        return []

    def _source(self, piece: Piece) -> list[str]:
        from bridle.tui.render.markdown import draw_piece

        if piece.kind == "code":
            return spaced(piece.text).split("\n")
        self._set_theme()
        drawn = draw_piece(piece, self.console, _ENDLESS, self.pen.palette)
        return ["".join(one.text for one in line).rstrip() for line in drawn]

    def _set_theme(self) -> None:
        if not self._themed:
            from bridle.tui.render.markdown import theme_of

            self.console.push_theme(theme_of(self.pen.palette))
            self._themed = True

    def _grown(self, place: int, block: GrowingText) -> list[Line]:
        self._set_theme()
        if place not in self._growths:
            width = min(self.width - 2 * MARGIN, _WIDEST)
            self._growths[place] = Growth(self.console, max(4, width), self.pen.palette)
        return self._growths[place].lines(block)

    def _discarded(self, lines: list[Line]) -> list[Line]:
        """Words that do not count: struck through, in one colour, and marked."""
        struck = self.pen.dim + Style(strike=True)
        found = [
            [Segment(one.text, struck if one.text.strip() else None) for one in line]
            for line in lines
        ]
        if found and found[0]:
            found[0][0] = Segment(set_cell_size("✗", MARGIN), self.pen.tones["warn"])
        return found

    def wrapped(self, text: str, style: Style, mark: str, mark_style: Style) -> list[Line]:
        """Words behind a mark, wrapped beside it."""
        room = min(self.width - 2 * MARGIN, _WIDEST)
        lines = Text(spaced(clean(text)), style).wrap(self.console, max(4, room))
        drawn: list[Line] = []
        for number, line in enumerate(lines):
            edge = Segment(set_cell_size(mark, MARGIN), mark_style) if not number else None
            drawn.append([edge or Segment(" " * MARGIN), Segment(line.plain, style)])
        return drawn

    def _prompt(self, block: Prompt, unfolded: bool) -> list[Line]:
        pen = self.pen
        text = clean(block.text.strip("\n"))
        lines = self.wrapped(text, pen.ground, "❯", pen.prompt)
        if len(lines) > _PROMPT and not unfolded:
            more = quantity(len(lines) - _PROMPT + 1, "more line")
            lines = lines[: _PROMPT - 1]
            lines.append([Segment(" " * MARGIN), Segment(f"… {more}", pen.dim)])
        if tail := _prompt_tail(block):
            lines.append([Segment(" " * MARGIN), Segment(tail, pen.dim)])
        return [self._on_ground(line, pen.ground) for line in lines]

    def _on_ground(self, line: Line, ground: Style) -> Line:
        """To the right edge, so that a prompt is one bar across the conversation."""
        shown = [Segment(one.text, ground + (one.style or Style())) for one in line]
        width = sum(cell_len(one.text) for one in shown)
        return [*shown, Segment(" " * max(0, self.width - width), ground)]

    def _thought(self, block: Thought, unfolded: bool) -> list[Line]:
        dim = self.pen.dim + Style(italic=True)
        text = block.text.strip()
        if unfolded:
            return self.wrapped(text, dim, "⋯", self.pen.dim)
        word = "thought" if block.over else "thinks"
        room = max(4, min(self.width - 2 * MARGIN, _WIDEST) - len(word) - 2)
        gist = text if block.over else text[-400:].rpartition("\n")[2]
        said = f"{word}: {cut(clean_line(gist, 400), room)}" if gist.strip() else word
        return [[Segment("⋯ ", self.pen.dim), Segment(said, dim)]]

    def _notice(self, block: Notice) -> list[Line]:
        tone = self.pen.tones[block.tone]
        text = self.pen.dim if block.tone == "dim" else self.pen.text
        return self.wrapped(clean_line(block.text, 2000), text, block.mark, tone)

    def _ending(self, block: TurnEnd) -> list[Line]:
        tone = self.pen.tones[block.tone]
        lines: list[Line] = []
        if block.reason:
            style = tone if block.tone != "dim" else self.pen.dim
            lines += self.wrapped(clean_line(block.reason, 2000), style, "■", tone)
        if block.hint:
            lines += self.wrapped(clean_line(block.hint, 2000), self.pen.dim, "→", self.pen.dim)
        if block.used:
            lines += self.wrapped(block.used, self.pen.dim, " ", self.pen.dim)
        return lines


def _prompt_tail(block: Prompt) -> str:
    said = []
    if block.attached:
        said.append(quantity(block.attached, "attachment"))
    if block.steers:
        said.append("while it worked")
    if block.by != "me":
        said.append(f"by {clean_line(block.by, 40)}")
    return " · ".join(said)


def gap_before(before: Block | None, block: Block) -> int:
    """The empty lines between two blocks: calls stand together, the rest has air."""
    if before is None or isinstance(block, Removed):
        return 0
    if isinstance(block, Call | Notice) and isinstance(before, Call | Notice | Thought):
        return 0
    if isinstance(block, TurnEnd) and isinstance(before, Notice):
        return 0
    return 1
