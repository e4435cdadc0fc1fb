"""Budgets that last: of a session over its turns, of a day over its sessions; none is exceeded."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.budget import Budget, Limits
from bridle.errors import BudgetReached, StoreFailed
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.usage import ExecutionMetrics, Price, Usage
from rig import run

PRICED = ProviderInfo("scripted", "m", max_output=10_000, price=Price(1.0, 5.0, cache_write=1.25))
SMALL = ProviderInfo("scripted", "s", max_output=100, price=Price(0.1, 0.5))
PLAIN = RequestConfig()


class Account:
    """A day's account in memory: what was spent is told to it, as a log would be."""

    def __init__(self):
        self.tokens, self.money = 0, 0.0
        self.held = {}
        self.threads = set()
        self.waits = threading.Event()  # somebody was refused what others have set aside

    def reserve(self, who, tokens, money, *, limit_tokens, limit_money):
        self.threads.add(threading.get_ident())
        others = [held for name, held in self.held.items() if name != who]
        if limit_tokens and self.tokens + tokens + sum(one for one, _ in others) > limit_tokens:
            reached = BudgetReached(f"the limit of {limit_tokens} tokens a day is reached")
            reached.set_aside = self.tokens + tokens <= limit_tokens
            if reached.set_aside:
                self.waits.set()
            raise reached
        if limit_money and self.money + money + sum(one for _, one in others) > limit_money:
            raise BudgetReached(f"the limit of ${limit_money:g} a day is reached")
        self.held[who] = tokens, money

    def release(self, who):
        self.held.pop(who, None)


def reserved(budget, news, config=PLAIN):
    """The settings of one call, reserved."""
    return asyncio.run(budget.reserve(config, news))


async def unless_it_waits(budget, news):
    """The same; None where others hold what is missing."""
    work = asyncio.create_task(budget.reserve(PLAIN, news))
    await asyncio.sleep(0)
    if not work.done():
        work.cancel()
        await asyncio.wait([work])
        return None
    return work.result()


async def unless_the_day_waits(budget, news, account):
    """The same with a day's account, which is asked in a thread."""
    account.waits.clear()
    work = asyncio.create_task(budget.reserve(PLAIN, news))
    waits = asyncio.create_task(asyncio.to_thread(account.waits.wait))
    await asyncio.wait([work, waits], return_when=asyncio.FIRST_COMPLETED)
    account.waits.set()
    await waits
    if not work.done():
        work.cancel()
        await asyncio.wait([work])
        return None
    return work.result()


async def nothing():
    """A log that is settled already."""


def test_a_session_remembers_what_its_turns_have_used():
    used = ExecutionMetrics(tokens=9000)
    budget = Budget(Limits(max_session_tokens=15_000), PRICED, used)
    assert reserved(budget, 1000).max_tokens == 5000
    budget.spend(Usage(1000, 4000), None)
    with pytest.raises(BudgetReached) as caught:
        reserved(budget, 2000)
    assert caught.value.message == (
        "the limit of 15,000 tokens a session leaves no room for another step: "
        "14,000 are used, and it would read about 7,000"
    )
    assert caught.value.hint == (
        "What was done stays: raise limits.max_session_tokens (--max-session-tokens), "
        "or start a new session."
    )


def test_a_session_remembers_what_its_turns_have_cost():
    budget = Budget(Limits(max_session_cost=0.1), PRICED, ExecutionMetrics(cost=0.09))
    assert reserved(budget, 3000).max_tokens == 1250
    budget.spend(Usage(3000, 1000), 0.009)
    with pytest.raises(BudgetReached) as caught:
        reserved(budget, 400)
    said = "the limit of $0.10 a session leaves no room for another step: $0.099 is spent"
    assert caught.value.message == said


def test_a_session_with_a_reply_of_unknown_cost_cannot_keep_a_money_limit():
    used = ExecutionMetrics(unpriced=1)
    with pytest.raises(BudgetReached) as caught:
        reserved(Budget(Limits(max_session_cost=1.0), PRICED, used), 1)
    said = "what an earlier reply of this session cost is unknown, so a limit of $1.00 a session"
    assert caught.value.message == f"{said} cannot be kept"
    reserved(Budget(Limits(max_cost=1.0), PRICED, used), 1)  # the turn's own is another matter


@pytest.mark.parametrize("limits", [Limits(max_session_cost=1.0), Limits(max_day_cost=1.0)])
def test_a_lasting_money_limit_needs_a_price(limits):
    budget = Budget(limits, ProviderInfo("scripted", "m"), day=Account(), who="s")

    with pytest.raises(BudgetReached, match=r"the price of m is unknown, so a limit of \$1.00 a "):
        reserved(budget, 1)


def test_what_is_called_beside_a_turn_counts_and_is_no_step():
    budget = Budget(
        Limits(max_steps=1, max_turn_tokens=10_000, max_session_tokens=50_000), PRICED, who="s"
    )
    title = budget.beside(SMALL, "title")
    short = RequestConfig(max_tokens=40)
    assert reserved(title, 60, short).max_tokens == 40
    assert reserved(budget, 3000).max_tokens == 6900  # what the title may use is left out
    title.spend(Usage(60, 10), 0.0)
    assert (budget.tokens, budget.steps) == (70, 1)
    budget.spend(Usage(3000, 6900), 0.0)
    with pytest.raises(BudgetReached, match="9,970 are used"):
        reserved(title, 60, short)
    with pytest.raises(BudgetReached, match="the limit of 1 step is reached"):
        reserved(budget, 1)


def test_a_call_that_nothing_came_of_gives_its_room_back():
    budget = Budget(Limits(max_turn_tokens=10_000), PRICED, who="s")
    title = budget.beside(SMALL, "title")
    reserved(title, 400, RequestConfig(max_tokens=500))
    title.end_reservation()
    assert reserved(budget, 100).max_tokens == 9900


def test_without_a_limit_of_the_day_its_account_is_never_asked():
    assert Budget(Limits(max_session_tokens=5), PRICED, day=Account()).day is None
    assert Budget(Limits(max_day_tokens=5), PRICED, day=Account()).day is not None


def test_a_reply_is_cut_to_what_the_day_has_left_and_the_account_is_kept_elsewhere():
    """Half as much is asked for until there is room; never in the event loop's own thread."""
    account = Account()
    account.tokens = 90_000
    limits = Limits(max_day_tokens=100_000)
    first, second = (Budget(limits, PRICED, day=account, who=who) for who in "ab")

    async def work():
        config = await first.reserve(PLAIN, 300)
        assert config.max_tokens == 5000
        assert account.held == {"a": (5300, (300 * 1.25 + 5000 * 5.0) / 1_000_000)}
        waiting = asyncio.create_task(second.reserve(PLAIN, 10))
        await asyncio.to_thread(account.waits.wait)
        first.spend(Usage(300, 20), None)
        account.tokens += 320  # as the log says by now
        await first.settle(nothing)
        assert (await waiting).max_tokens == 5000
        assert list(account.held) == ["b"]

    run(work())
    assert threading.get_ident() not in account.threads


def test_room_is_given_back_where_the_log_fails_too():
    """Nobody else would: a process that lives on would hold it for ever."""
    account = Account()
    budget = Budget(Limits(max_day_tokens=20_000), PRICED, day=account, who="s")

    async def full():
        raise StoreFailed("no space left")

    async def work():
        await budget.reserve(PLAIN, 10)
        with pytest.raises(StoreFailed):
            await budget.settle(full)

    run(work())
    assert account.held == {}


def test_an_interrupt_while_the_use_is_settled_waits_for_it_and_leaves_none_held():
    account, settling, written = Account(), asyncio.Event(), asyncio.Event()
    budget = Budget(Limits(max_day_tokens=20_000), PRICED, day=account, who="s")

    async def slow():
        settling.set()
        await written.wait()

    async def work():
        await budget.reserve(PLAIN, 10)
        work = asyncio.create_task(budget.settle(slow))
        await settling.wait()
        work.cancel()
        await asyncio.sleep(0)
        held = list(account.held)
        written.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        return held

    assert run(work()) == ["s"]
    assert account.held == {}


def test_an_interrupt_while_room_is_sought_leaves_none_held():
    sought, go = threading.Event(), threading.Event()

    class Slow(Account):
        def reserve(self, *rest, **limits):
            sought.set()
            go.wait()
            super().reserve(*rest, **limits)

    account = Slow()
    budget = Budget(Limits(max_day_tokens=20_000), PRICED, day=account, who="s")

    async def work():
        holding = asyncio.create_task(budget.reserve(PLAIN, 10))
        await asyncio.to_thread(sought.wait)
        holding.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await holding

    run(work())
    assert account.held == {}


def within(data, config, info, reading):
    """A reply at random, within what it was allowed, and what it costs."""
    read = data.draw(st.integers(0, reading))
    cached = data.draw(st.integers(0, read))
    usage = Usage(
        read - cached,
        data.draw(st.integers(0, config.max_tokens or info.max_output)),
        cache_write_tokens=cached,
    )
    return usage, info.price.cost(usage)


@given(st.data(), st.integers(1, 30_000), st.floats(0.0001, 0.2))
def test_no_sequence_of_turns_passes_a_limit_of_the_session(data, tokens, money):
    limits = Limits(max_session_tokens=tokens, max_session_cost=money, max_steps=0)
    used = ExecutionMetrics()
    for _ in range(data.draw(st.integers(1, 4))):
        budget = Budget(limits, PRICED, used, who="s")
        title = budget.beside(SMALL, "title")
        open_calls = []
        for who, info in data.draw(
            st.lists(st.sampled_from([(budget, PRICED), (title, SMALL)]), max_size=8)
        ):
            if any(who is other for other, *_ in open_calls):
                continue  # one call at a time, each
            news = data.draw(st.integers(0, 2000))
            try:
                config = asyncio.run(unless_it_waits(who, news))
            except BudgetReached:
                continue
            if config is None:
                continue
            open_calls.append((who, config, info, news))
            if who is title and data.draw(st.booleans()):
                continue  # it runs beside the next one
            for each, given_, its, least in open_calls:
                usage, cost = within(data, given_, its, least)
                if usage.total_tokens:
                    each.spend(usage, cost)
                    used = used.plus(usage, cost)
            open_calls.clear()
    assert used.tokens <= tokens
    assert used.cost <= money * (1 + 1e-9)


@given(st.data(), st.integers(1, 30_000), st.floats(0.0001, 0.2))
def test_no_interleaving_of_sessions_passes_a_limit_of_the_day(data, tokens, money):
    limits = Limits(max_day_tokens=tokens, max_day_cost=money, max_steps=0)
    account = Account()
    budgets = [Budget(limits, PRICED, day=account, who=str(number)) for number in range(3)]
    running = {}
    for number in data.draw(st.lists(st.integers(0, 2), max_size=14)):
        budget = budgets[number]
        if number in running:
            usage, cost = within(data, *running.pop(number))
            account.tokens += usage.total_tokens
            account.money += cost
            account.release(str(number))
            continue
        budget.restart_estimate()
        news = data.draw(st.integers(0, 2000))
        try:
            config = asyncio.run(unless_the_day_waits(budget, news, account))
        except BudgetReached:
            continue
        if config is not None:
            running[number] = config, PRICED, news
    assert account.tokens <= tokens
    assert account.money <= money * (1 + 1e-9)
