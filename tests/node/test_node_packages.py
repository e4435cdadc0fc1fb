"""What npm brings is there at the versions that are written down, and a lack of it is said."""

import json
import os
import shutil
import subprocess

import pytest

from node import rig
from node.rig import node, package


def test_every_package_is_there_at_the_version_that_is_written_down():
    wanted = json.loads(rig.WANTED.read_text())["dependencies"]
    found = {name: json.loads((package(name) / "package.json").read_text()) for name in wanted}
    versions = {name: one.rpartition("@")[2] for name, one in wanted.items()}  # some have an alias
    assert {name: one["version"] for name, one in found.items()} == versions


def test_the_node_that_is_used_is_the_one_that_was_installed():
    said = subprocess.run([node(), "--version"], capture_output=True, text=True, check=True)
    wanted = json.loads(rig.WANTED.read_text())["dependencies"]["node"]
    assert said.stdout == f"v{wanted}\n"


def test_without_them_a_test_fails_and_says_what_to_run(monkeypatch, tmp_path):
    monkeypatch.setattr(rig, "PLACE", tmp_path)
    with pytest.raises(AssertionError, match="node is not there as wanted: run scripts/node-pack"):
        node()


def test_to_install_again_what_is_there_does_nothing():
    said = subprocess.run([rig.ROOT / "scripts" / "node-packages"], capture_output=True, check=True)
    assert (said.stdout, said.stderr) == (b"", b"")


NEEDED = ("bash", "cat", "chmod", "cp", "cut", "dirname", "env", "flock", "mkdir", "rm", "tail")
NPM = """#!/bin/sh
echo "$@" >> calls
mkdir -p .cache/node/node_modules/.bin
printf '#!/bin/sh\\necho v22\\n' > .cache/node/node_modules/.bin/node
chmod +x .cache/node/node_modules/.bin/node
"""


@pytest.fixture
def elsewhere(tmp_path):
    """The script in a tree of its own, on a machine that has little: run it with these programs."""
    shutil.copytree(rig.ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "tests" / "node").mkdir(parents=True)
    shutil.copy(rig.WANTED, tmp_path / "tests" / "node")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (*NEEDED, "sha256sum"):
        (programs / name).symlink_to(shutil.which(name))

    def install(**fakes):
        for name, text in {"id": "#!/bin/sh\necho 1000\n", **fakes}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        script = [tmp_path / "scripts" / "node-packages"]
        environ = {**os.environ, "PATH": str(programs)}
        return subprocess.run(script, cwd=tmp_path, env=environ, capture_output=True, text=True)

    return install


def test_where_there_is_no_npm_and_no_right_to_install_it_the_line_to_run_is_said(elsewhere):
    done = elsewhere()
    assert done.returncode == 1
    assert done.stderr == (
        "The tests need nodejs npm. Run this, then try again:\n"
        "  sudo apt-get install -y --no-install-recommends nodejs npm\n"
    )


def test_what_npm_says_when_it_fails_is_shown_and_nothing_counts_as_installed(elsewhere, tmp_path):
    done = elsewhere(node="#!/bin/sh\n", npm="#!/bin/sh\necho no such package\nexit 1\n")
    assert done.returncode == 1
    assert done.stderr.startswith("no such package\n")
    assert "  npm install --prefix .cache/node" in done.stderr
    assert not (tmp_path / ".cache" / "node" / ".ready").exists()


def test_it_installs_once_and_again_only_when_other_versions_are_wanted(elsewhere, tmp_path):
    wanted = tmp_path / "tests" / "node" / "package.json"
    for change in ("", "", " "):
        wanted.write_text(wanted.read_text() + change)
        assert elsewhere(node="#!/bin/sh\n", npm=NPM).returncode == 0
    assert len((tmp_path / "calls").read_text().splitlines()) == 2
    assert (tmp_path / ".cache" / "node" / "package.json").read_text() == wanted.read_text()
