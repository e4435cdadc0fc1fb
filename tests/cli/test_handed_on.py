"""Several runs for one session at once: who loses the lock hands its prompt on (S9)."""

import fcntl
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli_program import Program


def begun(bridle: Program) -> str:
    """A session that has had one turn; its id."""
    assert bridle.run("run", "first", "-m", bridle.script("Hello.")).returncode == 0
    return bridle.logs()[0].parent.name


def records(bridle: Program) -> list[dict]:
    return [json.loads(line)["data"] for line in bridle.logs()[0].read_text().splitlines()]


def prompts(bridle: Program) -> list[str]:
    return [one["content"] for one in records(bridle) if one["type"] == "user_prompt"]


def inbox(bridle: Program) -> list[Path]:
    return list(bridle.logs()[0].parent.glob("inbox/*.json"))


@contextmanager
def locked(bridle: Program) -> Iterator[None]:
    """The log's lock, held by somebody who takes no letters."""
    with bridle.logs()[0].open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def paused(
    bridle: Program, places: tuple[Path, Path, Path], *words: str
) -> "subprocess.Popen[str]":
    """A run that waits before it opens its model's file: places are that file, reached, gate."""
    program = [sys.executable, str(Path(__file__).with_name("paused_program.py"))]
    return subprocess.Popen(
        [*program, *map(str, places), "run", *words, "-m", f"scripted:{places[0]}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=bridle.workspace,
        env=bridle.environ,
    )


def test_a_run_whose_holder_ends_before_it_took_the_prompt_goes_on_itself(bridle: Program):
    session = begun(bridle)
    model = bridle.script("Mine.", name="mine")
    with locked(bridle):
        process = bridle.start("run", "--resume", session, "second", "-m", model)
        while not inbox(bridle):
            assert process.poll() is None
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "Mine.\n"), err
    assert "1 step" in err
    assert prompts(bridle) == ["first", "second"] and inbox(bridle) == []


def test_a_run_that_loses_the_race_for_the_lock_hands_its_prompt_on(bridle: Program):
    session = begun(bridle)
    model = bridle.home / "mine.json"
    model.write_text(json.dumps({"replies": ["Mine."]}))
    reached, gate = bridle.home / "reached", bridle.home / "gate"
    # who reads the model's file has seen that nobody holds the session, and has not taken it
    process = paused(bridle, (model, reached, gate), "--resume", session, "second")
    while not reached.exists():
        assert process.poll() is None
    with locked(bridle):
        gate.touch()
        while not inbox(bridle):
            assert process.poll() is None
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "Mine.\n"), err
    assert prompts(bridle) == ["first", "second"]


def test_many_runs_at_once_do_each_prompt_once(bridle: Program):
    session = begun(bridle)
    model = bridle.script(*["Hi."] * 8, name="many")
    words = [f"prompt {number}" for number in range(4)]
    started = [bridle.start("run", "--resume", session, one, "-m", model) for one in words]
    ended = [(*process.communicate(), process.returncode) for process in started]
    assert [(out, code) for out, _, code in ended] == [("Hi.\n", 0)] * 4, ended
    assert Counter(prompts(bridle)) == Counter(["first", *words])
    assert bridle.run("sessions", "verify", session).returncode == 0


def test_what_others_sent_before_is_not_the_answer_of_a_run(bridle: Program):
    session = begun(bridle)
    assert bridle.run("sessions", "send", session, "theirs").returncode == 0
    model = bridle.script("Theirs.", "Mine.", name="two")
    done = bridle.run("run", "--resume", session, "mine", "-m", model)
    assert (done.returncode, done.stdout) == (0, "Mine.\n"), done.stderr
    assert "Theirs." in done.stderr and "1 step ·" in done.stderr


def test_a_prompt_behind_a_parked_turn_is_kept_and_said_to_wait(bridle: Program):
    ask = {"calls": [{"name": "shell", "arguments": {"command": "echo x > x"}}]}
    done = bridle.run("run", "go", "--on-ask", "park", "-m", bridle.script(ask))
    session = bridle.logs()[0].parent.name
    assert done.returncode == 3
    with locked(bridle):
        model = bridle.script("Later.", name="later")
        process = bridle.start("run", "--resume", session, "second", "-m", model)
        while not inbox(bridle):
            assert process.poll() is None
    _, err = process.communicate()
    assert process.returncode == 3 and "the turn is parked" in err
    assert prompts(bridle) == ["go", "second"]
