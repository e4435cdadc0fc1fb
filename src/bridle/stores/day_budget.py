"""Daily budgets: what all sessions of a state folder may use on one UTC day, in all processes.

What was spent is added up from the logs. What is about to be spent is reserved first, under one
lock, so that processes together never exceed a limit. Reservations of dead processes are dropped.
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
from typing import NamedTuple

import msgspec

from bridle.errors import BudgetReached, StoreFailed
from bridle.events import Forked, UsageReported
from bridle.stores.log_format import find_headers, line_at, record_types
from bridle.stores.reader import decode_line, iter_blocks
from bridle.stores.session_index import LogEntry, log_entries
from bridle.usage import format_cost
from bridle.workspace.fs import open_file, open_folder, read_file, write_file
from bridle.workspace.text import quantity

log = logging.getLogger(__name__)

_LOCK_SECONDS = 10.0  # to wait for a lock that is held for milliseconds
_ROUNDING = 1e-9  # dollars by which sums may be off
_MAX_TABLE = 64 << 20  # bytes
_LARGE_LOG = 1 << 20  # bytes; a smaller log is read again rather than its position kept
_LOCKING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_USAGE = record_types("usage", "fork")


class Spent(NamedTuple):
    """The use of all sessions. `unpriced` counts the replies whose cost is unknown."""

    tokens: int = 0
    money: float = 0.0
    unpriced: int = 0


class LogUse(msgspec.Struct, array_like=True):
    """What one log used on the day, and how far it has been read."""

    offset: int = 0
    tokens: int = 0
    money: float = 0.0
    unpriced: int = 0

    def add(self, event: object) -> None:
        """Add one record. What a fork copied, and what a child session used, counts elsewhere."""
        if isinstance(event, Forked):
            self.tokens, self.money, self.unpriced = 0, 0.0, 0
        elif isinstance(event, UsageReported) and event.purpose != "task":
            self.tokens += event.usage.total_tokens
            self.money += event.cost or 0.0
            self.unpriced += event.cost is None

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it would be expensive, or wrong, to read the log again."""
        return bool(self.tokens or self.money or self.unpriced) or self.offset >= _LARGE_LOG


class DayUse:
    """What each log used on one day. Deleted logs stay in it."""

    def __init__(self, date: str, since: float) -> None:
        self.date = date
        self.logs: dict[str, LogUse] = {}
        self._since = since

    def merge(self, known: dict[str, LogUse]) -> None:
        """Take over what another process has read, for logs of which it has read more."""
        for key, use in known.items():
            mine = self.logs.get(key)
            if mine is None or mine.offset < use.offset:
                self.logs[key] = use

    def update(self, state: Path) -> Spent:
        """Read what was added to the logs since the last time."""
        for entry in log_entries(state):
            if entry.changed >= self._since:
                self._read(entry)
        return Spent(
            sum(use.tokens for use in self.logs.values()),
            sum(use.money for use in self.logs.values()),
            sum(use.unpriced for use in self.logs.values()),
        )

    def _read(self, entry: LogEntry) -> None:
        key = f"{entry.id}:{entry.inode}"
        use = self.logs.get(key)
        if use is None or use.offset > entry.size:  # new, or cut off: read it from its beginning
            use = self.logs[key] = LogUse()
        if use.offset == entry.size:
            return
        try:
            handle = open_file(f"{entry.path}/log.jsonl")
        except OSError:
            return
        try:
            for block in iter_blocks(handle, use.offset):
                self._add(block, use)
                use.offset += len(block)
        except OSError:
            return
        finally:
            os.close(handle)

    def _add(self, block: bytes, use: LogUse) -> None:
        date = self.date.encode()
        for header in find_headers(block, _USAGE):
            if header[3] == b"fork" or header[2].startswith(date):
                record = decode_line(line_at(block, header.start()))
                if record is not None:
                    use.add(record.event)


class _Reservation(msgspec.Struct, array_like=True):
    """Made by a process, which is identified by its number and by when it started."""

    pid: int
    started: str
    tokens: int
    money: float


class _Table(msgspec.Struct):
    """The content of `day.json`."""

    date: str = ""
    reserved: dict[str, _Reservation] = {}
    read: dict[str, LogUse] = {}


_decode = msgspec.json.Decoder(_Table).decode


class DayBudget:
    """The daily budget of one state folder."""

    def __init__(self, state: Path) -> None:
        self._state = Path(state)
        self._today: DayUse | None = None
        self._mutex = threading.Lock()  # sessions of one process ask from their own threads

    def spent(self, day: date | None = None) -> Spent:
        """What all sessions used on a day; without a day, today."""
        with self._mutex, _failure("the use of the day cannot be added up"):
            use = self._use_on(day or _today())
            try:
                with open_folder(self._state) as folder:
                    table = _load_table(folder)
            except FileNotFoundError:
                return Spent()
            if table.date == use.date:
                use.merge(table.read)
            return use.update(self._state)

    def reserve(
        self, who: str, tokens: int, money: float, *, limit_tokens: int, limit_money: float
    ) -> None:
        """Reserve this much, instead of what `who` had reserved. Raise `BudgetReached`.

        A limit of zero means no limit. Release it after the use is recorded and durable.
        """
        what = "the budget of the day cannot be kept"
        with self._mutex, _failure(what), self._lock_table() as folder:
            table = self._load(folder)
            spent = self._use_on(_today()).update(self._state)
            others = [entry for name, entry in table.reserved.items() if name != who]
            _check_tokens(spent, sum(entry.tokens for entry in others), tokens, limit_tokens)
            _check_money(spent, sum(entry.money for entry in others), money, limit_money)
            pid = os.getpid()
            table.reserved[who] = _Reservation(
                pid=pid, started=_start_time(pid), tokens=tokens, money=money
            )
            self._save(folder, table)

    def release(self, who: str) -> None:
        """Release what `who` reserved: it was not needed, or it is in the log by now."""
        what = "a reservation cannot be released"
        with self._mutex, _failure(what), self._lock_table() as folder:
            table = self._load(folder)
            if table.reserved.pop(who, None) is not None:
                self._use_on(_today()).update(self._state)  # saved, in case the log is deleted next
                self._save(folder, table)

    def record_use(self) -> None:
        """Save what all logs used today: one of them is about to be deleted."""
        with (
            self._mutex,
            _failure("the use of the day cannot be saved"),
            self._lock_table() as folder,
        ):
            table = self._load(folder)
            self._use_on(_today()).update(self._state)
            self._save(folder, table)

    def _use_on(self, day: date) -> DayUse:
        """The use of a day. That of today is remembered and updated."""
        name = day.isoformat()
        if self._today is not None and self._today.date == name:
            return self._today
        use = DayUse(name, datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        if day == _today():
            self._today = use
        return use

    def _load(self, folder: int) -> _Table:
        """The table without reservations of dead processes; what others have read is taken over."""
        table = _load_table(folder)
        alive = {who: entry for who, entry in table.reserved.items() if _is_alive(entry)}
        use = self._use_on(_today())
        if table.date == use.date:
            use.merge(table.read)
        return _Table(use.date, alive)

    def _save(self, folder: int, table: _Table) -> None:
        if self._today is not None and self._today.date == table.date:
            logs = self._today.logs.items()
            table.read = {key: use for key, use in logs if use.is_worth_keeping}
        # Not synced: a machine that fails ends all processes that have reserved something.
        write_file(folder, "day.json", msgspec.json.encode(table), sync=False)

    @contextmanager
    def _lock_table(self) -> Iterator[int]:
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_folder(self._state) as folder:
            handle = os.open("day.lock", _LOCKING, 0o600, dir_fd=folder)
            try:
                _lock(handle)
                yield folder
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    until, pause = time.monotonic() + _LOCK_SECONDS, 0.001
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise OSError(errno.EBUSY, "another process has locked day.lock") from None
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _today() -> date:
    return datetime.now(UTC).date()


def _load_table(folder: int) -> _Table:
    data = read_file(folder, "day.json", _MAX_TABLE)
    if data is None:
        return _Table()
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        log.warning("day.json cannot be read; what was spent is added up from the logs again")
        return _Table()


def _is_alive(reservation: _Reservation) -> bool:
    try:
        os.kill(reservation.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return reservation.started == _start_time(reservation.pid)


def _start_time(pid: int) -> str:
    """When a process started, in the system's units; empty if the system does not say."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    fields = status.rpartition(b")")[2].split()  # the name in the parentheses may hold anything
    is_zombie = fields[:1] in ([b"Z"], [b"X"])
    return "gone" if is_zombie else fields[19].decode() if len(fields) > 19 else ""


def _check_tokens(spent: Spent, reserved: int, tokens: int, limit: int) -> None:
    if limit and spent.tokens + reserved + tokens > limit:
        error = BudgetReached(
            f"the limit of {quantity(limit, 'token')} a day leaves no room for another step: "
            f"{spent.tokens:,} are used and {reserved:,} reserved",
            hint="A new day begins at 00:00 UTC; or raise the limit.",
        )
        error.set_aside = spent.tokens + tokens <= limit
        raise error


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
    if spent.money + reserved + money > limit + _ROUNDING:
        error = BudgetReached(
            f"the limit of {format_cost(limit)} a day leaves no room for another step: "
            f"{format_cost(spent.money)} is spent and {format_cost(reserved)} reserved",
            hint="A new day begins at 00:00 UTC; or raise the limit.",
        )
        error.set_aside = spent.money + money <= limit + _ROUNDING
        raise error


@contextmanager
def _failure(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(
            f"{what}: {error.strerror or error}",
            error,
            hint="Nothing was spent. Check the disk and the permissions of the folder.",
        ) from error
