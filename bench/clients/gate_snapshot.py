"""Snapshots of a tree of many files in which nothing changes, as before a command.

gate_snapshot.py FOLDER FILES ROUNDS
"""

import json
import shutil
import sys
import time
from pathlib import Path
from statistics import median

from bridle.workspace.undo.undo import Undo

IN_A_FOLDER = 50


def main() -> None:
    """The first one keeps everything; the others, each by a new object, find nothing new."""
    folder, files, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    root, state = folder / "tree", folder / "undo-state"
    plant(root, files)
    try:
        first = timed(root, state)
        time.sleep(1)  # a file as young as the index would be read again
        timed(root, state)
        spent = [timed(root, state) for _ in range(rounds)]
    finally:
        shutil.rmtree(root)
        shutil.rmtree(state, ignore_errors=True)
    print(json.dumps({"ms": median(spent), "first_ms": first, "worst_ms": max(spent)}))


def plant(root: Path, files: int) -> None:
    """Small files, as many to a folder as in a usual repository."""
    for number in range(files):
        path = root / f"part{number // 1000}" / f"piece{number // IN_A_FOLDER}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"value = {number}\n" * (number % 40))


def timed(root: Path, state: Path) -> float:
    """One snapshot, in milliseconds, the index read from disk."""
    started = time.perf_counter()
    Undo(root, state).snapshot()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
