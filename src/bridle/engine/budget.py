"""Limits of steps, tool calls, tokens and money, which are reserved before they are spent.

There are limits for a turn, for a session with all its turns, and for a day with all its sessions.
What a subagent uses counts for the turn that started it as well, up to the root of the tree. At the
end of the module, `UsageMeter` and `with_cost` say what a reply has used and cost.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Set
from contextlib import aclosing
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.cancellation import run_uncancelled
from bridle.errors import BudgetReached
from bridle.events import (
    Event,
    ModelEvent,
    ResponseCompleted,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput
from bridle.protocols.provider import ProviderInfo, RequestConfig, reply_limit
from bridle.protocols.store import Day
from bridle.usage import ExecutionMetrics, Price, Usage, format_cost
from bridle.workspace.text import quantity


class Limits(Struct, frozen=True, omit_defaults=True):
    """Limits of a turn, of a session and of a day. Zero is no limit.

    `tool_seconds` bounds one call, `output_chars` what the model reads of its result, and `repeats`
    how often the same call may fail in a row.
    """

    max_steps: int = 200
    max_tool_calls: int = 0
    max_seconds: float = 0.0
    max_turn_tokens: int = 0
    max_cost: float = 0.0
    tool_seconds: float = 600.0
    output_chars: int = 60_000
    repeats: int = 3
    max_session_tokens: int = 0
    max_session_cost: float = 0.0
    max_day_tokens: int = 0
    max_day_cost: float = 0.0

    @property
    def counts(self) -> bool:
        """Is there a limit that needs tokens to be counted?"""
        of_turn = self.max_turn_tokens or self.max_cost
        of_session = self.max_session_tokens or self.max_session_cost
        return bool(of_turn or of_session or self.lasts_a_day)

    @property
    def lasts_a_day(self) -> bool:
        """Is there a limit that other sessions count towards?"""
        return bool(self.max_day_tokens or self.max_day_cost)


class Ledger(Struct):
    """What a turn and its session have used, and what is reserved at the moment."""

    before: ExecutionMetrics  # what the session had used when the turn began
    tokens: int = 0
    money: float = 0.0
    unpriced_model: str = ""  # the model of a reply whose cost is not known
    reserved: dict[str, tuple[int, float]] = {}  # tokens and money, by who reserved them
    waiters: list[asyncio.Future[None]] = []  # done when a reservation ends

    def reserved_by_others(self, who: str, exempt: Set[str] = frozenset()) -> tuple[int, float]:
        """Return what others in this session, and below it, have reserved.

        `exempt` are budgets above whose share is ours to use: it is never free while we run.
        """
        amounts = [
            amount for name, amount in self.reserved.items() if name != who and name not in exempt
        ]
        return sum(tokens for tokens, _ in amounts), sum(money for _, money in amounts)


_UNLIMITED = 1 << 62
_NOTHING_USED = ExecutionMetrics()
_MIN_REPLY = 1024  # tokens of a reply that is worth asking for, unless a whole one has fewer
_DAY_SECONDS = 0.25  # between two tries to reserve what others have reserved of the day


class _Scope(NamedTuple):
    """One limit, and what to say when it is reached."""

    limit: float
    used: float
    scope: str  # " a session", or empty for a turn
    hint: str  # empty for a turn: another can be started


class Reservation:
    """Tokens and money for one model call: `async with` gives the settings of its request.

    On leaving the block, what was reserved is free again; what was used has been counted by
    `Budget.spend`. `settled` returns when everything emitted so far is durable, which the account
    of the day depends on. `is_repeated`: the step has been counted already.
    """

    __slots__ = ("_budget", "_config", "_is_repeated", "_new_tokens", "_settled")

    def __init__(
        self,
        budget: "Budget",
        config: RequestConfig,
        new_tokens: int,
        settled: Callable[[], Awaitable[None]],
        *,
        is_repeated: bool = False,
    ) -> None:
        self._budget = budget
        self._config = config
        self._new_tokens = new_tokens
        self._settled = settled
        self._is_repeated = is_repeated

    async def __aenter__(self) -> RequestConfig:
        return await self._budget.reserve(
            self._config, self._new_tokens, is_repeated=self._is_repeated
        )

    async def __aexit__(self, *_: object) -> None:
        if self._budget.limits.counts:
            self._budget.end_reservation()
        if self._budget.day is not None:
            await self._budget.settle(self._settled)


class Budget:
    """The limits of one turn, and what has been used of them.

    `before` is what the session had used when the turn began. `who` is the session's id, which
    names it in the day's account. `above` is the budget of the turn that started this session as a
    subagent: nothing can be used here that is not left there.
    """

    def __init__(
        self,
        limits: Limits,
        info: ProviderInfo,
        before: ExecutionMetrics = _NOTHING_USED,
        day: Day | None = None,
        who: str = "",
    ) -> None:
        self.limits = limits
        self.above: Budget | None = None
        self.shares = False  # its agent spends without asking, so all of it is reserved above
        self.steps = self.tool_calls = 0  # of this turn and its subagents
        self._is_beside = False
        self.day = day if limits.lasts_a_day else None
        self._who = who
        self._info = info
        self._ledger = Ledger(before)
        self._context = 0  # tokens that the model read last time
        self._reading = 0  # tokens that it is about to read, by our estimate
        self._refused = 0  # the limit of calls that was exceeded

    def add_steps(self, count: int) -> None:
        """Count steps here and in every budget above."""
        for level in self.levels():
            level.steps += count

    def add_tool_calls(self, count: int) -> None:
        """Count tool calls here and in every budget above; a negative count takes some back."""
        for level in self.levels():
            level.tool_calls += count

    @property
    def before(self) -> ExecutionMetrics:
        """What the session had used when the turn began."""
        return self._ledger.before

    @property
    def reserved(self) -> tuple[int, float]:
        """The tokens and the money that are reserved, here and below."""
        return self._ledger.reserved_by_others("")

    @property
    def has_reservations_of_others(self) -> bool:
        """Have others reserved something, here or above, that may be free later?"""
        kin = frozenset(level._who for level in self.levels() if level.shares)
        return any(any(level._ledger.reserved_by_others("", kin)) for level in self.levels())

    def levels(self) -> "Iterator[Budget]":
        """Yield this budget, and all above it."""
        level: Budget | None = self
        while level is not None:
            yield level
            level = level.above

    @property
    def tokens(self) -> int:
        """The tokens of this turn."""
        return self._ledger.tokens

    @property
    def money(self) -> float:
        """The money of this turn, as far as it is known or can be estimated."""
        return self._ledger.money

    @property
    def unpriced_model(self) -> str:
        """The model of a reply of this turn whose cost is unknown; empty if there is none."""
        return self._ledger.unpriced_model

    def beside(self, info: ProviderInfo, purpose: str) -> "Budget":
        """Return a budget for another model's call beside the turn: a title, a summary.

        What it spends counts like the turn's own, but it takes no step.
        """
        budget = Budget(replace(self.limits, max_steps=0), info, day=self.day)
        budget._who, budget._ledger = f"{self._who}:{purpose}", self._ledger
        budget.above, budget._is_beside = self.above, True
        return budget

    def begin_below(self, above: "Budget", *, shares: bool) -> None:
        """Place it below a parent's budget; `shares`: reserve all that it may use up there."""
        self.above, self.shares = above, shares
        if shares:
            self._reserve_share(anew=True)

    def end_below(self, who: str) -> None:
        """End the reservation of a subagent that has ended."""
        for level in self.levels():
            level._ledger.reserved.pop(who, None)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Have those who wait for a reservation to end look again."""
        for waiter in self._root()._ledger.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _reserve_share(self, *, anew: bool) -> None:
        """Reserve above what it may still use; without `anew`, only if it has not ended."""
        tokens, money = self.limits.max_turn_tokens - self.tokens, self.limits.max_cost - self.money
        for level in self.levels():
            if level is not self and (anew or self._who in level._ledger.reserved):
                level._ledger.reserved[self._who] = max(0, tokens), max(0.0, money)

    def resume(self, used: ExecutionMetrics, steps: int) -> None:
        """Count what the turn had used before it was parked."""
        self.add_steps(steps)
        self.add_tool_calls(used.tool_calls)
        self._ledger.tokens, self._ledger.money = used.tokens, used.cost

    def restart_estimate(self) -> None:
        """Forget how much the model read last: the next estimate is of the whole conversation."""
        self._context = self._reading = 0

    async def reserve(
        self, config: RequestConfig, new_tokens: int, *, is_repeated: bool = False
    ) -> RequestConfig:
        """Reserve tokens and money for one model call. Return its settings. Raise `BudgetReached`.

        Wait for reservations of others to end if they are in the way. Lower `max_tokens` only if
        what is left cannot pay for a full reply, and not below 1,024. `new_tokens` is an estimate
        of the tokens that are new since the last call; `is_repeated`: the step has been counted.
        """
        if not is_repeated:
            self._take_step()
        if not self.limits.counts:
            return config
        reading = self._reading = self._context + new_tokens
        wanted = reply_limit(config, self._info)
        while (output := self._output_tokens(reading, wanted)) is None:
            await self.wait_for_release()
        amount = self._maximum_use(output)
        for level in self.levels():
            level._ledger.reserved[self._who] = amount
        config = config if output == wanted else replace(config, max_tokens=output)
        if self.day is None:
            return config
        try:
            return await self._reserve_day(config)
        except BaseException:
            self.end_reservation()
            raise

    async def wait_for_release(self) -> None:
        """Wait until a reservation anywhere in the tree has ended."""
        waiters = self._root()._ledger.waiters
        waiter = asyncio.get_running_loop().create_future()
        waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in waiters:
                waiters.remove(waiter)

    def _root(self) -> "Budget":
        *_, root = self.levels()
        return root

    def _output_tokens(self, reading: int, wanted: int) -> int | None:
        """Return the tokens that the reply may have; None: other reservations have to end first.

        Raise `BudgetReached` if too little is left even without the reservations of others.
        """
        minimum = min(_MIN_REPLY, wanted)
        kin = frozenset(level._who for level in self.levels() if level.shares and level is not self)
        unspent = available = _UNLIMITED  # with and without the reservations of others
        for level in self.levels():
            reserved = level._ledger.reserved_by_others(self._who, kin)
            unspent = min(unspent, self._left(level, reading, minimum, (0, 0.0)))
            available = min(available, self._left(level, reading, -_UNLIMITED, reserved))
        if available >= wanted:
            return wanted
        return available if available >= minimum and unspent < wanted else None

    def _left(
        self, level: "Budget", reading: int, minimum: int, reserved: tuple[int, float]
    ) -> int:
        """Return the tokens that one level leaves. Raise `BudgetReached` if below `minimum`."""
        tokens = self._tokens_left(level, reading, minimum, reserved[0])
        return min(tokens, self._money_left(level, reading, minimum, reserved[1]))

    def _take_step(self) -> None:
        """Count one more step, here and above. Raise `BudgetReached`."""
        if self._is_beside:
            return
        for level in self.levels():
            if level.limits.max_steps and level.steps >= level.limits.max_steps:
                steps = quantity(level.limits.max_steps, "step")
                raise BudgetReached(f"the limit of {steps} is reached")
        if self._refused:
            raise BudgetReached(f"the limit of {quantity(self._refused, 'tool call')} is reached")
        self.add_steps(1)

    async def settle(self, settled: Callable[[], Awaitable[None]]) -> None:
        """End the reservation in the day's account, once the usage is durable in the log."""
        await run_uncancelled(self._settle(settled))

    def spend(self, usage: Usage, cost: float | None, model: str = "") -> None:
        """Count what a model call used. Without figures, count what it was to read."""
        total = usage.total_tokens or self._reading
        self._context = total
        unpriced = ""
        if cost is None:
            unpriced = model or self._info.model or self._info.name
            guess = usage if usage.total_tokens else Usage(self._reading)
            cost = self._info.price.cost(guess) if self._info.price is not None else 0.0
        for level in self.levels():
            ledger = level._ledger
            ledger.tokens += total
            ledger.money += cost
            ledger.unpriced_model = unpriced or ledger.unpriced_model
        self.end_reservation()

    def end_reservation(self) -> None:
        """End the reservation of a model call."""
        if self.above is None and not self._ledger.reserved:
            return
        for level in self.levels():
            if not self.shares:
                level._ledger.reserved.pop(self._who, None)
            if level.shares:
                level._reserve_share(anew=False)
        self._wake_waiters()

    def take_call(self) -> bool:
        """Count one more tool call, here and above; False: the limit is reached."""
        for level in self.levels():
            limit = level.limits.max_tool_calls
            if limit and level.tool_calls >= limit:
                self._refused = limit
                return False
        self.add_tool_calls(1)
        return True

    def _maximum_use(self, output: int) -> tuple[int, float]:
        """Return the most tokens and money that a call can use whose reply has `output` tokens."""
        price = self._info.price
        money = (
            (self._reading * _input_price(price) + output * price.output)
            if price is not None
            else 0
        )
        return self._reading + output, money / 1_000_000

    async def _reserve_day(self, config: RequestConfig) -> RequestConfig:
        """Reserve tokens and money in the day's account as well. Raise `BudgetReached`."""
        while True:
            work = asyncio.ensure_future(asyncio.to_thread(self._try_reserve_day, config))
            try:
                reserved = await asyncio.shield(work)
            except asyncio.CancelledError:
                await run_uncancelled(self._cancel_day(work))
                raise
            if reserved is not None:
                return reserved
            await asyncio.sleep(_DAY_SECONDS)  # another session or process has reserved it

    def _try_reserve_day(self, config: RequestConfig) -> RequestConfig | None:
        """In a thread: reserve; None: other reservations have to end first."""
        assert self.day is not None
        if self.limits.max_day_cost:
            self._check_price(self.limits.max_day_cost, " a day", self._ledger)
        wanted = output = reply_limit(config, self._info)
        minimum = min(_MIN_REPLY, wanted)
        while True:
            tokens, money = self._maximum_use(output)
            limits = self.limits
            try:
                self.day.reserve(
                    self._who,
                    tokens,
                    money,
                    limit_tokens=limits.max_day_tokens,
                    limit_money=limits.max_day_cost,
                )
            except BudgetReached as reached:
                if reached.set_aside:
                    return None
                if output <= minimum:
                    raise
                output = max(minimum, output // 2)
            else:
                return config if output == wanted else replace(config, max_tokens=output)

    async def _settle(self, settled: Callable[[], Awaitable[None]]) -> None:
        try:
            await settled()
        finally:  # also if the log fails: nothing else would end the reservation
            await self._release_day()

    async def _cancel_day(self, work: "asyncio.Future[RequestConfig | None]") -> None:
        """End a reservation that was made for a cancelled caller."""
        await asyncio.wait([work])
        if work.exception() is None:
            await self._release_day()

    async def _release_day(self) -> None:
        if self.day is not None:
            await asyncio.to_thread(self.day.release, self._who)

    def _tokens_left(self, level: "Budget", reading: int, minimum: int, reserved: int) -> int:
        ledger = level._ledger
        in_turn, before = ledger.tokens, ledger.before.tokens
        available = _UNLIMITED
        for limit, used, scope, hint in (
            _Scope(level.limits.max_turn_tokens, in_turn, "", ""),
            _Scope(
                level.limits.max_session_tokens,
                before + in_turn,
                " a session",
                raise_limit_hint("tokens"),
            ),
        ):
            left = int(limit - used - reserved - reading) if limit else _UNLIMITED
            if left < minimum:
                raise BudgetReached(
                    f"the limit of {quantity(limit, 'token')}{scope} leaves no room for another "
                    f"step: {used:,} are used, and it would read about {reading:,}",
                    hint=hint,
                )
            available = min(available, left)
        return available

    def _money_left(self, level: "Budget", reading: int, minimum: int, reserved: float) -> int:
        ledger = level._ledger
        in_turn, before = ledger.money, ledger.before.cost
        available = _UNLIMITED
        for limit, used, scope, hint in (
            _Scope(level.limits.max_cost, in_turn, "", ""),
            _Scope(
                level.limits.max_session_cost,
                before + in_turn,
                " a session",
                raise_limit_hint("cost"),
            ),
        ):
            if not limit:
                continue
            price = self._check_price(limit, scope, ledger)
            left = limit - used - reserved - reading * _input_price(price) / 1_000_000
            tokens = int(left * 1_000_000 / price.output) if price.output else _UNLIMITED
            tokens = tokens if left >= 0 else -1
            if tokens < minimum:
                raise BudgetReached(
                    f"the limit of {format_cost(limit)}{scope} leaves no room for another step: "
                    f"{format_cost(used)} is spent",
                    hint=hint,
                )
            available = min(available, tokens)
        return available

    def _check_price(self, limit: float, scope: str, ledger: Ledger) -> Price:
        """Return the model's price. Raise `BudgetReached` if it, or what was spent, is unknown."""
        price, info = self._info.price, self._info
        if price is None:
            raise BudgetReached(
                f"the price of {info.model or info.name} is unknown, "
                f"so a limit of {format_cost(limit)}{scope} cannot be kept",
                hint="Give the model a price in the settings, or remove the limit of money.",
            )
        earlier = scope == " a session" and ledger.before.unpriced
        if ledger.unpriced_model or earlier:
            source = ledger.unpriced_model or "an earlier reply of this session"
            raise BudgetReached(
                f"what {source} cost is unknown, "
                f"so a limit of {format_cost(limit)}{scope} cannot be kept",
                hint="Use a model with a known price and a server that counts, or drop the limit.",
            )
        return price


def _input_price(price: Price) -> float:
    """Return the most that a million tokens of input can cost."""
    return max(price.input, price.cache_write or 0.0)


def raise_limit_hint(kind: str) -> str:
    """Return what to do if a limit of the session is reached."""
    setting, flag = f"limits.max_session_{kind}", f"--max-session-{kind}"
    return f"What was done stays: raise {setting} ({flag}), or start a new session."


def estimate(message: Message) -> int:
    """Return an estimate of a message's tokens, which is rather too high than too low."""
    total = 8
    for part in message.parts:
        match part:
            case Text(text) | Thinking(text):
                total += len(text.encode()) // 3
            case ToolOutput(text=text, media=media):
                total += len(text.encode()) // 3 + 1600 * len(media)
            case ToolCall(arguments=arguments):
                total += len(str(arguments)) // 3
            case Image():
                total += 1600
            case _:
                total += len(part.data) // 4
    return total


# What a reply used and cost: measured on its stream, for turns, titles and summaries alike.
#
# The figures are the vendor's, the price is the model's. If a reply was cut off before its figures
# came, or if a server does not count, our estimate is used and marked as one. The cost is unknown
# only if the model has no price.

_NO_USAGE = Usage()
_TOKEN_BYTES = 3  # rather too few


class UsageMeter:
    """Measures what a reply has used so far."""

    __slots__ = ("_bytes", "_has_begun", "_is_fallback", "usage")

    def __init__(self) -> None:
        self.usage: UsageReported | None = None  # None: nothing came of the request
        self._has_begun = False
        self._is_fallback = False  # another model answered, whose price is not known
        self._bytes = 0

    def note(self, event: Event) -> None:
        """Count one more event of the stream."""
        kind = type(event)
        if kind is ToolCallStarted or kind is ToolCallReady:  # its text came before, in deltas
            self._has_begun = True
        elif isinstance(event, UsageReported):
            self.usage = event
        elif isinstance(event, ResponseCompleted):
            if self.usage is None or event.usage not in (_NO_USAGE, self.usage.usage):
                self.usage = UsageReported(event.usage, event.model, priced=self._is_fallback)
        elif isinstance(event, TraceEvent):
            self._is_fallback |= event.kind == "fallback"
        else:
            self.note_text(getattr(event, "text", ""))

    def note_text(self, text: str) -> None:
        """Count text that the model wrote."""
        self._bytes += len(text.encode("utf-8", "replace"))
        self._has_begun = True

    def report(self) -> UsageReported | None:
        """Return what the reply has used; without figures if the vendor sent none yet."""
        if self.usage is None and self._has_begun:
            return UsageReported(_NO_USAGE, priced=self._is_fallback)
        return self.usage

    @property
    def has_begun(self) -> bool:
        """Has the model begun its reply?"""
        return self._has_begun

    @property
    def output_tokens(self) -> int:
        """An estimate of the tokens that have arrived."""
        return self._bytes // _TOKEN_BYTES


async def metered(
    events: AsyncGenerator[ModelEvent, None], meter: UsageMeter
) -> AsyncGenerator[ModelEvent, None]:
    """Yield the stream unchanged, and measure it."""
    async with aclosing(events):
        async for event in events:
            meter.note(event)
            yield event


def with_cost(report: UsageReported, info: ProviderInfo, guess: Usage = _NO_USAGE) -> UsageReported:
    """Return the report with model and cost; without figures, use the estimate `guess`."""
    usage, cost, price = report.usage, report.cost, info.price
    if estimated := usage.total_tokens == 0 and guess.total_tokens > 0:
        usage = guess
    if cost is None and not report.priced and price is not None:
        free = not (price.input or price.output)
        cost = price.cost(usage) if usage.total_tokens or free else None
    model = report.model or info.model
    return replace(report, usage=usage, model=model, cost=cost, estimated=estimated)
