"""What we have promised of our speed, and whether this run keeps it."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.chat.report import SECTION as CHAT_SECTION
from bench.contenders import CONTENDERS, FLOOR, OURS
from bench.gate.report import SECTION as GATE_SECTION
from bench.measures import BY_NAME, Samples, figure
from bench.screen.report import SECTION as SCREEN_SECTION
from bench.screen.report import of_fastest_peer
from bench.server.report import SECTION as SERVER_SECTION
from bench.sessions.report import SECTION as SESSIONS_SECTION

PEERS = tuple(contender.name for contender in CONTENDERS if contender.kind == "peer")
CLICK = "python -c 'import click'"


@dataclass(frozen=True)
class Verdict:
    """One promise: what was measured, the limit, and whether it holds (None: not measured)."""

    promise: str
    measured: float | None
    limit: float
    at_least: bool = False
    unit: str = "x"

    @property
    def holds(self) -> bool | None:
        """Is it kept?"""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def best_peer(name: str, taken: Samples) -> tuple[str, float] | None:
    """The best of the peers in a figure."""
    values = [(p, v) for p in PEERS if (v := figure(name, taken, p)) is not None]
    if not values:
        return None
    choose = max if BY_NAME[name].more_is_better else min
    return choose(values, key=lambda pair: pair[1])


def judge(taken: Samples, commands: dict[str, float]) -> list[Verdict]:
    """Every promise."""
    of_floor, of_peer = ratios(taken)

    def own(name: str) -> float | None:
        return figure(name, taken, OURS.name)

    return [
        Verdict("cold start, times the floor's", of_floor("cold"), 1.6),
        Verdict("cold start, times the fastest peer's", of_peer("cold"), 0.5),
        Verdict("CPU per 1000 deltas, times the floor's", of_floor("deltas"), 3),
        Verdict("CPU per 1000 deltas, times the best peer's", of_peer("deltas"), 0.125),
        Verdict("CPU per tool turn at 50, times the floor's", of_floor("turn50"), 3),
        Verdict("CPU per tool turn at 50, times the best peer's", of_peer("turn50"), 1 / 3),
        Verdict("last 25 of 400 turns, growth beyond the floor's own", of_floor("growth"), 1.3),
        Verdict("1000 runs, throughput, times the floor's", of_floor("many1000_per_s"), 0.4, True),
        Verdict("1000 runs, throughput, times the best peer's", of_peer("many1000_per_s"), 5, True),
        Verdict("1000 runs, memory of each", own("many1000_kb"), 80, unit="KB"),
        Verdict("1000 runs, failures", own("many1000_failed"), 0, unit=""),
        Verdict("eight 100 ms calls, async", own("async8"), 115, unit="ms"),
        Verdict("eight 100 ms calls, plain functions", own("plain8"), 115, unit="ms"),
        *judge_commands(commands),
        *judge_sessions(taken),
        *judge_gate(taken),
        *judge_server(taken),
        *judge_screen(taken),
        *judge_chat(taken),
    ]


def judge_sessions(taken: Samples) -> list[Verdict]:
    """Sessions that last: however long or many, they are there at once."""

    def limit(promise: str, name: str, most: float, unit: str, at_least: bool = False) -> Verdict:
        return Verdict(promise, SESSIONS_SECTION.found(name, taken), most, at_least, unit)

    return [
        limit("a 1 GB log resumes, process start to ready", "resume_s", 2, "s"),
        limit("a 1 GB log resumes, peak memory", "resume_mb", 200, "MB"),
        limit("5,000 sessions, `bridle sessions list`", "list_s", 0.5, "s"),
        limit("5,000 sessions, `… --json --limit 5000`", "list_all_s", 0.5, "s"),
        limit("1 GB of sessions, `bridle sessions search`", "search_s", 3, "s"),
        limit("records appended at `disk`, 8 sessions", "append", 10_000, "/s", True),
        limit("our own CPU per turn, 10,000 messages to 10", "own_growth", 1.3, "x"),
        limit("100 watchers of a streaming turn, times one", "watch_times", 3, "x"),
        limit("memory grown in the last 500 of 1,000 turns", "grown", 5, "MB"),
    ]


def judge_gate(taken: Samples) -> list[Verdict]:
    """The gate: it costs nothing that anybody would notice, whatever it is given."""

    def limit(promise: str, name: str, most: float, unit: str = "ms") -> Verdict:
        return Verdict(promise, GATE_SECTION.found(name, taken), most, unit=unit)

    return [
        limit("10,000 hostile command lines, 99 of 100 decided within", "hostile_p99", 5),
        limit("10,000 hostile command lines, the worst", "hostile_worst", 250),
        limit("10,000 hostile command lines, errors", "hostile_failed", 0, ""),
        limit("10,000 hostile command lines, run unasked by mistake", "hostile_allowed", 0, ""),
        limit("an everyday command line decided, mean", "explain_us", 300, "µs"),
        limit("`grep` over this repository, times bare ripgrep", "grep_times", 1.5, "x"),
        limit("an undo snapshot of 20,000 unchanged files", "snapshot_ms", 150),
        limit("a run with ten MCP servers, times one with none", "servers_times", 1.1, "x"),
    ]


def judge_server(taken: Samples) -> list[Verdict]:
    """The server: everybody sees everything, soon, and a prompt costs little more than a sync."""

    def limit(promise: str, name: str, most: float, unit: str, at_least: bool = False) -> Verdict:
        return Verdict(promise, SERVER_SECTION.found(name, taken), most, at_least, unit)

    return [
        limit("1,000 streams over 100 sessions, events lost", "stream_lost", 0, ""),
        limit("1,000 streams over 100 sessions, events repeated", "stream_repeated", 0, ""),
        limit("1,000 streams over 100 sessions, that saw no end", "stream_unfinished", 0, ""),
        limit("1,000 streams, 99 of 100 events there within", "stream_p99", 150, "ms"),
        limit("1,000 streams, memory of the server", "stream_mb", 300, "MB"),
        limit("`POST /chat`, times a bare handler with fdatasync", "chat_times", 0.4, "x", True),
        limit("`POST /chat`, prompts that were refused", "chat_refused", 0, ""),
        limit("the page's first load, packed", "page_kb", 120, "KB"),
        limit("the page, until one can type", "page_usable", 1000, "ms"),
        limit("a frame while one types and 200 words/s come, 95 of 100", "page_frame", 16, "ms"),
    ]


def judge_screen(taken: Samples) -> list[Verdict]:
    """The terminal: there at once, and never in the way."""

    def limit(promise: str, name: str, most: float, unit: str = "ms") -> Verdict:
        return Verdict(promise, SCREEN_SECTION.found(name, taken), most, unit=unit)

    return [
        limit("`bridle`, first picture, times `import textual.app`", "open_first_times", 1.3, "x"),
        limit("`bridle`, whole screen, times `import textual.app`", "open_screen_times", 1.3, "x"),
        Verdict("`bridle`, whole screen, times the fastest peer", of_fastest_peer(taken), 1),
        limit("a key until it is drawn, 200 deltas/s coming in, median", "key_p50", 20),
        limit("a key until it is drawn, 200 deltas/s coming in, 95 of 100", "key_p95", 20),
        limit("keys that were never drawn", "key_lost", 0, ""),
        limit("a session of 10,000 records on the screen", "long_ms", 1000),
        limit("memory after 1,000 turns, times that after 100", "turns_times", 1.1, "x"),
    ]


def judge_chat(taken: Samples) -> list[Verdict]:
    """The chat of many users: not far from the bare statements, however long one talks."""

    def limit(promise: str, name: str, most: float, unit: str, at_least: bool = False) -> Verdict:
        return Verdict(promise, CHAT_SECTION.found(name, taken), most, at_least, unit)

    same = "a bare handler with the same statements and MCP call"
    return [
        limit(f"messages of the chat a second, times {same}", "chat_times", 0.4, "x", True),
        limit("messages of the chat that were refused", "chat_refused", 0, ""),
        limit("a turn after 1,000 messages, times one after 10", "chat_long", 1.3, "x"),
    ]


def ratios(
    taken: Samples,
) -> tuple[Callable[[str], float | None], Callable[[str], float | None]]:
    """Ours to the floor's, and ours to the best peer's, for a figure."""

    def divided(name: str, by: float | None) -> float | None:
        ours = figure(name, taken, OURS.name)
        return ours / by if ours is not None and by else None

    def of_peer(name: str) -> float | None:
        best = best_peer(name, taken)
        return divided(name, best[1] if best else None)

    return lambda name: divided(name, figure(name, taken, FLOOR.name)), of_peer


def judge_commands(commands: dict[str, float]) -> list[Verdict]:
    """Commands that run no turn start almost as fast as what parses their flags."""
    click = commands.get(CLICK)
    names = ("bridle --version", "bridle --help", "bridle sessions list")
    return [
        Verdict(f"`{n}`, times `{CLICK}`", commands[n] / click if n in commands else None, 1.5)
        for n in names
        if click
    ]
