"""Turns that wait for answers: carried on where somebody can answer, told of where nobody can."""

import sys
from collections.abc import Iterable

import click

from bridle.cli.approval_text import PLAN, group_requests, is_question
from bridle.cli.approver import TerminalApprover, full_text
from bridle.cli.failure import complain
from bridle.cli.find import handle_of, last_part
from bridle.cli.style import paint_for, width_of
from bridle.cli.turn import Watch
from bridle.engine.session import Session
from bridle.errors import SessionError
from bridle.events import ApprovalAsked, TurnEnded, TurnParked
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.workspace.text import one_line, quantity


def tell_parked(session: Session, *, unsent: bool = False) -> None:
    """The questions in full, and how to answer them and go on. `unsent`: a prompt was held back."""
    paint, width = paint_for(sys.stderr), width_of(sys.stderr)
    asked = list(session.history.pending.values())
    for kin in group_requests(asked):
        click.echo(full_text(kin, paint, width), err=True)
    several = len(asked) > 1
    count = quantity(len(asked), "answer") if several else "an answer"
    again = f"`bridle run --resume {session.id}`"
    first = one_line(handle_of(session.id, asked[0].call.id)) if asked else ""
    every = f"; `bridle approvals answer {last_part(session.id)} yes --all`" if several else ""
    complain(
        f"the turn is parked: it waits for {count}, and nothing runs until then"
        + ("; the prompt was not sent" if unsent else ""),
        f"{_how(asked[0], first)}{every}. Then go on with {again}."
        if asked
        else f"Go on with {again}.",
    )


def _how(asked: ApprovalAsked, handle: str) -> str:
    """How one answers it: what asks for words is not answered by a yes alone."""
    answer = f"bridle approvals answer {handle}"
    if not is_question(asked):
        return f"Answer with `{answer} yes` (or no)"
    if asked.call.name == PLAN:
        return f"Answer with `{answer} yes`, or say what is wrong: `{answer} no --word '…'`"
    return f"Answer with `{answer} yes --word 'YOUR ANSWER'` (no leaves it unanswered)"


async def carry_on(
    session: Session, watch: Watch, approver: TerminalApprover | None, news: Iterable[Record]
) -> TurnResult | None:
    """What was left behind, to its end; None where it waits for answers that nobody can give.

    `news` is what was recorded while the session was taken up: a short turn may be over already.
    """
    if session.is_parked:
        await session.expire()
    if session.is_parked and session.history.pending:
        if approver is None:
            return None
        approver.skip_wait(session.history.pending.values())
    result = None
    while session.is_busy or session.history.waiting or (session.is_parked and result is None):
        result = await watch.resume()
        if result.reason == "interrupted":
            break
    if result is not None:
        return result
    over = [one.event.turn for one in news if isinstance(one.event, TurnEnded | TurnParked)]
    try:
        return await watch.wait(over[-1]) if over else nothing_left(session.id)
    except SessionError:  # it was another process that ran it
        return nothing_left(session.id)


def nothing_left(session_id: str) -> TurnResult:
    """There is neither a parked turn nor a prompt that waits."""
    raise click.UsageError(
        f"session {session_id} has nothing to resume\n"
        f'Send it a prompt: bridle run --resume {session_id} "…"'
    )
