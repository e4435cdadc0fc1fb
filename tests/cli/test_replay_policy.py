"""`bridle sessions replay --policy`: past calls, decided again. Nothing runs."""

import json

import pytest


def call(name, **arguments):
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def session(bridle):
    """A session in which something ran unasked, was asked about twice, and was denied."""
    (bridle.workspace / "a.txt").write_text("hello\n")
    model = bridle.script(
        call("read", path="a.txt"),
        call("shell", command="touch made"),
        call("write", path="b.txt", content="b\n"),
        call("read", path="../out"),
        "Done.",
    )
    done = bridle.run("repl", "-m", model, stdin=b"go\ny\nn\n")
    assert done.returncode == 0, done.stderr
    return bridle.logs()[-1].parent.name


def rules(bridle, text):
    path = bridle.workspace / "new.yaml"
    path.write_text(text)
    return str(path)


def told(bridle, *arguments):
    done = bridle.run("sessions", "replay", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return [(one["name"], one["then"], one["now"]) for one in json.loads(done.stdout)]


def test_without_rules_everything_is_decided_as_it_was(bridle, session):
    empty = rules(bridle, "")
    assert told(bridle, "--policy", empty, session) == [
        ("read", "allow", "allow"),
        ("shell", "ask", "ask"),
        ("write", "ask", "ask"),
        ("read", "deny", "deny"),
    ]
    done = bridle.run("sessions", "replay", "--policy", empty, session)
    assert done.stdout == "✓ 4 calls in 1 session: 4 unchanged\n"


def test_what_would_change_is_shown_with_counts_and_reasons(bridle, session):
    new = rules(
        bridle,
        "rules:\n- allow: shell(touch *)\n- deny: read(*.txt)\n- allow: read(../out)\n",
    )
    assert told(bridle, "--policy", new, session) == [
        ("read", "allow", "deny"),
        ("shell", "ask", "allow"),
        ("write", "ask", "ask"),
        ("read", "deny", "deny"),
    ]
    before = bridle.logs()[0].read_bytes()
    (bridle.workspace / "made").unlink()
    done = bridle.run("sessions", "replay", "--policy", new, "--all")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "allowed → deny  read a.txt",
        "    deny: read(*.txt)",
        "asked → allow  shell touch made",
        "    allow: shell(touch *)",
        "≠ 4 calls in 1 session: 2 unchanged, 1 allowed → deny, 1 asked → allow",
    ]
    assert not (bridle.workspace / "made").exists()
    assert bridle.logs()[0].read_bytes() == before


def test_a_session_whose_folder_is_gone_is_left_out_and_said(bridle, session, tmp_path):
    new = rules(bridle, "")
    other = tmp_path / "other"
    bridle.workspace.rename(other)
    bridle.workspace.mkdir()
    bridle.workspace.rmdir()
    bridle.workspace = other
    done = bridle.run("sessions", "replay", "--policy", str(other / "new.yaml"), session)
    assert done.returncode == 0
    assert "no longer exists" in done.stderr
    moved = told(bridle, "--policy", str(other / "new.yaml"), session, "-w", str(other))
    assert len(moved) == 4
    assert new


@pytest.mark.parametrize("arguments", [(), ("ID", "--all")])
def test_one_session_or_all_have_to_be_named(bridle, session, arguments):
    named = [session if one == "ID" else one for one in arguments]
    done = bridle.run("sessions", "replay", "--policy", rules(bridle, ""), *named)
    assert done.returncode == 2
    assert "--all" in done.stderr


def test_a_bad_file_and_a_replay_of_nothing_are_said(bridle, session):
    bad = bridle.run("sessions", "replay", "--policy", rules(bridle, "rules: {\n"), session)
    assert (bad.returncode, bad.stdout) == (2, "")
    none = bridle.run("sessions", "replay")
    assert none.returncode == 2
    assert "name exactly one session" in none.stderr
