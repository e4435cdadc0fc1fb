"""What is measured of sessions that last, how often, and what has to be there before.

A measure makes its logs once, plays its rounds, and removes everything. A round is a process of its
own: a small client (`clients/`), or the real command. Ours alone, so that there is one row.
"""

import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import HERE, OURS
from bench.measures import Samples
from bench.stage import Sample, Stage, outcome, timed

GB = 1 << 30
ROOM = 2 * GB  # free space that the largest measure needs, with something to spare
SESSIONS = 5000
LARGE = "20260101-000000-large"
RARE, RARE_IN = "quokka", 5  # as `logs.py` has it
FEW, MANY = 10, 10_000
WATCHERS = 100
TURNS = 1000


class Yard:
    """Where one measure happens: a folder of its own on the stage."""

    def __init__(self, stage: Stage, name: str, quick: bool) -> None:
        self.folder = stage.folder / name
        self.state = self.folder / "state"
        self.quick = quick
        self.url = stage.url
        (self.folder / "workspace").mkdir(parents=True)

    def make(self, kind: str, amount: int, *more: str) -> None:
        """Have logs written (`logs.py`)."""
        words = ("-m", "bench.sessions.logs", kind, str(self.state), str(amount), *more)
        self.facts = self._outcome([str(OURS.python), *words])
        if "error" in self.facts:
            raise RuntimeError(f"the logs could not be made: {self.facts['error']}")

    def client(self, name: str, *words: object) -> Sample:
        """Run a client; its line of JSON, and when it was started."""
        script = HERE / "clients" / f"{name}.py"
        started = time.monotonic()
        found = self._outcome([str(OURS.python), str(script), *map(str, words)])
        return found | {"started_at": started}

    def own(self, name: str, *words: object) -> Sample:
        """Run a client with the interpreter of the benchmark itself: it needs a browser."""
        script = HERE / "clients" / f"{name}.py"
        return self._outcome([sys.executable, str(script), *map(str, words)])

    def command(self, *words: str) -> Sample:
        """Run `bridle` itself: what it said, its wall ms and its CPU ms."""
        command = [str(OURS.python.parent / "bridle"), *words]
        before = children_cpu()
        done, spent = timed(command, self.environ())
        if done.returncode:
            raise RuntimeError(f"bridle {words[0]} {words[1]}: {done.stderr.strip()[-200:]}")
        cpu = (children_cpu() - before) * 1000
        return {"said": done.stdout, "ms": spent * 1000, "cpu_ms": cpu}

    def remove(self) -> None:
        """Nothing stays."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def environ(self) -> dict[str, str]:
        return os.environ | {
            "BRIDLE_STATE": str(self.state),
            "BENCH_STATE": str(self.state),
            "BENCH_WORKSPACE": str(self.folder / "workspace"),
        }

    def _outcome(self, command: list[str]) -> Sample:
        return outcome(command, self.environ(), 600, HERE.parent)


def children_cpu() -> float:
    """CPU seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resume(yard: Yard) -> Sample:
    """A process that takes the large log up."""
    found = yard.client("resume_session", yard.state, LARGE)
    if "error" in found:
        return found
    return found | {"ms": (found["ready_at"] - found["started_at"]) * 1000} | yard.facts


def lists(yard: Yard) -> Sample:
    """The list as it is, and all of it as JSON."""
    short = yard.command("sessions", "list")
    whole = yard.command("sessions", "list", "--json", "--limit", str(SESSIONS))
    if whole["said"].count('"createdAt"') != SESSIONS:
        return {"error": f"not all of {SESSIONS} sessions were listed"}
    return {
        "ms": short["ms"],
        "cpu_ms": short["cpu_ms"],
        "all_ms": whole["ms"],
        "all_cpu_ms": whole["cpu_ms"],
    }


def search(yard: Yard) -> Sample:
    """A rare word in all sessions."""
    found = yard.command("sessions", "search", RARE)
    if found.pop("said").count(" prompt ") != RARE_IN:
        return {"error": "the word was not found where it stands"}
    return found | yard.facts | {"ripgrep": bool(shutil.which("rg"))}


def append(yard: Yard) -> Sample:
    """Eight sessions that write."""
    found = yard.client("append_records", yard.state, 80 if yard.quick else 400)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found | {"file_system": file_system(yard.folder)}


def long_history(yard: Yard) -> Sample:
    """Turns with few messages and with many."""
    found = yard.client("long_history", yard.url, FEW, MANY, 4 if yard.quick else 10)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found


def watchers(yard: Yard) -> Sample:
    """A streaming turn and who watches it."""
    found = yard.client("many_watchers", yard.url, WATCHERS, 2 if yard.quick else 5)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found


def memory(yard: Yard) -> Sample:
    """A thousand turns."""
    found = yard.client("thousand_turns", yard.url, TURNS)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found


def file_system(path: Path) -> str:
    """The kind of file system that a path lies on."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    real = path.resolve()
    fits = [(len(m[1]), m[2]) for m in mounts if real.is_relative_to(m[1])]
    return max(fits)[1] if fits else "an unknown file system"


@dataclass(frozen=True)
class Lasting:
    """A measure: its logs (what `logs.py` is asked for), one round, and how many."""

    name: str
    play: Callable[[Yard], Sample]
    rounds: int
    quick_rounds: int
    logs: tuple[str | int, ...] = ()
    asks: bool = False  # does it ask the vendor? Then it leaves the vendor's core alone


LASTING = (
    Lasting("resume", resume, 7, 3, ("one", GB)),
    Lasting("resume_bare", resume, 2, 1, ("one", GB, "bare")),
    Lasting("list", lists, 15, 5, ("heads", SESSIONS)),
    Lasting("search", search, 7, 3, ("many", GB)),
    Lasting("append", append, 7, 3),
    Lasting("long", long_history, 5, 2, asks=True),
    Lasting("watchers", watchers, 3, 1, asks=True),
    Lasting("memory", memory, 3, 1, asks=True),
)


def take(
    stage: Stage, measures: Sequence[Lasting], wanted: Sequence[str], quick: bool, taken: Samples
) -> None:
    """All samples of the wanted measures into `taken`, with a line of progress for each."""
    for measure in measures:
        rounds = measure.quick_rounds if quick else measure.rounds
        if measure.name in wanted:
            samples = taken.setdefault(measure.name, {})[OURS.name] = []
            yard = Yard(stage, measure.name, quick)
            try:
                with nullcontext() if measure.asks else stage.all_cores():
                    play(yard, measure, rounds, samples)
            finally:
                yard.remove()


def play(yard: Yard, measure: Lasting, rounds: int, samples: list[Sample]) -> None:
    """The rounds of one measure; an error ends it."""
    free = shutil.disk_usage(yard.folder).free
    if measure.logs and free < ROOM:
        samples.append({"error": f"needs {ROOM / GB:.0f} GB of disk, {free / GB:.1f} GB are free"})
        tell(measure, "", samples[-1])
        return
    try:
        if measure.logs:
            kind, amount, *more = measure.logs
            yard.make(str(kind), int(amount), *map(str, more))
            tell(measure, "made", {"seconds": yard.facts["built_s"]})
        for number in range(1, rounds + 1):
            started = time.monotonic()
            sample = measure.play(yard)
            samples.append(sample | {"seconds": time.monotonic() - started})
            tell(measure, f"{number}/{rounds}", samples[-1])
            if "error" in sample:
                return
    except RuntimeError as error:
        samples.append({"error": str(error)})
        tell(measure, "", samples[-1])


def tell(measure: Lasting, number: str, sample: Sample) -> None:
    """One line for whoever is waiting."""
    end = f"{sample.get('seconds', 0.0):6.1f} s  {sample.get('error', '')}".rstrip()
    print(f"{time.strftime('%H:%M:%S')}  {measure.name:11} {number:>5} {end}", flush=True)
