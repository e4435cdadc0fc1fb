"""A `bridle run` that needs no tool: with ten MCP servers set up, two that hang, and with none.

gate_servers.py FOLDER ROUNDS
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

SERVERS = 10
HANGING = 2
ANSWER = {"replies": [{"text": "Good morning."}]}


def main() -> None:
    """Both, turn by turn."""
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    script = folder / "script.json"
    script.write_text(json.dumps(ANSWER))
    ways = {"bare": set_up(folder / "bare", 0), "full": set_up(folder / "full", SERVERS)}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(2 * rounds + 2):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            spent[name].append(timed(ways[name], folder / "workspace", script))
    bare, full = (median(spent[name][2:]) for name in ways)
    print(json.dumps({"ms": full, "bare_ms": bare, "times": full / bare}))


def set_up(folder: Path, servers: int) -> dict[str, str]:
    """An environment in which so many servers are set up."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["theme: plain", *(["mcp:", "  servers:"] if servers else [])]
    for number in range(servers):
        hangs = number < HANGING
        words = ["sleep", "600"] if hangs else [sys.executable, "-m", "no_such_server"]
        lines.append(f"    server{number}: {{command: {json.dumps(words)}}}")
    settings = folder / "config.yaml"
    settings.write_text("\n".join(lines) + "\n")
    return os.environ | {"BRIDLE_CONFIG": str(settings), "BRIDLE_STATE": str(folder / "state")}


def timed(environ: dict[str, str], workspace: Path, script: Path) -> float:
    """One run, in milliseconds."""
    words = ["run", "--quiet", "--model", f"scripted:{script}", "hello"]
    program = Path(sys.executable).parent / "bridle"
    started = time.perf_counter()
    done = subprocess.run([program, *words], cwd=workspace, env=environ, capture_output=True)
    spent = (time.perf_counter() - started) * 1000
    if done.returncode or b"Good morning." not in done.stdout:
        raise SystemExit(f"bridle run: {done.stderr.decode()[-200:]}")
    return spent


if __name__ == "__main__":
    main()
