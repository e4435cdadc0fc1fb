"""The tables: every figure with its ratio to the floor, and the promises with their verdicts."""

import os
import platform
from dataclasses import dataclass, field
from typing import Any

from bench.chat.measures import CHAT
from bench.chat.report import SECTION as CHAT_SECTION
from bench.contenders import BY_NAME as BY_CONTENDER
from bench.contenders import CONTENDERS, FLOOR, OURS, Contender
from bench.gate.measures import GATE
from bench.gate.report import SECTION as GATE_SECTION
from bench.measures import BY_NAME, FIGURES, MEASURES, Samples, figure, reason
from bench.screen.measures import SCREEN
from bench.screen.report import SECTION as SCREEN_SECTION
from bench.server.measures import SERVER
from bench.server.report import SECTION as SERVER_SECTION
from bench.sessions.measures import LASTING
from bench.sessions.report import SECTION as SESSIONS_SECTION
from bench.targets import Verdict, best_peer, judge

BUSY = 0.5
PARTS = {  # the parts that are ours alone: their measures and their figures
    "sessions": (LASTING, SESSIONS_SECTION),
    "gate": (GATE, GATE_SECTION),
    "server": (SERVER, SERVER_SECTION),
    "screen": (SCREEN, SCREEN_SECTION),
    "chat": (CHAT, CHAT_SECTION),
}
TABLES = {
    "Cold start": ("import", "cold", "rss"),
    "Streaming and the tool loop": ("deltas", "turn50", "turn200", "turn400"),
    "One long run": ("first25", "last25", "growth"),
    "Calls of one step, wall": ("async8", "plain8"),
    "200 runs at once": ("many200_per_s", "many200_cpu", "many200_kb", "many200_failed"),
    "1000 runs at once": ("many1000_per_s", "many1000_cpu", "many1000_kb", "many1000_failed"),
}


@dataclass
class Results:
    """All that one run of the benchmark found."""

    taken: Samples
    commands: dict[str, float]
    pulled_in: list[str] = field(default_factory=list)
    seconds: float = 0.0
    load: float = 0.0  # what the machine was busy with before we began
    when: str = ""

    def verdicts(self) -> list[Verdict]:
        """Every promise and whether it is kept."""
        return judge(self.taken, self.commands)

    def figures(self) -> dict[str, dict[str, float]]:
        """Contender → figure → median."""
        table: dict[str, dict[str, float]] = {}
        for contender in CONTENDERS:
            row = {f.name: figure(f.name, self.taken, contender.name) for f in FIGURES}
            known = {name: round(value, 4) for name, value in row.items() if value is not None}
            if known:
                table[contender.name] = known
        return table

    def to_json(self) -> dict[str, Any]:
        """Medians and verdicts."""
        verdicts = [
            {"promise": v.promise, "measured": v.measured, "limit": v.limit, "holds": v.holds}
            for v in self.verdicts()
        ]
        return {
            "when": self.when,
            "python": platform.python_version(),
            "seconds": round(self.seconds),
            "load_before": round(self.load, 2),
            "figures": self.figures(),
            **{name: section.medians(self.taken) for name, (_, section) in PARTS.items()},
            "commands_ms": {name: round(ms, 1) for name, ms in self.commands.items()},
            "import_bridle_pulls_in": self.pulled_in,
            "verdicts": verdicts,
        }


def to_markdown(results: Results) -> str:
    """The whole report."""
    parts = ["# bridle and its peers, the same work", INTRODUCTION, promises(results)]
    if any(measure.name in results.taken for measure in MEASURES):
        parts.append(ratios(results.taken))
    rows = [c for c in CONTENDERS if any(c.name in by for by in results.taken.values())]
    for title, names in TABLES.items():
        if any(BY_NAME[name].measure in results.taken for name in names):
            parts.append(table(title, names, rows, results.taken))
    if results.commands:
        parts.append(command_table(results))
    for measures, section in PARTS.values():
        if any(measure.name in results.taken for measure in measures):
            parts.append(section.table(results.taken))
    parts.append(ending(results))
    return "\n\n".join(parts) + "\n"


def ending(results: Results) -> str:
    """When and where, and whether the machine had something else to do."""
    where = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    said = f"One run of {results.seconds / 60:.1f} minutes, {results.when}, {where}."
    if results.load > BUSY:
        said += f" **The machine was busy (load {results.load:.1f}): these numbers are rough.**"
    return said


INTRODUCTION = (
    "One fake vendor on loopback with ready-made bytes, on a core of its own; each contender in "
    "its own environment and process, on the other core; medians, rounds interleaved. In brackets: "
    "times the floor, a bare aiohttp + msgspec loop with no log and no gate. bridle runs with its "
    "log on disk and its gate on. CPU is the contender's own process, user and system. Trust "
    "ratios, not milliseconds."
)


def promises(results: Results) -> str:
    """The verdicts as a table."""
    lines = ["## Promises", "| promise | limit | measured | holds |", "|---|---:|---:|---|"]
    for verdict in results.verdicts():
        sign = "≥" if verdict.at_least else "≤"
        number = f"{verdict.limit:,.0f}" if verdict.limit >= 1000 else f"{verdict.limit:.3g}"
        limit = f"{sign} {number} {verdict.unit}".rstrip()
        measured = "–" if verdict.measured is None else f"{short(verdict.measured)} {verdict.unit}"
        word = {True: "yes", False: "**no**", None: "not measured"}[verdict.holds]
        lines.append(f"| {verdict.promise} | {limit} | {measured} | {word} |")
    pulled = ", ".join(results.pulled_in)
    word = f"**no**: {pulled}" if pulled else "yes"
    if results.commands:
        lines.append(f"| `import bridle` pulls in no SDK, aiohttp, pydantic | | | {word} |")
    return "\n".join([lines[0], "", *lines[1:]])


def ratios(taken: Samples) -> str:
    """Ours beside the floor and beside the best peer, figure by figure."""
    lines = ["## bridle, the floor, the best peer", ""]
    lines += ["| | bridle | floor | times | best peer | times |", "|---|---:|---:|---:|---:|---:|"]
    for each in FIGURES:
        ours, floor = (figure(each.name, taken, who.name) for who in (OURS, FLOOR))
        if ours is None or each.unit == "":
            continue
        best = best_peer(each.name, taken)
        peer = f"{short(best[1])} ({BY_CONTENDER[best[0]].label})" if best else "–"
        cells = [short(ours), short(floor) if floor else "–", times(ours, floor), peer]
        cells.append(times(ours, best[1] if best else None))
        lines.append(f"| {each.title}, {each.unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def times(ours: float, other: float | None) -> str:
    """A ratio, if there is something to divide by."""
    return f"{short(ours / other)}x" if other else "–"


def table(title: str, names: tuple[str, ...], rows: list[Contender], taken: Samples) -> str:
    """One table of figures, and below it the reasons for what is missing."""
    heads = [f"{BY_NAME[n].title}{', ' * bool(unit(n))}{unit(n)}" for n in names]
    lines = [f"## {title}", "", f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(names)}"]
    notes: dict[str, None] = {}
    for contender in rows:
        if not any(contender.name in taken.get(BY_NAME[n].measure, {}) for n in names):
            continue
        cells = [cell(name, contender, taken, notes) for name in names]
        bold = "**" * (contender.kind == "ours")
        lines.append(f"| {bold}{contender.label}{bold} | {' | '.join(cells)} |")
    bests = [best_peer(name, taken) if BY_NAME[name].unit else None for name in names]
    if any(bests):
        cells = [
            f"{BY_CONTENDER[best[0]].label}, {short(best[1])}" if best else "–" for best in bests
        ]
        lines.append(f"| *best peer* | {' | '.join(cells)} |")
    return "\n".join([*lines, *(f"\n– {note}" for note in notes)])


def unit(name: str) -> str:
    """The unit for a column's head."""
    return {"x": "", "/s": ""}.get(BY_NAME[name].unit, BY_NAME[name].unit)


def cell(name: str, contender: Contender, taken: Samples, notes: dict[str, None]) -> str:
    """A figure with its ratio to the floor, or a dash and a note."""
    value = figure(name, taken, contender.name)
    if value is None:
        if why := reason(name, taken, contender.name):
            notes[f"{contender.label}: {why}"] = None
        return "–"
    floor = figure(name, taken, FLOOR.name)
    if not floor or contender is FLOOR or name == "growth":
        return short(value)
    return f"{short(value)} ({short(value / floor)}x)"


def command_table(results: Results) -> str:
    """The commands that run no turn."""
    lines = ["## Commands that run no turn", "", "| command | wall ms |", "|---|---:|"]
    lines += [f"| `{name}` | {ms:.0f} |" for name, ms in results.commands.items()]
    return "\n".join(lines)


def short(value: float) -> str:
    """Three digits that matter."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"
