"""`bridle sessions`, `bridle config` and `bridle doctor`, the real program."""

import json

import pytest
from cli_program import Program

from bridle.stores.jsonl import JsonlStore

EVIL = "fix \x1b]52;c;x\x07 \u202e this"


def test_a_list_names_each_session_with_the_newest_first(bridle: Program):
    empty = bridle.run("sessions", "list")
    assert (empty.returncode, empty.stdout[:27]) == (0, "There are no sessions yet. ")
    for prompt in ("the first", "the second", EVIL):
        bridle.run("run", prompt, "-m", bridle.script("ok"))
    done = bridle.run("sessions", "list")
    newest, second, first = done.stdout.splitlines()
    assert (first.endswith("the first"), second.endswith("the second")) == (True, True)
    assert newest.endswith(r"fix \x1b]52;c;x\x07 \u202e this")
    limited = bridle.run("sessions", "list", "--limit", "1").stdout.splitlines()
    assert limited == [newest, "2 older sessions: --limit 3 lists them all"]


def test_the_list_names_what_is_no_log_and_goes_on(bridle: Program):
    for prompt in ("one", "two " * 3000, "drei\nünf"):
        bridle.run("run", prompt, "-m", bridle.script("ok"))
    for name, held in (("broken", b"\xff{]\n"), ("deep", b"[" * 8000 + b"\n")):
        (bridle.state / "sessions" / name).mkdir()
        (bridle.state / "sessions" / name / "log.jsonl").write_bytes(held)
    (bridle.state / "sessions" / "folder" / "log.jsonl").mkdir(parents=True)
    stored = JsonlStore(bridle.state).sessions()
    assert len(stored) == 6
    shown = json.loads(bridle.run("sessions", "list", "--json").stdout)
    assert [one["id"] for one in shown] == [one.id for one in stored]
    assert set(shown[0]) == {
        *("id", "createdAt", "updatedAt", "title", "workspace", "model", "size", "tags"),
        *("busy", "holder", "parked", "waiting", "parent"),
    }


def test_a_log_from_elsewhere_breaks_neither_the_list_nor_the_story(bridle: Program):
    evil = "\x1b]52;c;x\x07"
    lines = [
        {"type": "session_start", "sessionId": "s", "resumed": True, "model": 7, "workspace": []},
        {"type": "session_start", "sessionId": "s", "resumed": True},
        {"type": "user_prompt", "content": "hi"},
        {"type": "event", "eventType": "TraceEvent", "kind": "retry", "detail": {"seconds": "x"}},
        {"type": "event", "eventType": "TraceEvent", "kind": "retry", "detail": {"error": 7}},
    ]
    (bridle.state / "sessions" / "s").mkdir(parents=True)
    with (bridle.state / "sessions" / "s" / "log.jsonl").open("w") as log:
        for line in lines:
            log.write(json.dumps({"timestamp": evil, "data": line, "hash": '",\n'}) + "\n")
    shown = bridle.run("sessions", "list")
    assert (shown.returncode, shown.stdout.split()[-1]) == (0, "hi")
    told = bridle.run("sessions", "show", "s")
    assert (told.returncode, told.stderr, "\x1b" in told.stdout) == (0, "", False)
    records = bridle.run("sessions", "show", "s", "--json").stdout.splitlines()
    assert [json.loads(line)["timestamp"] for line in records] == [evil] * 5


def test_a_session_is_shown_as_a_story_without_anything_that_a_terminal_obeys(bridle: Program):
    (bridle.workspace / "a.txt").write_text("hello\n")
    replies = [
        {"thinking": "I think", "calls": [{"name": "read", "arguments": {"path": "a.txt"}}]},
        {"calls": [{"name": "shell", "arguments": {"command": "touch b.txt"}}]},
        {"text": f"It says {EVIL}"},
    ]
    bridle.run("run", EVIL, "-m", bridle.script(*replies))
    session = json.loads(bridle.run("sessions", "list", "--json").stdout)[0]["id"]
    done = bridle.run("sessions", "show", session)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout
    lines = done.stdout.splitlines()
    for line in (
        r"❯ fix \x1b]52;c;x\x07 \u202e this",
        "▸ read a.txt",
        "▸ shell touch b.txt",
        "  ? writes b.txt",
        r"It says fix \x1b]52;c;x\x07 \u202e this",
        "in all  3 steps · 1 call · 0 tokens in · 0 out · cost unknown",
    ):
        assert line in lines
    assert f"log      {bridle.logs()[0]}" in lines
    assert "I think" not in done.stdout
    assert "I think" in bridle.run("sessions", "show", session, "--thinking").stdout
    raw = bridle.run("sessions", "show", session, "--json")
    assert raw.stdout == bridle.logs()[0].read_text()


def test_a_session_can_be_named_by_the_beginning_of_its_id_if_that_is_one(bridle: Program):
    for prompt in ("one", "two"):
        bridle.run("run", prompt, "-m", bridle.script("ok"))
    one, two = (path.parent.name for path in bridle.logs())
    assert one in bridle.run("sessions", "show", one[:-2]).stdout
    assert two in bridle.run("sessions", "show", two.rpartition("-")[2][:5]).stdout
    both = bridle.run("sessions", "show", "2")
    assert both.returncode == 2
    assert "2 sessions match '2'" in both.stderr


def test_config_show_says_where_each_value_came_from(bridle: Program):
    """(M9)"""
    file = bridle.home / ".config" / "bridle" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "model: anthropic/x\nlimits:\n  max_steps: 5\napi_key: abcdefghijklmnopqrstuv\n"
    )
    file.chmod(0o600)
    assert bridle.run("config", "path").stdout == f"{file}\n"
    done = bridle.run("config", "show", "--json", BRIDLE_MODE="plan")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["file"] == str(file)
    assert shown["settings"]["model"] == {"value": "anthropic/x", "from": f"file {file}:1"}
    assert shown["settings"]["limits.max_steps"] == {"value": 5, "from": f"file {file}:3"}
    assert shown["settings"]["api_key"] == {"value": "abc…stuv", "from": f"file {file}:4"}
    assert shown["settings"]["mode"] == {"value": "plan", "from": "environment BRIDLE_MODE"}
    assert shown["settings"]["theme"] == {"value": "auto", "from": "default"}
    plain = bridle.run("config", "show").stdout
    assert "anthropic/x" in plain and "abcdefgh" not in plain


def findings(bridle: Program, **environ: str) -> tuple[int, dict[str, list[str]]]:
    done = bridle.run("doctor", "--json", **environ)
    assert done.stderr == ""
    topics: dict[str, list[str]] = {}
    for one in json.loads(done.stdout):
        topics.setdefault(one["topic"], []).append(one["found"])
    return done.returncode, topics


def test_doctor_says_which_model_would_be_used_and_why(bridle: Program):
    secret = "abcdefghijklmnopqrstuvwxyz"
    code, topics = findings(bridle, ANTHROPIC_API_KEY=secret)
    assert code == 0
    assert topics["ANTHROPIC_API_KEY"] == ["set"]
    assert topics["OPENAI_API_KEY"] == ["not set"]
    assert topics["model"][0].startswith("anthropic/")
    assert "ANTHROPIC_API_KEY is set" in topics["model"][0]
    assert topics["catalogue"][0].startswith("context window ")
    assert secret not in str(topics)


def test_doctor_lists_the_known_models(bridle: Program):
    done = bridle.run("doctor", "--models")
    assert done.returncode == 0
    lines = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert (
        "context window 200,000 tokens · price $1 in, $5 out" in lines["anthropic/claude-haiku-4-5"]
    )
    assert len({line.index("context window") for line in lines.values()}) == 1
    found = json.loads(bridle.run("doctor", "--models", "--json").stdout)
    assert [one["topic"] for one in found] == list(lines)


def test_doctor_and_the_choice_agree_about_a_key_without_a_model(bridle: Program):
    _, topics = findings(bridle, OPENROUTER_API_KEY="k")
    assert topics["OPENROUTER_API_KEY"] == ["set"]
    said = "OPENROUTER_API_KEY is set, but no model is named"
    assert f"key for openrouter: {said}" in topics["considered"]
    done = bridle.run("run", "hi", OPENROUTER_API_KEY="k")
    assert f"  → {said}. Name a model: openrouter/MODEL.\n" in done.stderr


def test_the_limit_that_holds_by_default_is_shown(bridle: Program):
    done = bridle.run("config", "show", "--json")
    shown = json.loads(done.stdout)["settings"]
    assert shown["limits.max_steps"] == {"value": 200, "from": "default"}
    assert shown["limits.max_cost"] == {"value": None, "from": "default"}
    done = bridle.run("config", "show", "--json", BRIDLE_MAX_STEPS="7")
    assert json.loads(done.stdout)["settings"]["limits.max_steps"]["value"] == 7


def test_doctor_prefers_what_was_named(bridle: Program):
    _, topics = findings(bridle, BRIDLE_MODEL="offline", ANTHROPIC_API_KEY="k")
    assert topics["model"] == ["offline: it was named"]


def test_doctor_finds_what_is_wrong(bridle: Program):
    file = bridle.home / "c.yaml"
    file.write_text("modle: x\n")
    bridle.state.write_text("a file in the way")
    code, topics = findings(bridle, BRIDLE_CONFIG=str(file), BRIDLE_MODEL="")
    assert code == 1
    assert topics["settings"] == [f"{file}:1: there is no setting `modle`"]
    assert "is writable" not in topics["state folder"][0]


@pytest.mark.parametrize("command", [["doctor"], ["config", "show"], ["sessions", "list"]])
def test_reports_have_no_colour_in_a_pipe(bridle: Program, command: list[str]):
    done = bridle.run(*command, BRIDLE_MODEL="offline")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
