"""What every client shares: the command line, the measures, the tool, and the one line of JSON.

A client hands in its library's own way to do a run. This file imports nothing heavy, since its
imports are part of every contender's start. Knows no library.

    client.py cold URL          one short reply; the server notes when the request came
    client.py deltas URL        CPU per 1000 deltas of a burst
    client.py turns URL SIZE    CPU at each tool turn of one run
    client.py parallel URL KIND eight calls of one step; the server notes how long the step took
    client.py many URL SIZE     runs at the same time, each with five tool turns
"""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

Run = Callable[[str], Awaitable[str]]
Tool = Callable[..., Any]
Opened = tuple[Run, Callable[[], Awaitable[None]]]
Open = Callable[[str, Tool], Awaitable[Opened]]

PROMPT = "Look up every item, one after the other, and say when all is done."
SMALL, LARGE = 1000, 5000
PATIENCE = 100.0


class Desk:
    """The tool that every contender is given, in its async and its plain form, and its notes."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause
        self.cpu: list[float] = []
        self.active = 0
        self.most = 0

    def tool(self) -> Tool:
        """An async function."""

        async def lookup(key: str) -> str:
            """Look up an item by its key."""
            self.begin()
            if self.pause:
                await asyncio.sleep(self.pause)
            return self.end(key)

        return lookup

    def plain_tool(self) -> Tool:
        """A plain function that blocks."""

        def lookup(key: str) -> str:
            """Look up an item by its key."""
            self.begin()
            time.sleep(self.pause)
            return self.end(key)

        return lookup

    def begin(self) -> None:
        """Note that a call began, and how much CPU the process had used."""
        self.cpu.append(time.process_time())
        self.active += 1
        self.most = max(self.most, self.active)

    def end(self, key: str) -> str:
        """Note that it ended; the result."""
        self.active -= 1
        return f"{key}: in stock, 12 pieces, shelf B-7, checked today"


def finished(text: str) -> None:
    """A run that did not come to its end is a failure."""
    if "done" not in text:
        raise RuntimeError(f"the run ended with {text[:80]!r}")


async def cold(open_client: Open, url: str) -> dict[str, Any]:
    """One short reply and out."""
    run, close = await open_client(f"{url}/hello", Desk().tool())
    finished(await run(PROMPT))
    await close()
    return {"rss_kb": peak_kb()}


async def deltas(open_client: Open, url: str) -> dict[str, Any]:
    """CPU ms per 1000 deltas, from the difference of two sizes, so that the rest cancels."""
    small, close_small = await open_client(f"{url}/deltas-{SMALL}", Desk().tool())
    large, close_large = await open_client(f"{url}/deltas-{LARGE}", Desk().tool())
    samples = []
    for _ in range(6):
        cost = await cpu_of(large, LARGE) - await cpu_of(small, SMALL)
        samples.append(cost * 1e6 / (LARGE - SMALL))
    await close_small()
    await close_large()
    return {"ms": sorted(samples[1:])[2]}


async def cpu_of(run: Run, size: int) -> float:
    """CPU seconds of one run, whose text has to be whole."""
    gc.collect()
    before = time.process_time()
    text = await run(PROMPT)
    spent = time.process_time() - before
    if text.strip() != ("The quick brown fox jumps over the lazy dog.\n" * (size // 10)).strip():
        raise RuntimeError(f"a text of {len(text)} characters is not the one that was sent")
    return spent


async def turns(open_client: Open, url: str, size: int) -> dict[str, Any]:
    """CPU seconds used by the process when each tool turn began, and at the end."""
    warm, close_warm = await open_client(f"{url}/tools-4", Desk().tool())
    finished(await warm(PROMPT))
    await close_warm()
    desk = Desk()
    run, close = await open_client(f"{url}/tools-{size}", desk.tool())
    failure = ""
    try:
        finished(await asyncio.wait_for(run(PROMPT), PATIENCE))
    except (Exception, RecursionError) as error:
        failure = f"{type(error).__name__}: {error}"[:200]
        if isinstance(error, TimeoutError):
            failure = f"stopped after {PATIENCE:.0f} s, at turn {len(desk.cpu)}"
    desk.cpu.append(time.process_time())
    await close()
    return {"cpu": [round(stamp - desk.cpu[0], 6) for stamp in desk.cpu], "failure": failure}


async def parallel(open_client: Open, url: str, kind: str) -> dict[str, Any]:
    """Eight calls of 100 ms in one step; the wall time is the server's to say."""
    desk = Desk(0.1)
    tool = desk.tool() if kind == "async" else desk.plain_tool()
    run, close = await open_client(f"{url}/parallel-8", tool)
    for _ in range(4):
        finished(await run(PROMPT))
    await close()
    return {"most": desk.most}


async def many(open_client: Open, url: str, size: int) -> dict[str, Any]:
    """Runs at the same time on one client, each with five calls of 50 ms."""
    desk = Desk(0.05)
    run, close = await open_client(f"{url}/tools-5", desk.tool())
    finished(await run(PROMPT))
    gc.collect()
    idle = reset_peak_kb()
    cpu, wall = time.process_time(), time.perf_counter()
    ends = await asyncio.gather(*(run(PROMPT) for _ in range(size)), return_exceptions=True)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_kb()
    good = sum(isinstance(end, str) and "done" in end for end in ends)
    await close()
    return {
        "per_s": good / wall,
        "cpu_ms": cpu * 1000 / size,
        "kb": (peak - idle) / size,
        "failed": size - good,
        "why": next((repr(end)[:200] for end in ends if isinstance(end, BaseException)), ""),
        "calls": len(desk.cpu) - 5,
    }


def peak_kb() -> float:
    """The most resident memory so far, since the last reset."""
    return status_kb("VmHWM:")


def reset_peak_kb() -> float:
    """Start a new peak; the resident memory now."""
    proc("clear_refs").write_text("5")
    return status_kb("VmRSS:")


def status_kb(field: str) -> float:
    """A figure of the process's own status."""
    lines = proc("status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field))


def proc(name: str) -> Any:
    """A file about this process. The import is here, after what is timed."""
    from pathlib import Path

    return Path("/proc/self", name)


def main(load: Callable[[], None], open_client: Open) -> None:
    """Run one measure and print it."""
    started = time.perf_counter()
    load()
    import_ms = (time.perf_counter() - started) * 1000
    measure, url, *rest = sys.argv[1:]
    size = int(rest[0]) if rest and rest[0].isdigit() else 0
    jobs: dict[str, Callable[[], Any]] = {
        "cold": lambda: cold(open_client, url),
        "deltas": lambda: deltas(open_client, url),
        "turns": lambda: turns(open_client, url, size),
        "parallel": lambda: parallel(open_client, url, rest[0]),
        "many": lambda: many(open_client, url, size),
    }
    result = asyncio.run(jobs[measure]())
    import json

    print(json.dumps(result | {"import_ms": import_ms}))
