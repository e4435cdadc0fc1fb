"""The guide to a chat of one's own, followed step by step: its files, its commands, its outputs.

A line that is the name of a file in backquotes says where the code below it goes. In a block
`console`, what follows `$` is run, and what stands under it has to come out; `...` is anything.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from test_new import environ, tree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "chat-app.md"
EXAMPLE = ROOT / "examples" / "expenses"
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
    """Does what the guide says, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.ran = []

    def follow(self, kind, what, rest):
        if kind == "file":
            (self.folder / what).write_text(rest, "utf-8")
        elif what.startswith("cd "):
            self.folder = self.folder / what.removeprefix("cd ")
        else:
            self.run(what, rest)

    def run(self, command, shown):
        program, *words = shlex.split(command)
        module = {"bridle": ["-m", "bridle"], "pytest": ["-m", "pytest"], "python": []}[program]
        line = [sys.executable, *module, *words]
        if program == "pytest":
            line += ["-p", "no:cacheprovider"]
        done = subprocess.run(
            line, cwd=self.folder, env=environ(), capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert fits(shown, done.stdout), f"{command}\n{done.stdout}{done.stderr}"
        assert (done.returncode, done.stderr) == (0, "")
        self.ran.append(program)


def test_T2_whoever_follows_the_guide_has_an_expenses_assistant(tmp_path):
    """Its files as it says, its commands in its order, its outputs word for word."""
    reader = Reader(tmp_path)
    for step in steps():
        reader.follow(*step)
    assert reader.ran == ["bridle", "pytest", "python", "python", "python", "pytest"]
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
