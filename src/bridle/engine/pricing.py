"""What a reply used and cost: measured on its stream, the same way for turns, titles and summaries.

The figures are the vendor's, the price is the model's. If a reply was cut off before its figures
came, or if a server does not count, our estimate stands for them and is marked as one. The cost is
unknown only for a model without a price.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from bridle.events import (
    Event,
    ModelEvent,
    ResponseCompleted,
    ToolCallReady,
    ToolCallStarted,
    TraceEvent,
    UsageReported,
)
from bridle.protocols.provider import ProviderInfo
from bridle.usage import Usage

_NOTHING = Usage()
_BYTES = 3  # of a token; rather too few


class UsageMeter:
    """Measures what a reply has used so far."""

    __slots__ = ("_began", "_fell", "_size", "usage")

    def __init__(self) -> None:
        self.usage: UsageReported | None = None  # None: nothing came of the request
        self._began = False
        self._fell = False  # another model answered, whose price we do not know
        self._size = 0

    def note(self, event: Event) -> None:
        """Take one more event of the stream."""
        kind = type(event)
        if kind is ToolCallStarted or kind is ToolCallReady:  # its text came before, in deltas
            self._began = True
        elif isinstance(event, UsageReported):
            self.usage = event
        elif isinstance(event, ResponseCompleted):
            if self.usage is None or event.usage not in (_NOTHING, self.usage.usage):
                self.usage = UsageReported(event.usage, event.model, priced=self._fell)
        elif isinstance(event, TraceEvent):
            self._fell |= event.kind == "fallback"
        else:
            self.note_text(getattr(event, "text", ""))

    def note_text(self, text: str) -> None:
        """Count text that the model wrote."""
        self._size += len(text.encode("utf-8", "replace"))
        self._began = True

    def so_far(self) -> UsageReported | None:
        """Return what the reply has used; without figures if the vendor sent none yet."""
        if self.usage is None and self._began:
            return UsageReported(_NOTHING, priced=self._fell)
        return self.usage

    @property
    def began(self) -> bool:
        """Has the model begun its reply?"""
        return self._began

    @property
    def written(self) -> int:
        """An estimate of the tokens that arrived."""
        return self._size // _BYTES


async def metered(
    events: AsyncGenerator[ModelEvent, None], heard: UsageMeter
) -> AsyncGenerator[ModelEvent, None]:
    """Yield the stream unchanged, and measure it."""
    async with aclosing(events):
        async for event in events:
            heard.note(event)
            yield event


def with_cost(report: UsageReported, info: ProviderInfo, guess: Usage = _NOTHING) -> UsageReported:
    """Return the report with model and cost; `guess` is our estimate if it has no figures."""
    usage, cost, price = report.usage, report.cost, info.price
    if estimated := usage.total_tokens == 0 and guess.total_tokens > 0:
        usage = guess
    if cost is None and not report.priced and price is not None:
        free = not (price.input or price.output)
        cost = price.cost(usage) if usage.total_tokens or free else None
    model = report.model or info.model
    return replace(report, usage=usage, model=model, cost=cost, estimated=estimated)
