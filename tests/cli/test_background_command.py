"""`bridle run --detach`, `ps`, `attach ID`, `stop`: sessions in the background."""

import json
import os
import secrets
import signal
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from cli_program import Program

from bridle.cli.background_server import _secret

SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}
SLEEP = {"calls": [{"name": "shell", "arguments": {"command": "sleep 600"}}]}
ALLOW = ("--rule", "allow: shell(sleep *)")


@pytest.fixture
def background(bridle: Program):
    """The program; whatever it left in the background is ended."""
    try:
        yield bridle
    finally:
        for pid in pids(bridle):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def pids(bridle: Program) -> list[int]:
    """The supervisors that run, or that have not let go of their files yet."""
    found = []
    for lock in bridle.state.glob("background/*/lock"):
        pid = lock.read_text() or "0"
        with suppress(OSError):
            words = Path("/proc", pid, "cmdline").read_bytes()  # the first thing that is gone
            state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
            if b"bridle.cli.background_server" in words or (not words and state not in "ZX"):
                found.append(int(pid))
    return found


def detach(bridle: Program, *arguments: str, **environ: str) -> str:
    done = bridle.run("run", "--detach", *arguments, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ps(bridle: Program, *arguments: str):
    return json.loads(bridle.run("ps", "--json", *arguments).stdout)


def until(bridle: Program, wanted, *arguments: str):
    """What `ps` says, once it says that."""
    end = time.monotonic() + 240
    while not wanted(found := ps(bridle, *arguments)):
        assert time.monotonic() < end, found
    return found


def states(found) -> list[str]:
    return [one["state"] for one in found]


def test_a_prompt_in_the_background_is_done_without_us_and_the_process_goes_when_idle(background):
    background.environ["BRIDLE_BACKGROUND_IDLE"] = "2"  # who has started it comes sooner
    session = detach(background, "-m", background.script("Done."), "hi")
    [one] = until(background, lambda found: states(found) == ["done"], "--all")
    assert (one["id"], one["title"], one["background"]) == (session, "hi", True)
    assert one["workspace"] == str(background.workspace)
    while pids(background):
        pass
    assert background.run("ps").stdout.startswith("No session is running.")
    assert not list(background.state.glob("background/*/socket"))


def test_what_is_kept_for_it_is_private_and_has_no_key_in_it(background):
    key = "sk-ant-not-a-real-key-but-long-enough-000000"
    background.environ["ANTHROPIC_API_KEY"] = key
    detach(background, "-m", background.script("Done."), "hi")
    folder = background.state / "background"
    for one in folder.rglob("*"):
        kind = stat.S_IMODE(one.stat().st_mode)
        assert kind == (0o700 if one.is_dir() else 0o600), one
        assert one.is_socket() or one.is_dir() or key.encode() not in one.read_bytes()


def test_a_question_waits_and_is_answered_by_whoever_attaches(background):
    session = detach(background, "-m", background.script(SHELL, "Made."), "make it")
    [one] = until(background, lambda found: states(found) == ["waiting"])
    assert (one["waiting"], one["id"]) == (1, session)
    assert "needs approval" in background.run("ps").stdout
    with background.terminal("attach", "--plain", session.rpartition("-")[2]) as terminal:
        terminal.expect("make it")
        terminal.expect("$ echo made > made.txt")
        terminal.expect("[y/s/r/N] ")
        terminal.type("y\n")
        terminal.expect("Made.")
        terminal.expect("❯ ")
        terminal.type("\x04")
        assert terminal.end()[0] == 0
    assert (background.workspace / "made.txt").read_text() == "made\n"


def test_a_stop_ends_the_turn_and_what_is_queued_and_keeps_the_session(background):
    model = background.script(SLEEP, SLEEP, "Done.")
    session = detach(background, "-m", model, *ALLOW, "sleep")
    until(background, lambda found: states(found) == ["running"])
    assert detach(background, "-m", model, *ALLOW, "--resume", session, "and again") == session
    done = background.run("stop", session)
    assert (done.returncode, f"stopped {session}" in done.stdout) == (0, True)
    assert ps(background) == []
    log = background.logs()[0].read_text().splitlines()
    ends = [json.loads(line)["data"] for line in log if '"turn_end"' in line]
    assert {one["reason"] for one in ends} == {"interrupted"}


def test_the_process_in_the_background_imports_no_module_from_its_current_folder(background):
    detach(background, *ALLOW, "-m", background.script(SLEEP), "sleep")
    (pid,) = pids(background)
    options, _, _ = Path("/proc", str(pid), "cmdline").read_bytes().partition(b"\0-m\0")
    assert b"-P" in options.split(b"\0")


def test_killed_with_9_it_is_said_and_the_next_command_takes_it_up(background):
    background.environ["BRIDLE_MODEL"] = background.script(SHELL, "Made.")
    session = detach(background, "make it")
    until(background, lambda found: states(found) == ["waiting"])
    running = detach(background, "-m", background.script(SLEEP, name="b"), *ALLOW, "sleep")
    until(background, lambda found: sorted(states(found)) == ["running", "waiting"])
    for pid in pids(background):
        os.kill(pid, signal.SIGKILL)
    while pids(background):
        pass
    # a program that was just being started holds its files until it runs
    left = until(background, lambda found: not any(one["holder"] for one in found))
    found = {one["id"]: one for one in left}
    assert (found[session]["state"], found[session]["holder"]) == ("waiting", "")
    assert (found[running]["state"], found[running]["holder"]) == ("cut off", "")
    assert "ended before the turn did" in background.run("ps").stdout
    with background.terminal("attach", "--plain", session) as terminal:
        terminal.expect("[y/s/r/N] ")
        terminal.type("n\n")
        terminal.expect("approval was denied")
    stopped = background.run("stop", "--all")
    assert (stopped.returncode, ps(background)) == (0, [])
    while pids(background):
        pass


def test_one_who_is_attached_when_it_is_killed_with_9_goes_on(background):
    background.environ["BRIDLE_MODEL"] = background.script("Made.", "Again.")
    session = detach(background, "make it")
    with background.terminal("attach", "--plain", session) as terminal:
        terminal.expect("Made.")
        for pid in pids(background):
            os.kill(pid, signal.SIGKILL)
        terminal.expect("connected again")
        terminal.type("and now?\n")
        terminal.expect("Made.")  # the script of a new process begins anew
    assert len(pids(background)) == 1


def test_two_at_once_start_one_process_and_another_environment_another(background):
    model = background.script("Done.", loop=True)
    command = background.command("run", "--detach", "-m", model, "hi")
    rest = {"cwd": background.workspace, "env": background.environ, "text": True}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **rest)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=240) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert len({out for out, _ in said}) == 2
    assert len(pids(background)) == 1
    detach(background, "-m", model, "hi", ANTHROPIC_API_KEY="another-key-that-is-long")
    assert len(pids(background)) == 2
    detach(background, "-m", model, "--max-cost", "1", "hi")
    assert len(pids(background)) == 3


def test_two_who_make_the_secret_at_once_have_the_same_whole_one(tmp_path, monkeypatch):
    path, others, made = tmp_path / "secret", [], secrets.token_bytes

    def meanwhile(count):
        """Another process is at the same place, and faster."""
        monkeypatch.setattr(secrets, "token_bytes", made)
        others.append(_secret(path))
        return made(count)

    monkeypatch.setattr(secrets, "token_bytes", meanwhile)
    assert [_secret(path)] == others == [path.read_bytes()]
    assert (len(others[0]), stat.S_IMODE(path.stat().st_mode)) == (32, 0o600)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--detach", "--json", "hi"], "--json cannot be combined with --detach"),
        (
            ["run", "--detach", "--on-ask", "park", "hi"],
            "--on-ask cannot be combined with --detach",
        ),
        (["run", "--detach", "-m", "nobody/x", "hi"], "nobody"),
        (["stop"], "name a session"),
        (["stop", "2020"], "there is no session '2020'"),
    ],
)
def test_what_cannot_be_is_said_and_starts_nothing(background, arguments, said):
    done = background.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert pids(background) == []


MINE = """
from bridle.agents.base import AgentResponse
class Writer:
    async def execute(self, prompt, session, **callbacks):
        await session.call("write", {"path": "a.txt", "content": prompt})
        return AgentResponse("Written.")
    async def cancel(self, session_id): ...
    async def shutdown(self): ...
"""


def test_an_agent_of_ones_own_that_is_named_by_its_file_is_found_in_the_background(background):
    """(P8) The process there has another current folder."""
    (background.workspace / "mine.py").write_text(MINE)
    detach(background, "--agent", "./mine.py:Writer", "--mode", "edits", "hello")
    until(background, lambda found: states(found) == ["done"], "--all")
    assert (background.workspace / "a.txt").read_text() == "hello"


WAIT = "until [ -e go ]; do sleep 0.1; done"
WAITS = {"calls": [{"name": "shell", "arguments": {"command": WAIT}}]}


@pytest.mark.parametrize("leave", [signal.SIGHUP, signal.SIGTERM, "hang up", "end of input"])
def test_leaving_never_stops_what_runs_in_the_background(background, leave):
    model = background.script(WAITS, "Done.")
    session = detach(background, "-m", model, "--mode", "auto", "wait")
    until(background, lambda found: states(found) == ["running"])
    if leave == "end of input":
        done = background.run("attach", "--plain", session, stdin=b"")
        assert (done.returncode, "quit; the turn keeps running" in done.stderr) == (0, True)
    else:
        with background.terminal("attach", "--plain", session) as terminal:
            terminal.expect("▸")
            if leave == "hang up":
                assert terminal.hang_up() == 130
            else:
                terminal.signal(leave)
                assert terminal.end()[0] == 130
    assert states(ps(background)) == ["running"]
    (background.workspace / "go").touch()
    until(background, lambda found: states(found) == ["done"], "--all")
    log = background.logs()[0].read_text().splitlines()
    ends = [json.loads(line)["data"] for line in log if "turn_end" in line]
    assert [one["reason"] for one in ends] == ["done"]


def test_leaving_a_turn_that_one_has_asked_for_there_does_not_stop_it_either(background):
    model = background.script("Ready.", WAITS, "Done.")
    session = detach(background, "-m", model, "--mode", "auto", "hello")
    with background.terminal("attach", "--plain", session) as terminal:
        terminal.expect("Ready.")
        terminal.expect("❯ ")
        terminal.type("wait\n")
        terminal.expect("▸")
        terminal.signal(signal.SIGTERM)
        assert terminal.end()[0] == 130
    assert states(ps(background)) == ["running"]
    (background.workspace / "go").touch()
    until(background, lambda found: states(found) == ["done"], "--all")


def test_ctrl_c_there_still_interrupts_the_turn(background):
    session = detach(background, "-m", background.script(WAITS, "Done."), "--mode", "auto", "wait")
    until(background, lambda found: states(found) == ["running"])
    with background.terminal("attach", "--plain", session) as terminal:
        terminal.expect("▸")
        terminal.type("\x03")
        terminal.expect("interrupted")
        terminal.expect("❯ ")
        terminal.type("\x04")
        assert terminal.end()[0] == 0


def test_only_while_it_works_is_a_background_session_said_to_be_at_work_in_the_folder(background):
    model, other = background.script(WAITS, "Done."), background.script("ok", name="other")
    detach(background, "-m", model, "--mode", "auto", "wait")
    until(background, lambda found: states(found) == ["running"])
    said = "another session works in this folder"
    assert said in background.run("run", "hi", "-m", other).stderr
    assert background.run("run", "-q", "hi", "-m", other).stderr == ""
    (background.workspace / "go").touch()
    until(background, lambda found: "running" not in states(found), "--all")
    assert pids(background)  # which still has it open
    assert said not in background.run("run", "hi", "-m", other).stderr
