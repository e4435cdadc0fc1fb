"""What is measured, how often, and the figures that come of it.

A measure is a client's command and a number of rounds; contenders take turns inside a round, so
that a noisy minute hits all of them. A figure is a number read off a sample. Slow peers drop out of
later rounds once they have used up a measure's seconds; each gets at least one round.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.contenders import OURS, Contender
from bench.stage import Sample, Stage, timed

Samples = dict[str, dict[str, list[Sample]]]
TURNS = 400
EDGE = 25
TOO_SLOW = 8.3  # runs/s at 200 below which 1000 runs would take more than two minutes


@dataclass(frozen=True)
class Measure:
    """A client's command, the rounds of a full run, and the seconds a peer may use."""

    name: str
    words: tuple[str, ...]
    rounds: int
    quick_rounds: int
    seconds: float


MEASURES = (
    Measure("cold", ("cold",), 11, 5, 9),
    Measure("deltas", ("deltas",), 5, 3, 15),
    Measure("turns", ("turns", str(TURNS)), 5, 3, 15),
    Measure("async8", ("parallel", "async"), 3, 1, 6),
    Measure("plain8", ("parallel", "plain"), 3, 1, 6),
    Measure("many200", ("many", "200"), 5, 3, 12),
    Measure("many1000", ("many", "1000"), 11, 5, 25),
)


def take(
    stage: Stage, contenders: Sequence[Contender], wanted: list[str], quick: bool, taken: Samples
) -> None:
    """All samples of the wanted measures into `taken`, with a line of progress for each."""
    for measure in MEASURES:
        if measure.name in wanted:
            names = [c.name for c in contenders if c.takes(measure.name)]
            taken[measure.name] = {name: [] for name in names}
            count = measure.quick_rounds if quick else measure.rounds
            for number in range(1, count + 1):
                for contender in contenders:
                    if contender.name in names and unfinished(measure, contender, taken):
                        sample = play(stage, measure, contender, taken)
                        taken[measure.name][contender.name].append(sample)
                        progress(measure, contender, f"{number}/{count}", sample)


def unfinished(measure: Measure, contender: Contender, taken: Samples) -> bool:
    """Does this contender take part in one more round?"""
    so_far = taken[measure.name][contender.name]
    spent = sum(sample["seconds"] for sample in so_far)
    patient = contender.kind != "peer" or spent <= measure.seconds
    return patient and not any("error" in sample for sample in so_far)


def play(stage: Stage, measure: Measure, contender: Contender, taken: Samples) -> Sample:
    """One sample, or the reason why there is none."""
    if reason := hopeless(measure, contender, taken):
        return {"error": reason, "seconds": 0.0}
    sample = stage.play(contender, *measure.words)
    stage.renew()
    return sample


def hopeless(measure: Measure, contender: Contender, taken: Samples) -> str:
    """Why this is not worth the wait, or nothing."""
    if measure.name != "many1000":
        return ""
    speed = figure("many200_per_s", taken, contender.name)
    if speed is not None and speed < TOO_SLOW:
        return f"left out: {speed:.1f} runs/s at 200"
    return ""


def progress(measure: Measure, contender: Contender, number: str, s: Sample) -> None:
    """One line for whoever is waiting."""
    end = f"{s['seconds']:6.1f} s" + (f"  {s['error']}" if "error" in s else "")
    clock = time.strftime("%H:%M:%S")
    print(f"{clock}  {measure.name:9} {contender.name:17} {number} {end}", flush=True)


@dataclass(frozen=True)
class Figure:
    """A number of a sample: where it comes from and how it is read."""

    name: str
    title: str
    measure: str
    read: Callable[[Sample], float | None]
    unit: str = "ms"
    more_is_better: bool = False


def per_turn(start: int, end: int) -> Callable[[Sample], float | None]:
    """CPU ms of each turn between two turns of the long run; None when it did not get there."""

    def read(sample: Sample) -> float | None:
        cpu = sample["cpu"]
        return (cpu[end] - cpu[start]) * 1000 / (end - start) if len(cpu) > end else None

    return read


def growth(sample: Sample) -> float | None:
    """How many times dearer the last turns are than the first."""
    first, final = per_turn(0, EDGE)(sample), per_turn(TURNS - EDGE, TURNS)(sample)
    return final / first if first and final else None


def key(name: str) -> Callable[[Sample], float | None]:
    """A number that the client printed."""
    return lambda sample: sample.get(name)


def step(sample: Sample) -> float | None:
    """The median step that the vendor saw."""
    return median(sample["steps_ms"]) if sample["steps_ms"] else None


def concurrent(measure: str, runs: int) -> tuple[Figure, ...]:
    """The figures of runs at the same time."""
    return (
        Figure(f"{measure}_per_s", f"runs/s, {runs} at once", measure, key("per_s"), "/s", True),
        Figure(f"{measure}_cpu", f"CPU per run, {runs}", measure, key("cpu_ms")),
        Figure(f"{measure}_kb", f"memory per run, {runs}", measure, key("kb"), "KB"),
        Figure(f"{measure}_failed", f"failed of {runs}", measure, key("failed"), ""),
    )


FIGURES = (
    Figure("import", "import", "cold", key("import_ms")),
    Figure("cold", "start to first request", "cold", key("first_ms")),
    Figure("rss", "memory then", "cold", lambda s: s["rss_kb"] / 1024, "MB"),
    Figure("deltas", "CPU per 1000 deltas", "deltas", key("ms")),
    Figure("turn50", "CPU per turn, 50 turns", "turns", per_turn(0, 50)),
    Figure("turn200", "200 turns", "turns", per_turn(0, 200)),
    Figure("turn400", "400 turns", "turns", per_turn(0, TURNS)),
    Figure("first25", "first 25 of 400", "turns", per_turn(0, EDGE)),
    Figure("last25", "last 25 of 400", "turns", per_turn(TURNS - EDGE, TURNS)),
    Figure("growth", "last / first", "turns", growth, "x"),
    Figure("async8", "8 async calls of 100 ms", "async8", step),
    Figure("plain8", "8 plain calls of 100 ms", "plain8", step),
    *concurrent("many200", 200),
    *concurrent("many1000", 1000),
)
BY_NAME = {figure.name: figure for figure in FIGURES}


def figure(name: str, taken: Samples, contender: str) -> float | None:
    """The median of a figure over a contender's samples; None when there is none."""
    values = readings(BY_NAME[name], taken, contender)
    return median(values) if values else None


def readings(wanted: Figure, taken: Samples, contender: str) -> list[float]:
    """A figure of each of a contender's samples."""
    good = [s for s in taken.get(wanted.measure, {}).get(contender, []) if "error" not in s]
    return [value for s in good if (value := wanted.read(s)) is not None]


def reason(name: str, taken: Samples, contender: str) -> str:
    """Why a figure is missing."""
    samples = taken.get(BY_NAME[name].measure, {}).get(contender, [])
    return next((s.get("error") or s.get("failure") or "" for s in reversed(samples)), "")


TAB = ("_BRIDLE_COMPLETE=bash_complete", "COMP_WORDS=bridle sess", "COMP_CWORD=1")


def commands(stage: Stage, rounds: int) -> dict[str, float]:
    """Wall ms of the commands that run no turn, beside bare Python and `import click`."""
    stage.play(OURS, "many", "20")  # so that there are sessions to list
    environ = os.environ | {"BRIDLE_STATE": str(stage.state)}
    python = str(OURS.python)
    ours = str(OURS.python.parent / "bridle")
    asked = {
        "python -c pass": [python, "-c", "pass"],
        "python -c 'import click'": [python, "-c", "import click"],
        "import bridle": [python, "-c", "import bridle"],
        "bridle --version": [ours, "--version"],
        "bridle --help": [ours, "--help"],
        "bridle sessions list": [ours, "sessions", "list"],
        "bridle completion, a Tab": ["env", *TAB, ours],
    }
    times: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(rounds + 1):
        for name, command in asked.items():
            done, spent = timed(command, environ)
            if number and not done.returncode:
                times[name].append(spent * 1000)
    return {name: median(values) for name, values in times.items() if values}


def pulled_in() -> list[str]:
    """What `import bridle` must not import, but does."""
    heavy = ("aiohttp", "anthropic", "asyncio", "httpx", "openai", "pydantic", "rich", "yaml")
    code = f"import bridle, sys; print(*(m for m in {heavy!r} if m in sys.modules))"
    done: Any = subprocess.run([str(OURS.python), "-c", code], capture_output=True, text=True)
    return list(done.stdout.split())
