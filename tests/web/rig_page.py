"""A real `bridle serve` with a scripted model, and real Chromium in front of it.

`Served` is the process: it can be killed and started again on the same port. `Window` is a browser
with cookies and storage of its own; it remembers every request, so that a test can say that nothing
went elsewhere. Playwright keeps an event loop while it runs, so each file starts and ends its own.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from node.rig import package
from nursery import begun
from rig import free_port

CHROMIUM = "/usr/bin/chromium"
WIDE = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
CODE = re.compile(r"(http://[\d.]+:(\d+))/#code=(\S+)")
SLOW = 20_000  # milliseconds: for machines that do ten things at once

expect.set_options(timeout=SLOW)


class Served:
    """`bridle serve` in a folder of its own. `replies` is what its model says, in order."""

    def __init__(self, folder, replies, files=None, *flags):
        self.folder, self.flags = Path(folder), flags
        self.workspace = self.folder / "shop"
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.folder / "home").mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            (self.workspace / name).write_text(text)
        self.script = self.folder / "model.json"
        self.say(replies)
        self.port = free_port()
        self.process = None

    def say(self, replies, **more):
        """What the model says from the next start on."""
        price = {"input": 3, "output": 15}
        whole = {"replies": replies, "model": "scripted", "price": price, "context_window": 200_000}
        self.script.write_text(json.dumps(whole | more))

    @property
    def environ(self):
        """A home of its own: rules that are made of answers are nobody else's."""
        places = {"HOME": str(self.folder / "home"), "BRIDLE_STATE": str(self.folder / "state")}
        odd = ("XDG_", "PYTHON", "LC_")
        bare = {name: text for name, text in os.environ.items() if not name.startswith(odd)}
        return {**bare, **places, "NO_COLOR": "1", "LANG": "C.UTF-8"}

    def start(self):
        """Until it says where it is; the address signs in once."""
        line = ["bridle", "serve", "--port", str(self.port)]
        line += ["--workspace", str(self.workspace), "--model", f"scripted:{self.script}"]
        self.process = begun(
            [*line, *self.flags],
            self.environ,
            big=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )
        said = []
        for text in self.process.stdout:
            said.append(text)
            if found := CODE.search(text):
                self.url, self.code = found[1], found[3]
                return self
        raise AssertionError("".join(said))

    def kill(self):
        """As the power does."""
        self._end(signal.SIGKILL)

    def stop(self):
        """As Ctrl-C does."""
        self._end(signal.SIGTERM)

    def _end(self, how):
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(20)
        self.process = None

    def token(self, name, role):
        """A token for somebody else. The server reads its file anew."""
        line = [sys.executable, "-m", "bridle", "serve", "token", "add", name, "--role", role]
        said = subprocess.run(
            [*line, "--json"], env=self.environ, capture_output=True, text=True, check=True
        )
        return json.loads(said.stdout)["token"]

    def recorded(self, session, kind):
        """The records of that kind in a session's log. What a page shows is written already."""
        path = self.folder / "state" / "sessions" / session / "log.jsonl"
        whole, _, _ = path.read_bytes().rpartition(b"\n")  # one may be half written in this moment
        records = [json.loads(line)["data"] for line in whole.splitlines()]
        return [one for one in records if one["type"] == kind]


class Line:
    """A line to a server that can stall: then nothing arrives, and nothing says so."""

    def __init__(self, port):
        self._port = port
        self._flows = threading.Event()
        self._flows.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends, self._stalled = [], []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self):
        self._flows.clear()

    def heal(self):
        """What was held back arrives."""
        self._flows.set()

    def begin_anew(self):
        """What was held back stays so; new connections work."""
        self._stalled.append(self._flows)
        self._flows = threading.Event()
        self._flows.set()

    def close(self):
        for flows in (*self._stalled, self._flows):
            flows.set()
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                browser, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._ends += (browser, server)
                for ends in ((browser, server), (server, browser)):
                    threading.Thread(
                        target=self._carry, args=(*ends, self._flows), daemon=True
                    ).start()

    def _carry(self, source, target, flows):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                flows.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


class Window:
    """A browser context with one page."""

    def __init__(self, browser, served, **options):
        self.served = served
        self.context = browser.new_context(
            viewport=options.pop("viewport", WIDE), reduced_motion="reduce", **options
        )
        self.context.set_default_timeout(SLOW)
        self.page = self.context.new_page()
        self.requests, self.mishaps, self.dialogs = [], [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.mishaps.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(1), dialog.dismiss()))

    def sign_in(self, code=None):
        """Open the address that the server printed."""
        self.page.goto("about:blank")  # another fragment alone would load nothing
        self.page.goto(f"{self.served.url}/#code={code or self.served.code}")
        expect(self.page.get_by_role("heading", name="What would you like to do?")).to_be_visible()
        return self

    def begin(self, text):
        """A new session with this prompt; its id."""
        field = self.page.get_by_role("textbox", name="Describe a task…")
        field.fill(text)
        field.press("Enter")
        expect(self.feed).to_be_visible()
        return self.session

    @property
    def session(self):
        """The id of the session that is shown."""
        return re.search(r"#/s/([\w-]+)", self.page.url)[1]

    @property
    def feed(self):
        return self.page.get_by_role("feed")

    @property
    def composer(self):
        return self.page.locator("#composer")

    def send(self, text):
        self.composer.fill(text)
        self.composer.press("Enter")

    def has_ended(self, turns=1):
        """Wait until so many turns are over: their words are shown before that."""
        expect(self.page.locator(".account-line")).to_have_count(turns)

    def question(self, name=""):
        return self.page.locator(".feed section.question").filter(has_text=name)

    @property
    def elsewhere(self):
        """Requests that left the server."""
        ours = (self.served.url, "data:", "blob:")
        return [url for url in self.requests if not url.startswith(ours)]

    def is_well(self):
        """Nothing broke, nothing asked, nothing left."""
        assert (self.mishaps, self.dialogs, self.elsewhere) == ([], [], [])

    def axe(self):
        """What an accessibility checker finds serious or worse on the page as it is now."""
        self.page.add_script_tag(path=str(package("axe-core") / "axe.min.js"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        return [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in bad]


def until(page, wanted):
    """Let the page go on until that holds: what it asks the network for leaves when it leaves."""
    deadline = time.monotonic() + SLOW / 1000
    while not wanted():
        assert time.monotonic() < deadline, "that did not come to pass"
        page.wait_for_timeout(10)


@contextmanager
def chromium():
    """The browser, as long as a file of tests needs it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True)
        try:
            yield browser
        finally:
            browser.close()
