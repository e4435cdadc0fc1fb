"""`bridle sessions search`: where a text occurs, with its surroundings, session by session."""

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, progress
from bridle.cli.style import Paint, cut, paint_for, plain, width_of
from bridle.cli.user_input import check_text
from bridle.stores.search import Hit, search


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--regex", is_flag=True, help="WORDS is a regular expression.")
@click.option("--case", is_flag=True, help="Distinguish capital and small letters.")
@click.option(
    "--session",
    "within",
    metavar="ID",
    type=SESSION,
    multiple=True,
    help="Search only this session; can be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most N matches.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def command(
    words: tuple[str, ...],
    regex: bool,
    case: bool,
    within: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> int:
    """Find WORDS in prompts, replies, tool calls and their results, newest session first.

    Exit codes: 0 found, 1 not found, 2 usage.
    """
    text = check_text(" ".join(words), "the search text")
    folder = session_folder()
    ids = [find_session(folder, name).id for name in within] or None
    with progress("searching") as advance:
        hits = list(
            search(
                folder,
                text,
                regex=regex,
                ignore_case=not case,
                sessions=ids,
                limit=limit,
                progress=advance,
            )
        )
    titles = {session.id: session.title for session in folder.sessions()}
    if as_json:
        print_json([_to_json(hit, titles) for hit in hits])
    else:
        _print(hits, titles, limit)
    return 0 if hits else 1


def _print(hits: list[Hit], titles: dict[str, str], limit: int) -> None:
    paint, width = paint_for(sys.stdout), width_of(sys.stdout)
    for line in hit_lines(hits, titles, paint, width):
        click.echo(line)
    if not hits:
        click.echo("nothing was found")
    elif len(hits) == limit:
        click.echo(paint.dim(f"the first {limit:,} matches; for more: --limit {limit * 10}"))


def hit_lines(
    hits: Iterable[Hit], titles: dict[str, str], paint: Paint, width: int
) -> Iterator[str]:
    """Yield the matches as lines, grouped by session."""
    for number, (session_id, group) in enumerate(groupby(hits, lambda hit: hit.session_id)):
        if number:
            yield ""
        name = plain(session_id)
        title = plain(titles.get(session_id, "")) or "(no prompt)"
        title = cut(title, max(10, width - len(name) - 2))
        yield f"{paint.bold(title)}  {paint.cyan(name)}"
        for hit in group:
            yield _hit_line(hit, paint, width)


def _hit_line(hit: Hit, paint: Paint, width: int) -> str:
    mark = f"#{hit.seq} {plain(hit.kind)}"
    before = _plain_part(hit.text[: hit.start])
    match = _plain_part(hit.text[hit.start : hit.end])
    after = _plain_part(hit.text[hit.end :])
    room = max(20, width - len(mark) - 4)
    match = cut(match, room)
    left = min(len(before), max(0, room - len(match)) // 3)
    before = before if left == len(before) else "…" + before[len(before) - left + 1 :]
    after = cut(after, max(0, room - len(before) - len(match)))
    return f"  {paint.dim(mark)}  {before}{paint.bold(paint.yellow(match))}{after}"


def _plain_part(text: str) -> str:
    """Return a piece of a line, harmless; spaces at its ends are kept."""
    inner = plain(text)
    head = " " if text[:1].isspace() and inner else ""
    tail = " " if text[-1:].isspace() else ""
    return f"{head}{inner}{tail}"


def _to_json(hit: Hit, titles: dict[str, str]) -> dict[str, Any]:
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
