"""What a turn may use: steps, tool calls, seconds, tokens, money. Reserved before it is spent.

Pure arithmetic; the clock and the figures are handed in.
"""

from msgspec import Struct
from msgspec.structs import replace

from bridle.errors import BudgetReached
from bridle.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput
from bridle.promises.provider import ProviderInfo, RequestConfig
from bridle.usage import Usage

MAX_TOKENS = 8192


class Limits(Struct, frozen=True, omit_defaults=True):
    """How far a turn may go. Zero is no limit.

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


class Budget:
    """What is left of the limits in one turn."""

    def __init__(self, limits: Limits, info: ProviderInfo) -> None:
        self.limits = limits
        self.steps = 0
        self.tool_calls = 0
        self.tokens = 0
        self.money = 0.0
        self._info = info
        self._context = 0  # what the model read last time
        self._reading = 0  # what it is about to read, by our own estimate
        self._refused = False  # a call was asked for beyond the limit
        self._unknown = ""  # the model of a reply whose cost nobody knows

    def go_on(self) -> None:
        """Another turn on what is left: its first estimate covers the whole conversation."""
        self._context = self._reading = 0

    def reserve(self, config: RequestConfig, news: int) -> RequestConfig:
        """Room for one model call: its settings, cut to what is left. Raise `BudgetReached`.

        `news` is an estimate of the tokens that are new since the last call.
        """
        limits = self.limits
        if limits.steps and self.steps >= limits.steps:
            raise BudgetReached(f"the limit of {limits.steps} steps is reached")
        if self._refused:
            raise BudgetReached(f"the limit of {limits.tool_calls} tool calls is reached")
        self.steps += 1
        if not limits.tokens and not limits.money:
            return config
        reading = self._reading = self._context + news
        wanted = config.max_tokens or self._info.max_output or MAX_TOKENS
        room = min(self._tokens_left(reading), self._money_left(reading), wanted)
        return config if room >= wanted else replace(config, max_tokens=room)

    def spend(self, usage: Usage, cost: float | None, model: str = "", written: int = 0) -> None:
        """A model call used this. Where a server keeps no count, our estimate stands for it.

        `written` estimates what the model wrote of a reply that was cut off.
        """
        total = usage.total_tokens or self._reading + written
        self._context = total
        self.tokens += total
        if cost is None:
            self._unknown = model or self._info.model or self._info.name
            guess = usage if usage.total_tokens else Usage(self._reading, written)
            cost = self._info.price.cost(guess) if self._info.price is not None else 0.0
        self.money += cost

    def take_call(self) -> bool:
        """Room for one more tool call?"""
        if self.limits.tool_calls and self.tool_calls >= self.limits.tool_calls:
            self._refused = True
            return False
        self.tool_calls += 1
        return True

    def _tokens_left(self, reading: int) -> int:
        limit = self.limits.tokens
        if not limit:
            return 1 << 62
        left = limit - self.tokens - reading
        if left < 1:
            raise BudgetReached(f"the limit of {limit} tokens leaves no room for another step")
        return left

    def _money_left(self, reading: int) -> int:
        limit, price = self.limits.money, self._info.price
        if not limit:
            return 1 << 62
        if self._unknown and price is not None:
            raise BudgetReached(
                f"what {self._unknown} cost is unknown, so a limit of ${limit:g} cannot be kept",
                hint="Use a model with a known price and a server that counts, or drop the limit.",
            )
        if price is None:
            raise BudgetReached(
                f"the price of {self._info.model or self._info.name} is unknown, "
                f"so a limit of ${limit:g} cannot be kept",
                hint="Give the model a price in the configuration, or drop the money limit.",
            )
        dearest = max(price.input, price.cache_write or 0.0)
        left = limit - self.money - reading * dearest / 1_000_000
        room = int(left * 1_000_000 / price.output) if price.output else 1 << 62
        if left < 0 or room < 1:
            raise BudgetReached(f"the limit of ${limit:g} leaves no room for another step")
        return room


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
