"""Send a session's spans to your own tracer provider; here they are printed as a tree."""

import asyncio
import tempfile

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import bridle
from bridle.testing import Scripted


@bridle.tool(read_only=True)
def weather(city: str) -> str:
    """The weather in a city."""
    return f"fine in {city}"


async def main() -> None:
    spans = InMemorySpanExporter()  # use an OTLP exporter to send them to your collector
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    ask = {"calls": [{"name": "weather", "arguments": {"city": "Lyon"}}]}
    model = Scripted([ask, "No umbrella."])
    with tempfile.TemporaryDirectory() as state:
        engine = bridle.build_engine(model, tools=[weather], state=state, telemetry=tracers)
        async with engine:
            await engine.run("Do I need an umbrella in Lyon?")
    show(list(spans.get_finished_spans()), None, "")


def show(spans: list[ReadableSpan], parent: int | None, before: str) -> None:
    """Print each span, and its children indented below it."""
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        if (span.parent.span_id if span.parent else None) == parent:
            print(f"{before}{span.name}: {(span.attributes or {})['bridle.status']!s}")
            show(spans, span.context.span_id, before + "  ")


asyncio.run(main())
