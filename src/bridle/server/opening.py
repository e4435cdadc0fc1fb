"""Engines for the server's sessions: one for each workspace, model and agent that is wanted.

How an engine is put together is not known here: that is handed in, because settings and rules are
read by whoever starts the server. What is made here is closed here.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from bridle.engine.engine import Engine


class Wanted(Struct, frozen=True):
    """What a session is to have. What is empty is as the server was started."""

    workspace: str
    provider: str = ""
    model: str = ""
    agent: str = ""


Opening = Callable[[Wanted, str], Engine]  # the second: the session that is taken up, or ""


class Engines:
    """The engines that are open, by what was wanted of them."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._engines: dict[Wanted, Engine] = {}
        self._making: dict[Wanted, asyncio.Lock] = {}

    async def engine(self, wanted: Wanted, session_id: str = "") -> Engine:
        """The engine for that, made when it is first needed. Raise `ConfigError`."""
        raise NotImplementedError

    def open(self) -> tuple[Engine, ...]:
        """Those that there are."""
        return tuple(self._engines.values())

    async def close(self) -> None:
        """Close all of them, and their sessions."""
        raise NotImplementedError
