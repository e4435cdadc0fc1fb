"""Follows a session and says when there is something to draw.

What was written before is folded at once and drawn once. Knows the session's stream and the fold;
what is drawn is the caller's business.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from bridle.events import Event
from bridle.presentation.fold import Fold
from bridle.protocols.session import Conversation


class Following:
    """One session, from a record on, until it is closed or left."""

    def __init__(
        self,
        session: Conversation,
        after: int,
        shown: Callable[[Fold], None],
        news: Callable[[], None],
        heard: Callable[[Event], None],
    ) -> None:
        self.fold = Fold()
        self.is_live = False
        self.came = asyncio.Event()  # what was there before is on the screen
        self._session = session
        self._after = after
        self._target = session.seq  # what is older was there before we came
        self._shown = shown
        self._news = news
        self._heard = heard

    async def run(self) -> None:
        """Until the session ends."""
        if self._target <= self._after:
            self._live()
        fold = self.fold
        async with aclosing(self._session.subscribe(max(self._after, fold.seq))) as records:
            async for record in records:
                fold.apply(record)
                if self.is_live:
                    self._news()
                    self._heard(record.event)
                elif record.seq >= self._target:
                    self._live()
        if not self.is_live:
            self._live()

    def _live(self) -> None:
        self.is_live = True
        self._shown(self.fold)
        self.came.set()
