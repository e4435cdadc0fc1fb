"""The promise of who keeps the day's account: all sessions and all processes share one.

What was spent is in the logs; what is about to be spent is reserved here first.
"""

from typing import Protocol


class Day(Protocol):
    """Room for model calls within the limits of a day."""

    def reserve(
        self, who: str, tokens: int, money: float, *, limit_tokens: int, limit_money: float
    ) -> None:
        """Hold room for one call of `who`; zero is no limit. Raise `BudgetReached`.

        Its `set_aside` is true if there is room, but others hold it.

        What the day's logs say and what everybody holds never exceeds a limit, exactly, for two
        processes too. Blocks for as long as reading takes: not to be called in an event loop.
        """
        ...

    def release(self, who: str) -> None:
        """Let go of what `who` holds: what the call has used is in the log by now."""
        ...
