"""A real terminal (tmux) with the real program in it: keys go in, what is on the screen is read.

Each has a server of tmux of its own, so that tests which run side by side share nothing.
"""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridle.testing import FakeAnthropic

PATIENCE = 240.0  # seconds until a test that waits in vain gives up
PAUSE = 0.7  # seconds that a person looks at a question: before that it takes no key
_AROUND = '"$@"; echo "left with $?"; exec cat >/dev/null'
_CONFIG = """
set -g status off
set -g escape-time 0
set -g default-terminal tmux-256color
set -g set-clipboard on
"""

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux: make system")


class Place:
    """A home, a state folder and a workspace that nobody else has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.state = folder / "home", folder / "state"
        self.workspace = folder / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "BRIDLE_STATE": str(self.state),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONWARNINGS": "error",
            "COLORFGBG": "15;0",
        }

    def script(self, *replies: object, name: str = "script", **more: object) -> str:
        """A scripted model with these replies: its name for `--model`."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"replies": list(replies), **more}))
        return f"scripted:{path}"

    def sessions(self) -> list[str]:
        """The ids of the sessions that there are."""
        folder = self.state / "sessions"
        return sorted(one.name for one in folder.iterdir()) if folder.exists() else []

    def records(self, session: str) -> list[dict[str, object]]:
        """What the log of a session says in whole lines: somebody may be writing to it."""
        whole, _, _ = (
            (self.state / "sessions" / session / "log.jsonl").read_bytes().rpartition(b"\n")
        )
        return [json.loads(line) for line in whole.splitlines()]


class Terminal:
    """One window of tmux with one program."""

    def __init__(self, place: Place, *words: str, size: tuple[int, int] = (100, 30)) -> None:
        self._socket = f"bridle-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        config = place.folder / f"{self._socket}.conf"
        config.write_text(_CONFIG)
        self._tmux = ["tmux", "-L", self._socket, "-f", str(config)]
        given = [f"{name}={value}" for name, value in place.environ.items()]
        program = ["bash", "-c", _AROUND, "bash", *words]
        line = shlex.join(["env", "-i", *given, "TERM=tmux-256color", *program])
        width, height = map(str, size)
        new = ["new-session", "-d", "-x", width, "-y", height, "-c", str(place.workspace), line]
        self._do(*new)

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def press(self, *keys: str) -> None:
        """Keys by their names: Enter, Escape, C-c, F1."""
        self._do("send-keys", *keys)

    def type(self, text: str) -> None:
        """Letters, as they are."""
        self._do("send-keys", "-l", text)

    def say(self, text: str) -> None:
        """A prompt, sent."""
        self.type(text)
        self.until(text.rsplit(" ", 1)[-1])
        self.press("Enter")

    @property
    def seen(self) -> str:
        """The lines that are on the screen."""
        return self._do("capture-pane", "-p")

    @property
    def painted(self) -> str:
        """The same with its colours, as escape sequences."""
        return self._do("capture-pane", "-p", "-e")

    @property
    def tty(self) -> str:
        """The terminal's device."""
        return self._do("list-panes", "-F", "#{pane_tty}").strip()

    @property
    def pid(self) -> int:
        """The number of the program, which runs below a shell."""
        shell = self._do("list-panes", "-F", "#{pane_pid}").strip()
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[0])

    def until(self, *wanted: str) -> str:
        """Wait until all these words are on the screen; what is there."""
        return self.when(lambda seen: all(one in seen for one in wanted), repr(wanted))

    def until_gone(self, words: str) -> str:
        """Wait until these words are no longer there."""
        return self.when(lambda seen: words not in seen, f"without {words!r}")

    def when(self, holds: object, what: str) -> str:
        """Wait until it holds of what is seen."""
        end = time.monotonic() + PATIENCE
        while not holds(seen := self.seen):  # type: ignore[operator]
            assert time.monotonic() < end, f"{what} never came:\n{seen}"
            time.sleep(0.05)
        return seen

    def until_over(self, code: int = 0) -> str:
        """Wait until the program has ended so; what it left on the terminal."""
        return self.until(f"left with {code}")

    def answer(self, key: str, question: str) -> str:
        """Look at a question as a person does, press a key, and see it go; what is there then."""
        self.until(question)
        end = time.monotonic() + PATIENCE
        while question in (seen := self.seen):
            assert time.monotonic() < end, f"{key!r} did not answer:\n{seen}"
            time.sleep(PAUSE)  # nothing is waited for: a key that comes sooner does not count
            self.press(key)
            pressed = time.monotonic()
            while question in self.seen and time.monotonic() - pressed < 3:
                time.sleep(0.05)
        return seen

    def rests(self) -> str:
        """Wait until no turn runs: what was said last stands there before its turn is over."""
        return self.until_gone("Esc to stop")

    def leave(self) -> str:
        """Ctrl-C as often as it takes: it stops a turn and clears a draft before it leaves."""
        for _ in range(5):
            self.press("C-c")
            pressed = time.monotonic()
            while time.monotonic() - pressed < 1.5:  # for so long it says that once more leaves
                if "again to quit" in self.seen:
                    self.press("C-c")
                    return self.until_over()
                time.sleep(0.05)
        raise AssertionError(f"it does not leave:\n{self.seen}")

    @property
    def copied(self) -> str:
        """What the program put on the clipboard last."""
        return self._do("show-buffer")

    def click(self, column: int, row: int) -> None:
        """Press and release the mouse there."""
        self.type(f"\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m")

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Mark from one column and row to another, and keep the button down."""
        (x, y), (to_x, to_y) = start, end
        for code, column, row in ((0, x, y), (32, x + 1, y), (32, to_x, to_y)):
            self.type(f"\x1b[<{code};{column};{row}M")

    def drop(self, at: tuple[int, int]) -> None:
        """Let the button go."""
        self.type(f"\x1b[<0;{at[0]};{at[1]}m")

    def resize(self, width: int, height: int) -> None:
        """Another size of the window."""
        self._do("resize-window", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        """End the server of tmux, and with it the program."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@contextmanager
def served(server: FakeAnthropic) -> Iterator[str]:
    """A fake vendor that serves in a thread; its address."""
    started, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with server:
            started.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    started.wait()
    try:
        yield server.url
    finally:
        over.set()
        thread.join()


def shell(command: str) -> dict[str, object]:
    """A call of the shell, for a script."""
    return {"name": "shell", "arguments": {"command": command}}
