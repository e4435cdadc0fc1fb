"""`cat FILE | bridle run "…"`: what is piped in belongs to the prompt, and nobody waits in vain."""

import os
import subprocess
import time

import pytest
from cli_program import Program, records


def prompts(bridle: Program) -> list[str]:
    """What the newest session was asked, as the log has it."""
    found = records(bridle.logs()[-1])
    return [one["content"] for one in found if one["type"] == "user_prompt"]


def test_what_is_piped_in_stands_below_the_prompt(bridle: Program):
    done = bridle.run(
        "run", "summarise this", "-m", bridle.script("ok"), stdin=b"one\ntwo \xc3\xa4\n"
    )
    assert (done.returncode, done.stdout, done.stderr.count("bridle:")) == (0, "ok\n", 0)
    assert prompts(bridle) == ["summarise this\n\n<stdin>\none\ntwo ä\n</stdin>"]


def test_a_file_that_is_redirected_counts_too(bridle: Program):
    (bridle.workspace / "notes").write_text("from a file\n")
    model, notes = bridle.script("ok"), bridle.workspace / "notes"
    with notes.open("rb") as file:
        done = subprocess.run(
            bridle.command("run", "read", "-m", model),
            env=bridle.environ,
            cwd=bridle.workspace,
            stdin=file,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0 and "from a file" in prompts(bridle)[0]


@pytest.mark.parametrize("nothing", [b"", b" \n"])
def test_an_empty_input_changes_nothing(bridle: Program, nothing):
    assert bridle.run("run", "hi", "-m", bridle.script("ok"), stdin=nothing).returncode == 0
    assert prompts(bridle) == ["hi"]


def test_an_open_pipe_that_nobody_writes_to_does_not_stop_the_run(bridle: Program):
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            bridle.command("run", "hi", "-m", bridle.script("ok")),
            env=bridle.environ,
            cwd=bridle.workspace,
            stdin=reading,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout, prompts(bridle)) == (0, "ok\n", ["hi"])
    assert "nothing came from standard input for 3 seconds" in done.stderr
    assert "</dev/null" in done.stderr


def test_a_dash_after_the_prompt_waits_for_what_comes_late(bridle: Program):
    words = bridle.command("run", "summarise", "-", "-m", bridle.script("ok"))
    process = subprocess.Popen(
        words,
        env=bridle.environ,
        cwd=bridle.workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(4)
    out, err = process.communicate(b"late\n", timeout=120)
    assert (process.returncode, out, err.count(b"bridle:")) == (0, b"ok\n", 0)
    assert prompts(bridle) == ["summarise\n\n<stdin>\nlate\n</stdin>"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7fELF\0\0", "standard input is binary (byte 4), but a prompt must be text"),
        (b"caf\xe9", "standard input is not UTF-8 text (byte 3)"),
        (b"x" * 10_000_001, "standard input is larger than 10,000,000 bytes"),
    ],
)
def test_what_cannot_be_part_of_a_prompt_is_refused_before_anything_is_sent(
    bridle: Program, data, said
):
    done = bridle.run("run", "hi", "-m", bridle.script("ok"), stdin=data)
    assert (done.returncode, done.stdout, bridle.logs()) == (2, "", [])
    assert said in done.stderr and "  → " in done.stderr


def test_a_session_that_goes_on_gets_it_too(bridle: Program):
    model = bridle.script("ok", loop=True)
    bridle.run("run", "one", "-m", model)
    assert bridle.run("run", "--continue", "two", "-m", model, stdin=b"more\n").returncode == 0
    assert prompts(bridle) == ["one", "two\n\n<stdin>\nmore\n</stdin>"]


def test_a_run_in_the_background_gets_it_too(bridle: Program):
    try:
        done = bridle.run(
            "run", "--detach", "-q", "sum up", "-m", bridle.script("ok"), stdin=b"more\n"
        )
        assert done.returncode == 0, done.stderr
        while not bridle.logs() or not prompts(bridle):
            time.sleep(0.05)
        assert prompts(bridle) == ["sum up\n\n<stdin>\nmore\n</stdin>"]
    finally:
        bridle.run("stop", "--all")


def test_where_questions_are_answered_from_it_nothing_is_taken_for_the_prompt(bridle: Program):
    call = {"calls": [{"name": "shell", "arguments": {"command": "touch made"}}]}
    model = bridle.script(call, "Done.")
    bridle.run("run", "make it", "-m", model, "--on-ask", "prompt", stdin=b"y\n")
    assert prompts(bridle) == ["make it"] and (bridle.workspace / "made").exists()
