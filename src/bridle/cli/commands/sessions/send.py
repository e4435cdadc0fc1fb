"""`bridle sessions send` and `stop`: messages to the process that has a session open.

A message is put into the session's inbox. The process that owns the session reads it, now or when
one opens the session next. A parked turn that no process owns is ended here.
"""

from typing import TYPE_CHECKING

import click

from bridle.cli.find import find_session, session_folder
from bridle.cli.options import SESSION
from bridle.cli.output import print_json, print_result
from bridle.cli.user_input import read_prompt, user_name
from bridle.errors import SessionError
from bridle.protocols.store import SessionSummary
from bridle.stores.locks import describe_owner

if TYPE_CHECKING:
    from bridle.engine.session import Session


@click.command("send")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("prompt", nargs=-1)
@click.option(
    "--when",
    type=click.Choice(("queue", "next_step")),
    default="queue",
    show_default=True,
    help="queue: after the current turn. next_step: into the current turn.",
)
@click.option("--by", metavar="NAME", help="Sender. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def send(
    session_id: str, prompt: tuple[str, ...], when: str, by: str | None, as_json: bool
) -> None:
    """Send PROMPT to a session, and return at once. Without PROMPT, or with -, it reads stdin.

    A process that has the session open handles the prompt. If there is none, the prompt waits until
    the session is opened again.
    """
    from bridle.cli.session_edit import send_to_inbox

    text = read_prompt(prompt, 'bridle sessions send ID "and then the tests"')
    folder = session_folder()
    session = find_session(folder, session_id)
    owner = describe_owner(folder.path(session.id))
    message = send_to_inbox(folder, session.id, "send", by or user_name(), content=text, when=when)
    if as_json:
        print_json({"id": session.id, "letter": message, "when": when, "holder": owner})
    elif not owner:
        print_result(
            "sent; no process has the session open, so the prompt waits",
            f"bridle run --resume {session.id}   runs it",
        )
    else:
        when_text = "after the current turn" if when == "queue" else "in its next step"
        print_result(f"sent to {owner}: it runs {when_text}", f"bridle sessions show {session.id}")


@click.command("stop")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--by", metavar="NAME", help="Who stops it. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def stop(session_id: str, by: str | None, as_json: bool) -> None:
    """Interrupt the turn that another process runs in a session, or end a parked turn.

    The session is kept.
    """
    from bridle.cli.session_edit import send_to_inbox

    folder = session_folder()
    session = find_session(folder, session_id)
    owner = describe_owner(folder.path(session.id))
    if not owner:
        _end_parked_turn(session, by or user_name(), as_json=as_json)
        return
    message = send_to_inbox(folder, session.id, "interrupt", by or user_name())
    if as_json:
        print_json({"id": session.id, "letter": message, "holder": owner})
    else:
        print_result(f"asked {owner} to interrupt its turn; the session is kept")


def _end_parked_turn(summary: SessionSummary, by: str, *, as_json: bool) -> None:
    """End a parked turn that no process owns. Prompts and messages that wait are kept."""
    from bridle.cli.session_edit import edit_session
    from bridle.engine.recovery import end_parked

    async def end(session: "Session") -> int:
        turn = session.turn if session.is_parked else 0
        for event in end_parked(session.history, by) if turn else ():
            await session.record(event)
        return turn

    if not (turn := edit_session(summary, end)):
        raise SessionError(
            f"session {summary.id} is not running, so there is nothing to stop",
            hint=f"`bridle sessions show {summary.id}` shows how it ended.",
        )
    if as_json:
        print_json({"id": summary.id, "letter": "", "holder": "", "ended": turn})
    else:
        print_result(
            "ended the parked turn", f'bridle run --resume {summary.id} "…"   continues the session'
        )
