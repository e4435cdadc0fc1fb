"""A hostile neighbour: swaps folders and files for links as fast as it can, until its input ends.

Run as a program, with the workspace and the folder outside as arguments.
"""

import itertools
import os
import sys
import threading
from pathlib import Path


def turns(root, outside):
    """What is done, over and over: each step leaves `door`, `file` and `gate` as something else."""
    for number in itertools.count():
        beside = root / f"next{number % 2}"
        for name, targets in {
            "door": ["src", str(outside), "../ws-evil"],
            "gate": ["src", ".git/hooks", ".git", ".bridle"],
            "file": ["src/a.py", str(outside / "secret"), ".git/config", ".env"],
        }.items():
            beside.symlink_to(targets[number % len(targets)])
            beside.replace(root / name)
            yield
        beside.write_bytes(b"honest")
        beside.replace(root / "file")
        yield
        (root / "honest").rename(root / "folder")
        yield
        (root / "folder").rename(root / "honest")
        (root / "trap").rename(root / "folder")
        yield
        (root / "folder").rename(root / "trap")
        yield


def main():
    root, outside = map(Path, sys.argv[1:])
    over = threading.Event()

    def work():
        for _ in turns(root, outside):
            if over.is_set():
                return

    thread = threading.Thread(target=work)
    thread.start()
    os.write(1, b"swapping\n")
    os.read(0, 1)  # ends when whoever started this lets go
    over.set()
    thread.join()


if __name__ == "__main__":
    main()
