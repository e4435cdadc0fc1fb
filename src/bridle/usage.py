"""What a reply used, and what it cost. Plain values and their sums.

An unknown price is unknown (`None`), never zero.
"""

from msgspec import Struct


def format_cost(cost: float | None, *, unpriced: int = 0) -> str:
    """Write an amount of dollars for a person, in the same way everywhere.

    Amounts from ten cents have two decimals: `$0.50`, `$12.35`, `$1,234.50`. Smaller ones have two
    significant digits, and never fewer than two decimals: `$0.05`, `$0.012`, `$0.00031`. Less than
    a hundredth of a cent is `under $0.0001`; nothing at all is `$0.00`. Rounded to the nearest.

    `None` is `cost unknown`. `unpriced` counts the replies whose price is unknown: if other
    replies have a price the result is `$0.50 + unknown`, else `cost unknown`.
    """
    if cost is None or (unpriced and not cost):
        return "cost unknown"
    if cost >= 0.1 or not cost:
        text = f"${cost:,.2f}"
    elif cost < 0.0001:
        text = "under $0.0001"
    else:
        text = f"${cost:.2g}"
        text += "0" * (2 - len(text.partition(".")[2]))
    return f"{text} + unknown" if unpriced else text


class Usage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The provider's own figures for one reply.

    Vendors differ in whether `input_tokens` includes the cached tokens: then `input_has_cache` is
    set. `fresh_tokens` and `context_tokens` mean the same everywhere.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    thinking_tokens: int = 0
    input_has_cache: bool = False

    @property
    def fresh_tokens(self) -> int:
        """Input that was neither read from a cache nor written to one."""
        if not self.input_has_cache:
            return self.input_tokens
        return max(0, self.input_tokens - self.cache_read_tokens - self.cache_write_tokens)

    @property
    def context_tokens(self) -> int:
        """Everything that the model read."""
        return self.fresh_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """Everything read and written."""
        return self.context_tokens + self.output_tokens


class Price(Struct, frozen=True, gc=False, omit_defaults=True):
    """Dollars for a million tokens. A cache price that is not given is the input price."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return what this usage cost, in dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.fresh_tokens * self.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / 1_000_000


class ExecutionMetrics(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What a turn, or a session, has used so far.

    `cost` sums what could be priced; `unpriced` counts the invocations that could not.
    `tool_calls` counts the calls that ran; one that was refused is not among them. `tokens` is
    everything read and written, cached or not, whatever the vendor counts as input.
    """

    total_input_tokens: int = 0
    total_output_tokens: int = 0
    invocations: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_tokens: int = 0
    tool_calls: int = 0
    cost: float = 0.0
    unpriced: int = 0
    tokens: int = 0

    def plus(self, usage: Usage, cost: float | None) -> "ExecutionMetrics":
        """Add one invocation. `context_tokens` is that of the newest one."""
        return ExecutionMetrics(
            self.total_input_tokens + usage.input_tokens,
            self.total_output_tokens + usage.output_tokens,
            self.invocations + 1,
            self.cache_read_tokens + usage.cache_read_tokens,
            self.cache_write_tokens + usage.cache_write_tokens,
            usage.context_tokens,
            self.tool_calls,
            self.cost + (cost or 0.0),
            self.unpriced + (cost is None),
            self.tokens + usage.total_tokens,
        )

    def since(self, before: "ExecutionMetrics") -> "ExecutionMetrics":
        """Return what was used since `before`."""
        return ExecutionMetrics(
            self.total_input_tokens - before.total_input_tokens,
            self.total_output_tokens - before.total_output_tokens,
            self.invocations - before.invocations,
            self.cache_read_tokens - before.cache_read_tokens,
            self.cache_write_tokens - before.cache_write_tokens,
            self.context_tokens,
            self.tool_calls - before.tool_calls,
            self.cost - before.cost,
            self.unpriced - before.unpriced,
            self.tokens - before.tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output, as the provider counts them."""
        return self.total_input_tokens + self.total_output_tokens
