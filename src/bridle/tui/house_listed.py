"""A session as the picker lists it, from what a server or this machine's own logs say. Pure."""

from typing import Protocol

from bridle.tui.house import Listed

_STATES = {"waiting": "asks"}


class Line(Protocol):
    """What is known of a session, wherever it lives."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def workspace(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def waiting(self) -> int: ...
    @property
    def cost(self) -> float: ...
    @property
    def unpriced(self) -> int: ...
    @property
    def updated_at(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def holder(self) -> str: ...


def listed(line: Line, here: str = "") -> Listed:
    """The session; `here` is how this process is named where it holds it."""
    state = _STATES.get(line.state, line.state)
    if line.state == "failed" and line.reason == "interrupted":
        state = "stopped"
    if line.waiting and not line.holder:
        state = "parked"
    return Listed(
        id=line.id,
        title=line.title,
        workspace=line.workspace,
        model=line.model,
        agent=line.agent,
        state=state,
        waiting=line.waiting,
        cost=line.cost,
        unpriced=line.unpriced,
        updated_at=line.updated_at,
        parent=line.parent,
        holder="here" if here and line.holder == here else line.holder,
    )
