"""How far turns, sessions and days may go, and the account of what was used. Plain values.

Who reserves, and who is refused, is the budget's business (budget.py).
"""

import asyncio
from collections.abc import Set

from msgspec import Struct

from bridle.usage import ExecutionMetrics


class Limits(Struct, frozen=True, omit_defaults=True):
    """How far a turn may go, and a session and a day in all their turns. Zero is no limit.

    `tool_seconds` bounds one call, `output_chars` what the model reads of its result, `repeats`
    how often the same call may fail in a row.
    """

    steps: int = 200
    tool_calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0
    tool_seconds: float = 600.0
    output_chars: int = 60_000
    repeats: int = 3
    session_tokens: int = 0
    session_money: float = 0.0
    day_tokens: int = 0
    day_money: float = 0.0

    @property
    def counts(self) -> bool:
        """Is there one that needs tokens to be counted?"""
        of_turn, of_session = self.tokens or self.money, self.session_tokens or self.session_money
        return bool(of_turn or of_session or self.lasts_a_day)

    @property
    def lasts_a_day(self) -> bool:
        """Is there one that other sessions count towards?"""
        return bool(self.day_tokens or self.day_money)


class Ledger:
    """What the turn and its session have used; one for all who spend in it."""

    __slots__ = ("before", "held", "money", "tokens", "unknown", "waiting")

    def __init__(self, before: ExecutionMetrics) -> None:
        self.before = before
        self.tokens = 0
        self.money = 0.0
        self.unknown = ""  # the model of a reply whose cost nobody knows
        self.held: dict[str, tuple[int, float]] = {}
        self.waiting: list[asyncio.Future[None]] = []  # for others to let go of what they hold

    def others(self, who: str, kin: Set[str] = frozenset()) -> tuple[int, float]:
        """What others in this session, and below it, are about to use.

        `kin` are those whose share is ours to use: it is never free while we run.
        """
        held = self.held.items()
        found = [most for name, most in held if name != who and name not in kin]
        return sum(tokens for tokens, _ in found), sum(money for _, money in found)

    def add(self, tokens: int, money: float, unknown: str) -> None:
        """So much was used."""
        self.tokens += tokens
        self.money += money
        self.unknown = unknown or self.unknown
