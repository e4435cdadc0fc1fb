"""`bridle sessions send` and `stop`: verbs for a session that another process holds.

A letter is put into the session's inbox; who holds the session takes it, now or when they next do.
A parked turn that nobody holds is ended here: its log is taken for that, and no model is asked.
"""

from typing import TYPE_CHECKING

import click

from bridle.cli.options import SESSION
from bridle.cli.told import tell, tell_json
from bridle.cli.user_input import read_prompt, user_name

if TYPE_CHECKING:
    from bridle.engine.session import Session
    from bridle.protocols.store import SessionSummary


@click.command("send")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.argument("prompt", nargs=-1)
@click.option(
    "--when",
    type=click.Choice(("queue", "next_step")),
    default="queue",
    show_default=True,
    help="After the turn that runs, or as a word into it.",
)
@click.option("--by", metavar="NAME", help="Who sends it. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def send(
    session_id: str, prompt: tuple[str, ...], when: str, by: str | None, as_json: bool
) -> None:
    """Send PROMPT to a session without taking it up. Without PROMPT, or with -, it is read.

    If a process holds the session it takes the prompt at once; otherwise the prompt waits for the
    next one that takes the session up. Nothing is waited for here.
    """
    text = read_prompt(prompt, 'bridle sessions send ID "and then the tests"')
    from bridle.cli.find import find_session, session_folder
    from bridle.protocols.store import InboxMessage
    from bridle.runtime.inbox_sender import new_message_id, send_message
    from bridle.stores.locks import describe_owner

    folder = session_folder()
    found = find_session(folder, session_id)
    holder = describe_owner(folder.path(found.id))
    letter = InboxMessage(new_message_id(), "send", by or user_name(), text, when=when)  # type: ignore[arg-type]  # click has checked it
    send_message(folder, found.id, letter)
    if as_json:
        tell_json({"id": found.id, "letter": letter.id, "when": when, "holder": holder})
    elif not holder:
        said = "sent; nobody holds the session now, so it waits"
        tell(said, f"bridle run --resume {found.id}   takes it up")
    else:
        later = "after the turn that runs" if when == "queue" else "with the model's next step"
        tell(f"sent: {holder} takes it {later}", f"bridle sessions show {found.id}")


@click.command("stop")
@click.argument("session_id", metavar="ID", type=SESSION)
@click.option("--by", metavar="NAME", help="Who stops it. Default: your login name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def stop(session_id: str, by: str | None, as_json: bool) -> None:
    """Interrupt the turn of a session that another process holds, or that is parked.

    The session is kept.
    """
    from bridle.cli.find import find_session, session_folder
    from bridle.protocols.store import InboxMessage
    from bridle.runtime.inbox_sender import new_message_id, send_message
    from bridle.stores.locks import describe_owner

    folder = session_folder()
    found = find_session(folder, session_id)
    holder = describe_owner(folder.path(found.id))
    if not holder:
        _end(found, by or user_name(), as_json=as_json)
        return
    letter = InboxMessage(new_message_id(), "interrupt", by or user_name())
    send_message(folder, found.id, letter)
    if as_json:
        tell_json({"id": found.id, "letter": letter.id, "holder": holder})
    else:
        tell(f"asked {holder} to stop; the session is kept")


def _end(found: "SessionSummary", by: str, *, as_json: bool) -> None:
    """End a parked turn that nobody holds. Prompts and letters that wait stay where they are."""
    from bridle.cli.commands.sessions.edit import take
    from bridle.engine.recovery import end_parked
    from bridle.errors import SessionError

    async def end(session: "Session") -> int:
        turn = session.turn if session.is_parked else 0
        for event in end_parked(session.history, by) if turn else ():
            await session.record(event)
        return turn

    if not (turn := take(found, end)):
        raise SessionError(
            f"nobody holds session {found.id}, so there is nothing to stop",
            hint=f"`bridle sessions show {found.id}` says how it ended.",
        )
    if as_json:
        tell_json({"id": found.id, "letter": "", "holder": "", "ended": turn})
    else:
        again = f'bridle run --resume {found.id} "…"   goes on from there'
        tell("the turn was parked, and is ended; nothing of it runs any more", again)
