"""The tool `grep` over a repository, and bare ripgrep for the same lines, turn by turn.

Each begins every other turn, and the best of either counts: a search takes some 10 ms, and what
else the machine does at that moment is neither's doing. A round is four turns; the first warms up.

gate_grep.py REPOSITORY ROUNDS
"""

import asyncio
import atexit
import json
import shutil
import subprocess
import sys
import tempfile
import time

from bridle.protocols.tool import ToolContext
from bridle.tools.grep import Grep, find_ripgrep
from bridle.workspace.workspace import Workspace

PATTERNS = ("def test_the_", "class .*Error", r"\bToolContext\b", "no such words anywhere at all")
FLAGS = "--no-config --no-heading --with-filename --line-number --color=never --hidden --sort=path"


async def main() -> None:
    """Both, for each pattern; the sums of the best times are compared."""
    rounds, program = int(sys.argv[2]), find_ripgrep()
    root = apart(sys.argv[1])
    if program is None:
        raise SystemExit("there is no ripgrep")
    context = ToolContext(Workspace(root), "1")
    ours: dict[str, list[float]] = {pattern: [] for pattern in PATTERNS}
    bare: dict[str, list[float]] = {pattern: [] for pattern in PATTERNS}
    for turn in range(4 * rounds + 1):
        for pattern in PATTERNS:
            if turn % 2:
                lines = timed(bare[pattern], program, root, pattern)
            started = time.perf_counter()
            result = await Grep().execute({"pattern": pattern, "limit": 2000}, context)
            ours[pattern].append(time.perf_counter() - started)
            if not turn % 2:
                lines = timed(bare[pattern], program, root, pattern)
            if result.data["matches"] != min(lines, 2000):
                raise SystemExit(f"{pattern}: {result.data['matches']} lines and {lines}")
    mine, theirs = (sum(min(all_[1:]) for all_ in one.values()) * 1000 for one in (ours, bare))
    print(json.dumps({"ms": mine, "bare_ms": theirs, "times": mine / theirs}))


def apart(repository: str) -> str:
    """A copy of what is tracked: no ripgrep that lies in the workspace itself is ever run."""
    folder = tempfile.mkdtemp(prefix="bridle-bench-grep-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "-C", repository, "archive", "HEAD"], capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=listed.stdout, check=True)
    return folder


def timed(spent: list[float], program: str, root: str, pattern: str) -> int:
    """The lines that bare ripgrep finds, and what that takes."""
    started = time.perf_counter()
    lines = bare_lines(program, root, pattern)
    spent.append(time.perf_counter() - started)
    return lines


def bare_lines(program: str, root: str, pattern: str) -> int:
    """How many lines ripgrep finds by itself."""
    words = [program, *FLAGS.split(), "--glob=!.git", "--no-require-git", "--max-filesize=20M"]
    words += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "-e", pattern, "."]
    done = subprocess.run(words, cwd=root, capture_output=True, stdin=subprocess.DEVNULL)
    return done.stdout.count(b"\n")


if __name__ == "__main__":
    asyncio.run(main())
