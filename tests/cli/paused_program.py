"""bridle, which waits before it opens a file: paused_program.py FILE REACHED GATE ARGUMENTS…

It makes REACHED when it is there, and goes on when GATE is there. Nothing of bridle is changed.
"""

import sys
import time
from pathlib import Path

watched, reached, gate = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])


def wait(event, given):
    """Stop at the first look into that file."""
    if event == "open" and str(given[0]) == watched and not reached.exists():
        reached.touch()
        while not gate.exists():
            time.sleep(0.005)


if __name__ == "__main__":
    from bridle.cli import main

    sys.addaudithook(wait)
    sys.exit(main(sys.argv[4:]))
