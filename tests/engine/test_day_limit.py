"""The limits of a day with the real account: two sessions, one folder, what is in their logs."""

import asyncio

import pytest

from bridle.engine.budget import Budget, Limits
from bridle.engine.session import write_title
from bridle.errors import BudgetReached
from bridle.events import SessionStarted, TitleChanged, TraceEvent, UsageReported
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.providers.scripted import Scripted
from bridle.stores.day_budget import DayBudget
from bridle.stores.jsonl import JsonlStore
from bridle.usage import Price, Usage
from rig import run

PRICED = ProviderInfo("scripted", "m", max_output=1000, price=Price(1.0, 5.0))
LIMITS = Limits(max_day_tokens=3000, max_day_cost=0.01)


def test_what_one_session_holds_or_has_used_another_cannot_use(tmp_path):
    async def story():
        store = JsonlStore(tmp_path)
        log = store.create("a")
        log.append(SessionStarted("a"))
        first = Budget(LIMITS, PRICED, day=DayBudget(tmp_path), who="a")
        second = Budget(LIMITS, PRICED, day=DayBudget(tmp_path), who="b")
        config = RequestConfig()
        await first.reserve(config, 1500)
        waiting = asyncio.create_task(second.reserve(config, 100))
        first.spend(Usage(1500, 100), 0.002)
        log.append(UsageReported(Usage(1500, 100), "m", 0.002))
        await first.settle(log.settled)
        assert await waiting is config  # a whole reply
        with pytest.raises(BudgetReached, match="1,600 are used and 1,100 reserved"):
            await first.reserve(config, 700)
        await second.settle(log.settled)
        await log.close()
        store.close()
        return DayBudget(tmp_path).spent()

    spent = run(story())
    assert (spent.tokens, spent.money, spent.unpriced) == (1600, 0.002, 0)


def test_a_title_is_not_written_where_there_is_no_room_for_it():
    small = Scripted([{"text": "A title", "usage": {"inputTokens": 90, "outputTokens": 3}}])
    budget = Budget(Limits(max_turn_tokens=300), PRICED, who="s")

    async def story():
        written = await write_title(small, "go", budget.beside(small.info, "title"))
        refused = await write_title(small, "go " * 600, budget.beside(small.info, "title"))
        return written, refused

    written, refused = run(story())
    assert written[1:] == [TitleChanged("A title")]
    assert budget.tokens == 93
    assert [type(one) for one in refused] == [TraceEvent]
    assert "the limit of 300 tokens leaves no room" in refused[0].detail["message"]
    assert len(small.requests) == 1
