"""How soon a long session is on the screen, in a process that is up.

    screen_records.py WORKSPACE ID LAST

`/resume ID` is typed and Enter is pressed; the time that counts ends when LAST, which stands at
the session's very end, has been drawn. Then a page up, until there is another picture.
"""

import json
import os
import sys
import time
from pathlib import Path

from terminal import Terminal

PAGE_UP = "\x1b[5~"


def main() -> None:
    """Open it, and look back."""
    workspace, session_id, last = sys.argv[1:]
    bridle = str(Path(sys.executable).parent / "bridle")
    environ = os.environ | {"HOME": workspace, "TERM": "xterm-256color"}
    terminal = Terminal([bridle, "--model", "offline"], environ, workspace)
    try:
        terminal.wait_for("offline/offline")
        terminal.type(f"/resume {session_id}")
        terminal.wait_for(session_id)
        terminal.quiet(0.4)
        before = terminal.memory_mb()
        terminal.forget()
        begun = time.perf_counter()
        terminal.type("\r")
        found = {"ms": (terminal.wait_for(last) - begun) * 1000}
        terminal.quiet(0.3)
        found["more_mb"] = terminal.memory_mb() - before
        terminal.forget()
        begun = time.perf_counter()
        terminal.type(PAGE_UP)
        terminal.until(lambda said: said.count(b"\x1b[?2026l") > 0 and len(said) > 500)
        found["page_ms"] = (time.perf_counter() - begun) * 1000
    finally:
        terminal.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
