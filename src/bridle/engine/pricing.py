"""What a reply used and cost, as it is recorded: one way for turns, titles and summaries.

The figures are the vendor's, the price is the model's. Where a reply was cut off before its figures
came, or a server keeps no count, our estimate stands for them and is marked as one: rather more
than less, as far as it can be seen. Unknown is only what a model without a price costs.
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
from bridle.promises.provider import ProviderInfo
from bridle.usage import Usage

_NOTHING = Usage()
_BYTES = 3  # of a token; rather too few


class Heard:
    """What has come of a reply so far, as far as its cost goes."""

    __slots__ = ("_began", "_fell", "_size", "usage")

    def __init__(self) -> None:
        self.usage: UsageReported | None = None  # nothing came of the request: nothing was used
        self._began = False
        self._fell = False  # another model answers, whose price is not ours to know
        self._size = 0

    def note(self, event: Event) -> None:
        """One more event of the stream."""
        kind = type(event)
        if kind is ToolCallStarted or kind is ToolCallReady:  # what it says came before, in pieces
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
        """The model has written some more."""
        self._size += len(text.encode("utf-8", "replace"))
        self._began = True

    def so_far(self) -> UsageReported | None:
        """What the reply has used: without figures, once the model had begun to speak."""
        if self.usage is None and self._began:
            return UsageReported(_NOTHING, priced=self._fell)
        return self.usage

    @property
    def began(self) -> bool:
        """Has the model begun to speak?"""
        return self._began

    @property
    def written(self) -> int:
        """About how many tokens have come."""
        return self._size // _BYTES


async def overheard(
    events: AsyncGenerator[ModelEvent, None], heard: Heard
) -> AsyncGenerator[ModelEvent, None]:
    """The stream as it is; what it used is noted on the way."""
    async with aclosing(events):
        async for event in events:
            heard.note(event)
            yield event


def priced(report: UsageReported, info: ProviderInfo, guess: Usage = _NOTHING) -> UsageReported:
    """The report with model and cost; `guess` is our estimate, for where it has no figures."""
    usage, cost, price = report.usage, report.cost, info.price
    if estimated := usage.total_tokens == 0 and guess.total_tokens > 0:
        usage = guess
    if cost is None and not report.priced and price is not None:
        free = not (price.input or price.output)
        cost = price.cost(usage) if usage.total_tokens or free else None
    model = report.model or info.model
    return replace(report, usage=usage, model=model, cost=cost, estimated=estimated)
