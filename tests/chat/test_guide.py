"""The guide to a chat of one's own, followed step by step: its files, its commands, its outputs.

A line that is the name of a file in backquotes says where the code below it goes. In a block
`console`, what follows `$` is run, and what stands under it has to come out; `...` is anything.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from new_rig import Served, environ, tree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "chat-app.md"
EXAMPLE = ROOT / "examples" / "expenses"
PORT = "8421"
STEP = re.compile(
    r"^```(?P<kind>python|console)\n(?P<block>.*?)^```$|`(?P<file>[\w/]+\.py)`:?$", re.M | re.S
)


def steps():
    """("file", name, code) and ("run", command, what comes out), in the order of the guide."""
    name = ""
    for found in STEP.finditer(PAGE.read_text("utf-8")):
        if found["file"]:
            name = found["file"]
        elif found["kind"] == "python":
            assert name, "code that belongs to no file"
            yield "file", name, found["block"]
            name = ""
        else:
            for part in re.split(r"^\$ ", found["block"], flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                yield "run", command, output


def fits(shown, said):
    """Is that what the guide shows?"""
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, said, re.S) is not None


class Reader:
    """Does what the guide says, in a folder, with a shell."""

    def __init__(self, folder):
        self.folder = folder
        tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        state = {"BRIDLE_STATE": str(folder / "state"), "PYTEST_ADDOPTS": "-p no:cacheprovider"}
        self.environ = {**environ(), **state, "PATH": tools}
        self.server = None
        self.ran = []

    def follow(self, kind, what, rest):
        if kind == "file":
            (self.folder / what).write_text(rest, "utf-8")
        elif what.startswith("cd "):
            self.folder = self.folder / what.removeprefix("cd ")
        elif what.startswith("bridle chat-server --app"):
            self.serve(what, rest)
        else:
            self.run(what, rest)

    def run(self, command, shown):
        name, _, inner = command.partition("=$(")
        line = inner.removesuffix(")") if inner else command.replace(PORT, self.port)
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environ, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if inner:
            self.environ[name] = done.stdout.strip()
        else:
            assert fits(shown, done.stdout.rstrip("\n") + "\n"), f"{command}\n{done.stdout}"
            assert done.stderr == ""
        self.ran.append(line.split()[0])

    @property
    def port(self):
        return self.server.url.rpartition(":")[2] if self.server else PORT

    def serve(self, command, shown):
        """A server runs on, at a port that is free."""
        self.server = Served(f"exec {command} --port 0", self.folder, self.environ)
        assert fits(shown.replace(PORT, self.port), self.server.first + "\n")


@pytest.mark.timeout(300)  # a dozen programs, one after the other
def test_T2_whoever_follows_the_guide_has_an_expenses_assistant(tmp_path):
    """T3, T6: its files as it says, its commands in its order, its outputs word for word."""
    reader = Reader(tmp_path)
    try:
        for step in steps():
            reader.follow(*step)
    finally:
        if reader.server is not None:
            assert reader.server.stop() == 0
    programs = ["bridle", "pytest", "python", "python", "python", "pytest", "bridle", "curl"]
    assert reader.ran == [*programs, "curl"]
    made = {one for one in tree(tmp_path / "expenses") if ".db" not in one}
    assert made == set(tree(EXAMPLE))
    for one in made - {"README.md", "expenses/__init__.py"}:
        assert (tmp_path / "expenses" / one).read_text() == (EXAMPLE / one).read_text()


def test_the_guide_shows_every_file_that_it_changes():
    written = [what for kind, what, _ in steps() if kind == "file"]
    assert written == [
        "expenses/tables.py",
        "expenses/tools.py",
        "expenses/rules.py",
        "expenses/profile.py",
        "expenses/app.py",
        "talk.py",
        "tests/test_chat.py",
    ]
