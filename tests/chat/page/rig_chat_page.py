"""A real `bridle chat-server --demo`, and real Chromium windows of its two users in front of it."""

import os
import re
import signal
import subprocess
from pathlib import Path

from playwright.sync_api import expect

from nursery import begun
from web.rig_page import SLOW, WIDE, free_port, package

LINK = re.compile(r"^\s+(\w+)\s+(http://[\d.]+:\d+)/chat#token=(\S+)", re.M)


class ChatServed:
    """The demo in a folder of its own; `tokens` are those of its users."""

    def __init__(self, folder, *flags):
        self.folder, self.flags, self.port = Path(folder), flags, free_port()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = None

    def start(self):
        """Until it says where it is."""
        places = {"HOME": str(self.folder), "BRIDLE_STATE": str(self.folder / "state")}
        odd = ("XDG_", "PYTHON", "LC_")
        bare = {name: text for name, text in os.environ.items() if not name.startswith(odd)}
        line = ["bridle", "chat-server", "--demo", "--port", str(self.port)]
        self.process = begun(
            [*line, *(self.flags or ("--messages-a-minute", "0"))],
            {**bare, **places, "NO_COLOR": "1", "LANG": "C.UTF-8"},
            big=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
        )
        said = ""
        for text in self.process.stdout:
            said += text
            if "  stop" in text:
                found = LINK.findall(said)
                self.url = found[0][1]
                self.tokens = {user: token for user, _, token in found}
                return self
        raise AssertionError(said)

    def stop(self):
        """As Ctrl-C does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.stdout.read()
            self.process.stdout.close()
            self.process.wait(30)
            self.process = None


class ChatWindow:
    """A browser of its own, with one page."""

    def __init__(self, browser, served, **options):
        self.served = served
        looks = {"viewport": WIDE, "locale": "en-US", "reduced_motion": "reduce", **options}
        self.context = browser.new_context(**looks)
        self.context.set_default_timeout(SLOW)
        self.page = self.context.new_page()
        self.requests, self.mishaps = [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.mishaps.append(str(error)))
        self.page.on("console", lambda said: self._heard(said))

    def _heard(self, said):
        if said.type == "error" and "401" not in said.text:
            self.mishaps.append(said.text)

    def sign_in(self, user):
        """Open the link that was printed."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.served.url}/chat#token={self.served.tokens[user]}")
        expect(self.field).to_be_visible()
        return self

    @property
    def field(self):
        return self.page.locator("#say")

    @property
    def log(self):
        return self.page.get_by_role("log")

    @property
    def tasks(self):
        return self.page.locator("aside.tasks")

    @property
    def titles(self):
        return self.tasks.locator(".task-title bdi").all_inner_texts()

    def say(self, text, reply=None):
        """Type it and send it; wait for what is expected back, until it is whole."""
        self.field.fill(text)
        self.field.press("Enter")
        if reply is not None:
            answer = self.log.locator(".line.assistant").last
            expect(answer).to_contain_text(reply)
            expect(answer).to_contain_class("there")

    def is_well(self):
        """Nothing broke, nothing left the server, and no secret stays in the address."""
        ours = (self.served.url, "data:", "blob:", "about:")
        assert (self.mishaps, [u for u in self.requests if not u.startswith(ours)]) == ([], [])
        assert "token" not in self.page.url

    def axe(self):
        """What an accessibility checker finds serious or worse on the page as it is now."""
        self.page.add_script_tag(path=str(package("axe-core") / "axe.min.js"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        return [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in bad]
