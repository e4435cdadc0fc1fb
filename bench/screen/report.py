"""The figures of the screen, and what has to be known to read them."""

from collections.abc import Callable

from bench.measures import Figure, Samples, key
from bench.screen.measures import RECORDS, TURNS
from bench.screen.peers import PEERS
from bench.section import Section
from bench.stage import Sample


def peer(name: str) -> Callable[[Sample], float | None]:
    """A peer's time to its first prompt."""
    return lambda sample: sample["peers"].get(name)


def times(name: str) -> Callable[[Sample], float | None]:
    """One of our moments, times the bare import, in the same round."""
    return lambda sample: sample[name] / sample["import_ms"]


TYPED = "a key until it is drawn, 200 deltas/s coming in"
FIGURES = (
    Figure("open_import", "`import textual.app`", "opening", key("import_ms")),
    Figure("open_first", "`bridle`, its first picture", "opening", key("first_ms")),
    Figure("open_first_times", "... times the import", "opening", times("first_ms"), "x"),
    Figure("open_screen", "`bridle`, the whole screen", "opening", key("screen_ms")),
    Figure("open_screen_times", "... times the import", "opening", times("screen_ms"), "x"),
    Figure("open_session", "`bridle`, the session behind it", "opening", key("session_ms")),
    *(
        Figure(f"open_{one.name}", f"{one.label}, its first prompt", "opening", peer(one.name))
        for one in PEERS
    ),
    Figure("key_p50", f"{TYPED}: half of them within", "typing", key("p50_ms")),
    Figure("key_p95", "95 of 100", "typing", key("p95_ms")),
    Figure("key_p99", "99 of 100", "typing", key("p99_ms")),
    Figure("key_worst", "the last one", "typing", key("worst_ms")),
    Figure("key_lost", "never", "typing", key("lost"), ""),
    Figure(
        "long_ms", f"`/resume` of {RECORDS:,} records, until its end is drawn", "records", key("ms")
    ),
    Figure("long_page", "... and a page up there", "records", key("page_ms")),
    Figure("long_mb", "... memory for it", "records", key("more_mb"), "MB"),
    Figure(
        "turns_first",
        f"memory, turns 1 to {TURNS // 10}",
        "screen_memory",
        lambda s: s["rss_mb"][0],
        "MB",
    ),
    Figure(
        "turns_last",
        f"... the last {TURNS // 10} of {TURNS:,}",
        "screen_memory",
        lambda s: s["rss_mb"][-1],
        "MB",
    ),
    Figure("turns_times", "... last / first", "screen_memory", key("times"), "x"),
)


def note(name: str, sample: Sample) -> str:
    """What has to be known to read the figures of a measure."""
    if name == "opening":
        return str(sample.get("missing", ""))
    if name == "typing":
        return f"{sample['keys']} keys in the last round"
    if name == "records":
        return f"{sample['records']:,} records, {sample['bytes'] / 1e6:.0f} MB"
    return f"{sample['turns_s'] * 1000 / TURNS:.0f} ms a turn, typed and drawn"


SECTION = Section("The terminal", FIGURES, note)


def of_fastest_peer(taken: Samples) -> float | None:
    """The whole screen, times the first prompt of the fastest peer."""
    ours = SECTION.found("open_screen", taken)
    theirs = [SECTION.found(f"open_{one.name}", taken) for one in PEERS]
    known = [one for one in theirs if one]
    return ours / min(known) if ours and known else None
