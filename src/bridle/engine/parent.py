"""What a child session has above it: whose task it is, and what it may never go beyond. A value.

Each call of a child is judged in its own mode and in every mode above it, as they are now; the
strictest word counts. So a child can never do what the session that began it could not.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from bridle.engine.budget import Budget
from bridle.policy import MODES, ORDER, Decision, Mode


class Tree(Struct):
    """What all child sessions below one turn of a session have in common."""

    running: int = 0


class Parent(Struct, frozen=True):
    """The turn that began this session. `depth` is 1 for a child, 2 for a child's child."""

    session_id: str
    call_id: str
    depth: int
    budget: Budget
    mode: Callable[[], Mode]
    tree: Tree
    above: "Parent | None" = None

    def narrowed(self, mode: Mode) -> Mode:
        """That mode, or the parent's where that is narrower."""
        return min(mode, self.mode(), key=MODES.index)

    def bound(self, decision: Decision, under: Callable[[Mode], Decision]) -> Decision:
        """The strictest of a decision and of those in the modes above."""
        for mode in self._modes():
            found = under(mode)
            if ORDER.index(found.verdict) < ORDER.index(decision.verdict):
                decision = found
        return decision

    def _modes(self) -> Iterator[Mode]:
        level: Parent | None = self
        while level is not None:
            yield level.mode()
            level = level.above
