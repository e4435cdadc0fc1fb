"""The results of a session's turns, for those who wait for them."""

import asyncio

from bridle.promises.session import TurnResult

_KEPT = 64  # results of past turns that can still be handed out


class Awaited:
    """A result that any number can wait for; one who gives up disturbs nobody."""

    __slots__ = ("_waiters", "result")

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] | None = None
        self.result: TurnResult | None = None

    def set(self, result: TurnResult) -> None:
        """It is there."""
        self.result = result
        for waiter in self._waiters or ():
            if not waiter.done():
                waiter.set_result(None)
        self._waiters = None

    def coming(self) -> asyncio.Future[None]:
        """What is done once it is there."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters = [*(self._waiters or ()), waiter]
        return waiter


class Results(dict[int, Awaited]):
    """By the turns' numbers: those that are to come, and the newest of those that have come."""

    __slots__ = ()

    def expect(self, turn: int) -> None:
        """Somebody may wait for this turn's result."""
        self[turn] = Awaited()

    def lacks(self, turn: int) -> bool:
        """Is this turn's result still to come?"""
        awaited = self.get(turn)
        return awaited is not None and awaited.result is None

    def settle(self, result: TurnResult) -> None:
        """Hand it to those who wait; very old ones are forgotten."""
        self[result.turn].set(result)
        over = [turn for turn, one in self.items() if one.result is not None]
        for old in over[:-_KEPT]:
            del self[old]
