"""What the tests of spans need: sessions of every kind, trees to check, spans to compare."""

import random

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bridle.engine.trace import trace
from bridle.events import CallIntended, ResponseCompleted, ToolResultEvent
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.runtime.telemetry_spans import TracedStore
from bridle.stores.memory_store import MemoryStore
from bridle.usage import Price
from rig import Thing, make_engine


class Collected:
    """A real tracer provider that keeps what has ended."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self):
        return self.exporter.get_finished_spans()

    def named(self, name):
        return [span for span in self.spans() if span.name == name]


INFO = ProviderInfo("scripted", "tiny", price=Price(3.0, 15.0))


def traced_engine(replies, *tools, collected, store=None, content=False, **rest):
    """An engine of real parts whose store tells spans."""
    store = TracedStore(store or MemoryStore(), collected.provider, content=content)
    model = replies if hasattr(replies, "stream") else Scripted(replies, info=INFO)
    return make_engine(model, *tools, store=store, **rest)


def shape(node, level=0):
    """A tree in a few words a line: kind, name, how it ended."""
    span = node.span
    name = span.name if span.kind not in ("session", "task") else ""
    lines = ["  " * level + " ".join(filter(None, (span.kind, name, span.status)))]
    for below in node.below:
        lines += shape(below, level + 1)
    return lines


async def _works(arguments, context):
    return ToolResult.success("fine")


async def _fails(arguments, context):
    return ToolResult.failure("it broke")


LOOKS = Thing(_works, "look")
WRITES = Thing(_works, "write_it", read_only=False)
BREAKS = Thing(_fails, "break_it")
TOOLS = (LOOKS, WRITES, BREAKS)


def random_replies(seed):
    """A scripted conversation: some steps with some calls, some words, an end."""
    luck = random.Random(seed)
    for _ in range(luck.randrange(4)):
        names = luck.choices(
            ["look", "write_it", "break_it", "nobody_has_it"], k=luck.randrange(1, 4)
        )
        said = [{"name": name, "arguments": {}} for name in names]
        yield {"text": "on it " * luck.randrange(3), "calls": said, "usage": _usage(luck)}
    yield {"text": "done", "usage": _usage(luck)}


def _usage(luck):
    found = {"inputTokens": luck.randrange(9_000), "outputTokens": luck.randrange(500)}
    return found | {"cacheReadTokens": luck.randrange(100)}


def check_tree(root, records):
    """A proper tree: children lie within their parents, each call has its span once."""
    if not records:
        assert root is None
        return
    nodes = list(root.walk())
    assert root.span.kind == "session"
    assert len({node.span.id for node in nodes}) == len(nodes)
    for node in nodes:
        assert node.span.over
        assert node.span.start <= node.span.end
        for below in node.below:
            assert below.span.parent is node.span
            assert node.span.start <= below.span.start
            assert below.span.end <= node.span.end
    begun = [one.event.call_id for one in records if isinstance(one.event, CallIntended)]
    tools = [node.span for node in nodes if node.span.kind == "tool"]
    assert sorted(one.call_id for one in tools if one.seq in intents(records)) == sorted(begun)


def intents(records):
    return {one.seq for one in records if isinstance(one.event, CallIntended)}


def asked_for(records):
    """The ids of all calls that replies asked for."""
    replies = [one.event for one in records if isinstance(one.event, ResponseCompleted)]
    return [call.id for one in replies if one.message for call in one.message.tool_calls]


def answered(records):
    return [one.event.output.call_id for one in records if isinstance(one.event, ToolResultEvent)]


def tools_of(root):
    return [node.span for node in root.walk() if node.span.kind == "tool"]


def folded(records):
    """The spans of a log, as the live ones are compared with them."""
    root = trace(records)
    nodes = [node.span for node in root.walk() if node.span.kind != "mark"]
    return sorted((*_of_fold(one), _of_fold(one.parent)) for one in nodes)


def _of_fold(span):
    if span is None:
        return ()
    used = span.used
    reads = used.tokens - used.total_output_tokens
    figures = (reads, used.total_output_tokens, round(used.cost, 9))
    return (span.kind, span.start, span.end, span.status, span.call_id, *figures)


def sent(spans):
    """The spans that were exported, in the same shape."""
    known = {span.context.span_id: span for span in spans}
    above = {span: known.get(span.parent.span_id) if span.parent else None for span in spans}
    return sorted((*_of_sent(span), _of_sent(above[span])) for span in spans)


def _of_sent(span):
    if span is None:
        return ()
    said = span.attributes
    figures = (
        said.get("gen_ai.usage.input_tokens", 0),
        said.get("gen_ai.usage.output_tokens", 0),
        round(said.get("bridle.cost.usd", 0.0), 9),
    )
    times = (span.start_time // 1_000_000, span.end_time // 1_000_000)
    call = said.get("gen_ai.tool.call.id", "")
    return (said["bridle.kind"], *times, said["bridle.status"], call, *figures)
