"""`bridle run`, the real program: what it prints, where, and its exit codes (A9, A13)."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_program import Program

from rig import a_mark, marked

SHELL = {"calls": [{"name": "shell", "arguments": {"command": "echo made > made.txt"}}]}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def test_standard_output_holds_the_answer_and_nothing_else(bridle: Program):
    """(A9, one-shot)"""
    (bridle.workspace / "a.txt").write_text("hello\n")
    read = {"text": "Let me look.", "calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}
    model = bridle.script(read, {"text": "It says hello."})
    done = bridle.run("run", "what does a.txt say?", "--model", model)
    assert (done.returncode, done.stdout) == (0, "It says hello.\n")
    assert "Let me look." in done.stderr
    assert "▸ read a.txt" in done.stderr
    assert "2 steps · 1 call · 0 tokens in · 0 out · cost unknown" in done.stderr


def test_the_prompt_may_be_several_words_or_come_from_standard_input(bridle: Program):
    model = bridle.script("ok")
    for arguments, stdin in (
        (["two", "words"], None),
        (["-"], b"two words"),
        ([], b"two words"),
    ):
        done = bridle.run("run", *arguments, "-m", model, "--json", stdin=stdin)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        prompts = [r["data"]["content"] for r in records if r["data"]["type"] == "user_prompt"]
        assert prompts == ["two words"]


def test_json_is_the_log_line_by_line(bridle: Program):
    """One record a line, numbered without a gap, deltas included."""
    model = bridle.script(SHELL, {"text": "One two three."})
    done = bridle.run("run", "go", "-m", model, "--json", "--yes")
    assert done.returncode == 0
    assert done.stdout == bridle.logs()[0].read_text()
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    kinds = {record["data"].get("eventType") or record["data"]["type"] for record in records}
    assert {"session_start", "user_prompt", "TextDelta", "intent", "message", "turn_end"} <= kinds


def test_a_resumed_session_shows_its_new_records_and_knows_the_old_conversation(bridle: Program):
    model = bridle.script({"text": "Noted."})
    first = bridle.run("run", "remember 42", "-m", model, "--json")
    session = json.loads(first.stdout.splitlines()[0])["data"]["sessionId"]
    seen = len(first.stdout.splitlines())
    for flags in (["--resume", session], ["--resume", session[:-3]], ["--continue"]):
        more = bridle.run("run", "and now?", "-m", model, "--json", *flags)
        records = [json.loads(line) for line in more.stdout.splitlines()]
        assert [one["seq"] for one in records] == list(range(seen + 1, seen + len(records) + 1))
        seen += len(records)
    assert len(bridle.logs()) == 1


def test_a_session_goes_on_in_its_own_folder_from_wherever_it_is_resumed(bridle: Program):
    elsewhere = bridle.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "here.txt").touch()
    glob = {"calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}
    model = bridle.script("ok")
    bridle.run("run", "hi", "-m", model, "--workspace", str(elsewhere))
    session = bridle.logs()[0].parent.name
    model = bridle.script(glob, "Found.")
    done = bridle.run("run", "look", "-m", model, "--resume", session, "--json")
    results = [
        record
        for record in map(json.loads, done.stdout.splitlines())
        if record["data"].get("callId")
    ]
    assert "here.txt" in str(results)
    said = bridle.run("run", "look", "-m", bridle.script("ok"), "--resume", session).stderr
    assert f"working in {elsewhere}" in said


def test_continue_without_a_session_here_is_a_usage_error(bridle: Program):
    bridle.run("run", "hi", "-m", bridle.script("ok"), "--workspace", str(bridle.home))
    done = bridle.run("run", "hi", "-m", bridle.script("ok"), "--continue")
    assert done.returncode == 2
    assert "there is no session to continue" in done.stderr


def test_a_call_that_needs_approval_is_refused_when_nobody_is_there(bridle: Program):
    done = bridle.run("run", "go", "-m", bridle.script(SHELL, {"text": "I could not."}))
    assert (done.returncode, done.stdout) == (3, "I could not.\n")
    assert "a call needed approval, and no one was available to give it" in done.stderr
    assert not (bridle.workspace / "made.txt").exists()


def test_a_model_that_insists_on_what_nobody_allows_needs_permission_too(bridle: Program):
    done = bridle.run("run", "go", "-m", bridle.script(SHELL, loop=True))
    assert (done.returncode, done.stdout) == (3, "")
    assert "shell failed 3 times in the same way" in done.stderr


@pytest.mark.parametrize(
    ("flags", "made"),
    [(["--yes"], True), (["--mode", "auto"], True), (["--mode", "plan"], False)],
)
def test_modes_say_what_runs_without_asking(bridle: Program, flags: list[str], made: bool):
    done = bridle.run("run", "go", "-m", bridle.script(SHELL, {"text": "ok"}), *flags)
    assert done.returncode == 0
    assert (bridle.workspace / "made.txt").exists() is made


def test_answers_can_come_from_a_pipe_and_silence_is_no(bridle: Program):
    model = bridle.script(SHELL, {"text": "ok"})
    yes = bridle.run("run", "go", "-m", model, "--on-ask", "prompt", stdin=b"y\n")
    assert (yes.returncode, (bridle.workspace / "made.txt").read_text()) == (0, "made\n")
    (bridle.workspace / "made.txt").unlink()
    silent = bridle.run("run", "go", "-m", model, "--on-ask", "prompt", stdin=b"")
    assert (silent.returncode, (bridle.workspace / "made.txt").exists()) == (3, False)
    assert "$ echo made > made.txt" in silent.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-steps", "2"], "the limit of 2 steps is reached"),
        (["--max-tool-calls", "1"], "the limit of 1 tool call is reached"),
        (["--max-turn-tokens", "5"], "the limit of 5 tokens leaves no room"),
        (["--max-cost", "0.01"], "the price of scripted is unknown"),
    ],
)
def test_a_limit_that_is_reached_ends_with_its_own_code(bridle: Program, flags, said: str):
    glob = {"calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}
    done = bridle.run("run", "go", "-m", bridle.script(glob, loop=True), *flags)
    assert done.returncode == 4
    assert said in done.stderr


def test_a_turn_that_takes_too_long_ends_at_its_limit(bridle: Program):
    slow = {"calls": [{"name": "shell", "arguments": {"command": "sleep 60"}}]}
    done = bridle.run("run", "go", "-m", bridle.script(slow), "--yes", "--max-seconds", "0.5")
    assert done.returncode == 4
    assert "the limit of 0.5 seconds is reached" in done.stderr


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("replies", "code", "out"),
    [
        (['{"n": 5}'], 0, {"n": 5}),
        (['```json\n{"n": 5}\n```'], 0, {"n": 5}),
        (["five", '{"n": 5}'], 0, {"n": 5}),
        (["five", '{"n": "five"}'], 1, None),
        (['{"m": 5}', "sorry"], 1, None),
    ],
)
def test_an_answer_has_to_fit_its_schema(bridle: Program, replies, code: int, out):
    (bridle.home / "schema.json").write_text(json.dumps(SCHEMA))
    flags = ["--output-schema", str(bridle.home / "schema.json")]
    done = bridle.run("run", "how many?", "-m", bridle.script(*replies), *flags)
    assert done.returncode == code
    assert (json.loads(done.stdout) if done.stdout else None) == out
    if code:
        assert "the answer does not fit the schema" in done.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "nonsense"}', None])
def test_a_schema_that_is_none_is_a_usage_error(bridle: Program, text: str | None):
    path = bridle.home / "schema.json"
    if text is not None:
        path.write_text(text)
    done = bridle.run("run", "x", "-m", bridle.script("ok"), "--output-schema", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"bridle: {path}: ")


def test_a_picture_goes_along_with_the_prompt(bridle: Program):
    (bridle.home / "p.png").write_bytes(PNG)
    flags = ["--image", str(bridle.home / "p.png"), "--json"]
    done = bridle.run("run", "what is this?", "-m", bridle.script("A dot."), *flags)
    prompt = json.loads(done.stdout.splitlines()[1])["data"]
    assert [part["type"] for part in prompt["parts"]] == ["image", "text"]
    assert prompt["parts"][0]["mediaType"] == "image/png"


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"GIF80", "is not a PNG"), (b"", "is not a PNG"), (PNG + b"\0" * 3_500_000, "larger than")],
)
def test_what_is_no_picture_is_refused(bridle: Program, data: bytes, said: str):
    (bridle.home / "p.png").write_bytes(data)
    done = bridle.run("run", "x", "-m", bridle.script("x"), "--image", str(bridle.home / "p.png"))
    assert done.returncode == 2
    assert said in done.stderr


def test_the_log_and_the_state_folder_are_private(bridle: Program):
    bridle.run("run", "hi", "-m", bridle.script("ok"))
    log = bridle.logs()[0]
    assert [oct(path.stat().st_mode & 0o777) for path in (log, log.parent)] == ["0o600", "0o700"]


def test_a_reader_that_has_seen_enough_is_no_error(bridle: Program):
    """`bridle run … | head -1` ends quietly."""
    model = bridle.script({"text": "line\n" * 200_000, "chunk": 4000})
    with bridle.start("run", "go", "-m", model, "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith('{"seq":1,')
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)
    listing = bridle.start("sessions", "show", bridle.logs()[0].parent.name, "--json")
    with listing as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_interrupts_the_turn_and_keeps_the_session(bridle: Program, number):
    mark = a_mark()
    sleep = {"calls": [{"name": "shell", "arguments": {"command": f"sleep {mark}"}}]}
    with bridle.start("run", "go", "-m", bridle.script(sleep), "--yes", "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            if '"type":"intent"' in line:
                break
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait() == 130
    assert json.loads(rest.splitlines()[-1])["data"]["reason"] == "interrupted"
    assert marked(mark) == []
    more = bridle.run("run", "again", "--continue", "-m", bridle.script("Here I am."))
    assert (more.returncode, more.stdout) == (0, "Here I am.\n")


def test_what_the_model_says_is_passed_on_as_it_arrives(bridle: Program):
    """(A13) The first words are there while the rest is far away."""
    model = bridle.script({"text": "one two", "pause": 600})
    with bridle.start("run", "go", "-m", model, "--json") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if '"eventType":"TextDelta"' in line:
                break
        assert json.loads(line)["data"]["text"] == "one"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130


def test_no_command_line_shows_a_traceback_unless_it_is_asked_for(bridle: Program):
    done = bridle.run("run", "x", "-m", "nonsense/x")
    assert "Traceback" not in done.stderr
    assert "Traceback" in bridle.run("run", "x", "-m", "nonsense/x", BRIDLE_DEBUG="1").stderr


def test_streams_that_are_closed_are_no_reason_to_fail(bridle: Program):
    for closing in ("<&-", ">&-", "2>&-"):
        shell = f'"$0" -m bridle run hi -m "$1" {closing}'
        argv = ["/bin/sh", "-c", shell, sys.executable, bridle.script("ok")]
        done = subprocess.run(argv, env=bridle.environ, cwd=bridle.workspace, capture_output=True)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_the_console_script_is_the_same_program(bridle: Program):
    script = Path(sys.executable).with_name("bridle")
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout == bridle.run("--version").stdout != ""


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-P",)])
def test_nothing_is_imported_from_the_current_folder(bridle: Program, options):
    for name in ("click", "msgspec", "asyncio", "json"):
        (bridle.workspace / f"{name}.py").write_text("raise SystemExit('imported from the folder')")
    words = [sys.executable, *options, "-m", "bridle", "run", "hi", "-m", bridle.script("Hello.")]
    done = subprocess.run(
        words,
        env=bridle.environ,
        cwd=bridle.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
