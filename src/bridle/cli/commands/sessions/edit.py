"""`bridle sessions rewind`, `rename` and `tag`: changes that are records in the session's log."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, print_result
from bridle.cli.user_input import check_text, user_name
from bridle.errors import UsageError
from bridle.events import MessageAdded, PromptReceived, Rewound
from bridle.protocols.store import Record
from bridle.workspace.text import quantity

if TYPE_CHECKING:
    from bridle.engine.session import Session


@click.command("rewind")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option(
    "--to",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Go back to record SEQ; 0 empties the conversation.",
)
@click.option("--turns", type=click.IntRange(min=1), metavar="N", help="Remove the last N turns.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def rewind(session_id: str, to: int | None, turns: int | None, as_json: bool) -> None:
    """Go back to an earlier point of the conversation: to the record SEQ, or by N turns.

    The log keeps everything: the rewind is one more record. Files, and what commands did, are not
    changed; to restore files, use `bridle undo`.
    """
    from bridle.cli.session_edit import edit_session

    if (to is None) == (turns is None):
        raise click.UsageError("use either --to SEQ or --turns N")
    folder = session_folder()
    session = find_session(folder, session_id)
    seq = seq_before_turns(folder.read(session.id), turns) if turns is not None else to or 0
    edit_session(session, lambda opened: opened.rewind(seq, by=user_name()))
    if as_json:
        print_json({"id": session.id, "to": seq})
        return
    place = f"#{seq}" if seq else "its beginning"
    print_result(
        f"rewound {session.id} to {place}; files are unchanged",
        f'bridle run --resume {session.id} "…"   continues there',
    )


def seq_before_turns(records: Iterable[Record], turns: int) -> int:
    """Return the record before the last `turns` turns that are still in the conversation."""
    prompts: dict[int, int] = {}  # number of the prompt's record: its turn
    starts: list[tuple[int, int]] = []  # turn, and the record of its first prompt
    for record in records:
        match record.event:
            case PromptReceived(turn=turn):
                prompts[record.seq] = turn
            case MessageAdded(prompt=prompt) if prompt in prompts:
                if not starts or starts[-1][0] != prompts[prompt]:
                    starts.append((prompts[prompt], prompt))
            case Rewound(to=to):
                starts = [start for start in starts if start[1] <= to]
    if turns > len(starts):
        raise UsageError(
            f"cannot rewind {quantity(turns, 'turn')}: the conversation has {len(starts)}",
            hint="To empty it, rewind to record 0: --to 0.",
        )
    return starts[-turns][1] - 1


@click.command("rename")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("title", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def rename(session_id: str, title: tuple[str, ...], as_json: bool) -> None:
    """Change the title of a session to TITLE."""
    from bridle.cli.session_edit import edit_session

    text = check_text(" ".join(title), "the title")
    if not text.strip():
        raise click.UsageError("the title is empty")
    session = find_session(session_folder(), session_id)
    edit_session(session, lambda opened: opened.rename(text))
    if as_json:
        print_json({"id": session.id, "title": text})
    else:
        print_result(f"renamed {session.id}")


@click.command("tag")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("tags", metavar="TAG...", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Remove the tags instead.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def tag(session_id: str, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Add tags to a session; `bridle sessions list --tag TAG` lists the sessions with a tag."""
    from bridle.cli.session_edit import edit_session

    named = [check_text(name, "the tag").removeprefix("#").strip() for name in tags]
    if not all(named):
        raise click.UsageError("a tag is empty")
    session = find_session(session_folder(), session_id)

    async def change(opened: "Session") -> tuple[str, ...]:
        old = opened.history.tags
        new = tuple(name for name in old if name not in named)
        if not remove:
            new = (*old, *(name for name in dict.fromkeys(named) if name not in old))
        if new != old:
            await opened.tag(new)
        return new

    current = edit_session(session, change)
    if as_json:
        print_json({"id": session.id, "tags": list(current)})
    else:
        text = f"has the tags {', '.join(current)}" if current else "has no tags"
        print_result(f"{session.id} {text}")
