"""The picture: six small charts as one SVG, written by hand so that nothing has to be installed."""

from collections.abc import Callable
from html import escape
from math import log10
from statistics import median

from bench.contenders import CONTENDERS, FLOOR, Contender
from bench.measures import BY_NAME, TURNS, Samples, figure, reason
from bench.report import short
from bench.stage import Sample

WIDTH, PANEL_W, PANEL_H, GAP, TOP = 1260, 390, 330, 30, 92
INK, FAINT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
FONT = "Helvetica, Arial, sans-serif"
COLOURS = {"ours": "#e8590c", "floor": "#52606d", "peer": "#9fb3c8"}
ROWS = tuple(c for c in CONTENDERS if not c.variant)
Point = tuple[float, float]
Place = Callable[[float, float], Point]
Curve = tuple[Contender, list[Point]]
WINDOW = 20  # turns that one point of a line stands for
PANELS = (
    ("cold", "Cold start", "ms from process start to the first request"),
    ("deltas", "Streaming", "CPU ms per 1000 deltas"),
    (
        "turns",
        "A long tool loop",
        "CPU ms per turn of one run (log scale); ✕ did not get to the end",
    ),
    (
        "many1000_per_s",
        "1000 runs at once",
        "runs per second, five tool turns each: more is better",
    ),
    ("many1000_kb", "Memory of a run", "KB above idle at the peak, 1000 runs at once"),
    ("plain8", "Eight calls of one step", "wall ms, eight plain functions of 100 ms each"),
)


def draw(taken: Samples) -> str:
    """The whole picture."""
    height = TOP + 2 * (PANEL_H + GAP)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        text((GAP, 42), "bridle and its peers, the same work", 23, bold=True),
        text(
            (GAP, 66),
            "One fake vendor, one core for each contender, medians. bridle writes its log to disk "
            "and keeps its gate on; the floor (1×) is a bare aiohttp + msgspec loop with neither.",
            13,
            FAINT,
        ),
    ]
    for number, (name, title, subtitle) in enumerate(PANELS):
        x = GAP + (number % 3) * (PANEL_W + GAP / 2)
        y = TOP + (number // 3) * (PANEL_H + GAP)
        parts.append(f'<g transform="translate({x:.0f},{y})">')
        parts += [text((0, 14), title, 16, bold=True), text((0, 33), subtitle, 12, FAINT)]
        parts += lines(taken) if name == "turns" else bars(name, taken)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>\n"])


def text(
    at: Point, words: str, size: int = 12, fill: str = INK, *, bold: bool = False, end: str = ""
) -> str:
    """One line of words."""
    anchor = f' text-anchor="{end}"' if end else ""
    style = f'font-size="{size}" font-weight="{700 if bold else 400}" fill="{fill}"{anchor}'
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" {style}>{escape(words)}</text>'


def bars(name: str, taken: Samples) -> list[str]:
    """A bar for each contender, the best on top; what is missing stands at the end with a word."""
    found = [(c, figure(name, taken, c.name)) for c in ROWS]
    known = [(c, value) for c, value in found if value is not None]
    known.sort(key=lambda pair: pair[1], reverse=BY_NAME[name].more_is_better)
    most = max((value for _, value in known), default=1.0)
    left, room, parts = 106, PANEL_W - 106 - 96, []
    for row, (contender, value) in enumerate(known):
        y = 50 + row * 30
        width = max(1.5, room * value / most)
        parts.append(named(contender, left, y))
        parts.append(
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="20" rx="2" '
            f'fill="{COLOURS[contender.kind]}"/>'
        )
        parts.append(text((left + width + 6, y + 14.5), short(value)))
        parts.append(
            text((PANEL_W - 12, y + 14.5), ratio(name, taken, contender), 12, FAINT, end="end")
        )
    missing = [c for c, value in found if value is None]
    for row, contender in enumerate(missing, len(known)):
        y = 50 + row * 30
        why = reason(name, taken, contender.name) or "not measured"
        parts += [named(contender, left, y), text((left, y + 14.5), f"– {why[:44]}", 12, FAINT)]
    return parts


def named(contender: Contender, left: float, y: float) -> str:
    """A bar's name; ours is bold."""
    label = "floor" if contender is FLOOR else contender.label
    return text((left - 8, y + 14.5), label, 13, bold=contender.kind == "ours", end="end")


def ratio(name: str, taken: Samples, contender: Contender) -> str:
    """A bar's figure, times the floor's. Plain functions block the floor: nothing to compare."""
    floor, value = figure(name, taken, FLOOR.name), figure(name, taken, contender.name)
    if not floor or value is None or contender is FLOOR or name == "plain8":
        return ""
    times = value / floor
    return f"{times:.0f}×" if times >= 10 else f"{times:.1f}×" if times >= 1 else f"{times:.2f}×"


def lines(taken: Samples) -> list[str]:
    """CPU per turn as the history grows; a logarithmic scale, since they differ a thousandfold."""
    curves = [(c, curve(taken.get("turns", {}).get(c.name, []))) for c in ROWS]
    curves = [(c, points) for c, points in curves if points]
    if not curves:
        return [text((0, 70), "not measured", 12, FAINT)]
    values = [value for _, points in curves for _, value in points]
    low, high = log10(min(values) / 1.3), log10(max(values) * 1.3)
    left, right, top, bottom = 34, PANEL_W - 104, 50, PANEL_H - 22

    def at(turn: float, value: float) -> Point:
        up = (log10(value) - low) / (high - low)
        return left + (right - left) * turn / TURNS, bottom - (bottom - top) * up

    parts = axes(at, low, high, (left, right, bottom))
    for contender, points in curves:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in points))
        width = 3.5 if contender.kind == "ours" else 2
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{COLOURS[contender.kind]}" '
            f'stroke-width="{width}" stroke-linejoin="round"/>'
        )
    return parts + line_names(curves, at, right)


def curve(samples: list[Sample]) -> list[Point]:
    """Turn → CPU ms, the median over the runs of the mean over a window of turns."""
    runs = [s["cpu"] for s in samples if "error" not in s and len(s["cpu"]) > WINDOW + 1]
    points: list[Point] = []
    for start in range(0, TURNS, WINDOW):
        end = start + WINDOW
        means = [(cpu[end] - cpu[start]) * 1000 / WINDOW for cpu in runs if len(cpu) > end]
        if means:
            points.append((start + WINDOW / 2, max(median(means), 1e-3)))
    return points


def axes(at: Place, low: float, high: float, box: tuple[float, float, float]) -> list[str]:
    """Faint lines at 1, 10, 100 …, and the turns below."""
    left, right, bottom = box
    parts = []
    for power in range(-2, 4):
        if low <= power <= high:
            _, y = at(0, 10.0**power)
            parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{GRID}"/>')
            parts.append(text((left - 6, y + 4), f"{10.0**power:g}", 11, FAINT, end="end"))
    for turn in range(0, TURNS + 1, 100):
        x, _ = at(turn, 1)
        parts.append(text((x, bottom + 16), str(turn), 11, FAINT, end="middle"))
    return parts


def line_names(curves: list[Curve], at: Place, right: float) -> list[str]:
    """Each line's name at its end, pushed apart where they would touch."""
    ends = sorted(((at(*points[-1])[1], c, points) for c, points in curves), key=lambda e: e[0])
    parts, last = [], -100.0
    for y, contender, points in ends:
        last = max(y + 4, last + 14)
        x, _ = at(*points[-1])
        label = "floor" if contender is FLOOR else contender.label
        stopped = " ✕" if points[-1][0] < TURNS - WINDOW else ""
        if stopped:
            parts.append(text((x - 4, y + 4), "✕", 11, COLOURS[contender.kind]))
        bold = contender.kind == "ours"
        parts.append(text((right + 6, last), label + stopped, 12, bold=bold))
    return parts
