"""The figures of the chat, and what has to be known to read them."""

from bench.chat.measures import CHAT, FEW, MANY, USERS, WORKERS
from bench.measures import Figure, key
from bench.section import Section
from bench.stage import Sample

RATE, LENGTH = (one.name for one in CHAT)
FIGURES = (
    Figure("chat_times", "messages / a bare handler's", RATE, key("times"), "x"),
    Figure(
        "chat_rate", f"messages, {USERS} users, {WORKERS} workers", RATE, key("per_s"), "/s", True
    ),
    Figure("chat_bare", "the bare handler", RATE, key("bare_per_s"), "/s", True),
    Figure("chat_cpu", "CPU of a message, without PostgreSQL's", RATE, key("cpu_ms")),
    Figure("chat_bare_cpu", "... of the bare handler", RATE, key("bare_cpu_ms")),
    Figure("chat_load_cpu", "CPU of the load, a second", RATE, key("load_cpu"), "s"),
    Figure("chat_refused", "messages that were refused", RATE, key("refused"), ""),
    Figure("chat_long", f"a turn after {MANY:,} messages / after {FEW}", LENGTH, key("times"), "x"),
    Figure("chat_few_ms", f"a turn after {FEW}", LENGTH, key("few_ms")),
    Figure("chat_many_ms", f"... after {MANY:,}", LENGTH, key("many_ms")),
    Figure("chat_long_cpu", "... its CPU, times", LENGTH, key("cpu_times"), "x"),
)


def note(name: str, sample: Sample) -> str:
    """What has to be known to read the figures of a measure."""
    if name != RATE:
        return ""
    calls = "call" if sample["calls"] == 1 else "calls"
    return f"a turn has {sample['statements']} statements and {sample['calls']} MCP {calls}"


SECTION = Section("The chat of many users, on PostgreSQL", FIGURES, note)
