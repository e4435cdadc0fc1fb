"""Draw blocks as lines of segments for a width: prompts, replies, calls, notices.

Every text passes `safe_text.py`. Two columns on the left hold the marks.
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
from bridle.presentation.calls import count_changed_lines
from bridle.tui.render.markdown import MarkdownSplitter, Piece, draw_piece, split_markdown, theme_of
from bridle.tui.render.palette import Palette
from bridle.tui.render.pen import Pen
from bridle.tui.render.safe_text import clean, clean_line, expand_tabs
from bridle.workspace.text import quantity

Line = list[Segment]
MARGIN = 2
_PROMPT = 12  # lines of a long prompt that are shown folded
_ENDLESS = 10_000  # columns: nothing is broken
_WIDEST = 110  # columns of prose: longer lines are hard to read
MARKS = {
    "writing": ("·", "dim"),
    "ready": ("·", "dim"),
    "asked": ("?", "warn"),
    "running": ("●", "accent"),
    "done": ("✓", "good"),
    "failed": ("✗", "bad"),
    "refused": ("✗", "warn"),
    "unknown": ("?", "bad"),
}
_QUESTIONS = ("ask_user", "exit_plan_mode")  # the call itself is the question
_TAIL = 4  # lines of a running tool
_FAILED = 8  # ... and of a command that failed
_MOST = 2_000  # lines of a diff that is unfolded


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
            return [
                line for piece in split_markdown(clean(block.text)) for line in self._source(piece)
            ]
        if isinstance(block, Prompt | Thought):
            return expand_tabs(clean(block.text)).split("\n")
        if isinstance(block, Call):
            texts = (block.command, block.note, block.diff or block.output or block.result)
            return [row for text in texts if text for row in expand_tabs(clean(text)).split("\n")]
        if isinstance(block, Notice):
            return [clean_line(block.text, 2000)]
        if isinstance(block, TurnEnd):
            return [clean_line(text, 2000) for text in (block.reason, block.hint, block.used)]
        return []

    def _source(self, piece: Piece) -> list[str]:
        if piece.kind == "code":
            return expand_tabs(piece.text).split("\n")
        self._set_theme()
        drawn = draw_piece(piece, self.console, _ENDLESS, self.pen.palette)
        return ["".join(one.text for one in line).rstrip() for line in drawn]

    def _set_theme(self) -> None:
        if not self._themed:
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
        lines = Text(expand_tabs(clean(text)), style).wrap(self.console, max(4, room))
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


# Replies and thoughts that grow


class Growth:
    """One answer at one width, in one palette."""

    def __init__(self, console: Console, width: int, palette: Palette) -> None:
        self._console = console
        self._width = width
        self._palette = palette
        self._begin()

    def _begin(self) -> None:
        self._pieces = MarkdownSplitter()
        self._fed = 0
        self._drawn = 0  # pieces whose lines stand in `_lines`
        self._lines: list[Line] = []
        self._over = False

    def lines(self, block: GrowingText) -> list[Line]:
        """All lines of it, as it is now; those that are settled are the same lists each time."""
        text = block.text
        if len(text) < self._fed or (block.over and not self._over and not _is_plain(text)):
            self._begin()  # what was cut between two pieces of the stream is whole now
        self._pieces.feed(clean(text[self._fed :]))
        self._fed = len(text)
        if block.over and not self._over:
            self._pieces.close()
            self._over = True
        for piece in self._pieces.done[self._drawn :]:
            self._append(self._lines, piece)
        self._drawn = len(self._pieces.done)
        if (rest := self._pieces.open()) is None:
            return self._lines
        lines = list(self._lines)
        self._append(lines, rest)
        return lines

    def _append(self, lines: list[Line], piece: Piece) -> None:
        if lines and not piece.joined:
            lines.append([])
        drawn = draw_piece(piece, self._console, self._width, self._palette)
        lines.extend([Segment(" " * MARGIN), *line] for line in drawn)


def _is_plain(text: str) -> bool:
    return text.isascii() and "\r" not in text


# Calls


class CallLines:
    """Draws calls for one width."""

    def __init__(self, pen: Pen, console: Console, width: int) -> None:
        self._pen = pen
        self._console = console
        self._width = width

    def draw(self, call: Call, *, unfolded: bool) -> list[Line]:
        """The lines of a call."""
        lines = [self._head(call)]
        if unfolded:
            lines += self._body(call)
        elif call.state == "running" and call.output:
            lines += self._tail(call.output, _TAIL)
        elif call.state == "failed" and call.name == "shell" and not _is_silent(call):
            lines += self._tail(call.result, _FAILED)
        return lines

    def _head(self, call: Call) -> Line:
        pen = self._pen
        mark, tone = MARKS[call.state]
        name = clean_line(call.name, 40)
        colour = pen.accent if tone == "accent" else pen.tones[tone]
        room = self._width - 2 - cell_len(name) - 1 - 1
        subject, shown = _shared(clean_line(call.subject, 400), self._outcome(call), room)
        line = [Segment(f"{mark} ", colour), Segment(name, pen.bold)]
        if subject:
            line.append(Segment(f" {subject}", pen.text))
        if shown and room > 8:
            style = colour if call.state in ("failed", "refused", "unknown", "asked") else pen.dim
            line += [Segment(" · ", pen.dim), Segment(shown, style)]
        return line

    def _outcome(self, call: Call) -> str:
        if call.state == "writing":
            return "…"
        if call.state == "asked":
            return "needs an answer" if call.name in _QUESTIONS else "needs approval"
        if call.state == "running" or call.state == "ready":
            return ""
        if call.diff:
            added, taken = count_changed_lines(call.diff)
            return f"+{added} −{taken}"
        if call.state == "refused" and call.note:
            return clean_line(call.note, 300)
        return clean_line(call.summary, 300)

    def _tail(self, output: str, most: int) -> list[Line]:
        lines = [one for one in clean(output[-4000:]).split("\n") if one.strip()][-most:]
        return [self._row(expand_tabs(one), self._pen.dim) for one in lines]

    def _body(self, call: Call) -> list[Line]:
        lines: list[Line] = []
        if call.command:
            lines += self._text(call.command, self._pen.text)
        if call.note:
            lines += self._text(call.note, self._pen.tones["warn"])
        if call.diff:
            return lines + self._diff(call.diff)
        text = (call.output if call.is_open else call.result).strip("\n")
        return lines + (self._text(text, self._pen.dim) if text else [])

    def _text(self, text: str, style: Style) -> list[Line]:
        room = max(4, self._width - 6)
        lines: list[Line] = []
        for row in expand_tabs(clean(text)).split("\n"):
            parts = [row] if cell_len(row) <= room else self._wrapped(row, room)
            lines += [self._row(part, style) for part in parts]
        return lines

    def _wrapped(self, row: str, room: int) -> list[str]:
        return [part.plain for part in Text(row).wrap(self._console, room, no_wrap=False)]

    def _diff(self, diff: str) -> list[Line]:
        lines: list[Line] = []
        whole = expand_tabs(clean(diff)).split("\n")
        rows = [row for row in whole if row and not row.startswith(("---", "+++"))]
        for row in rows[:_MOST]:
            lines.append(self._row(row, self._diff_style(row), fill=row[0] in "+-"))
        if len(rows) > _MOST:
            lines.append(self._row(f"… {quantity(len(rows) - _MOST, 'more line')}", self._pen.dim))
        return lines

    def _diff_style(self, row: str) -> Style:
        if row.startswith("+"):
            return self._pen.added
        if row.startswith("-"):
            return self._pen.removed
        return self._pen.accent if row.startswith("@@") else self._pen.dim

    def _row(self, text: str, style: Style, *, fill: bool = False) -> Line:
        """One line beside a thin bar."""
        room = max(1, self._width - 6)
        shown = cut(text, room)
        if fill:
            shown = set_cell_size(shown, room)
        return [Segment("  │ ", self._pen.dim), Segment(shown, style)]


def _is_silent(call: Call) -> bool:
    """Did a command end without a word, as its first line says already?"""
    return call.summary.endswith("no output")


def _shared(subject: str, outcome: str, room: int) -> tuple[str, str]:
    """Both as far as there is room; where there is not, the outcome has a third or what is left."""
    left = room - 3 - cell_len(subject)
    shown = cut(outcome, max(left, room // 3, 0))
    taken = cell_len(shown) + 3 if shown else 0
    return cut(subject, max(0, room - taken)), shown


def cut(text: str, room: int) -> str:
    """At most so many cells of it."""
    if cell_len(text) <= room:
        return text
    return set_cell_size(text, room - 1).rstrip() + "…" if room > 1 else "…"[:room]
