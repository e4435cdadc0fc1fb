"""Real bash is the judge of `cd`: wherever a command really runs, that folder was judged."""

import os
import random
import subprocess

import pytest

from bridle.command_analysis.analysis import analyze
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace
from rig import seeds

LINES_OF_A_SEED = 30
STEPS = (
    *("cd a", "cd b", "cd ..", "cd nowhere", "cd a/b", "cd ./a/..", "true", "false", "cd link"),
    *("cd -P link", "cd link/..", "command cd ..", "builtin cd a", "eval 'cd ..'", "time cd a"),
)
JOINTS = ("; ", " && ", " || ", " | ", " & ", "\n")


def line_of(chance):
    """Some steps from folder to folder, with a `cat` of a name of its own after many of them."""
    text, count = "", 0
    for _ in range(chance.randint(2, 6)):
        piece = chance.choice(STEPS)
        if chance.random() < 0.6:
            count += 1
            piece = f"cat m{count}" if chance.random() < 0.5 else f"{piece} && cat m{count}"
        if chance.random() < 0.25:
            piece = f"({piece})" if chance.random() < 0.5 else f"{{ {piece}; }}"
        text += (chance.choice(JOINTS) if text else "") + piece
    return text


@pytest.fixture
def machine(tmp_path):
    root = tmp_path / "ws"
    (root / "a" / "b").mkdir(parents=True)
    (root / "b" / "a").mkdir(parents=True)
    (root / "link").symlink_to(root / "a" / "b")
    (root / "a" / "link").symlink_to(root / "b" / "a")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "cat").write_text('#!/bin/sh\necho "$(pwd -P)/$1" >> "$SEEN"\n')
    (programs / "cat").chmod(0o755)
    return LocalMachine(Workspace(root), home=str(tmp_path))


def really_read(line, machine, tmp_path):
    """The paths that the line really reads, from bash."""
    seen = tmp_path / "seen"
    seen.write_text("")
    names = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "SEEN": str(seen),
        "HOME": machine.home,
    }
    subprocess.run(
        ["bash", "-c", f"{line}\nwait"], cwd=machine.root, env=names, capture_output=True,
        timeout=240, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return set(seen.read_text().split())


@pytest.mark.parametrize("seed", seeds(60))
def test_a_command_runs_in_no_folder_that_was_not_judged(seed, machine, tmp_path):
    chance = random.Random(seed)
    for _ in range(LINES_OF_A_SEED):
        line = line_of(chance)
        found = analyze(line, machine.root, machine)
        if found.opaque:
            continue
        reads = [act.subject for act in found.acts if act.names == ("read",)]
        judged = {
            subject if subject[0] == "/" else f"{machine.root}/{subject}" for subject in reads
        }
        assert really_read(line, machine, tmp_path) <= judged, line
