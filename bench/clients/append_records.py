"""Records per second that eight sessions of one process get onto the disk.

    append_records.py STATE GROUPS

Each session appends what one step of a turn appends, up to the intent of its call, waits until that
is on disk (`settled`, durability `disk`), and goes on with the result: the way a tool with effects
runs. The eight share one writer, which groups their syncs. Beside it: what the disk can do when
nothing else is done, so that a slow disk is told from a slow log.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from bridle.events import (
    CallIntended,
    Event,
    ResponseCompleted,
    TextDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolResultEvent,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.store import Log
from bridle.stores.jsonl import JsonlStore
from bridle.usage import Usage

SESSIONS = 8
SENTENCE = "The function returns the value when the index is out of range. "
CALL = ToolCall("toolu_0001", "write", {"path": "src/module.py", "content": SENTENCE * 4})
USAGE = Usage(input_tokens=200, output_tokens=90, cache_read_tokens=40_000)
STEP: tuple[Event, ...] = (
    ToolResultEvent(ToolOutput(CALL.id, SENTENCE * 32, name="write")),  # of the call before: 2 KB
    *(TextDelta(SENTENCE) for _ in range(6)),  # 0.2 s of a stream
    ToolCallStarted(CALL.id, CALL.name),
    ToolCallArgsDelta(CALL.id, '{"path":"src/module.py","content":"' + SENTENCE * 4),
    ToolCallReady(CALL),
    UsageReported(USAGE, "bench-model", 0.01),
    ResponseCompleted("tool_use", Message("assistant", (Text(SENTENCE * 6), CALL)), USAGE),
    CallIntended(CALL.id, CALL.name, arguments_hash="0" * 32),
)


async def work(log: Log, groups: int) -> None:
    """So many steps of one session."""
    for _ in range(groups):
        for event in STEP:
            log.append(event)
        await log.settled()


def bare(folder: Path, size: int, groups: int) -> float:
    """What the disk itself can do: as many bytes into eight files, and a sync of each; seconds."""
    folder.mkdir()
    files = [os.open(folder / str(number), os.O_CREAT | os.O_WRONLY) for number in range(SESSIONS)]
    data, started = b"x" * size, time.perf_counter()
    for _ in range(groups):
        for file in files:
            os.write(file, data)
        for file in files:
            os.fdatasync(file)
    spent = time.perf_counter() - started
    for file in files:
        os.close(file)
    return spent


async def main() -> None:
    """Eight sessions at once; the first step makes the files and does not count."""
    state, groups = sys.argv[1], int(sys.argv[2])
    store = JsonlStore(state, "disk")
    logs = [store.create(f"append-{number}") for number in range(SESSIONS)]
    await asyncio.gather(*(work(log, 1) for log in logs))
    size = logs[0].size
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(log, groups) for log in logs))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    records = SESSIONS * groups * len(STEP)
    durable = sum(log.durable for log in logs)
    for log in logs:
        await log.close()
    store.close()
    if durable != records + SESSIONS * len(STEP):
        raise RuntimeError(f"{durable} records are durable, and {records} were appended")
    disk = bare(Path(state) / "bare", size, groups)
    found = {"per_s": records / wall, "settles_per_s": SESSIONS * groups / wall}
    print(json.dumps(found | {"cpu_us": cpu * 1e6 / records, "disk_per_s": records / disk}))


if __name__ == "__main__":
    asyncio.run(main())
