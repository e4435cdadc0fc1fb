"""Where the programs of npm are that tests run: `from node.rig import node, package`.

Knows only the folder that scripts/node-packages fills. Without it a test fails, and says what to
run: what is not tested is not known to work.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WANTED = ROOT / "tests" / "node" / "package.json"
PLACE = ROOT / ".cache" / "node"


def node() -> str:
    """The path of a Node.js that is new enough for every package here."""
    return str(_there(PLACE / "node_modules" / "node" / "bin" / "node"))


def package(name: str) -> Path:
    """The folder of a package, such as `@modelcontextprotocol/conformance`."""
    return _there(PLACE / "node_modules" / name)


def _there(path: Path) -> Path:
    stamp = PLACE / ".ready"
    now = hashlib.sha256(WANTED.read_bytes()).hexdigest()
    fresh = stamp.is_file() and stamp.read_text().strip() == now
    assert fresh and path.exists(), f"{path.name} is not there as wanted: run scripts/node-packages"
    return path
