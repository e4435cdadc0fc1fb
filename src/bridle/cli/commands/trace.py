"""`bridle trace`: where the time and money of a session went, from its log alone."""

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION

_MAX_DEPTH = 99


@click.command("trace")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON array of spans, children first."
)
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Show only turn N.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=_MAX_DEPTH,
    metavar="N",
    help="1: turns. 2: steps, too. 3: calls, too. More: what subagents did.",
)
def command(session_id: str, as_json: bool, turn: int | None, depth: int) -> None:
    """Show where the time and money of a session went: turns, steps, model and tool calls.

    This reads only the log, and works while the session is running. Times are those of the records;
    a model call is taken to start when the step before it has ended.
    """
    from bridle.cli.trace_tree import print_spans, print_tree

    folder = session_folder()
    session = find_session(folder, session_id)
    if as_json:
        print_spans(folder, session.id, depth, turn or 0)
    else:
        print_tree(folder, session, depth, turn or 0)
