"""The figures of the gate, and the table that shows them."""

from statistics import median

from bench.contenders import OURS
from bench.gate.measures import FILES, GATE, STRINGS
from bench.measures import Figure, Samples, key, readings
from bench.sessions.report import amount

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
)
BY_NAME = {figure.name: figure for figure in FIGURES}


def found(name: str, taken: Samples) -> float | None:
    """The median of a figure; None where it was not measured."""
    values = readings(BY_NAME[name], taken, OURS.name)
    return median(values) if values else None


def medians(taken: Samples) -> dict[str, float]:
    """Every figure that was measured."""
    known = {figure.name: found(figure.name, taken) for figure in FIGURES}
    return {name: round(value, 4) for name, value in known.items() if value is not None}


def table(taken: Samples) -> str:
    """Each figure, how far its rounds lie apart, and why one is missing."""
    lines = ["## The gate", "", "| | median | lowest – highest |", "|---|---:|---:|"]
    for figure in FIGURES:
        if values := readings(figure, taken, OURS.name):
            spread = f"{amount(min(values))} – {amount(max(values))}" if len(values) > 1 else ""
            middle = f"{amount(median(values))} {figure.unit}".rstrip()
            lines.append(f"| {figure.title} | {middle} | {spread} |")
    for measure in GATE:
        for sample in taken.get(measure.name, {}).get(OURS.name, [])[-1:]:
            if "error" in sample:
                lines.append(f"\n– {measure.name}: {sample['error']}")
    return "\n".join(lines)
