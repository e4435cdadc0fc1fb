"""A hostile neighbour: swaps folders and files for links as fast as it can, until its input ends.

Run as a program, with the workspace and the folder outside as arguments. `door`, `gate` and `file`
are always there, and always something else; so is `folder`, where the system can exchange two names
in one step.
"""

import ctypes
import itertools
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

EXCHANGE = 2
HERE = -100


def exchange(one, other):
    """Both names change places, in one step where the system can."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(one), os.fsencode(other)
    if rename is None or rename(HERE, names[0], HERE, names[1], EXCHANGE) != 0:
        with suppress(OSError):  # meanwhile somebody made the name that is free for a moment
            aside = other.with_name("aside")
            other.rename(aside)
            one.rename(other)
            aside.rename(one)


def turns(root, outside):
    """What is done, over and over."""
    plain = root / "plain"
    plain.write_bytes(b"honest")
    beside = root / "next"
    for number in itertools.count():
        for name, targets in {
            "door": ["src", str(outside), "../ws-evil"],
            "gate": ["src", ".git/hooks", ".git", ".bridle"],
            "file": ["src/a.py", str(outside / "secret"), ".git/config", ".env"],
        }.items():
            beside.symlink_to(targets[number % len(targets)])
            beside.replace(root / name)
            exchange(root / "trap", root / "folder")
        beside.hardlink_to(plain)  # a fresh file would have to be written to the disk first
        beside.replace(root / "file")
        yield


def main():
    root, outside = map(Path, sys.argv[1:])
    over, whole = threading.Event(), []

    def work():
        for number, _ in enumerate(turns(root, outside)):
            if number == 0:
                os.write(1, b"swapping\n")
            if over.is_set():
                whole.append(True)
                return

    thread = threading.Thread(target=work)
    thread.start()
    os.read(0, 1)  # ends when whoever started this lets go
    over.set()
    thread.join()
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
