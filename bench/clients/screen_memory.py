"""Resident memory of the screen, turn after turn in one session.

    screen_memory.py URL STATE WORKSPACE TURNS

Each turn is a prompt that is typed and a reply of 8 KB, which the vendor writes at once. A turn is
over when the log says so. The model has a window of 200,000 tokens, so that the conversation is
shortened about once in a hundred turns; what is compared is the highest of a tenth of the turns, so
that it does not matter when.
"""

import json
import os
import sys
import time
from pathlib import Path

from terminal import PATIENCE, Terminal

ENDED, SHORTENED = b'"turn_end"', b'"type":"compaction"'
MODEL = "anthropic/claude-haiku-4-5"  # whose window is of the usual size; the vendor does not mind


class Log:
    """The session's log, as it grows."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._read = self._turns = self.shortened = 0
        self._rest = b""

    def turns(self) -> int:
        """How many have ended."""
        for path in (self._state / "sessions").glob("*/log.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read)
                more = file.read()
            self._read += len(more)
            lines = (self._rest + more).split(b"\n")
            self._rest = lines.pop()
            self._turns += sum(ENDED in line for line in lines)
            self.shortened += sum(SHORTENED in line for line in lines)
        return self._turns


def play(terminal: Terminal, log: Log, first: int, last: int) -> float:
    """Some turns; the most memory after one of them, in MB."""
    most = 0.0
    for number in range(first, last):
        terminal.type(f"Page {number}, please.\r")
        end = time.monotonic() + PATIENCE
        while log.turns() <= number:
            if time.monotonic() > end:
                raise RuntimeError(f"turn {number} does not end: {terminal.words[-300:]}")
            terminal.read(0.005)
        terminal.forget()
        most = max(most, terminal.memory_mb())
    return most


def main() -> None:
    """The memory in the first tenth of the turns, the second, and so on."""
    url, state, workspace, turns = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    bridle = str(Path(sys.executable).parent / "bridle")
    command = [bridle, "--model", MODEL, "--base-url", f"{url}/pages"]
    environ = os.environ | {"ANTHROPIC_API_KEY": "k", "TERM": "xterm-256color", "HOME": workspace}
    terminal, log = Terminal(command, environ, workspace), Log(state)
    started = time.perf_counter()
    try:
        terminal.wait_for(MODEL)
        tenth = turns // 10
        memory = [play(terminal, log, at * tenth, (at + 1) * tenth) for at in range(10)]
    finally:
        terminal.close()
    if log.shortened < turns // 250:
        raise RuntimeError(f"{log.shortened} times only was the conversation shortened")
    found = {"rss_mb": memory, "shortened": log.shortened, "turns_s": time.perf_counter() - started}
    print(json.dumps(found | {"times": memory[-1] / memory[0], "grown": memory[-1] - memory[0]}))


if __name__ == "__main__":
    main()
