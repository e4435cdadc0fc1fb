"""On real machine: what is said to only read, run for real, changes nothing and shows no secret."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from deciding import verdict
from hostile import FLOOR, GUARDED

from bridle.command_analysis import programs
from bridle.command_analysis.analysis import analyze
from bridle.command_analysis.argv import flag_table, join_quoted
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace
from rig import seeds

LINES_OF_A_SEED = 40
SECRET = "canary-5e1d"
FILES = ("README.md", "src/app.py", "src/util.py", "tests/test_a.py", "package.json", "data.csv")
ENDLESS = {"tail", "sleep", "tokei", "wait", "exit", "return", "exec", "seq", "cal"}
VALUES = ("1", "2", "x", "README.md", "src", "out", "../outside/secret", ".env", "%s", "a,b", "+1")
WORDS = (*VALUES, "src/app.py", "data.csv", ".", "*.md", "-", "p", ".name", "{print $1}", "-n")


@pytest.fixture
def machine(tmp_path):
    root, home, outside = tmp_path / "ws", tmp_path / "home", tmp_path / "outside"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text('{"name": "x", "a": [1, 2]}\n')
    for folder in (home, outside):
        folder.mkdir()
    (root / ".env").write_text(SECRET)
    (outside / "secret").write_text(SECRET)
    (root / "src" / "link").symlink_to(outside / "secret")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    return LocalMachine(Workspace(root), home=str(home))


def everything(machine):
    """Every file in and around the workspace but what git keeps for itself, with its content."""
    paths = Path(machine.root).parent.rglob("*")
    return {str(path): path.read_bytes() for path in paths if path.is_file() and is_ours(path)}


def is_ours(path):
    return ".git" not in path.parts


def run(line, machine):
    """What it prints."""
    clean = {"PATH": os.environ["PATH"], "HOME": machine.home, "LANG": "C"}
    ended = subprocess.run(
        ["bash", "-c", line], cwd=machine.root, env=clean, capture_output=True, timeout=240,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return ended.stdout


def somewhat(name, chance):
    """A line of that program with flags of its own and of nobody's, and words of any kind."""
    entry, words = programs.PROGRAMS[name], [name]
    while entry.subcommands and chance.random() < 0.95:
        verb = chance.choice(sorted(entry.subcommands))
        entry = entry.subcommands[verb]
        words.append(verb)
    flags = [f for f in flag_table(entry.flags) if f not in ("-#", "*", "-f", "-F", "--follow")]
    for _ in range(chance.randint(0, 3)):
        flag = chance.choice([*flags, "-o", "--output", "-w", "-e"])
        takes = flag_table(entry.flags).get(flag, "")
        value = chance.choice(VALUES)
        joined = takes and chance.random() < 0.5
        words.append(f"{flag}={value}" if joined and flag.startswith("--") else flag)
        if takes.startswith("=") and not joined:
            words.append(value)
    words += chance.choices(WORDS, k=chance.randint(0, 3))
    return " ".join(word if word == "*.md" else join_quoted([word]) for word in words)


READERS = sorted(
    name
    for name, entry in programs.PROGRAMS.items()
    if (entry.does == "reads" or name == "git") and name not in ENDLESS and shutil.which(name)
)


@pytest.mark.parametrize("seed", seeds(60))
def test_a_line_that_runs_unasked_changes_nothing_and_shows_no_secret(seed, machine):
    chance = random.Random(seed)
    before = everything(machine)
    for _ in range(LINES_OF_A_SEED):
        line = somewhat(chance.choice(READERS), chance)
        if verdict(line, machine=machine) == "allow":
            assert SECRET.encode() not in run(line, machine), line
            assert everything(machine) == before, line


def test_everyday_lines_run_unasked_on_real_ground_and_change_nothing(machine):
    before = everything(machine)
    lines = [line for entry in programs.PROGRAMS.values() for line in entry.runs]
    asked = [line for line in lines if verdict(line, machine=machine) != "allow"]
    assert asked == []
    names = {"cat", "grep", "sed", "awk", "find", "head", "sort", "cut", "ls", "wc", "git", "diff"}
    for line in [line for line in lines if line.split()[0] in names]:
        run(line, machine)
        assert everything(machine) == before, line


def test_the_floor_and_what_takes_a_person_hold_on_real_ground(machine):
    loose = [line for line in FLOOR if not analyze(line, machine.root, machine).floor]
    assert [line for line in loose if "/home/me" not in line] == []
    soft = [analyze(line, machine.root, machine) for line in GUARDED]
    assert [found for found in soft if not (found.guard or found.floor)] == []


def test_a_link_that_leads_out_asks(machine):
    assert verdict("cat src/link", machine=machine) == "ask"
    assert verdict("cat src/*", machine=machine) == "ask"
    assert verdict("cat *.md", machine=machine) == "allow"


def test_a_repository_that_can_run_programs_asks(machine):
    assert verdict("git status", machine=machine) == "allow"
    config = ["git", "config", "core.fsmonitor", "./x"]
    subprocess.run(config, cwd=machine.root, check=True)
    assert verdict("git status", machine=machine) == "ask"


@pytest.mark.parametrize("line", ["rg x", "timeout 5 ls", "ls | rg x", "env rg x"])
def test_a_program_that_the_path_finds_in_the_workspace_asks_like_a_build(
    machine, monkeypatch, line
):
    tools = Path(machine.root, ".venv/bin")
    tools.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    assert verdict(line, machine=machine) == "allow"
    local = next(name for name in ("rg", "timeout") if name in line)
    (tools / local).write_text("#!/bin/sh\n")
    (tools / local).chmod(0o755)
    assert verdict(line, machine=machine) == "builds"
    found = [act for act in analyze(line, machine.root, machine).acts if act.does != "reads"]
    assert [(act.does, act.reason) for act in found] == [
        ("builds", f"runs the workspace's own {local}")
    ]


@pytest.mark.parametrize(
    ("line", "does"),
    [
        (".venv/bin/timeout 5 ls", "builds"),
        ("/opt/mine/env ls", "changes"),
        ("TIMEOUT 5 ls", "changes"),
    ],
)
def test_what_lies_somewhere_by_the_name_of_a_wrapper_is_not_that_wrapper(machine, line, does):
    acts = analyze(line, machine.root, machine).acts
    assert [act.does for act in acts if act.does != "reads"] == [does]
