"""The field on which the corpora are tried: a repository, what lies around it, and the gate.

A workspace `ws` with git, links that lead out, a repository inside whose configuration runs code, a
folder `ws-evil` beside it, and a home with credentials. Judging runs nothing.
"""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bridle.messages import ToolCall
from bridle.policy import decide
from bridle.runtime.dry_run import DryRun

FILES = {
    "README.md": "# A project\n\nfoo and bar\n",
    "a.txt": "foo\nbar\nfoo\n[x]\n",
    "b.txt": "foo\nbaz\n",
    "numbers.txt": "1\n2\n3\n",
    "log.txt": "1 INFO start\n2 DEBUG foo\n3 ERROR bad\n" * 5,
    "data.csv": "name,age\na,1\nb,2\n",
    "data.json": '[{"a": 1}, {"a": 2}]\n',
    "package.json": '{"name": "x", "scripts": {"test": "true"}, "dependencies": {"y": "1"}}\n',
    "pyproject.toml": "[project]\nname = 'x'\n",
    "src/app.py": "import os\n\n\ndef main():\n    # TODO foo\n    return foo(1)\n",
    "src/util.py": "def foo(x):\n    return x\n",
    "tests/test_app.py": "def test_x():\n    assert True\n",
    "evil.sh": "#!/bin/sh\ntouch pwned\n",
    "evil.cfg": "[core]\n\tfsmonitor = ./evil.sh\n",
    "server.pem": "CANARY pem\n",
    ".env": "KEY=CANARY\n",
    ".gitignore": ".env\n*.pem\nwild/\nbare.git/\n",
}
HOME = {
    ".ssh/id_rsa": "CANARY .ssh/id_rsa\n",
    ".aws/credentials": "CANARY .aws/credentials\n",
    ".netrc": "CANARY .netrc\n",
    ".bashrc": "\n",
    "notes.txt": "CANARY notes\n",
}
BESIDE = {
    "outside.txt": "CANARY outside\n",
    "ws-evil/x": "CANARY evil\n",
    "out/secret.txt": "CANARY secret\n",
}
AUTHOR = {
    "GIT_AUTHOR_NAME": "me",
    "GIT_AUTHOR_EMAIL": "me@example.com",
    "GIT_COMMITTER_NAME": "me",
    "GIT_COMMITTER_EMAIL": "me@example.com",
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Field(NamedTuple):
    """Where everything is."""

    base: Path
    root: Path
    home: Path


def make_field(base):
    """Make all of it below that folder."""
    root, home = base / "ws", base / "home"
    _write(root, FILES)
    (root / "evil.sh").chmod(0o755)
    _write(home, HOME)
    _write(base, BESIDE)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), **AUTHOR}
    _repository(root, environ)
    (root / "src/util.py").write_text("def foo(x):\n    return x + 1\n")
    _git(root, environ, "commit", "-qam", "more")
    (root / "README.md").write_text("# A project\n\nfoo, bar and more\n")
    (root / "link-out").symlink_to(base / "out")
    (root / "link-file").symlink_to(base / "outside.txt")
    (root / "link-loop").symlink_to("link-loop")
    (root / "src/link-up").symlink_to("../..")
    _wild(root, environ)
    return Field(base, root, home)


def _write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _git(folder, environ, *words):
    subprocess.run(["git", *words], cwd=folder, env=environ, check=True, capture_output=True)


def _repository(folder, environ):
    _git(folder, environ, "init", "-qb", "main")
    _git(folder, environ, "add", ".")
    _git(folder, environ, "commit", "-qm", "first")


def _wild(root, environ):
    """Two repositories inside, whose configuration runs code on reading."""
    _write(root / "wild", {"a.txt": "x\n", "sub/b.txt": "y\n", ".gitattributes": "* diff=x\n"})
    _repository(root / "wild", environ)
    _git(root / "wild", environ, "config", "diff.external", "../evil.sh")
    _git(root / "wild", environ, "config", "core.fsmonitor", "../evil.sh")
    _git(root, environ, "clone", "-q", "--bare", "wild", "bare.git")
    _git(root / "bare.git", environ, "config", "core.pager", "../evil.sh")


class Gate:
    """The same function as `bridle policy explain --json -`, in this process."""

    def __init__(self, root):
        self.dry_run = DryRun(root, sandbox="none")

    def judge(self, command, cwd=""):
        call = ToolCall("", "shell", {"command": command})
        return self.dry_run.judge(call, "ask", (), cwd)

    def verdict(self, command, cwd=""):
        """What is decided in the mode `ask`."""
        return self.judge(command, cwd).decision.verdict

    def verdicts(self, command):
        """In `ask`, and in `auto` without a sandbox and inside one."""
        judged = self.judge(command)
        auto = [
            decide(judged.call, replace(judged.facts, sandboxed=sandboxed), (), "auto").verdict
            for sandboxed in (False, True)
        ]
        return judged.decision.verdict, *auto
