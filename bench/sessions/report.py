"""The figures of sessions that last, and what has to be known to read them."""

from collections.abc import Callable

from bench.measures import Figure, key
from bench.section import Section
from bench.sessions.measures import FEW, MANY, SESSIONS, TURNS, WATCHERS
from bench.stage import Sample

Read = Callable[[Sample], float | None]


def of(part: str, name: str) -> Read:
    """A number in one part of what a client printed."""
    return lambda sample: sample[part][name]


def times(whole: Read, unit: Read) -> Read:
    """How many times the one is the other; None where there is nothing to divide by."""

    def read(sample: Sample) -> float | None:
        one, other = whole(sample), unit(sample)
        return one / other if one is not None and other else None

    return read


def seconds(name: str) -> Read:
    """Milliseconds that were printed, in seconds."""
    return lambda sample: sample[name] / 1000


FIGURES = (
    Figure("resume_s", "a 1 GB log, process start to ready", "resume", seconds("ms"), "s"),
    Figure("resume_own", "of that, taking the session up", "resume", key("resume_ms")),
    Figure("resume_mb", "peak memory of that process", "resume", key("peak_mb"), "MB"),
    Figure("bare_s", "the same log without checkpoints", "resume_bare", seconds("ms"), "s"),
    Figure("bare_mb", "peak memory of that process", "resume_bare", key("peak_mb"), "MB"),
    Figure("list_s", f"`sessions list`, {SESSIONS:,} sessions", "list", seconds("ms"), "s"),
    Figure("list_cpu", "its CPU", "list", seconds("cpu_ms"), "s"),
    Figure("list_all_s", f"`… --json --limit {SESSIONS}`", "list", seconds("all_ms"), "s"),
    Figure("list_all_cpu", "its CPU", "list", seconds("all_cpu_ms"), "s"),
    Figure("search_s", "`sessions search`, 1 GB, a rare word", "search", seconds("ms"), "s"),
    Figure("search_cpu", "its CPU", "search", seconds("cpu_ms"), "s"),
    Figure("append", "records appended, 8 sessions, `disk`", "append", key("per_s"), "/s", True),
    Figure(
        "append_disk",
        "the same bytes, bare writes and syncs",
        "append",
        key("disk_per_s"),
        "/s",
        True,
    ),
    Figure("settles", "groups settled", "append", key("settles_per_s"), "/s", True),
    Figure("append_cpu", "CPU per record", "append", key("cpu_us"), "µs"),
    Figure("own_few", f"our own CPU per turn, {FEW} messages", "long", of("few", "own")),
    Figure("own_many", f"our own CPU per turn, {MANY:,}", "long", of("many", "own")),
    Figure(
        "own_growth",
        f"our own CPU, {MANY:,} / {FEW}",
        "long",
        times(of("many", "own"), of("few", "own")),
        "x",
    ),
    Figure(
        "own_ready",
        "the same, beyond sending a ready body",
        "long",
        times(of("many", "own_ready"), of("few", "own_ready")),
        "x",
    ),
    Figure("turn_many", f"all CPU per turn, {MANY:,}", "long", of("many", "turn")),
    Figure("floor_many", "the floor's for the same bytes", "long", of("many", "floor")),
    Figure("watch_one", "CPU of a streaming turn, one watcher", "watchers", key("one_ms")),
    Figure("watch_many", f"with {WATCHERS} watchers", "watchers", key("many_ms")),
    Figure(
        "watch_times",
        f"{WATCHERS} watchers / one",
        "watchers",
        times(key("many_ms"), key("one_ms")),
        "x",
    ),
    Figure(
        "grown", f"memory, last {TURNS // 2} of {TURNS:,} turns", "memory", key("grown_mb"), "MB"
    ),
    Figure("rss_end", "memory at the end", "memory", lambda s: s["rss_mb"][-1], "MB"),
)


def note(name: str, sample: Sample) -> str:
    """What has to be known to read the figures of a measure."""
    if name == "resume":
        return f"a log of {sample['records']:,} records"
    if name == "search":
        with_what = "with ripgrep" if sample["ripgrep"] else "without ripgrep"
        return f"{sample['sessions']:,} sessions, {with_what}"
    if name == "append":
        return f"on {sample['file_system']}"
    return f"a request of {sample['many']['body_kb']:,.0f} KB" if name == "long" else ""


SECTION = Section("Sessions that last", FIGURES, note)
