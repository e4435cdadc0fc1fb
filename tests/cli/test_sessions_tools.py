"""`bridle sessions` for whole logs: export, import, fork, verify, search, delete."""

import json
import stat
import sys
import time

import pytest
from cli_program import Program

from bridle.cli.output import progress
from bridle.protocols.codec import encode_line
from bridle.workspace.text import size_of

EVIL = "\x1b]52;c;x\x07 \u202e"
READ = {"calls": [{"name": "read", "arguments": {"path": "a.txt"}}]}


def talked(bridle: Program, *prompts: str) -> str:
    """A session with these prompts, each answered; its id."""
    (bridle.workspace / "a.txt").write_text("the needle\n")
    replies = [reply for _ in prompts for reply in (READ, "An answer.")]
    lines = "".join(f"{prompt}\n" for prompt in prompts).encode()
    assert bridle.run("repl", "-m", bridle.script(*replies), stdin=lines).returncode == 0
    (newest, *_) = json.loads(bridle.run("sessions", "list", "--json").stdout)
    return newest["id"]


def log_of(bridle: Program, session: str) -> bytes:
    return (bridle.state / "sessions" / session / "log.jsonl").read_bytes()


def records(bridle: Program, session: str, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in log_of(bridle, session).splitlines()]
    return [{**line["data"], "seq": line["seq"]} for line in lines if line["data"]["type"] == kind]


def sessions(bridle: Program) -> list[str]:
    return [one["id"] for one in json.loads(bridle.run("sessions", "list", "--json").stdout)]


def test_show_and_export_give_the_log_byte_for_byte(bridle: Program):
    """(A7) A record of a kind that this version does not know, oddly spaced, stays as it is."""
    session = talked(bridle, "one")
    last = json.loads(log_of(bridle, session).splitlines()[-1])
    data = b'{"type":"from_2031",  "x": 1.50}'
    odd, _ = encode_line(last["seq"] + 1, last["timestamp"], data, last["hash"])
    with (bridle.state / "sessions" / session / "log.jsonl").open("ab") as log:
        log.write(odd)
    raw = log_of(bridle, session).decode()
    assert bridle.run("sessions", "show", session, "--json").stdout == raw
    assert bridle.run("sessions", "export", session).stdout == raw
    assert "does not know: from_2031" in bridle.run("sessions", "show", session).stdout


def test_an_exported_file_is_private_and_never_written_over_unasked(bridle: Program):
    session = talked(bridle, "one")
    file = bridle.home / "kept.jsonl"
    done = bridle.run("sessions", "export", session, "-o", str(file), "--json")
    said = json.loads(done.stdout)
    raw = log_of(bridle, session)
    assert said == {"id": session, "format": "jsonl", "file": str(file), "size": len(raw)}
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (raw, 0o600)
    file.write_text("mine")
    refused = bridle.run("sessions", "export", session, "-o", str(file))
    assert (refused.returncode, file.read_text()) == (2, "mine")
    assert "was not changed" in refused.stderr and "--force" in refused.stderr
    link = bridle.home / "link.jsonl"
    link.symlink_to(bridle.home / "nowhere")
    assert bridle.run("sessions", "export", session, "-o", str(link)).returncode == 2
    forced = bridle.run("sessions", "export", session, "-o", str(file), "--force")
    assert (forced.returncode, file.read_bytes()) == (0, raw)
    assert sorted(one.name for one in bridle.home.iterdir()) == [
        "kept.jsonl",
        "link.jsonl",
        "script.json",
    ]


def test_markdown_holds_what_was_said_in_blocks_that_it_cannot_leave(bridle: Program):
    prompt = f"look at ````` this {EVIL}"
    answer = "Look: ![x](http://127.0.0.1:9/leak) <img src=x>\n```\nopen fence"
    bridle.run("run", prompt, "-m", bridle.script({"text": answer}))
    (session,) = sessions(bridle)
    page = bridle.run("sessions", "export", session, "--format", "markdown").stdout
    assert "\x1b" not in page and "\u202e" not in page
    assert "``````\nlook at ````` this" in page
    assert (
        "````markdown\nLook: ![x](http://127.0.0.1:9/leak) <img src=x>\n```\nopen fence\n````\n"
        in page
    )
    assert page.startswith("# look at \\`\\`\\`\\`\\` this")


def test_an_import_brings_the_same_records_under_a_free_id(bridle: Program):
    """(A8)"""
    session = talked(bridle, "one")
    raw = log_of(bridle, session)
    done = bridle.run("sessions", "import", "-", "--json", stdin=raw)
    copy = json.loads(done.stdout)["id"]
    assert copy != session and log_of(bridle, copy).startswith(raw)
    bridle.run("sessions", "delete", session, "--yes")
    again = bridle.run("sessions", "import", "-", stdin=raw)
    assert log_of(bridle, session).startswith(raw)
    assert f"{session}  no damage" in again.stdout
    bridle.run("run", "two", "--resume", session, "-m", bridle.script("Yes."))
    assert [one["content"] for one in records(bridle, session, "user_prompt")] == ["one", "two"]
    refused = bridle.run("sessions", "import", "-", stdin=b"this is no log\n")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert set(sessions(bridle)) == {session, copy}


def test_an_imported_session_works_in_the_current_folder_and_grants_nothing(bridle: Program):
    """What the log names may be anywhere, and whoever said yes there was not asked for here."""
    made = {"calls": [{"name": "shell", "arguments": {"command": "echo made >> made.txt"}}]}
    model = bridle.script(made)
    bridle.run("run", "go", "--on-ask", "park", "-m", model, "--workspace", str(bridle.home))
    (session,) = sessions(bridle)
    bridle.run("approvals", "answer", session, "yes", "--scope", "session", "--by", "mallory")
    bridle.run("run", "--resume", session, "-m", bridle.script("Done.", name="after"))
    assert (bridle.home / "made.txt").read_text() == "made\n"
    raw = log_of(bridle, session)
    bridle.run("sessions", "delete", session, "--yes")
    bridle.run("sessions", "import", "-", stdin=raw)
    done = bridle.run("run", "again", "--resume", session, "-m", bridle.script(made, "No."))
    assert f"working in {bridle.workspace}; the session was imported" in done.stderr
    assert (done.returncode, done.stdout) == (3, "No.\n")
    assert (bridle.home / "made.txt").read_text() == "made\n"
    assert not (bridle.workspace / "made.txt").exists()


def test_verify_finds_a_changed_byte_and_with_a_head_also_a_cut_end(bridle: Program):
    session = talked(bridle, "one", "two")
    path = bridle.state / "sessions" / session / "log.jsonl"
    raw = path.read_bytes()
    count = raw.count(b"\n")
    fine = bridle.run("sessions", "verify", session)
    assert (fine.returncode, fine.stdout) == (0, f"✓ {session}  no damage, {count} records\n")
    head = bridle.home / "head.json"
    head.write_text(bridle.run("sessions", "export", session, "--head").stdout)
    assert json.loads(head.read_text())["seq"] == count
    path.write_bytes(raw.replace(b"the needle", b"the noodle", 1))
    broken = bridle.run("sessions", "verify", session)
    assert broken.returncode == 1 and ": altered" in broken.stdout
    path.write_bytes(b"".join(raw.splitlines(keepends=True)[:-1]))
    assert bridle.run("sessions", "verify", session).returncode == 0
    cut = bridle.run("sessions", "verify", session, "--head", str(head), "--json")
    (report,) = json.loads(cut.stdout)
    assert (cut.returncode, report["ok"]) == (1, False)
    assert [one["what"] for one in report["findings"]] == ["head differs"]
    path.write_bytes(raw)
    assert bridle.run("sessions", "verify", "--all", "--json").returncode == 0


@pytest.mark.parametrize("held", [b"{}", b"[]", b"\xff", b'{"seq": "x", "hash": 1}'])
def test_a_file_that_is_no_head_is_said(bridle: Program, held: bytes):
    session = talked(bridle, "one")
    (bridle.home / "head").write_bytes(held)
    done = bridle.run("sessions", "verify", session, "--head", str(bridle.home / "head"))
    assert done.returncode == 2 and "this is not a head" in done.stderr


def test_a_fork_goes_its_own_way(bridle: Program):
    """(S3)"""
    session = talked(bridle, "one", "two")
    (first, _) = records(bridle, session, "turn_end")
    before = log_of(bridle, session)
    done = bridle.run("sessions", "fork", session, "--at", str(first["seq"]))
    copy, hint = done.stdout.splitlines()
    assert f"bridle run --resume {copy}" in hint
    bridle.run("run", "three", "--resume", copy, "-m", bridle.script("Yes."))
    assert [one["content"] for one in records(bridle, copy, "user_prompt")] == ["one", "three"]
    assert log_of(bridle, session) == before
    (forked,) = records(bridle, copy, "fork")
    assert (forked["sessionId"], forked["at"]) == (session, first["seq"])
    shown = bridle.run("sessions", "show", copy).stdout
    assert f"⑂ forked from {session} at #{first['seq']}" in shown
    beyond = bridle.run("sessions", "fork", session, "--at", "9999")
    assert beyond.returncode == 2 and "has no record 9999" in beyond.stderr
    assert len(sessions(bridle)) == 2


def test_search_groups_what_it_finds_by_session_and_shows_no_command_to_a_terminal(bridle: Program):
    one = talked(bridle, f"where is the {EVIL} needle?")
    two = talked(bridle, "nothing here")
    done = bridle.run("sessions", "search", "needle")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    heads = [line for line in done.stdout.splitlines() if line and not line.startswith("  ")]
    assert [head.split()[-1] for head in heads] == [two, one]
    assert "#2 prompt" in done.stdout and "tool result" in done.stdout
    hits = json.loads(bridle.run("sessions", "search", "NEEDLE", "--json").stdout)
    assert {hit["text"][hit["start"] : hit["end"]] for hit in hits} == {"needle"}
    assert bridle.run("sessions", "search", "NEEDLE", "--case").returncode == 1
    only = bridle.run("sessions", "search", "n..dle", "--regex", "--session", two, "--json").stdout
    assert {hit["sessionId"] for hit in json.loads(only)} == {two}
    limited = bridle.run("sessions", "search", "needle", "--limit", "1").stdout
    assert "the first 1 matches; for more: --limit 10" in limited
    wrong = bridle.run("sessions", "search", "(", "--regex")
    assert wrong.returncode == 2 and wrong.stderr.startswith("bridle: ")


def test_delete_asks_first_and_takes_only_what_was_named(bridle: Program):
    one, two, three = (talked(bridle, word) for word in ("one", "two", "three"))
    unasked = bridle.run("sessions", "delete", one)
    assert unasked.returncode == 2 and "--yes" in unasked.stderr
    with bridle.terminal("sessions", "delete", one) as terminal:
        terminal.expect(f"Permanently delete {one} (one)? [y/N] ")
        terminal.type("n\n")
        assert terminal.end()[0] == 1
    assert set(sessions(bridle)) == {one, two, three}
    with bridle.terminal("sessions", "delete", one, two) as terminal:
        terminal.expect("[y/N] ")
        terminal.type("y\n")
        assert terminal.end()[0] == 0
    assert sessions(bridle) == [three]
    done = bridle.run("sessions", "delete", three, "--yes", "--json")
    assert json.loads(done.stdout) == {"deleted": [three]}


def test_long_work_shows_a_progress_bar_in_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for starts, shown in (([0.0, 0.1, 0.2], False), ([0.0, 0.1, 0.4], True)):
        times = iter(starts)
        monkeypatch.setattr(time, "monotonic", lambda times=times: next(times))
        with progress("checking") as advance:
            advance(1_000_000, 20_000_000)
            advance(5_000_000, 20_000_000)
        said = capsys.readouterr().err
        assert ("checking" in said and "25%" in said) is shown
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(time, "monotonic", lambda: 9.0)
    with progress("checking") as advance:
        advance(1, 2)
    assert capsys.readouterr().err == ""


def test_nothing_is_said_of_progress_in_a_pipe(bridle: Program):
    session = talked(bridle, "one")
    for command in ("verify", "export", "fork"):
        assert bridle.run("sessions", command, session).stderr == ""


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (250_000, "250 KB"), (2e9, "2.0 GB")],
)
def test_sizes_are_said_as_a_person_says_them(count: float, said: str):
    assert size_of(count) == said
