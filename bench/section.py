"""A part of the report that is ours alone: figures with their medians, and the table of them."""

from collections.abc import Callable, Sequence
from statistics import median

from bench.contenders import OURS
from bench.measures import Figure, Samples, readings
from bench.stage import Sample

Note = Callable[[str, Sample], str]  # what has to be known of a measure; empty: nothing


class Section:
    """Figures under one title. `note` says what has to be known to read them."""

    def __init__(
        self, title: str, figures: Sequence[Figure], note: Note = lambda name, one: ""
    ) -> None:
        self._title = title
        self._figures = {figure.name: figure for figure in figures}
        self._note = note

    def found(self, name: str, taken: Samples) -> float | None:
        """The median of a figure; None where it was not measured."""
        values = readings(self._figures[name], taken, OURS.name)
        return median(values) if values else None

    def medians(self, taken: Samples) -> dict[str, float]:
        """Every figure that was measured."""
        known = {name: self.found(name, taken) for name in self._figures}
        return {name: round(value, 4) for name, value in known.items() if value is not None}

    def table(self, taken: Samples) -> str:
        """Each figure, how far its rounds lie apart, and why one is missing."""
        lines = [f"## {self._title}", "", "| | median | lowest – highest |", "|---|---:|---:|"]
        for figure in self._figures.values():
            if values := readings(figure, taken, OURS.name):
                spread = f"{amount(min(values))} – {amount(max(values))}" if len(values) > 1 else ""
                middle = f"{amount(median(values))} {figure.unit}".rstrip()
                lines.append(f"| {figure.title} | {middle} | {spread} |")
        return "\n".join([*lines, *(f"\n– {note}" for note in self._notes(taken))])

    def _notes(self, taken: Samples) -> list[str]:
        said = []
        for name in dict.fromkeys(figure.measure for figure in self._figures.values()):
            for sample in taken.get(name, {}).get(OURS.name, [])[-1:]:
                if note := sample.get("error") or self._note(name, sample):
                    said.append(f"{name}: {note}")
        return said


def amount(value: float) -> str:
    """Three digits that matter."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
