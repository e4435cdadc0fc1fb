"""What npm brings is there at the versions that are written down, and a lack of it is said."""

import json
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
