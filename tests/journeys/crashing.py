"""A process that dies at a point of its own choosing, and the one that starts such processes.

`python crashing.py` imports everything once, reads tasks from its input, forks for each, and says
how it ended. A task's process plays the story of `crash_story` and counts the points that it comes
to: every call to the disk, every record, every effect, every acknowledgement. At its number it
sends itself SIGKILL. Beside it runs a second process, which puts letters into the inbox.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import msgspec

from bridle.engine import turn_runner
from bridle.protocols.store import InboxMessage
from bridle.stores import jsonl
from bridle.stores.disk import Disk
from bridle.stores.jsonl import JsonlLog, JsonlStore

LONGEST = 50  # seconds that a task may take; the alarm ends it, and that is no success


class Notes:
    """What happened outside of the log, one line each, there for good when `add` returns."""

    def __init__(self, folder):
        self.path = folder / "notes.jsonl"
        self.path.touch()
        whole, found, torn = self.path.read_bytes().rpartition(b"\n")
        if torn:  # whoever wrote it was killed: it was never added
            os.truncate(self.path, len(whole + found))

    def add(self, kind, **what):
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps({"kind": kind, **what}).encode() + b"\n")

    def read(self, kind=""):
        """Those of that kind, or all, in order."""
        found = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        return [one for one in found if kind in ("", one["kind"])]


class Points:
    """Counts, and ends the process at number `at` (0: never)."""

    def __init__(self, at):
        self.at = at
        self.count = 0

    def pass_by(self):
        """One more point."""
        if self.is_next():
            die()

    def is_next(self):
        """One more point, at which the caller does half of something and dies."""
        self.count += 1
        return self.count == self.at


def die():
    """As the kernel does it: nothing is flushed, nothing is said."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # another thread may get the signal


class DyingDisk(Disk):
    """The real disk, with a point before and after each call, and one in the middle of a write."""

    def __init__(self, points):
        self._points = points

    def write(self, handle, data, offset):
        if self._points.is_next():
            os.pwrite(handle, bytes(data)[: len(data) // 2], offset)
            die()
        count = os.pwrite(handle, data, offset)
        self._points.pass_by()
        return count

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name.startswith("_") or name == "write":
            return found

        def passing(*args, **options):
            self._points.pass_by()
            result = found(*args, **options)
            self._points.pass_by()
            return result

        return passing


def instrument(points, notes, put=setattr):
    """A point at every record and every letter; what was settled is noted with its hash."""
    append, settled, discard = JsonlLog.append, JsonlLog.settled, JsonlLog.discard

    def appending(self, event, data=None):
        points.pass_by()
        return append(self, event, data)

    async def settling(self):
        seq, head = self.seq, self.head
        await settled(self)
        notes.add("settled", seq=seq, hash=head)
        points.pass_by()

    def discarding(self, letter):
        points.pass_by()
        discard(self, letter)
        notes.add("discarded", letter=letter.id)
        points.pass_by()

    put(JsonlLog, "append", appending)
    put(JsonlLog, "settled", settling)
    put(JsonlLog, "discard", discarding)
    put(jsonl, "_POLL", 0.004)  # letters are heard at once
    put(turn_runner, "_CHECKPOINT_BYTES", 6_000)  # and checkpoints are near


class Post:
    """The way to the process that posts."""

    def __init__(self, out, back):
        self._out, self._back = out, back

    def __call__(self, session_id, letter):
        os.write(self._out, msgspec.json.encode([session_id, letter]) + b"\n")
        os.read(self._back, 1)


def carry_letters(folder, inward, back):
    """The second process: post what comes, say so, until the first one is gone."""
    store, notes = JsonlStore(folder / "state"), Notes(folder)
    with os.fdopen(inward, "rb") as lines:
        for line in lines:
            session_id, letter = msgspec.json.decode(line, type=tuple[str, InboxMessage])
            store.send_message(session_id, letter)
            notes.add("posted", letter=letter.id, verb=letter.verb)
            try:
                os.write(back, b".")
            except BrokenPipeError:
                return


def fork(work):
    """The number of a process that does this work, and nothing else."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        signal.alarm(LONGEST)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def perform(task):
    """Both processes of a task; how the first one ended (-9: killed)."""
    from crash_story import Person, tell

    folder = Path(task["folder"])
    letters, posts = os.pipe()
    heard, answers = os.pipe()

    def first():
        os.close(letters)
        os.close(answers)
        points, notes = Points(task["at"]), Notes(folder)
        instrument(points, notes)
        store = JsonlStore(folder / "state", disk=DyingDisk(points))
        person = Person(folder, notes, points, Post(posts, heard), random.Random(task["seed"]))
        asyncio.run(tell(person, store))
        notes.add("points", count=points.count)

    def second():
        os.close(posts)
        os.close(heard)
        carry_letters(folder, letters, answers)

    beside, pid = fork(second), fork(first)
    for one in (letters, posts, heard, answers):
        os.close(one)
    if task["seconds"]:
        time.sleep(task["seconds"])  # killed from outside, at any time
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    _, other = os.waitpid(beside, 0)
    return os.waitstatus_to_exitcode(status) or os.waitstatus_to_exitcode(other)


def main():
    import crash_story  # noqa: F401 - once, before the first fork

    for line in sys.stdin:
        sys.stdout.write(f"{perform(json.loads(line))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main()
