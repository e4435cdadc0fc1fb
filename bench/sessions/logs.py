"""Large logs and many of them, as real use would leave them, within seconds.

The real engine tells a story of some MB (`story.py`). Its records are then said again and again:
numbered, chained and folded anew by the code that writes every log, with a checkpoint where the
engine would write one. Every log that comes out passes `bridle sessions verify`.

    python -m bench.sessions.logs one STATE SIZE [bare]   one log; bare: without checkpoints
    python -m bench.sessions.logs many STATE SIZE         sessions of all sizes, so many bytes
    python -m bench.sessions.logs heads STATE COUNT       so many small sessions
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from msgspec.structs import replace

from bench.sessions.story import prose, tell
from bridle.engine.history import History
from bridle.engine.turn_runner import _CHECKPOINT_BYTES
from bridle.events import (
    Checkpoint,
    Event,
    MessageAdded,
    PromptReceived,
    SessionStarted,
    ToolResultEvent,
    TurnEnded,
)
from bridle.messages import user
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.store import Record
from bridle.stores.log_format import utc_timestamp
from bridle.stores.session_index import write_label

RARE = "quokka"  # a word that the story does not have
RARE_IN = 5  # sessions that have it
STORY = 24_000_000
BEGAN = 1_750_000_000.0
BLOCK = 8 << 20
Said = tuple[Event, bytes, int]  # an event, its data, and the number that it had in the story


class Scribe:
    """Writes one log: numbers, chains and, where checkpoints are wanted, folds."""

    def __init__(self, folder: Path, *, folds: bool) -> None:
        folder.mkdir(mode=0o700, parents=True)
        self._file = (folder / "log.jsonl").open("wb", buffering=BLOCK)
        os.fchmod(self._file.fileno(), 0o600)
        self._history = History() if folds else None
        self._prompts: dict[int, int] = {}  # the numbers that prompts had, and have
        self._turn = self._before = 0
        self._seq = 0
        self._head = ""
        self.size = self.since = 0  # bytes in all, and since the newest checkpoint

    def say(self, said: Said) -> None:
        """One event of the story, in its place here."""
        event, data, number = said
        if isinstance(event, Checkpoint):
            return
        if isinstance(event, PromptReceived):
            self._turn += 1
            self._prompts = {number: self._seq + 1}
        moved = self._moved(event)
        self._write(moved, data if moved is event else encode_data(moved))
        if self._history is not None and isinstance(event, TurnEnded | ToolResultEvent):
            self._keep_short(self._history)

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._seq

    def close(self) -> None:
        """Everything is on disk: whoever measures is not to wait for it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def leave(self) -> None:
        """Close it, and let the system write when it likes."""
        self._file.close()

    def _moved(self, event: Event) -> Event:
        if isinstance(event, SessionStarted):
            return replace(event, resumed=self._seq > 0)
        if isinstance(event, PromptReceived | TurnEnded):
            return replace(event, turn=self._turn)
        if isinstance(event, MessageAdded):
            return replace(event, prompt=self._prompts.get(event.prompt, 0), turn=self._turn)
        return event

    def _keep_short(self, history: History) -> None:
        """As the engine does (`engine/turn_runner.py`)."""
        if self.since > _CHECKPOINT_BYTES and self.since > 8 * history.metrics.context_tokens:
            event = history.checkpoint(self._head)
            self._write(event, encode_data(event))
            self.since = 0

    def _write(self, event: Event, data: bytes) -> None:
        self._seq += 1
        when = utc_timestamp(BEGAN + self._seq * 0.04)
        line, self._head = encode_line(self._seq, when, data, self._head)
        self._file.write(line)
        self.size += len(line)
        self.since += len(line)
        if self._history is not None:
            self._history.apply(Record(self._seq, when, event, self._head))


def one(state: Path, story: list[Said], size: int, *, bare: bool) -> None:
    """One log of that size; the next checkpoint is nearly due, so that most is to be read."""
    scribe = Scribe(state / "sessions" / "20260101-000000-large", folds=not bare)
    for said in cycle(story):
        scribe.say(said)
        due = bare or scribe.since > _CHECKPOINT_BYTES * 0.9
        if scribe.size >= size and due and isinstance(said[0], TurnEnded):
            break
    scribe.close()


def many(state: Path, story: list[Said], size: int) -> int:
    """Sessions of all sizes, half of them below 150 KB; a few have the rare word. How many."""
    dice, left, number = random.Random(11), size, 0
    starts = [at for at, said in enumerate(story) if isinstance(said[0], PromptReceived)]
    while left > 0:
        wanted = min(int(dice.lognormvariate(11.9, 1.6)), 60_000_000, left)
        rare = number % 200 == 100 and number < 200 * RARE_IN
        scribe = Scribe(state / "sessions" / name(number), folds=False)
        words = f"where is the {RARE} in this?" if rare else prose(dice, 12)
        for said in session(story, dice.choice(starts), words):
            scribe.say(said)
            if scribe.size >= wanted and isinstance(said[0], TurnEnded):
                break
        scribe.leave()
        left -= scribe.size
        number += 1
    os.sync()
    return number


def heads(state: Path, story: list[Said], count: int) -> int:
    """Small sessions; a third of them have a title of their own. How many."""
    dice = random.Random(13)
    for number in range(count):
        folder = state / "sessions" / name(number)
        scribe = Scribe(folder, folds=False)
        for said in islice(session(story, 1, prose(dice, 12)), 60):
            scribe.say(said)
        scribe.leave()
        if number % 3 == 0:
            write_label(folder, prose(dice, 6).strip(), ("work",) if number % 9 == 0 else ())
    os.sync()
    return count


def session(story: list[Said], start: int, words: str) -> Iterator[Said]:
    """The story from one of its prompts on, after an opening and a first prompt of its own."""
    opening = story[0]
    prompt, message = PromptReceived(words, 1), MessageAdded(user(words), -1, 1)
    yield opening
    yield prompt, encode_data(prompt), -1
    yield message, encode_data(message), 0
    ended = TurnEnded(1, "done")
    yield ended, encode_data(ended), 0
    yield from islice(cycle(story[1:]), start - 1, None)


def name(number: int) -> str:
    """A session's id, in order."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(BEGAN + number * 3000))}-{number:010x}"


def main() -> None:
    """Write what was asked for, and say how much it is."""
    kind, state, amount, *more = sys.argv[1:]
    started, folder = time.monotonic(), Path(state)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        least = STORY if kind != "heads" else 1_000_000
        records = asyncio.run(tell(Path(scratch), least))
    story = [(each.event, encode_data(each.event), each.seq) for each in records]
    sessions = 1
    if kind == "one":
        one(folder, story, int(amount), bare="bare" in more)
    else:
        sessions = {"many": many, "heads": heads}[kind](folder, story, int(amount))
    found = sum(log.stat().st_size for log in folder.glob("sessions/*/log.jsonl"))
    took = round(time.monotonic() - started, 1)
    print(json.dumps({"sessions": sessions, "bytes": found, "built_s": took}))


if __name__ == "__main__":
    main()
