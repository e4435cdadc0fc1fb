"""A session whose log was damaged or replaced is there, and every command says what is wrong."""

import json
import os

import pytest
from cli_program import Program


def begun(bridle: Program) -> str:
    """A session with one prompt; its id."""
    assert bridle.run("run", "-m", bridle.script("Hi."), "a prompt").returncode == 0
    (newest, *_) = json.loads(bridle.run("sessions", "list", "--json").stdout)
    return newest["id"]


def as_link(path, raw):
    path.with_name("elsewhere").write_bytes(raw)
    path.symlink_to(path.with_name("elsewhere"))


def as_fifo(path, raw):
    os.mkfifo(path)


def as_folder(path, raw):
    path.mkdir()


def as_noise(path, raw):
    path.write_bytes(bytes(range(256)) * 20)


@pytest.mark.parametrize("make", [as_link, as_fifo, as_folder, as_noise])
def test_a_session_without_a_log_that_can_be_read_does_not_vanish(bridle: Program, make):
    """(A8)"""
    session = begun(bridle)
    path = bridle.state / "sessions" / session / "log.jsonl"
    raw = path.read_bytes()
    path.unlink()
    make(path, raw)
    listed = bridle.run("sessions", "list")
    assert session in listed.stdout and "(" in listed.stdout
    show = bridle.run("sessions", "show", session)
    assert (show.returncode, f"the log of session {session} " in show.stderr) == (1, True)
    verify = bridle.run("sessions", "verify", session)
    assert (verify.returncode, ": unreadable: " in verify.stdout) == (1, True)
    resumed = bridle.run("run", "--resume", session, "-m", bridle.script("No."), "go")
    assert (resumed.returncode > 0, " log " in resumed.stderr or session in resumed.stderr) == (
        True,
        True,
    )
    assert "there is no session" not in resumed.stderr
    other = begun(bridle)
    every = bridle.run("sessions", "verify", "--all", "--json")
    oks = {one["id"]: one["ok"] for one in json.loads(every.stdout)}
    assert (every.returncode, oks) == (1, {session: False, other: True})


def test_records_behind_a_long_line_of_noise_are_still_shown(bridle: Program):
    """(A8)"""
    session = begun(bridle)
    path = bridle.state / "sessions" / session / "log.jsonl"
    path.write_bytes(bytes(20_000) + b"\n" + path.read_bytes())
    listed = bridle.run("sessions", "list").stdout
    assert f"(damaged; bridle sessions verify {session})" in " ".join(listed.split())
    assert "❯ a prompt" in bridle.run("sessions", "show", session).stdout
    assert bridle.run("sessions", "verify", "--all").returncode == 1
    resumed = bridle.run("run", "--resume", session, "-m", bridle.script("Again."), "go")
    assert (resumed.returncode, resumed.stdout) == (0, "Again.\n")
