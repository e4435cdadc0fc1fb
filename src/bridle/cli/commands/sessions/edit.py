"""`bridle sessions rewind`, `rename` and `tag`: changes that are records in the session's own log.

The log is taken for them, as a turn would take it; a session that another process holds is left.
"""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from bridle.cli.options import SESSION
from bridle.cli.told import tell, tell_json
from bridle.cli.user_input import check_text, user_name
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.engine.session import Session
    from bridle.protocols.store import Record, SessionSummary

_T = TypeVar("_T")


@click.command("rewind")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--to", type=click.IntRange(min=0), metavar="SEQ", help="That record; 0: empty.")
@click.option("--turns", type=click.IntRange(min=1), metavar="N", help="So many turns back.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def rewind(session_id: str, to: int | None, turns: int | None, as_json: bool) -> None:
    """Take the conversation back to what it was at the record SEQ, or N turns ago.

    The log keeps everything: the rewind is one more record. Files and whatever commands did are
    not changed by it.
    """
    if (to is None) == (turns is None):
        raise click.UsageError("say where to: --to SEQ or --turns N")
    from bridle.cli.find import find_session, session_folder

    folder = session_folder()
    found = find_session(folder, session_id)
    place = back(folder.read(found.id), turns) if turns is not None else to or 0
    take(found, lambda session: session.rewind(place, by=user_name()))
    if as_json:
        tell_json({"id": found.id, "to": place})
        return
    where = f"to #{place}" if place else "to its beginning"
    tell(
        f"{found.id} is taken back {where}; files and what commands did stay as they are",
        f'bridle run --resume {found.id} "…"   goes on from there',
    )


def back(records: "Iterable[Record]", turns: int) -> int:
    """The record just before the last so many turns that are still in the conversation."""
    from bridle.events import MessageAdded, PromptReceived, Rewound

    prompts: dict[int, int] = {}  # received: its turn, by number of record
    begins: list[tuple[int, int]] = []  # turn, and the record of its first prompt
    for record in records:
        match record.event:
            case PromptReceived(turn=turn):
                prompts[record.seq] = turn
            case MessageAdded(prompt=prompt) if prompt in prompts:
                if not begins or begins[-1][0] != prompts[prompt]:
                    begins.append((prompts[prompt], prompt))
            case Rewound(to=to):
                begins = [one for one in begins if one[1] <= to]
    if turns > len(begins):
        count = quantity(len(begins), "turn")
        raise click.UsageError(
            f"the conversation has {count}, and {turns} were to go\nSay --to 0 to empty it."
        )
    return begins[-turns][1] - 1


@click.command("rename")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("title", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def rename(session_id: str, title: tuple[str, ...], as_json: bool) -> None:
    """Give a session a TITLE."""
    from bridle.cli.find import find_session, session_folder

    words = check_text(" ".join(title), "the title")
    if not words.strip():
        raise click.UsageError("the title is empty")
    found = find_session(session_folder(), session_id)
    take(found, lambda session: session.rename(words))
    if as_json:
        tell_json({"id": found.id, "title": words})
    else:
        tell(f"renamed {found.id}")


@click.command("tag")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("tags", metavar="TAG...", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take them away instead.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def tag(session_id: str, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Add tags to a session; `bridle sessions list --tag TAG` finds it again."""
    from bridle.cli.find import find_session, session_folder

    named = [check_text(one, "the tag").removeprefix("#").strip() for one in tags]
    if not all(named):
        raise click.UsageError("a tag is empty")
    found = find_session(session_folder(), session_id)

    async def change(session: "Session") -> tuple[str, ...]:
        has = session.history.tags
        kept = tuple(one for one in has if one not in named)
        new = kept if remove else (*has, *(one for one in dict.fromkeys(named) if one not in has))
        if new != has:
            await session.tag(new)
        return new

    has = take(found, change)
    if as_json:
        tell_json({"id": found.id, "tags": list(has)})
    else:
        tell(f"{found.id} has the tags {', '.join(has)}" if has else f"{found.id} has no tags")


def take(found: "SessionSummary", change: "Callable[[Session], Awaitable[_T]]") -> _T:
    """Take the session up, change it, let it go. No model is asked, and none has to be there."""
    import asyncio

    there = found.workspace if found.workspace and Path(found.workspace).is_dir() else None
    return asyncio.run(_take(found, there, change))


async def _take(
    found: "SessionSummary", there: str | None, change: "Callable[[Session], Awaitable[_T]]"
) -> _T:
    from bridle.cli.deaf import deaf
    from bridle.cli.find import session_folder
    from bridle.protocols.provider import ProviderInfo
    from bridle.providers.scripted import Scripted
    from bridle.runtime import build_engine
    from bridle.stores.jsonl import JsonlStore

    name, _, model = found.model.partition("/")
    silent = Scripted([], info=ProviderInfo(name or "none", model))  # the log goes on naming it
    store = deaf(JsonlStore(session_folder().folder))
    async with build_engine(silent, tools=[], workspace=there, store=store, face="cli") as engine:
        return await change(await engine.session(found.id))
