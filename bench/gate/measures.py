"""What is measured of the gate and of what stands around it, and how often.

Each round is a process of its own (`clients/gate_*.py`), as with sessions that last.
"""

from bench.contenders import HERE
from bench.sessions.measures import Lasting, Yard
from bench.stage import Sample

STRINGS = 10_000
FILES = 20_000


def hostile(yard: Yard) -> Sample:
    """Random and hostile command lines, each judged and decided once."""
    return yard.client("gate_hostile", yard.folder / "workspace", STRINGS)


def explain(yard: Yard) -> Sample:
    """Everyday command lines, none of them seen before."""
    return yard.client("gate_explain", HERE.parent, 5 if yard.quick else 20)


def grep(yard: Yard) -> Sample:
    """The tool and bare ripgrep, turn by turn."""
    return yard.client("gate_grep", HERE.parent, 5 if yard.quick else 15)


def snapshot(yard: Yard) -> Sample:
    """Snapshots of a tree in which nothing changes."""
    return yard.client("gate_snapshot", yard.folder, FILES, 5 if yard.quick else 15)


def servers(yard: Yard) -> Sample:
    """`bridle run` with MCP servers that it does not need, and without."""
    return yard.client("gate_servers", yard.folder, 5 if yard.quick else 10)


GATE = (
    Lasting("hostile", hostile, 3, 1),
    Lasting("explain", explain, 5, 2),
    Lasting("grep", grep, 3, 1),
    Lasting("snapshot", snapshot, 3, 1),
    Lasting("servers", servers, 3, 1),
)
