"""An answer to a question of a session that is not open here: it counts where the session is held.

Where nobody holds it, a background session is taken up by the process that carries those, and goes
on; any other keeps the answer in its inbox until somebody takes it up. Nothing of it runs here.
"""

import asyncio
from typing import TYPE_CHECKING

from bridle.cli.user_input import user_name
from bridle.errors import AgentError
from bridle.events import ApprovalAsked
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage
from bridle.stores.locks import owner_pid

if TYPE_CHECKING:
    from bridle.cli.house_here_desk import Desk


async def answer_elsewhere(
    desk: "Desk", session_id: str, asked: ApprovalAsked, answer: Answer
) -> None:
    """Have the answer count. Raise `UnknownApproval` and what says whose answer was first."""
    by = answer.by or user_name()
    pid = await asyncio.to_thread(owner_pid, desk.path(session_id))
    if pid is not None:
        from bridle.protocols.session_values import ApprovalAnswer

        given = ApprovalAnswer(answer.allowed, asked.shown, answer.scope, answer.word, answer.rule)
        await desk.sessions_of_all.answer(session_id, asked.call.id, given, by)
    elif not await _in_background(session_id, asked, answer, by):
        await asyncio.to_thread(_post, desk, session_id, asked, answer, by)


async def _in_background(session_id: str, asked: ApprovalAsked, answer: Answer, by: str) -> bool:
    """Have the session's own background process take it up; False where it has none."""
    from bridle.cli.supervising import carrier_of, supervised

    if carrier_of(session_id) is None:
        return False
    try:
        async with supervised(session_id) as client, await client.watch(session_id) as session:
            await session.answer(asked.call.id, answer, shown=asked.shown, by=by)
    except AgentError as error:
        if error.kind != "agent":
            raise
        return False  # that process cannot be started: the answer waits
    return True


def _post(desk: "Desk", session_id: str, asked: ApprovalAsked, answer: Answer, by: str) -> None:
    from bridle.runtime.inbox_sender import new_message_id, send_message

    letter = InboxMessage(
        new_message_id(),
        "answer",
        by,
        call_id=asked.call.id,
        shown=asked.shown,
        allowed=answer.allowed,
        scope=answer.scope,
        word=answer.word,
        rule=answer.rule,
    )
    send_message(desk.folder, session_id, letter)
