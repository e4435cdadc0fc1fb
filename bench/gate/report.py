"""The figures of the gate."""

from bench.gate.measures import FILES, STRINGS
from bench.measures import Figure, key
from bench.section import Section

FIGURES = (
    Figure("hostile_p99", f"{STRINGS:,} hostile lines, 99 of 100 within", "hostile", key("p99_ms")),
    Figure("hostile_worst", "the worst of them", "hostile", key("worst_ms")),
    Figure("hostile_p99_cpu", "99 of 100, CPU alone", "hostile", key("p99_cpu_ms")),
    Figure("hostile_worst_cpu", "the worst, CPU alone", "hostile", key("worst_cpu_ms")),
    Figure("hostile_mean", "their mean", "hostile", key("mean_ms")),
    Figure("hostile_failed", "of them raised an error", "hostile", key("failed"), ""),
    Figure("hostile_allowed", "of them ran unasked that must not", "hostile", key("allowed"), ""),
    Figure("explain_us", "an everyday line decided", "explain", key("us"), "µs"),
    Figure("explain_cpu", "its CPU", "explain", key("cpu_us"), "µs"),
    Figure("explain_first", "the first one, with all that is loaded", "explain", key("first_ms")),
    Figure("grep_times", "`grep` over this repository / ripgrep", "grep", key("times"), "x"),
    Figure("grep_ms", "`grep`", "grep", key("ms")),
    Figure("bare_ms", "bare ripgrep, the same lines", "grep", key("bare_ms")),
    Figure("snapshot_ms", f"undo snapshot, {FILES:,} unchanged files", "snapshot", key("ms")),
    Figure("snapshot_first", "the first snapshot of that tree", "snapshot", key("first_ms")),
    Figure("servers_times", "a run with ten MCP servers / with none", "servers", key("times"), "x"),
    Figure("servers_ms", "a run with ten MCP servers, none needed", "servers", key("ms")),
    Figure("servers_bare", "a run with none", "servers", key("bare_ms")),
)
SECTION = Section("The gate", FIGURES)
