"""Counts the steps of an agent that reports its use only once, for all of them. Pure."""

from bridle.events import AgentResponded, Event, ResponseCompleted


class Steps:
    """Is fed the events of a turn; `count` is 0 where its use was reported step by step."""

    def __init__(self) -> None:
        self.count = 0
        self._replies = 0

    def take(self, event: Event) -> None:
        """One more event."""
        if isinstance(event, ResponseCompleted):
            self._replies += event.message is not None and not event.grows
        elif isinstance(event, AgentResponded):
            self.count = self._replies

    def clear(self) -> None:
        """Another turn begins."""
        self.count = self._replies = 0
