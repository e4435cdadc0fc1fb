"""A budget for the day: a fold over all logs, and what processes reserve under one lock."""

import json
import os
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridle.errors import BudgetReached, StoreFailed, UnknownSession
from bridle.events import Forked, SessionStarted, TextDelta, ToolResultEvent, UsageReported
from bridle.messages import ToolOutput
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.day_budget import DayBudget, Spent
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder
from bridle.stores.transfer import delete, fork
from bridle.usage import Usage


def today():
    """Looked at when it is needed: all the others may have been done yesterday."""
    return datetime.now(UTC).date()


def now():
    return f"{today()}T00:00:01.000Z"


def before():
    return f"{today() - timedelta(days=1)}T23:59:59.000Z"


class Log:
    """A log that grows."""

    def __init__(self, state, session_id):
        self.path = state / "sessions" / session_id / "log.jsonl"
        self.path.parent.mkdir(parents=True)
        self.seq, self.hash = 0, ""

    def add(self, event, when=""):
        self.seq += 1
        line, self.hash = encode_line(self.seq, when or now(), encode_data(event), self.hash)
        with self.path.open("ab") as file:
            file.write(line)
        return line

    def use(self, tokens, cost=0.0, when=""):
        return self.add(UsageReported(Usage(tokens, 0), "m", cost), when)


def reserve(day, who, tokens=0, money=0.0, limit_tokens=0, limit_money=0.0):
    day.reserve(who, tokens, money, limit_tokens=limit_tokens, limit_money=limit_money)


def test_the_use_of_all_sessions_on_that_day_is_summed_up(state):
    one, two = Log(state, "one"), Log(state, "two")
    one.use(5, 0.5, before())
    one.use(10, 0.25)
    one.add(UsageReported(Usage(100, 20, 30, 40), "m", 0.25))
    two.use(1, None)
    day = DayBudget(state)
    assert day.spent() == day.spent(today()) == Spent(201, 0.5, 1)
    assert day.spent(today() - timedelta(days=1)) == Spent(5, 0.5, 0)
    assert day.spent(today() - timedelta(days=2)) == Spent()
    assert DayBudget(state / "nowhere").spent() == Spent()


def test_what_was_read_is_not_read_again(state):
    log, day = Log(state, "s"), DayBudget(state)
    log.use(10)
    line = log.use(20)
    assert day.spent().tokens == 30
    data = log.path.read_bytes()
    log.path.write_bytes(b"\0" * len(data))  # the same file: only what is new counts
    log.use(5)
    assert day.spent().tokens == 35
    with log.path.open("ab") as file:
        file.write(line[:-9])
    assert day.spent().tokens == 35  # not whole yet
    with log.path.open("ab") as file:
        file.write(line[-9:])
    assert day.spent().tokens == 55


def test_a_log_that_was_cut_is_read_from_its_beginning(state):
    log, day = Log(state, "s"), DayBudget(state)
    first = log.use(10)
    log.use(20)
    assert day.spent().tokens == 30
    log.path.write_bytes(first)
    assert day.spent().tokens == 10


def test_content_that_looks_like_use_is_content(state):
    log = Log(state, "s")
    fake = {"seq": 1, "timestamp": now(), "data": {"type": "usage", "usage": {"inputTokens": 9}}}
    text = "\n" + json.dumps(fake, separators=(",", ":")) + "\n"
    log.add(ToolResultEvent(ToolOutput("c", text, data=fake)))
    log.add(TextDelta(text))
    assert DayBudget(state).spent() == Spent()


def test_what_was_used_since_it_was_set_aside_counts_after_a_deletion(state):
    log, day = Log(state, "s"), DayBudget(state)
    reserve(day, "me", 10, limit_tokens=10)
    log.use(10)
    day.release("me")
    delete(SessionFolder(state), "s")
    assert DayBudget(state).spent() == Spent(10, 0.0, 0)


def test_what_a_session_used_without_a_limit_counts_after_the_store_deleted_it(state):
    Log(state, "s").use(10)
    store = JsonlStore(state)
    store.delete("s")
    assert (store.sessions(), DayBudget(state).spent()) == ([], Spent(10, 0.0, 0))
    with pytest.raises(UnknownSession):
        store.delete("s")


def test_a_use_that_cannot_be_noted_is_no_reason_to_keep_a_session(state, caplog):
    Log(state, "s").use(10)
    (state / "day.lock").mkdir()
    JsonlStore(state).delete("s")
    assert JsonlStore(state).sessions() == []
    assert "the use of the day cannot be saved" in caplog.text


def test_a_fork_does_not_count_twice_and_a_deleted_session_still_counts(state):
    log, folder, day = Log(state, "s"), SessionFolder(state), DayBudget(state)
    log.use(10, 1.0)
    fork(folder, "s", None, "copy")
    assert day.spent() == Spent(10, 1.0, 0)
    reserve(day, "me")
    day.release("me")
    delete(folder, "s")
    assert DayBudget(state).spent() == day.spent() == Spent(10, 1.0, 0)
    other = Log(state, "other")
    other.add(SessionStarted("x"))
    other.use(7)
    other.add(Forked("x", 2))
    other.use(3)
    assert DayBudget(state).spent().tokens == 13


def test_room_is_set_aside_and_given_back(state):
    log, day = Log(state, "s"), DayBudget(state)
    log.use(40)
    reserve(day, "a", 30, limit_tokens=100)
    with pytest.raises(BudgetReached) as caught:
        reserve(DayBudget(state), "b", 31, limit_tokens=100)
    assert str(caught.value) == (
        "the limit of 100 tokens a day leaves no room for another step: 40 are used and 30 reserved"
    )
    reserve(day, "b", 30, limit_tokens=100)
    reserve(day, "a", 20, limit_tokens=100)  # in place of what it had
    reserve(day, "c", 10, limit_tokens=100)
    day.release("b")
    day.release("b")
    reserve(day, "d", 30, limit_tokens=100)
    reserve(day, "e", 10**9)  # no limit of its own
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.glob("day.*")} == {0o600}


def test_money_is_kept_to_the_cent(state):
    day = DayBudget(state)
    for number in range(10):
        reserve(day, f"n{number}", money=0.1, limit_money=1.0)
    with pytest.raises(BudgetReached, match=r"the limit of \$1.00 a day leaves no room"):
        reserve(day, "more", money=0.01, limit_money=1.0)


def test_use_without_a_price_makes_a_limit_on_money_impossible(state):
    log, day = Log(state, "s"), DayBudget(state)
    log.use(10, None)
    with pytest.raises(BudgetReached) as caught:
        reserve(day, "a", money=0.01, limit_money=5.0)
    assert str(caught.value) == (
        "what one reply cost today is unknown, so a limit of $5.00 a day cannot be kept"
    )
    reserve(day, "a", 10, limit_tokens=100)


def test_a_table_that_cannot_be_read_is_made_anew(state, caplog):
    log, day = Log(state, "s"), DayBudget(state)
    log.use(10)
    reserve(day, "a", 1, limit_tokens=100)
    (state / "day.json").write_bytes(b'{"date":7')
    reserve(DayBudget(state), "b", 90, limit_tokens=100)
    assert "cannot be read" in caplog.text


def test_what_was_set_aside_yesterday_by_who_still_runs_counts(state):
    day = DayBudget(state)
    reserve(day, "a", 60, limit_tokens=100)
    table = json.loads((state / "day.json").read_bytes())
    yesterday = {**table, "date": "2001-01-01", "read": {"gone:1": [9, 9, 9.0, 9]}}
    (state / "day.json").write_text(json.dumps(yesterday))
    with pytest.raises(BudgetReached, match="0 are used and 60 reserved"):
        reserve(DayBudget(state), "b", 60, limit_tokens=100)


def test_a_link_in_place_of_the_lock_is_refused(state, tmp_path):
    state.mkdir()
    (state / "day.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreFailed, match="the budget of the day cannot be kept"):
        reserve(DayBudget(state), "a", 1, limit_tokens=10)
    assert not (tmp_path / "elsewhere").exists()


HOLDING = """
import sys
from pathlib import Path
from bridle.stores.day_budget import DayBudget
DayBudget(Path(sys.argv[1])).reserve("them", 90, 0.0, limit_tokens=100, limit_money=0.0)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_set_aside_is_free_again(state):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BudgetReached, match="90 reserved"):
            reserve(DayBudget(state), "me", 20, limit_tokens=100)
        os.kill(holder.pid, signal.SIGKILL)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried
        reserve(DayBudget(state), "me", 20, limit_tokens=100)


def test_another_process_with_the_same_number_is_another(state):
    day = DayBudget(state)
    reserve(day, "old", 90, limit_tokens=100)
    table = json.loads((state / "day.json").read_bytes())
    table["reserved"]["old"][1] = "12345"  # it started at another time
    (state / "day.json").write_text(json.dumps(table))
    reserve(day, "me", 90, limit_tokens=100)


RACING = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_day_budget import Log
from bridle.errors import BudgetReached
from bridle.stores.day_budget import DayBudget
state, who = Path(sys.argv[1]), sys.argv[2]
day, log, sent = DayBudget(state), Log(state, who), 0
while True:
    try:
        day.reserve(who, 10, 0.1, limit_tokens=400, limit_money=5.0)
    except BudgetReached:
        break
    log.use(10, 0.1)
    sent += 10
    day.release(who)
print(sent)
"""


def test_eight_processes_that_race_never_overspend_together(state):
    here = Path(__file__).parent
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", RACING, str(state), f"p{number}", str(here)],
            stdout=subprocess.PIPE,
        )
        for number in range(8)
    ]
    used = [int(one.communicate(timeout=240)[0]) for one in racing]
    assert [one.returncode for one in racing] == [0] * 8
    day = DayBudget(state)
    assert day.spent().tokens == sum(used) <= 400
    last = Log(state, "last")
    for _ in range(400 - sum(used), 0, -10):
        reserve(day, "last", 10, 0.1, 400, 5.0)
        last.use(10, 0.1)
        day.release("last")
    with pytest.raises(BudgetReached, match="400 are used and 0 reserved"):
        reserve(day, "last", 10, 0.1, 400, 5.0)
