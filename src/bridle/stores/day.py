"""Budgets that last: what all sessions may use on one UTC day, whichever process they run in.

What was spent is a fold over the logs. What is about to be spent is set aside first, under one
lock, so processes never overspend together. What a dead process set aside counts no more.
"""

import errno
import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec

from bridle.errors import BudgetReached, StoreFailed
from bridle.stores.ledger import Entry, Ledger, Spent
from bridle.stores.placing import entered, found, place
from bridle.usage import format_cost

__all__ = ["Day", "Spent"]

log = logging.getLogger(__name__)

_PATIENCE = 10.0  # seconds for a lock that is held for milliseconds
_TINY = 1e-9  # dollars that only rounding makes
_LARGEST = 64 << 20
_LOCKING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class _Reserved(msgspec.Struct, array_like=True):
    """Set aside by a process, which is known by its number and by when it started."""

    pid: int
    started: str
    tokens: int
    money: float


class _Table(msgspec.Struct):
    """What `day.json` holds."""

    date: str = ""
    reserved: dict[str, _Reserved] = {}
    read: dict[str, Entry] = {}


_decode = msgspec.json.Decoder(_Table).decode


class Day:
    """One state folder's budget of the day."""

    def __init__(self, state: Path) -> None:
        self._state = Path(state)
        self._ledger: Ledger | None = None
        self._alone = threading.Lock()  # sessions of one process ask from their own threads

    def spent(self, day: date | None = None) -> Spent:
        """What all sessions used on that day; today, if it is not said."""
        with self._alone, _typed("what was used cannot be summed up"):
            ledger = self._at(day or _today())
            try:
                with entered(self._state) as folder:
                    known = _load(folder)
            except FileNotFoundError:
                return Spent()
            if known.date == ledger.date:
                ledger.learn(known.read)
            return ledger.update(self._state)

    def reserve(
        self, who: str, tokens: int, money: float, *, limit_tokens: int, limit_money: float
    ) -> None:
        """Set so much aside, in place of what `who` had before. Raise `BudgetReached`.

        A limit of zero is none. Release it once the use is recorded and settled, not before.
        """
        what = "the budget of the day cannot be kept"
        with self._alone, _typed(what), self._locked() as folder:
            table = self._load(folder)
            spent = self._at(_today()).update(self._state)
            others = [one for name, one in table.reserved.items() if name != who]
            _check_tokens(spent, sum(one.tokens for one in others), tokens, limit_tokens)
            _check_money(spent, sum(one.money for one in others), money, limit_money)
            pid = os.getpid()
            table.reserved[who] = _Reserved(pid, _started(pid), tokens, money)
            self._keep(folder, table)

    def release(self, who: str) -> None:
        """What `who` set aside is free again, or spent and in its log."""
        what = "what was set aside cannot be released"
        with self._alone, _typed(what), self._locked() as folder:
            table = self._load(folder)
            if table.reserved.pop(who, None) is not None:
                self._at(_today()).update(self._state)  # kept, should the log be deleted next
                self._keep(folder, table)

    def note(self) -> None:
        """Keep what all logs say was used today: one of them is about to be deleted."""
        with self._alone, _typed("what was used cannot be noted"), self._locked() as folder:
            table = self._load(folder)
            self._at(_today()).update(self._state)
            self._keep(folder, table)

    def _at(self, day: date) -> Ledger:
        """The ledger of a day; the one of today is kept and continued."""
        name = day.isoformat()
        if self._ledger is not None and self._ledger.date == name:
            return self._ledger
        ledger = Ledger(name, datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        if day == _today():
            self._ledger = ledger
        return ledger

    def _load(self, folder: int) -> _Table:
        """The table without what dead processes set aside; the ledger learns from it."""
        table = _load(folder)
        alive = {who: one for who, one in table.reserved.items() if _lives(one)}
        ledger = self._at(_today())
        if table.date == ledger.date:
            ledger.learn(table.read)
        return _Table(ledger.date, alive)

    def _keep(self, folder: int, table: _Table) -> None:
        if self._ledger is not None and self._ledger.date == table.date:
            entries = self._ledger.entries.items()
            table.read = {key: entry for key, entry in entries if entry.worth_keeping}
        # not synced: a machine that fails takes everybody who set something aside with it
        place(folder, "day.json", msgspec.json.encode(table), sync=False)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with entered(self._state) as folder:
            handle = os.open("day.lock", _LOCKING, 0o600, dir_fd=folder)
            try:
                _lock(handle)
                yield folder
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    until, pause = time.monotonic() + _PATIENCE, 0.001
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, "another process holds day.lock") from None
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _today() -> date:
    return datetime.now(UTC).date()


def _load(folder: int) -> _Table:
    data = found(folder, "day.json", _LARGEST)
    if data is None:
        return _Table()
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        log.warning("day.json cannot be read; what was spent is summed up from the logs again")
        return _Table()


def _lives(one: _Reserved) -> bool:
    try:
        os.kill(one.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return one.started == _started(one.pid)


def _started(pid: int) -> str:
    """When a process started, as the system counts; nothing where it does not say."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    fields = told.rpartition(b")")[2].split()  # the name before it may hold anything
    zombie = fields[:1] in ([b"Z"], [b"X"])
    return "gone" if zombie else fields[19].decode() if len(fields) > 19 else ""


def _check_tokens(spent: Spent, reserved: int, tokens: int, limit: int) -> None:
    if limit and spent.tokens + reserved + tokens > limit:
        reached = BudgetReached(
            f"the limit of {limit} tokens a day leaves no room for another step: {spent.tokens} "
            f"are used and {reserved} set aside",
            hint="A new day begins at 00:00 UTC; or raise the limit.",
        )
        reached.set_aside = spent.tokens + tokens <= limit
        raise reached


def _check_money(spent: Spent, reserved: float, money: float, limit: float) -> None:
    if not limit:
        return
    if spent.unpriced:
        replies = "one reply" if spent.unpriced == 1 else f"{spent.unpriced} replies"
        raise BudgetReached(
            f"what {replies} cost today is unknown, "
            f"so a limit of {format_cost(limit)} a day cannot be kept",
            hint="Use a model with a known price and a server that counts, or drop the limit.",
        )
    if spent.money + reserved + money > limit + _TINY:
        reached = BudgetReached(
            f"the limit of {format_cost(limit)} a day leaves no room for another step: "
            f"{format_cost(spent.money)} is spent and {format_cost(reserved)} set aside",
            hint="A new day begins at 00:00 UTC; or raise the limit.",
        )
        reached.set_aside = spent.money + money <= limit + _TINY
        raise reached


@contextmanager
def _typed(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(
            f"{what}: {error.strerror or error}",
            error,
            hint="Nothing was spent. Check the disk and the folder's rights.",
        ) from error
