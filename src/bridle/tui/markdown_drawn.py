"""Draws pieces of markdown as lines of segments, with Rich; code is highlighted.

Imported when the first words come: the parser and the highlighter take their time. HTML is shown as
it was written, addresses stand beside their links, and what entities unfold to is cleaned again.
"""

from collections.abc import Iterable
from functools import cache
from io import StringIO
from typing import Any, ClassVar

from markdown_it import MarkdownIt
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

from bridle.tui.block_palette import Palette
from bridle.tui.block_pen import ink
from bridle.tui.clean import clean, spaced
from bridle.tui.markdown import Piece

Line = list[Segment]
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_READABLE = 4.9  # 4.5 is enough, and 256 colours lose some of it
_LONGEST = 2_000  # characters of a line of code that are highlighted


def theme_of(palette: Palette) -> Theme:
    """How the elements look in these colours."""
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
    """Left, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Code that stands inside a list or a quote."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Padding(Text(code, style="markdown.code", no_wrap=False), (0, 0, 0, 2))


class _Image(ImageItem):
    """Its words and its address: nothing is loaded."""

    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        self.text.append(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble("[", self.text, "] ", (self.destination, "markdown.link_url"), end="")


class _Table(TableElement):
    """With thin lines."""

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
                if inline.type == "softbreak":  # models break lines where they mean it
                    inline.type = "hardbreak"
        self.code_theme = self.inline_code_theme = "default"
        self.justify = None
        self.style = "none"
        self.hyperlinks = False
        self.inline_code_lexer = None


def draw_piece(piece: Piece, console: Console, width: int, palette: Palette) -> list[Line]:
    """The lines of one piece, none wider than that."""
    if piece.kind == "code":
        return draw_code(piece.text, piece.language, console, width, palette)
    drawn = console.render_lines(
        _Markdown(spaced(piece.text)), console.options.update(width=max(1, width)), pad=False
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
    """Code on a ground of its own."""
    code = spaced(text)
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
    """Ours is the ground, whatever the highlighter's theme says."""
    return (style or Style()) + ground


@cache
def _theme(palette: Palette) -> SyntaxTheme:
    """Read once: it takes longer than a page of code."""
    theme = Syntax.get_theme(palette.code)
    return theme if palette.surface == "default" else _Readable(theme, palette)


class _Readable(SyntaxTheme):
    """A theme in which every colour stands out from our ground; comments do not by themselves."""

    def __init__(self, theme: SyntaxTheme, palette: Palette) -> None:
        self._theme = theme
        self._ground = Color.parse(palette.surface)
        self._text = Color.parse(palette.text)
        self._styles: dict[Any, Style] = {}

    def get_style_for_token(self, token_type: Any) -> Style:
        """Its colour, as much nearer to that of plain text as it takes."""
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
        """Whatever it says; ours is drawn over it."""
        return self._theme.get_background_style()


def contrast(one: Color, other: Color) -> float:
    """The ratio of their luminances, as WCAG has it."""
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
