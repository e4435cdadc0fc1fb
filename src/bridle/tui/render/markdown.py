"""Draw Markdown as it streams in, with Rich and highlighted code, at a constant cost per line.

The text is split into pieces that will not change any more, and an open end; only the open end is
ever drawn again. A piece ends at a blank line before something new, and around fenced code; long
code is split every few lines. HTML is shown as it was written, addresses are shown beside their
links, and what entities stand for is made safe again.
"""

import re
from collections.abc import Iterable
from functools import cache
from io import StringIO
from typing import Any, ClassVar, Literal

from markdown_it import MarkdownIt
from msgspec import Struct
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    ImageItem,
    Markdown,
    MarkdownContext,
    MarkdownElement,
    TableElement,
)
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax, SyntaxTheme
from rich.table import Table
from rich.text import Text, TextType
from rich.theme import Theme
from textual.color import Color

from bridle.tui.render.palette import Palette
from bridle.tui.render.pen import ink
from bridle.tui.render.safe_text import clean, expand_tabs

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_HEADING = re.compile(r"^#{1,6}(?:[ \t]|$)")
_MOST = 24  # lines of code in one piece
_LIST = 24  # lines of a list, after which its next item begins another piece


class Piece(Struct, frozen=True):
    """A part of the text. `joined`: it continues right where the piece before ended."""

    kind: Literal["text", "code"]
    text: str
    language: str = ""
    joined: bool = False


class MarkdownSplitter:
    """Split text as it comes; `done` only grows."""

    def __init__(self) -> None:
        self.done: list[Piece] = []
        self._lines: list[str] = []
        self._rest = ""  # a line that has not ended
        self._fence = ""
        self._language = ""
        self._joined = False
        self._blank = False

    def feed(self, text: str) -> None:
        """Add some text."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._line(line)

    def close(self) -> None:
        """End the text: the open end becomes a piece, too."""
        if (piece := self.open()) is not None:
            self.done.append(piece)
        self._lines, self._rest, self._fence, self._joined = [], "", "", False

    def open(self) -> Piece | None:
        """Return what may still change."""
        rest = [self._rest] if self._rest else []
        if self._fence:
            if rest and self._closes(self._rest):
                rest = []
            text = "\n".join([*self._lines, *rest])
            if not text and self._joined:
                return None
            return Piece("code", text, self._language, self._joined)
        text = "\n".join([*self._lines, *rest]).strip("\n")
        return Piece("text", text, joined=self._joined) if text.strip() else None

    def _line(self, line: str) -> None:
        if self._fence:
            self._code(line)
        elif found := _FENCE.match(line):
            self._flush()
            self._fence, self._language = found[1], found[2]
        elif not line.strip():
            self._blank = True
            self._lines.append("")
        else:
            if self._lines and (_HEADING.match(line) or (self._blank and self._is_new(line))):
                self._flush()
            elif len(self._lines) >= _LIST and _ITEM.match(line) and _ITEM.match(self._lines[0]):
                loose = self._blank
                self._flush()
                self._joined = not loose
            self._blank = False
            self._lines.append(line)

    def _code(self, line: str) -> None:
        if self._closes(line):
            if self._lines or not self._joined:
                self.done.append(self._piece())
            self._lines, self._fence, self._joined = [], "", False
            return
        self._lines.append(line)
        if len(self._lines) >= _MOST:
            self.done.append(self._piece())
            self._lines, self._joined = [], True

    def _piece(self) -> Piece:
        return Piece("code", "\n".join(self._lines), self._language, self._joined)

    def _closes(self, line: str) -> bool:
        found = line.strip()
        return len(found) >= len(self._fence) and not found.strip(self._fence[0]) and bool(found)

    def _is_new(self, line: str) -> bool:
        """Does this line begin something that the lines before cannot contain?"""
        if line[0] in " \t":
            return False
        begins = next((one for one in self._lines if one), "")
        return not (_ITEM.match(line) and _ITEM.match(begins.lstrip()))

    def _flush(self) -> None:
        text = "\n".join(self._lines).strip("\n")
        if text.strip():
            self.done.append(Piece("text", text, joined=self._joined))
        self._lines, self._blank, self._joined = [], False, False


def split_markdown(text: str) -> list[Piece]:
    """Return all pieces of a complete text."""
    pieces = MarkdownSplitter()
    pieces.feed(text)
    pieces.close()
    return pieces.done


Line = list[Segment]
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_READABLE = 4.9  # WCAG asks for 4.5, and 256 colors lose some of it
_LONGEST = 2_000  # characters of a line of code that are highlighted


def theme_of(palette: Palette) -> Theme:
    """Return how the elements look in these colors."""
    return Theme(
        {
            "markdown.h1": Style(bold=True, underline=True, color=palette.text),
            "markdown.h2": ink(palette.text, bold=True),
            "markdown.h3": ink(palette.text, bold=True),
            "markdown.h4": ink(palette.text, italic=True),
            "markdown.h5": ink(palette.dim, italic=True),
            "markdown.h6": ink(palette.dim, italic=True),
            "markdown.code": ink(palette.accent),
            "markdown.link": ink(palette.accent),
            "markdown.link_url": ink(palette.dim),
            "markdown.block_quote": ink(palette.dim),
            "markdown.hr": ink(palette.dim),
            "markdown.item.bullet": ink(palette.dim),
            "markdown.item.number": ink(palette.dim),
            "markdown.table.border": ink(palette.dim),
            "markdown.table.header": Style(bold=True),
            "markdown.list": Style(),
        }
    )


class _Heading(Heading):
    """A heading, left-aligned and without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Code inside a list or a quote."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Padding(Text(code, style="markdown.code", no_wrap=False), (0, 0, 0, 2))


class _Image(ImageItem):
    """An image as its text and address: nothing is loaded."""

    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        self.text.append(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble("[", self.text, "] ", (self.destination, "markdown.link_url"), end="")


class _Table(TableElement):
    """A table with thin lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, border_style="markdown.table.border")
        if self.header is not None and self.header.row is not None:
            for column in self.header.row.cells:
                table.add_column(column.content, header_style="markdown.table.header")
        for row in self.body.rows if self.body is not None else ():
            table.add_row(*[cell.content for cell in row.cells])
        yield table


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "image": _Image,
        "table_open": _Table,
    }

    def __init__(self, markup: str) -> None:
        self.markup = markup
        self.parsed = _PARSER.parse(markup)
        for token in self.parsed:
            for inline in token.children or ():
                if inline.type == "softbreak":  # models break lines on purpose
                    inline.type = "hardbreak"
        self.code_theme = self.inline_code_theme = "default"
        self.justify = None
        self.style = "none"
        self.hyperlinks = False
        self.inline_code_lexer = None


def draw_piece(piece: Piece, console: Console, width: int, palette: Palette) -> list[Line]:
    """Return the lines of a piece, none wider than `width`."""
    if piece.kind == "code":
        return draw_code(piece.text, piece.language, console, width, palette)
    drawn = console.render_lines(
        _Markdown(expand_tabs(piece.text)), console.options.update(width=max(1, width)), pad=False
    )
    lines = [_cleaned(line) for line in drawn]
    while lines and not _has_ink(lines[-1]):
        lines.pop()
    while lines and not _has_ink(lines[0]):
        lines.pop(0)
    return lines


def draw_code(
    text: str, language: str, console: Console, width: int, palette: Palette
) -> list[Line]:
    """Return highlighted code on its own background."""
    code = expand_tabs(text)
    room = max(1, width - 4)
    ground = Style(bgcolor=palette.surface)
    known = language if len(code) < 200_000 and _is_short(code) else ""
    syntax = Syntax(code, known or "text", theme=_theme(palette))
    highlighted = syntax.highlight(code)
    edge = Segment("  ", ground)
    lines: list[Line] = []
    for row in highlighted.split("\n", allow_blank=True)[: code.count("\n") + 1]:
        parts: Iterable[Text] = [row] if row.cell_len <= room else row.wrap(console, room)
        for part in parts:
            found = [Segment(one.text, _on(one.style, ground)) for one in part.render(console)]
            rest = Segment(" " * max(0, room - part.cell_len), ground)
            lines.append([edge, *(one for one in found if one.text != "\n"), rest, edge])
    return lines


def _on(style: Style | None, ground: Style) -> Style:
    """Return the style on our background, whatever the highlighter's theme says."""
    return (style or Style()) + ground


@cache
def _theme(palette: Palette) -> SyntaxTheme:
    """Return the highlighter's theme; reading it takes longer than drawing a page of code."""
    theme = Syntax.get_theme(palette.code)
    return theme if palette.surface == "default" else _Readable(theme, palette)


class _Readable(SyntaxTheme):
    """A highlighter's theme in which every color has enough contrast on our background."""

    def __init__(self, theme: SyntaxTheme, palette: Palette) -> None:
        self._theme = theme
        self._ground = Color.parse(palette.surface)
        self._text = Color.parse(palette.text)
        self._styles: dict[Any, Style] = {}

    def get_style_for_token(self, token_type: Any) -> Style:
        """Return the color, moved towards plain text as far as needed."""
        if token_type not in self._styles:
            style = self._theme.get_style_for_token(token_type)
            if style.color is not None and style.color.triplet is not None:
                colour, step = Color(*style.color.triplet), 0.0
                shown = colour
                while contrast(shown, self._ground) < _READABLE and step < 1:
                    shown = colour.blend(self._text, step := step + 0.1)
                style += Style(color=shown.hex)
            self._styles[token_type] = style
        return self._styles[token_type]

    def get_background_style(self) -> Style:
        return self._theme.get_background_style()


def contrast(one: Color, other: Color) -> float:
    """Return the ratio of the luminances, as WCAG defines it."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def warm(palette: Palette) -> None:
    """Do what takes long the first time, so that the first answer does not wait for it."""
    console = Console(file=StringIO(), width=80)
    console.push_theme(theme_of(palette))
    for piece in (Piece("text", "# a\n\n`b` **c**"), Piece("code", "x = 1", "python")):
        draw_piece(piece, console, 40, palette)


def _is_short(code: str) -> bool:
    return all(len(line) <= _LONGEST for line in code.split("\n"))


def _has_ink(line: Line) -> bool:
    return any(segment.text.strip() for segment in line)


def _cleaned(line: Line) -> Line:
    return [Segment(clean(segment.text), segment.style) for segment in line]
