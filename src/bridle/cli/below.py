"""Tasks that rest with a question in sessions of their own: whose run looks done is not done.

Reads logs. Answers nothing, and takes nothing up.
"""

from collections.abc import Iterable

from bridle.cli.failure import complain
from bridle.errors import AgentError
from bridle.events import ChildEnded
from bridle.stores.reader import SessionFolder


def parked_below(folder: SessionFolder, ended: Iterable[ChildEnded]) -> list[str]:
    """The sessions that wait for a person, among these children and those below them."""
    found: list[str] = []
    for child in ended:
        if child.reason == "parked":
            found.append(child.session_id)
        try:
            records = list(folder.read(child.session_id, 0))
        except AgentError:  # it was deleted since
            continue
        found += parked_below(folder, (e for r in records if isinstance(e := r.event, ChildEnded)))
    return found


def tell_parked_below(sessions: list[str]) -> None:
    """Which tasks wait, and how they go on."""
    if sessions:
        many = len(sessions) > 1
        who = f"{len(sessions)} tasks wait" if many else "a task waits"
        complain(
            f"{who} for a person's answer, in session {', '.join(sessions)}; "
            "the turn went on without what would have come of it",
            "See `bridle approvals list`, answer with `bridle approvals answer`, "
            f"then go on with `bridle run --resume {sessions[0]}`.",
        )
