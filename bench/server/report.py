"""The figures of the server."""

from bench.measures import Figure, key
from bench.section import Section
from bench.server.measures import CLIENTS, PER_S, SERVER, SESSIONS, WORKERS

NAME, PAGE = (one.name for one in SERVER)
WATCHED = f"{CLIENTS:,} streams of {SESSIONS} sessions, {PER_S} records/s each"
FIGURES = (
    Figure("stream_p99", f"{WATCHED}: 99 of 100 there within", NAME, key("p99_ms")),
    Figure("stream_p50", "half of them", NAME, key("p50_ms")),
    Figure("stream_worst", "the last one", NAME, key("worst_ms")),
    Figure("stream_lost", "lost", NAME, key("lost"), ""),
    Figure("stream_repeated", "repeated", NAME, key("repeated"), ""),
    Figure("stream_unfinished", "streams that did not see the end", NAME, key("unfinished"), ""),
    Figure("stream_mb", "memory of the server", NAME, key("rss_mb"), "MB"),
    Figure("stream_cpu", "CPU of the server, a second", NAME, key("server_cpu"), "s"),
    Figure("stream_load", "CPU of the load, a second", NAME, key("load_cpu"), "s"),
    Figure(
        "chat_times", "`POST /chat` / a bare handler with fdatasync", NAME, key("chat_times"), "x"
    ),
    Figure("chat_per_s", f"`POST /chat`, {WORKERS} at once", NAME, key("chat_per_s"), "/s"),
    Figure("bare_per_s", "the bare handler", NAME, key("bare_per_s"), "/s"),
    Figure("chat_cpu", "CPU of a prompt and its whole turn", NAME, key("chat_cpu_ms")),
    Figure("bare_cpu", "CPU of a bare request", NAME, key("bare_cpu_ms")),
    Figure("chat_load", "CPU of the load, a second", NAME, key("chat_load_cpu"), "s"),
    Figure("chat_refused", "prompts that were refused", NAME, key("chat_refused"), ""),
    Figure("page_kb", "the page's first load, packed", PAGE, key("load_kb"), "KB"),
    Figure("page_usable", "... until one can type", PAGE, key("usable_ms")),
    Figure("page_frame", "typing while 200 words/s come: 95 of 100 frames", PAGE, key("work_p95")),
    Figure("page_frame_99", "99 of 100 frames", PAGE, key("work_p99")),
    Figure("page_frame_worst", "the worst frame", PAGE, key("work_worst")),
    Figure("page_gap", "from frame to frame, 95 of 100", PAGE, key("gap_p95")),
)
SECTION = Section("The server", FIGURES)
