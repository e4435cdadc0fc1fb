"""What may be used: steps, tool calls, seconds, tokens, money. Reserved before it is spent.

Of a turn, of a session with all its turns, and of a day with all its sessions. What a child session
uses counts for the turn that began it as well, up to the root of the tree. Arithmetic: the figures
of the session and who keeps the day's account are handed in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from bridle.engine.limits import Ledger
from bridle.engine.limits import Limits as Limits
from bridle.engine.unbroken import to_its_end
from bridle.errors import BudgetReached
from bridle.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput
from bridle.promises.day import Day
from bridle.promises.provider import ProviderInfo, RequestConfig, reply_limit
from bridle.usage import ExecutionMetrics, Price, Usage, format_cost

_ENDLESS = 1 << 62
_NEW = ExecutionMetrics()
_LEAST = 1024  # tokens of a reply that is worth asking for, unless a whole one has fewer
_LOOK = 0.25  # seconds between two looks at a day's account that others have filled


class _Scope(NamedTuple):
    """One limit of a kind, and what to say when it is reached."""

    limit: float
    used: float
    words: str  # where the limit holds, beyond the turn
    hint: str  # a turn needs none: another can be begun


class Budget:
    """What is left of the limits. `before` is what the session had used already.

    `who` is a name for the day's account that no other session has: its id. `above` is the budget
    of the turn that began this session as its child: nothing is used here that is not left there.
    """

    def __init__(
        self,
        limits: Limits,
        info: ProviderInfo,
        before: ExecutionMetrics = _NEW,
        day: Day | None = None,
        who: str = "",
    ) -> None:
        self.limits = limits
        self.above: Budget | None = None
        self.shares = False  # is what it may use set aside above, because nobody asks for each?
        self._steps = self._steps_below = 0
        self._calls = self._calls_below = 0
        self._is_beside = False
        self.day = day if limits.lasts_a_day else None
        self._who = who
        self._info = info
        self._ledger = Ledger(before)
        self._context = 0  # what the model read last time
        self._reading = 0  # what it is about to read, by our own estimate
        self._refused = 0  # a call was asked for beyond this limit

    @property
    def steps(self) -> int:
        """The steps of this turn and of all below it."""
        return self._steps + self._steps_below

    @steps.setter
    def steps(self, own: int) -> None:
        more, self._steps = own - self._steps, own
        for level in self._above():
            level._steps_below += more

    @property
    def tool_calls(self) -> int:
        """The calls of this turn and of all below it."""
        return self._calls + self._calls_below

    @tool_calls.setter
    def tool_calls(self, count: int) -> None:
        more = count - self.tool_calls
        self._calls += more
        for level in self._above():
            level._calls_below += more

    @property
    def before(self) -> ExecutionMetrics:
        """What the session had used when the turn began."""
        return self._ledger.before

    @property
    def set_aside(self) -> tuple[int, float]:
        """The tokens and the money that are about to be used, here and below."""
        return self._ledger.others("")

    @property
    def is_held_by_others(self) -> bool:
        """Is something set aside, here or above, that may be free later?"""
        kin = frozenset(level._who for level in self.levels() if level.shares)
        return any(any(level._ledger.others("", kin)) for level in self.levels())

    def levels(self) -> "Iterator[Budget]":
        """This one, and all above it."""
        yield self
        yield from self._above()

    def _above(self) -> "Iterator[Budget]":
        level = self.above
        while level is not None:
            yield level
            level = level.above

    @property
    def tokens(self) -> int:
        """The tokens of this turn."""
        return self._ledger.tokens

    @property
    def money(self) -> float:
        """The money of this turn, as far as it is known or can be guessed."""
        return self._ledger.money

    @property
    def unknown(self) -> str:
        """Whose reply of this turn nobody knows the cost of; empty where there is none."""
        return self._ledger.unknown

    def beside(self, info: ProviderInfo, purpose: str) -> "Budget":
        """The same budget for another model's call beside the turn: a title, a summary.

        It counts towards everything but the steps.
        """
        other = Budget(replace(self.limits, steps=0), info, day=self.day)
        other._who, other._ledger = f"{self._who}:{purpose}", self._ledger
        other.above, other._is_beside = self.above, True
        return other

    def begin_below(self, above: "Budget", *, shares: bool) -> None:
        """It is a child's. Who spends without being asked has what it may use set aside above."""
        self.above, self.shares = above, shares
        if shares:
            self._hold_share(anew=True)

    def end_below(self, who: str) -> None:
        """That child is over: nothing is set aside for it any more."""
        for level in self.levels():
            level._ledger.held.pop(who, None)
        self._wake()

    def _wake(self) -> None:
        """Something that was set aside is free: whoever waits for it looks again."""
        for news in self._root()._ledger.waiting:
            if not news.done():
                news.set_result(None)

    def _hold_share(self, *, anew: bool) -> None:
        """Set aside above what it may still use; not `anew` once it has ended."""
        tokens, money = self.limits.tokens - self.tokens, self.limits.money - self.money
        for level in self._above():
            if anew or self._who in level._ledger.held:
                level._ledger.held[self._who] = max(0, tokens), max(0.0, money)

    def resume(self, used: ExecutionMetrics, steps: int) -> None:
        """The turn goes on after a rest: what it has used already counts."""
        self.steps, self.tool_calls = steps, used.tool_calls
        self._ledger.tokens, self._ledger.money = used.tokens, used.cost

    def go_on(self) -> None:
        """Another turn on what is left: its first estimate covers the whole conversation."""
        self._context = self._reading = 0

    async def reserve(
        self, config: RequestConfig, news: int, *, again: bool = False
    ) -> RequestConfig:
        """Room for one model call: its settings, cut to what is left. Raise `BudgetReached`.

        What others have set aside and not used yet is waited for. The reply is cut only if what is
        left cannot pay for a whole one, and to no less than 1,024 tokens. `news` is an estimate of
        the tokens that are new since the last call; `again`: the step has been counted, and its
        request is sent once more.
        """
        if not again:
            self._take_step()
        if not self.limits.counts:
            return config
        reading = self._reading = self._context + news
        wanted = reply_limit(config, self._info)
        while (room := self._room(reading, wanted)) is None:
            await self.freed()
        most = self._most(room)
        for level in self.levels():
            level._ledger.held[self._who] = most
        config = config if room == wanted else replace(config, max_tokens=room)
        if self.day is None:
            return config
        try:
            return await self._hold(config)
        except BaseException:
            self.let_go()
            raise

    async def freed(self) -> None:
        """Wait until something that was set aside anywhere in the tree is free again."""
        waiting = self._root()._ledger.waiting
        news = asyncio.get_running_loop().create_future()
        waiting.append(news)
        try:
            await news
        finally:
            if news in waiting:
                waiting.remove(news)

    def _root(self) -> "Budget":
        *_, root = self.levels()
        return root

    def _room(self, reading: int, wanted: int) -> int | None:
        """The tokens that the reply may have; None: others have to let go of theirs first.

        Raise `BudgetReached` if there is too little, also without what others have set aside.
        """
        least = min(_LEAST, wanted)
        kin = frozenset(level._who for level in self._above() if level.shares)
        free = room = _ENDLESS
        for level in self.levels():
            held = level._ledger.others(self._who, kin)
            free = min(free, self._left(level, reading, least, (0, 0.0)))
            room = min(room, self._left(level, reading, -_ENDLESS, held))
        if room >= wanted:
            return wanted
        return room if room >= least and free < wanted else None

    def _left(self, level: "Budget", reading: int, least: int, held: tuple[int, float]) -> int:
        """The tokens of a reply that a level leaves. Raise `BudgetReached` below the `least`."""
        tokens = self._tokens_left(level, reading, least, held[0])
        return min(tokens, self._money_left(level, reading, least, held[1]))

    def _take_step(self) -> None:
        """One more step, here and above. Raise `BudgetReached`."""
        if self._is_beside:
            return
        for level in self.levels():
            if level.limits.steps and level.steps >= level.limits.steps:
                raise BudgetReached(f"the limit of {level.limits.steps} steps is reached")
        if self._refused:
            raise BudgetReached(f"the limit of {self._refused} tool calls is reached")
        self.steps = self._steps + 1

    async def settle(self, settled: Callable[[], Awaitable[None]]) -> None:
        """The call is over: when its use is on disk, the day's account goes by the log again."""
        await to_its_end(self._settle(settled))

    def spend(self, usage: Usage, cost: float | None, model: str = "") -> None:
        """A model call used this. Where there are no figures, what it was to read stands for it."""
        total = usage.total_tokens or self._reading
        self._context = total
        unknown = ""
        if cost is None:
            unknown = model or self._info.model or self._info.name
            guess = usage if usage.total_tokens else Usage(self._reading)
            cost = self._info.price.cost(guess) if self._info.price is not None else 0.0
        for level in self.levels():
            level._ledger.add(total, cost, unknown)
        self.let_go()

    def let_go(self) -> None:
        """The call that room was reserved for is over, whatever came of it."""
        if self.above is None and not self._ledger.held:
            return
        for level in self.levels():
            if not self.shares:
                level._ledger.held.pop(self._who, None)
            if level.shares:
                level._hold_share(anew=False)
        self._wake()

    def take_call(self) -> bool:
        """Room for one more tool call, here and above?"""
        for level in self.levels():
            limit = level.limits.tool_calls
            if limit and level.tool_calls >= limit:
                self._refused = limit
                return False
        self.tool_calls += 1
        return True

    def _most(self, room: int) -> tuple[int, float]:
        """The most that a call can use whose reply is so long."""
        price = self._info.price
        money = (self._reading * _dearest(price) + room * price.output) if price is not None else 0
        return self._reading + room, money / 1_000_000

    async def _hold(self, config: RequestConfig) -> RequestConfig:
        """Room in the day's account as well, cut to what is left. Raise `BudgetReached`."""
        while True:
            work = asyncio.ensure_future(asyncio.to_thread(self._hold_some, config))
            try:
                held = await asyncio.shield(work)
            except asyncio.CancelledError:
                await to_its_end(self._take_back(work))
                raise
            if held is not None:
                return held
            await asyncio.sleep(_LOOK)  # another session, or process, has set it aside

    def _hold_some(self, config: RequestConfig) -> RequestConfig | None:
        """The same in a thread; None: others have to let go of theirs first."""
        assert self.day is not None  # asked only where there is one
        if self.limits.day_money:
            self._check_price(self.limits.day_money, " a day", self._ledger)
        wanted = room = reply_limit(config, self._info)
        least = min(_LEAST, wanted)
        while True:
            tokens, money = self._most(room)
            limits = self.limits
            try:
                self.day.reserve(
                    self._who,
                    tokens,
                    money,
                    limit_tokens=limits.day_tokens,
                    limit_money=limits.day_money,
                )
            except BudgetReached as reached:
                if reached.set_aside:
                    return None
                if room <= least:
                    raise
                room = max(least, room // 2)
            else:
                return config if room == wanted else replace(config, max_tokens=room)

    async def _settle(self, settled: Callable[[], Awaitable[None]]) -> None:
        try:
            await settled()
        finally:  # also where the log fails: nobody else would ever give the room back
            await self._release()

    async def _take_back(self, work: "asyncio.Future[RequestConfig | None]") -> None:
        """A reservation that nobody waits for any more must not stay."""
        await asyncio.wait([work])
        if work.exception() is None:
            await self._release()

    async def _release(self) -> None:
        if self.day is not None:
            await asyncio.to_thread(self.day.release, self._who)

    def _tokens_left(self, level: "Budget", reading: int, least: int, held: int) -> int:
        ledger = level._ledger
        here, before = ledger.tokens, ledger.before.tokens
        room = _ENDLESS
        for limit, used, words, hint in (
            _Scope(level.limits.tokens, here, "", ""),
            _Scope(level.limits.session_tokens, before + here, " a session", _later("tokens")),
        ):
            left = int(limit - used - held - reading) if limit else _ENDLESS
            if left < least:
                raise BudgetReached(
                    f"the limit of {limit} tokens{words} leaves no room for another step: "
                    f"{used} are used, and it would read about {reading}",
                    hint=hint,
                )
            room = min(room, left)
        return room

    def _money_left(self, level: "Budget", reading: int, least: int, held: float) -> int:
        ledger = level._ledger
        here, before = ledger.money, ledger.before.cost
        room = _ENDLESS
        for limit, used, words, hint in (
            _Scope(level.limits.money, here, "", ""),
            _Scope(level.limits.session_money, before + here, " a session", _later("money")),
        ):
            if not limit:
                continue
            price = self._check_price(limit, words, ledger)
            left = limit - used - held - reading * _dearest(price) / 1_000_000
            some = int(left * 1_000_000 / price.output) if price.output else _ENDLESS
            some = some if left >= 0 else -1
            if some < least:
                raise BudgetReached(
                    f"the limit of {format_cost(limit)}{words} leaves no room for another step: "
                    f"{format_cost(used)} are spent",
                    hint=hint,
                )
            room = min(room, some)
        return room

    def _check_price(self, limit: float, words: str, ledger: Ledger) -> Price:
        """The model's price. Raise `BudgetReached` where it, or what was spent, is unknown."""
        price, info = self._info.price, self._info
        if price is None:
            raise BudgetReached(
                f"the price of {info.model or info.name} is unknown, "
                f"so a limit of {format_cost(limit)}{words} cannot be kept",
                hint="Give the model a price in the configuration, or drop the money limit.",
            )
        earlier = words == " a session" and ledger.before.unpriced
        if ledger.unknown or earlier:
            what = ledger.unknown or "an earlier reply of this session"
            raise BudgetReached(
                f"what {what} cost is unknown, "
                f"so a limit of {format_cost(limit)}{words} cannot be kept",
                hint="Use a model with a known price and a server that counts, or drop the limit.",
            )
        return price


def _dearest(price: Price) -> float:
    return max(price.input, price.cache_write or 0.0)


def _later(kind: str) -> str:
    key, flag = f"session_{kind}", f"--max-session-{kind}"
    return f"What was done is kept: raise limits.{key} ({flag}), or start a new session."


def estimate(message: Message) -> int:
    """About how many tokens a message takes; rather more than fewer."""
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
