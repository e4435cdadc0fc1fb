"""`bridle help`: pages about every command, and about what no command alone is about.

A page is a markdown file in `help_pages/`; its first line is `# name: what it is`. What the pages
say of options comes from the commands themselves (`scripts/sync-help`). No pager: a terminal
scrolls, and `bridle help policy | less` is there for who wants one.
"""

import sys
from functools import cache
from pathlib import Path

import click

from bridle.cli.style import paint_for, plain, width_of

_PAGES = Path(__file__).parent.parent / "help_pages"
WIDEST = 80


@cache
def page_names() -> tuple[str, ...]:
    """Every topic, by name."""
    return tuple(sorted(path.stem for path in _PAGES.glob("*.md")))


def title_of(name: str) -> str:
    """What a page is about, in a line."""
    return page(name).partition("\n")[0].partition(": ")[2]


def page(name: str) -> str:
    """A page as it was written."""
    return (_PAGES / f"{name}.md").read_text("utf-8")


@click.command()
@click.argument("topic", nargs=-1, metavar="[TOPIC]...")
def command(topic: tuple[str, ...]) -> None:
    """Show a page about a command or a topic; without one, list them.

    For a command of a group: `bridle help sessions fork`.
    """
    from bridle.cli.help_words import listed, rendered

    paint, width = paint_for(sys.stdout), min(WIDEST, width_of(sys.stdout) - 1)
    if not topic:
        click.echo(listed(_sorts(), paint, width))
        return
    click.echo(rendered(_wanted(topic), paint, width))


def _sorts() -> dict[str, list[tuple[str, str]]]:
    """The pages in two lists: those of commands in the order of the table, and all others."""
    from bridle.cli.main import COMMANDS

    pages = page_names()
    known = [name for name in COMMANDS if name in pages]
    others = [name for name in pages if name not in COMMANDS]
    return {
        "Commands": [(name, title_of(name)) for name in known],
        "Topics": [(name, title_of(name)) for name in others],
    }


def _wanted(topic: tuple[str, ...]) -> str:
    """The page, or the part of it that is about a command of a group."""
    first = topic[0].removeprefix("/").lower().replace("_", "-").replace(" ", "-")
    if first not in page_names():
        raise click.UsageError(_unknown(topic[0]))
    text = page(first)
    if len(topic) == 1:
        return text
    name = " ".join((first, *topic[1:]))
    head = f"## bridle {name}"
    _, found, rest = text.partition(f"\n{head}\n")
    if not found:
        raise click.UsageError(
            f"the page `{first}` says nothing of {plain(' '.join(topic[1:]))!r}\n"
            f"See `bridle help {first}`."
        )
    return f"{head}\n{rest.partition(chr(10) + '## ')[0]}"


def _unknown(topic: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(topic, page_names(), 1)
    advice = f"Did you mean `bridle help {near[0]}`?" if near else "`bridle help` lists them."
    return f"there is no page about {plain(topic)!r}\n{advice}"
