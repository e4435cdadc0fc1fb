"""`bridle sessions search`: where something was said, with its surroundings, session by session."""

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.options import SESSION
from bridle.cli.style import Paint, cut, paint_for, plain, width_of

if TYPE_CHECKING:
    from bridle.stores.reader import SessionFolder
    from bridle.stores.search import Hit


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--regex", is_flag=True, help="WORDS is a regular expression.")
@click.option("--case", is_flag=True, help="Tell capital letters from small ones.")
@click.option(
    "--session", "within", metavar="ID", type=SESSION, multiple=True, help="Only there; repeatable."
)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def search(
    words: tuple[str, ...],
    regex: bool,
    case: bool,
    within: tuple[str, ...],
    limit: int,
    **more: Any,
) -> int:
    """Find WORDS in what was said, asked for and answered, the newest session first.

    Exit codes: 0 found, 1 found nowhere, 2 usage.
    """
    from bridle.cli.find import find_session, session_folder
    from bridle.cli.user_input import check_text
    from bridle.stores.search import search as look

    text = check_text(" ".join(words), "the words")
    folder = session_folder()
    ids = [find_session(folder, one).id for one in within] or None
    from bridle.cli.progress import progress

    with progress("searching") as shown:
        hits = list(
            look(
                folder,
                text,
                regex=regex,
                ignore_case=not case,
                sessions=ids,
                limit=limit,
                progress=shown,
            )
        )
    titles = {one.id: one.title for one in folder.sessions()}
    if more["as_json"]:
        from bridle.cli.told import tell_json

        tell_json([_named(hit, titles) for hit in hits])
    else:
        _print(hits, titles, limit)
    return 0 if hits else 1


def _print(hits: "list[Hit]", titles: dict[str, str], limit: int) -> None:
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in hit_lines(hits, titles, paint, width):
        click.echo(line)
    if not hits:
        click.echo("nothing was found")
    elif len(hits) == limit:
        click.echo(paint.dim(f"the first {limit:,}; more with --limit {limit * 10}"))


def found_lines(folder: "SessionFolder", text: str, paint: Paint, width: int) -> Iterator[str]:
    """The first twenty places where a text was said, for a face that is live."""
    from bridle.stores.search import search as look

    hits = list(look(folder, text, limit=20))
    yield from hit_lines(hits, {one.id: one.title for one in folder.sessions()}, paint, width)


def hit_lines(
    hits: "Iterable[Hit]", titles: dict[str, str], paint: Paint, width: int
) -> Iterator[str]:
    """The hits, grouped by session."""
    for number, (session_id, group) in enumerate(groupby(hits, lambda hit: hit.session_id)):
        if number:
            yield ""
        name = plain(session_id)
        title = cut(
            plain(titles.get(session_id, "")) or "(no prompt)", max(10, width - len(name) - 2)
        )
        yield f"{paint.bold(title)}  {paint.cyan(name)}"
        for hit in group:
            yield _hit_line(hit, paint, width)


def _hit_line(hit: "Hit", paint: Paint, width: int) -> str:
    mark = f"#{hit.seq} {plain(hit.kind)}"
    before, match, after = (
        plain_part(hit.text[: hit.start]),
        plain_part(hit.text[hit.start : hit.end]),
        plain_part(hit.text[hit.end :]),
    )
    room = max(20, width - len(mark) - 4)
    match = cut(match, room)
    left = min(len(before), max(0, room - len(match)) // 3)
    before = before if left == len(before) else "…" + before[len(before) - left + 1 :]
    after = cut(after, max(0, room - len(before) - len(match)))
    return f"  {paint.dim(mark)}  {before}{paint.bold(paint.yellow(match))}{after}"


def plain_part(text: str) -> str:
    """A piece of a line, harmless; the space at its ends is kept."""
    inner = plain(text)
    head = " " if text[:1].isspace() and inner else ""
    tail = " " if text[-1:].isspace() else ""
    return f"{head}{inner}{tail}"


def _named(hit: "Hit", titles: dict[str, str]) -> dict[str, Any]:
    return {
        "sessionId": hit.session_id,
        "title": titles.get(hit.session_id, ""),
        "seq": hit.seq,
        "timestamp": hit.timestamp,
        "kind": hit.kind,
        "text": hit.text,
        "start": hit.start,
        "end": hit.end,
    }
