"""How soon the screen is there, beside the bare import of Textual and beside others' chats.

    screen_open.py FOLDER WORKSPACE PEERS

Everybody starts in a terminal of the same size, one after the other, and is ended at once. PEERS
is JSON: a name, a command, the words that are there once one can type. Of ours there are three
moments: the first picture, which is drawn before anything is imported and keeps what is typed; the
screen itself, whole; and when the session behind it is open.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from terminal import Terminal, plain

TYPE = "escribe a task, or / for commands"  # the cursor may stand on its first letter
SCREEN = b"\x1b[?1049h"  # another screen: once the first picture's, once Textual's
DRAWN = b"\x1b[?2026l"  # Textual's end of a picture
IMPORT = "import textual.app, os; os.write(1, b'imported')"


def environ(folder: Path) -> dict[str, str]:
    """A person of their own, with a key that nobody is asked for."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "TERM": "xterm-256color", "OPENAI_API_KEY": "k"}
    return os.environ | own


def whole(said: bytes) -> bool:
    """Is Textual's own picture there, with the composer and the bar, to its end?"""
    _, _, second = said.partition(SCREEN)[2].partition(SCREEN)
    at = second.rfind(DRAWN)
    return at > 0 and TYPE in plain(second[:at])


def ours(folder: Path, workspace: str) -> dict[str, float]:
    """The three moments, in ms from the start of the process."""
    bridle = str(Path(sys.executable).parent / "bridle")
    terminal = Terminal([bridle, "--model", "offline"], environ(folder), workspace)
    try:
        moments = {
            "first_ms": terminal.wait_for(TYPE),
            "screen_ms": terminal.until(whole),
            "session_ms": terminal.wait_for("offline/offline"),
        }
        return {name: (at - terminal.begun) * 1000 for name, at in moments.items()}
    finally:
        terminal.close()


def other(folder: Path, workspace: str, command: list[str], marks: list[str]) -> float:
    """Ms until all of these words are there."""
    terminal = Terminal(command, environ(folder), workspace)
    try:
        return (terminal.wait_for(*marks) - terminal.begun) * 1000
    finally:
        terminal.close()


def main() -> None:
    """One round."""
    folder, workspace, peers = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    imported = [sys.executable, "-c", IMPORT]
    found: dict[str, Any] = {"import_ms": other(folder, workspace, imported, ["imported"])}
    found |= ours(folder, workspace)
    found["peers"] = {
        name: other(folder, workspace, command, marks) for name, command, marks in peers
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
