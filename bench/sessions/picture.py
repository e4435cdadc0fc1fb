"""A small picture of the promises of sessions that last: how much of each limit was used."""

from bench.measures import Samples
from bench.plot import COLOURS, FAINT, FONT, GRID, INK, text
from bench.section import amount
from bench.targets import Verdict, judge_sessions

WIDTH, LEFT, ROW, TOP = 900, 350, 32, 84
SCALE = 330  # the width of a whole limit
MOST = 1.3  # limits; a longer bar is cut there
MISSED = "#c92a2a"


def draw(taken: Samples) -> str:
    """The whole picture."""
    known = [verdict for verdict in judge_sessions(taken) if verdict.measured is not None]
    height = TOP + ROW * max(1, len(known)) + 24
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    bottom = TOP + ROW * len(known)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        text((24, 38), "Sessions that last", 21, bold=True),
        text((24, 60), "How much of each limit is used: less is better. Medians.", 13, FAINT),
        f'<path d="M{LEFT + SCALE} {TOP - 10}V{bottom}" stroke="{GRID}" stroke-width="2"/>',
        text((LEFT + SCALE, TOP - 14), "the limit", 12, FAINT, end="middle"),
    ]
    for row, verdict in enumerate(known):
        parts += bar(verdict, TOP + row * ROW)
    if not known:
        parts.append(text((24, TOP + 14), "not measured", 13, FAINT))
    return "\n".join([*parts, "</svg>\n"])


def bar(verdict: Verdict, y: float) -> list[str]:
    """One promise."""
    width = max(2.0, SCALE * min(MOST, used(verdict)))
    colour = COLOURS["ours"] if verdict.holds else MISSED
    sign, unit = ("≥", "≤")[not verdict.at_least], verdict.unit
    said = f"{amount(verdict.measured or 0.0)} of {sign} {verdict.limit:,g} {unit}"
    return [
        text((LEFT - 10, y + 14.5), verdict.promise.replace("`", ""), 13, INK, end="end"),
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="20" rx="2" fill="{colour}"/>',
        text((LEFT + max(width, SCALE) + 10, y + 14.5), said, 12, FAINT),
    ]


def used(verdict: Verdict) -> float:
    """The share of the limit; for a promise of at least so much, how near it is from above."""
    measured = verdict.measured or 0.0
    if verdict.at_least:
        return verdict.limit / measured if measured else MOST
    return max(0.0, measured / verdict.limit)
