"""How soon a key is seen on the screen while a reply streams in.

    screen_type.py URL WORKSPACE SECONDS

The vendor writes 200 deltas a second. A key is written to the terminal, and it is waited until its
letter comes back in what the screen draws; then a pause as between two keys of a quick typist. The
letters are such as the screen does not show otherwise.
"""

import json
import os
import random
import string
import sys
import time
from pathlib import Path
from typing import Any

from terminal import Terminal, plain

CLEAR = "\x15"  # the line is emptied, now and then
LOST = 2.0  # seconds after which a key counts as lost


def streaming(url: str, workspace: str, seconds: float) -> Terminal:
    """The screen, with a reply that comes in."""
    bridle = str(Path(sys.executable).parent / "bridle")
    environ = os.environ | {"ANTHROPIC_API_KEY": "k", "TERM": "xterm-256color"}
    base = f"{url}/brisk-{int(seconds * 200)}"
    command = [bridle, "--model", "anthropic/bench-model", "--base-url", base]
    terminal = Terminal(command, environ | {"HOME": workspace}, workspace)
    terminal.wait_for("anthropic/bench-model")
    terminal.type("go\r")
    terminal.wait_for("brown fox")
    return terminal


def free_letters(terminal: Terminal, seconds: float) -> str:
    """Letters that the screen does not show by itself."""
    until = time.perf_counter() + seconds
    terminal.forget()
    while time.perf_counter() < until:
        terminal.read(0.1)
    shown = set(terminal.words)
    found = "".join(one for one in string.ascii_uppercase if one not in shown)
    if len(found) < 8:
        raise RuntimeError(f"too few letters to type: {found}")
    return found


def press(terminal: Terminal, letter: str) -> float | None:
    """Ms until the letter is drawn; None where it does not come."""
    while terminal.read(0):
        continue
    terminal.forget()
    begun = time.perf_counter()
    terminal.type(letter)
    while letter not in plain(terminal.said):
        if time.perf_counter() - begun > LOST:
            return None
        terminal.read(0.05)
    return (time.perf_counter() - begun) * 1000


def typed(terminal: Terminal, letters: str, seconds: float) -> list[float | None]:
    """Every letter once, then a clean line, and so on."""
    dice, found = random.Random(5), []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for letter in letters:
            found.append(press(terminal, letter))
            rest = time.perf_counter() + dice.uniform(0.04, 0.11)
            while (left := rest - time.perf_counter()) > 0:
                terminal.read(left)
        terminal.type(CLEAR)
        rest = time.perf_counter() + 0.2
        while (left := rest - time.perf_counter()) > 0:
            terminal.read(left)
    return found


def main() -> None:
    """Type, and say what it was like."""
    url, workspace, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    terminal = streaming(url, workspace, seconds + 8)
    try:
        letters = free_letters(terminal, 2)
        keys = typed(terminal, letters, seconds)
        terminal.forget()
        until = time.perf_counter() + 0.5
        while time.perf_counter() < until:
            terminal.read(0.1)
        still = len(terminal.words.split()) > 5
    finally:
        terminal.close()
    if not still:
        raise RuntimeError("the reply ended before the typing did")
    print(json.dumps(figures(keys)))


def figures(keys: list[float | None]) -> dict[str, Any]:
    """The middle one, and those that are late."""
    seen = sorted(one for one in keys if one is not None)
    at = {name: seen[int(len(seen) * share)] for name, share in SHARES.items()}
    return at | {"worst_ms": seen[-1], "keys": len(keys), "lost": len(keys) - len(seen)}


SHARES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}

if __name__ == "__main__":
    main()
