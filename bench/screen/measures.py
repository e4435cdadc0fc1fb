"""What is measured of the screen, and how often.

Each round is the real program in a real terminal (`clients/screen_*.py`), a process of its own.
"""

import json
import shutil
import subprocess

from bench.contenders import HERE, OURS
from bench.screen.peers import PEERS
from bench.sessions.measures import Lasting, Yard
from bench.stage import Sample, outcome

RECORDS = 10_000
TURNS = 1_000
LAST = "these words stand at the very end"
LONG = "20260101-000000-long"  # as `logs.py` has it


def opening(yard: Yard) -> Sample:
    """Until one can type: ours, the bare import of Textual, and others."""
    peers, missing = [], []
    for peer in PEERS:
        try:
            peers.append((peer.name, peer.command(), peer.marks))
        except (OSError, SystemExit, subprocess.CalledProcessError) as error:
            missing.append(f"{peer.label} is missing: {str(error).splitlines()[0]}")
    words = yard.folder, yard.folder / "workspace", json.dumps(peers)
    return yard.client("screen_open", *words) | {"missing": "; ".join(missing)}


def typing(yard: Yard) -> Sample:
    """Keys while a reply streams in."""
    found = yard.client("screen_type", yard.url, yard.folder / "workspace", 8 if yard.quick else 20)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found


def records(yard: Yard) -> Sample:
    """A long session, opened on a screen that is up."""
    if not yard.state.exists():
        words = (str(yard.state), str(yard.folder / "workspace"), str(RECORDS), LAST)
        command = [str(OURS.python), "-m", "bench.screen.logs", *words]
        made = outcome(command, yard.environ(), 120, HERE.parent)
        if "error" in made:
            return made
        yard.facts = made
    return yard.client("screen_records", yard.folder / "workspace", LONG, LAST) | yard.facts


def memory(yard: Yard) -> Sample:
    """A thousand turns on the screen."""
    found = yard.client("screen_memory", yard.url, yard.state, yard.folder / "workspace", TURNS)
    shutil.rmtree(yard.state, ignore_errors=True)
    return found


SCREEN = (
    Lasting("opening", opening, 15, 5),
    Lasting("typing", typing, 3, 1),
    Lasting("records", records, 7, 3),
    Lasting("screen_memory", memory, 1, 1),
)
