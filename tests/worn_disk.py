"""A disk that fails when a test says so: full for a while, broken for a while, or without power.

Works on real files. It remembers what was synced; `lose_power` leaves that, and of the rest what
chance leaves: other systems write in any order, and half of it.
"""

import errno
import os
import shutil
import threading
from pathlib import Path

from bridle.stores.disk import Disk


class WornDisk(Disk):
    """`plan(number, call)` says what happens to a call: None, an errno, "short" or "power"."""

    def __init__(self, plan=lambda number, call: None):
        self.plan = plan
        self.count = 0
        self.dead = False
        self._guard = threading.RLock()
        self._durable = {}  # path -> bytes that would survive
        self._pending = {}  # path -> (offset, bytes) or (size, None): written, not synced
        self._entries = {}  # path -> None: made, its folder not synced

    def _step(self, call):
        self.count += 1
        found = "power" if self.dead else self.plan(self.count, call)
        if found == "power":
            self.dead = True
            raise OSError(errno.EIO, "no power")
        if isinstance(found, int):
            raise OSError(found, os.strerror(found))
        return found

    def open(self, path, flags, mode=0o777, *, dir_fd=None):
        with self._guard:
            self._step("open")
            handle = os.open(path, flags, mode, dir_fd=dir_fd)
            if flags & os.O_CREAT:
                self._entries[_path(handle)] = None
            return handle

    def make_folder(self, path, mode):
        with self._guard:
            self._step("mkdir")
            os.mkdir(path, mode)  # noqa: PTH102 - what the real disk is asked
            self._entries[path] = None

    def write(self, handle, data, offset):
        with self._guard:
            known = self._known(handle)
            try:
                found = self._step("write")
            except OSError as error:
                if not self.dead:
                    self._put(handle, known, bytes(data)[: len(data) // 3], offset)
                raise error
            part = bytes(data)[: max(1, len(data) // 2)] if found == "short" else bytes(data)
            return self._put(handle, known, part, offset)

    def _put(self, handle, known, part, offset):
        known.append((offset, part))
        return os.pwrite(handle, part, offset)

    def cut(self, handle, size):
        with self._guard:
            known = self._known(handle)
            self._step("cut")
            known.append((size, None))
            os.ftruncate(handle, size)

    def sync(self, handle):
        """A sync that fails drops what it had to write; the next one knows nothing of it."""
        with self._guard:
            known = self._known(handle)
            try:
                self._step("sync")
            except OSError:
                if not self.dead:
                    known.clear()
                raise
            path = _path(handle)
            self._durable[path] = _applied(self._durable[path], known)
            known.clear()

    def sync_folder(self, handle):
        with self._guard:
            self._step("sync_folder")
            path = _path(handle)
            for one in [one for one in self._entries if str(Path(one).parent) == path]:
                del self._entries[one]

    def _known(self, handle):
        path = _path(handle)
        if path not in self._durable:
            new = path in self._entries
            self._durable[path] = b"" if new else Path(path).read_bytes()
        return self._pending.setdefault(path, [])

    def lose_power(self, chance):
        """The machine goes down, and comes up again with what is left."""
        for path, known in self._pending.items():
            if Path(path).exists():
                left = [_torn(one, chance) for one in known if chance.random() < 0.6]
                Path(path).write_bytes(_applied(self._durable[path], left))
        for path in self._entries:
            if chance.random() < 0.6:
                shutil.rmtree(path, ignore_errors=True)
                Path(path).unlink(missing_ok=True)


def _path(handle):
    return str(Path(f"/proc/self/fd/{handle}").readlink())


def _torn(one, chance):
    place, data = one
    if data is None or chance.random() < 0.5:
        return one
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return (place + start, data[start:end]) if chance.random() < 0.5 else (place, data[:end])


def _applied(content, changes):
    made = bytearray(content)
    for place, data in changes:
        if data is None:
            del made[place:]
        elif data:
            made.extend(bytes(max(0, place - len(made))))
            made[place : place + len(data)] = data
    return bytes(made)
