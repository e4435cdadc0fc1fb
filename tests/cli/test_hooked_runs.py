"""Hooks of files at the command line: whose run, a bad file, what doctor and config say of them."""

import json
from pathlib import Path

from cli_program import Program

from bridle.config.trust import Trust

WRITE = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]}
NO = "- {on: before_tool, tool: write, run: 'echo not %s >&2; exit 2'}\n"


def mine(bridle) -> Path:
    path = bridle.home / ".config/bridle/hooks.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def theirs(bridle) -> Path:
    path = bridle.workspace / ".bridle/hooks.yaml"
    path.parent.mkdir(exist_ok=True)
    return path


def test_the_person_s_own_hook_denies_also_with_yes(bridle: Program):
    mine(bridle).write_text(NO % "mine")
    done = bridle.run("run", "go", "--yes", "-m", bridle.script(WRITE, "ok"))
    assert "a hook denied it: not mine" in done.stderr
    assert not (bridle.workspace / "a.txt").exists()


def test_a_folder_s_hooks_run_only_after_bridle_trust(bridle: Program):
    theirs(bridle).write_text("- {on: [before_turn, before_tool], run: touch ran}\n")
    done = bridle.run("run", "go", "-m", bridle.script("ok"))
    assert "this folder has its own hooks, which do not run" in done.stderr
    assert not (bridle.workspace / ".bridle/ran").exists()
    assert bridle.run("trust", "--yes").returncode == 0
    done = bridle.run("run", "go", "-m", bridle.script("ok"))
    assert (done.returncode, done.stdout, "hooks" in done.stderr) == (0, "ok\n", False)
    assert (bridle.workspace / ".bridle/ran").exists()


def test_a_hook_that_runs_a_file_of_the_workspace_refuses_to_start(bridle: Program):
    (bridle.workspace / "check").write_text("#!/bin/sh\n")
    mine(bridle).write_text(f"- {{on: before_tool, run: [{bridle.workspace}/check]}}\n")
    done = bridle.run("run", "go", "-m", bridle.script("ok"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "hooks.yaml:1: it is refused: it names" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_file_refuses_to_start_with_its_line(bridle: Program):
    mine(bridle).write_text("hooks:\n  - on: before_lunch\n    run: x\n")
    done = bridle.run("run", "go", "-m", bridle.script("ok"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "hooks.yaml:2: `on` has to name a moment" in done.stderr
    assert "Traceback" not in done.stderr
    assert bridle.logs() == []
    doctor = bridle.run("doctor", "--json", BRIDLE_MODEL="offline")
    found = [one for one in json.loads(doctor.stdout) if one["topic"] == "hooks"]
    assert [(one["good"], "hooks.yaml:2" in one["found"]) for one in found] == [(False, True)]


def test_a_bad_file_of_a_folder_cannot_be_trusted(bridle: Program):
    theirs(bridle).write_text("- {on: after_turn}\n")
    done = bridle.run("trust", "--yes")
    assert done.returncode == 2
    assert "hooks.yaml:1: this hook does not say `run`" in done.stderr
    assert Trust(bridle.state).folders() == {}


def test_doctor_and_config_say_which_hooks_are_active(bridle: Program):
    mine(bridle).write_text(NO % "mine")
    theirs(bridle).write_text("- {on: after_turn, run: [./notify, me]}\n")
    summary = "before_tool of write: echo not mine >&2; exit 2"
    doctor = json.loads(bridle.run("doctor", "--json", BRIDLE_MODEL="offline").stdout)
    found = [one["found"] for one in doctor if one["topic"] == "hook"]
    assert found == [f"{summary} ({mine(bridle)}:1)"]
    shown = json.loads(bridle.run("config", "show", "--json").stdout)["hooks"]
    assert shown == [{"does": summary, "from": f"{mine(bridle)}:1"}]
    Trust(bridle.state).grant(bridle.workspace)
    plain = bridle.run("config", "show").stdout
    assert "after_turn: ./notify me" in plain
    assert json.loads(bridle.run("config", "show", "--json").stdout)["hooks"][1]["from"].endswith(
        ".bridle/hooks.yaml:1"
    )


def test_a_prompt_that_a_hook_refuses_is_said_and_leaves_no_session(bridle: Program):
    mine(bridle).write_text("- {on: before_prompt, run: 'grep -q password && exit 2; exit 0'}\n")
    done = bridle.run("run", "my password is x", "-m", bridle.script("ok"))
    assert done.returncode != 0
    assert "a hook refused the prompt, and nothing was sent" in done.stderr
    assert "Traceback" not in done.stderr
    assert bridle.logs() == []
    assert bridle.run("run", "hello", "-m", bridle.script("ok")).stdout == "ok\n"


def test_no_key_reaches_a_hook(bridle: Program):
    mine(bridle).write_text("- {on: before_turn, run: 'cd; env > seen; cat >> seen'}\n")
    bridle.run("run", "go", "-m", bridle.script("ok"), ANTHROPIC_API_KEY="sk-ant-canary-0123456789")
    seen = (bridle.home / "seen").read_text()
    assert ("canary" in seen, '"moment":"before_turn"' in seen) == (False, True)


def test_a_hook_s_changed_arguments_are_judged_again(bridle: Program):
    said = json.dumps({"arguments": {"path": "../out.txt", "content": "x"}})
    mine(bridle).write_text(f"- {{on: before_tool, run: [echo, '{said}']}}\n")
    done = bridle.run("run", "go", "--yes", "-m", bridle.script(WRITE, "ok"))
    assert "not run" in done.stderr
    assert not (bridle.workspace / "a.txt").exists()
    assert not (bridle.workspace.parent / "out.txt").exists()
