"""`bridle help`: pages about commands and topics, formatted for the terminal.

A page is a Markdown file in `help_pages/`; its first line is `# name: what it is`. What the pages
say about options comes from the commands themselves (`scripts/sync-help`). There is no pager: use
`bridle help policy | less`. The formatter knows as much Markdown as the pages use: headings,
paragraphs, lists, tables and fenced code."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from bridle.cli.options import TOPIC
from bridle.cli.style import Paint, cells, paint_for, plain, width_of
from bridle.errors import UsageError

_PAGES = Path(__file__).parent.parent / "help_pages"
WIDEST = 80


@cache
def page_names() -> tuple[str, ...]:
    """Return the names of all pages."""
    return tuple(sorted(path.stem for path in _PAGES.glob("*.md")))


def title_of(name: str) -> str:
    """Return the title of a page."""
    return page(name).partition("\n")[0].partition(": ")[2]


def page(name: str) -> str:
    """Return a page as Markdown."""
    return (_PAGES / f"{name}.md").read_text("utf-8")


@click.command()
@click.argument("topic", type=TOPIC, nargs=-1, metavar="[TOPIC]...")
def command(topic: tuple[str, ...]) -> None:
    """Show a page about a command or a topic. Without TOPIC, list all pages.

    For a command of a group: `bridle help sessions fork`.
    """
    paint, width = paint_for(sys.stdout), min(WIDEST, width_of(sys.stdout) - 1)
    if not topic:
        click.echo(page_list(_sections(), paint, width))
        return
    click.echo(format_page(_find_page(topic), paint, width))


def _sections() -> dict[str, list[tuple[str, str]]]:
    """Return names and titles of the pages about commands, and of the others."""
    from bridle.cli.main import COMMANDS

    pages = page_names()
    known = [name for name in COMMANDS if name in pages]
    others = [name for name in pages if name not in COMMANDS]
    return {
        "Commands": [(name, title_of(name)) for name in known],
        "Topics": [(name, title_of(name)) for name in others],
    }


def _find_page(topic: tuple[str, ...]) -> str:
    """Return the page, or the part of it about a command of a group. Raise `UsageError`."""
    first = topic[0].removeprefix("/").lower().replace("_", "-").replace(" ", "-")
    if first not in page_names():
        raise _unknown_topic(topic[0])
    text = page(first)
    if len(topic) == 1:
        return text
    name = " ".join((first, *topic[1:]))
    head = f"## bridle {name}"
    _, found, rest = text.partition(f"\n{head}\n")
    if not found:
        raise UsageError(
            f"the page `{first}` has no part about {plain(' '.join(topic[1:]))!r}",
            hint=f"See `bridle help {first}`.",
        )
    return f"{head}\n{rest.partition(chr(10) + '## ')[0]}"


def _unknown_topic(topic: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(topic, page_names(), 1)
    advice = f"Did you mean `bridle help {near[0]}`?" if near else "`bridle help` lists all pages."
    return UsageError(f"there is no page about {plain(topic)!r}", hint=advice)


_COMMENT = re.compile(r"^<!--.*?-->\n?", re.M | re.S)
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_TERM = re.compile(r"- (`[^`]+`(?:, `[^`]+`)*): (.*)", re.S)
_ITEM = re.compile(r"(\s*)(-|\d+\.) (.*)", re.S)
_COLUMN = 26  # where the meaning of a term starts
_MIN_WIDTH = 24  # columns for a meaning; with less, it is below its term


def format_page(page: str, paint: Paint, width: int) -> str:
    """Return a whole page as text for a terminal."""
    lines: list[str] = []
    for block in _blocks(_COMMENT.sub("", page)):
        lines += [*_format_block(block, paint, width), ""]
    return "\n".join(lines).rstrip("\n")


def page_list(sections: dict[str, list[tuple[str, str]]], paint: Paint, width: int) -> str:
    """Return the names and titles of all pages as text."""
    lines = ["Usage: bridle help TOPIC", ""]
    for section, names in sections.items():
        lines.append(paint.bold(f"{section}:"))
        for name, about in names:
            lines += _format_entry(name, about, paint, width, column=16)
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def _blocks(page: str) -> Iterator[list[str]]:
    """Yield the blocks of a page: fenced code, headings, and what is between empty lines."""
    block: list[str] = []
    fenced = False
    for line in page.splitlines():
        opens = line.startswith("```")
        if opens and not fenced and block:
            yield block
            block = []
        if fenced or opens or line.strip():
            block.append(line)
        ends_fence, fenced = fenced and opens, fenced != opens
        if block and (ends_fence or (not fenced and (not line.strip() or line.startswith("#")))):
            yield block
            block = []
    if block:
        yield block


def _format_block(block: list[str], paint: Paint, width: int) -> Iterator[str]:
    first = block[0]
    if first.startswith("```"):
        yield from (f"    {line}" for line in block[1:-1])
    elif first.startswith("#"):
        yield from (paint.bold(line) for line in wrap(first.lstrip("# "), width))
    elif first.startswith("|"):
        yield from _format_table(block, paint, width)
    elif _ITEM.match(first):
        for item in _list_items(block):
            yield from _format_item(item, paint, width)
    else:
        yield from wrap(" ".join(line.strip() for line in block), width, paint=paint)


def _list_items(block: list[str]) -> Iterator[str]:
    """Yield the items of a list, each on one line."""
    item = ""
    for line in block:
        if _ITEM.match(line) and item:
            yield item
            item = ""
        item += f" {line.strip()}" if item else line
    yield item


def _format_item(item: str, paint: Paint, width: int) -> Iterator[str]:
    if term := _TERM.fullmatch(item):
        yield from _format_entry(term[1].replace("`", ""), term[2], paint, width)
    elif found := _ITEM.fullmatch(item):
        indent = f"{found[1]}  {found[2]} "
        yield from wrap(found[3], width, indent, " " * len(indent), paint)


def _format_table(block: list[str], paint: Paint, width: int) -> Iterator[str]:
    """Yield a table as terms and meanings; of more than two columns, with the columns' names."""
    head, _, *rows = [_cells_of(line) for line in block]
    for row in rows:
        term, *rest = row
        meanings = [
            cell if len(head) == 2 or not name.strip() or at == len(rest) - 1 else f"{name}: {cell}"
            for at, (name, cell) in enumerate(zip(head[1:], rest, strict=False))
            if cell
        ]
        yield from _format_entry(_inline(term, Paint()), "; ".join(meanings), paint, width)


def _cells_of(line: str) -> list[str]:
    inner = line.strip().strip("|").replace("\\|", "\0")
    return [cell.strip().replace("\0", "|") for cell in inner.split("|")]


def _format_entry(
    term: str, meaning: str, paint: Paint, width: int, column: int = _COLUMN
) -> Iterator[str]:
    """Yield a term and its meaning beside it, or below it if there is no room."""
    name = f"  {paint.cyan(term)}"
    if width - column < _MIN_WIDTH:
        yield name
        yield from wrap(meaning, width, "      ", "      ", paint)
        return
    lines = list(wrap(meaning, width, " " * column, " " * column, paint))
    if lines and cells(term) + 4 <= column:
        yield name + " " * (column - 2 - cells(term)) + lines[0][column:]
        yield from lines[1:]
    else:
        yield name
        yield from lines


def wrap(
    text: str, width: int, first: str = "", then: str = "", paint: Paint | None = None
) -> Iterator[str]:
    """Yield lines of so many columns, broken between words. Short code is kept together."""
    line, room, bare = first, width - cells(first), True
    for word in _split(text, width // 2):
        shown = word.replace("\0", " ")
        size = cells(_inline(shown, Paint()))
        if not bare and size + 1 > room:
            yield _inline(line, paint)
            line, room, bare = then, width - cells(then), True
        line += shown if bare else f" {shown}"
        room -= size + (0 if bare else 1)
        bare = False
    if not bare:
        yield _inline(line, paint)


def _split(text: str, most: int) -> list[str]:
    """Return the words of a text; a short piece of code is one word."""

    def together(found: re.Match[str]) -> str:
        return found[0].replace(" ", "\0") if len(found[0]) <= most else found[0].replace("`", "")

    return _CODE.sub(together, _LINK.sub(r"\1", text).replace("**", "")).split()


def _inline(text: str, paint: Paint | None) -> str:
    brush = paint or Paint()
    return _CODE.sub(lambda found: brush.cyan(found[1]) if brush.on else found[1], text)
