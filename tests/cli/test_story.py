"""What `bridle sessions show` tells of a session's own fate: crashes, repairs, forks, prompts."""

import json
import os
import shutil
from pathlib import Path

from cli_program import Program

from rig import a_mark, marked

SHORTENED = (
    "⇣ shortened for the model: 4 messages became a summary, 1 long output cut "
    "(about 4,000 tokens before, 90 now); the log keeps it all"
)
LOGS = Path(__file__).parent.parent / "logs"


def shell(command: str) -> dict:
    return {"calls": [{"name": "shell", "arguments": {"command": command}}]}


def killed(bridle: Program) -> str:
    """A session whose process was killed while a command ran; the session's id."""
    said, mark = bridle.workspace / "said", a_mark()
    os.mkfifo(said)
    model = bridle.script(shell(f"echo up > said; sleep {mark}"))
    with bridle.start("run", "go", "--yes", "-m", model) as process:
        assert said.read_text() == "up\n"
        process.kill()
        process.communicate()
    while marked(mark):
        pass  # it ends with the process that started it
    return bridle.logs()[0].parent.name


def test_every_milestone_of_an_old_log_is_told(bridle: Program):
    """(A8)"""
    folder = bridle.state / "sessions" / "old"
    folder.mkdir(parents=True)
    shutil.copy(LOGS / "format-1-lasting.jsonl", folder / "log.jsonl")
    told = bridle.run("sessions", "show", "old")
    assert (told.returncode, told.stderr) == (0, "")
    marks = [line.strip() for line in told.stdout.splitlines() if line.strip()[:1] in "⇣↶⑂!■"]
    assert [mark for mark in marks if mark] == [
        "■ parked: the turn waits for 1 answer",
        SHORTENED,
        "↶ taken back to #16 by ann; what was done in files and commands stays",
        "⑂ forked from 20260201-080000-99887766bb at #20; the original is unchanged",
        "! the end of the log was torn: 7 bytes cut off",
        "! a line after #22 was damaged (it is not a record) and is skipped",
    ]
    assert "tags     work, ci\n" in told.stdout
    page = bridle.run("sessions", "export", "old", "--format", "markdown").stdout
    assert "*⑂ forked from 20260201-080000-99887766bb at \\#20" in page


def test_a_call_whose_process_was_killed_is_unknown_to_everybody(bridle: Program):
    session = killed(bridle)
    told = bridle.run("sessions", "show", session).stdout
    assert "shell was started and has no result: it is not known what it did" in told
    done = bridle.run("run", "--resume", session, "and now?", "-m", bridle.script("Well."))
    assert (done.returncode, done.stdout) == (0, "Well.\n")
    assert "it is not known whether it ran" in done.stderr
    told = bridle.run("sessions", "show", session).stdout
    assert "  ? shell: unknown, no result was ever recorded\n" in told
    assert "it is not known what it did" not in told


def test_a_torn_end_is_said_when_the_session_is_taken_up_and_in_its_story(bridle: Program):
    """(A8)"""
    bridle.run("run", "one", "-m", bridle.script("ok"))
    log = bridle.logs()[0]
    with log.open("ab") as file:
        file.write(b'{"seq":9,"timest')
    found = bridle.run("sessions", "verify", log.parent.name)
    assert found.returncode == 1 and "torn tail" in found.stdout
    done = bridle.run("run", "--continue", "two", "-m", bridle.script("Two."))
    assert (done.returncode, done.stdout) == (0, "Two.\n")
    assert "! the end of the log was torn: 16 bytes cut off" in done.stderr
    told = bridle.run("sessions", "show", log.parent.name).stdout
    assert told.count("the end of the log was torn") == 1
    assert bridle.run("sessions", "verify", log.parent.name).returncode == 0


def test_a_prompt_that_steers_is_told_where_it_reached_the_model(bridle: Program):
    said, on = bridle.workspace / "said", bridle.workspace / "on"
    os.mkfifo(said)
    os.mkfifo(on)
    model = bridle.script(shell("echo up > said; cat on"), "Steered.")
    with bridle.start("run", "go", "--yes", "-m", model) as process:
        assert said.read_text() == "up\n"
        session = bridle.logs()[0].parent.name
        sent = bridle.run("sessions", "send", session, "left", "--when", "next_step", USER="ada")
        assert "it runs in its next step" in sent.stdout
        while '"content":"left"' not in bridle.logs()[0].read_text():
            pass  # until the holder has written it down
        running = bridle.run("sessions", "show", session).stdout
        assert "shell was started and is running in process" in running
        assert "waits to be sent to the model: left" in running
        on.write_text("gone\n")
        out, _ = process.communicate()
    assert out == "Steered.\n"
    lines = bridle.run("sessions", "show", session).stdout.splitlines()
    assert lines.index("❯ left (ada)") > lines.index("  ✓ gone")
    data = [json.loads(line)["data"] for line in bridle.logs()[0].read_text().splitlines()]
    assert [one["turn"] for one in data if one["type"] == "turn_end"] == [1]
