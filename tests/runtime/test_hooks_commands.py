"""Hooks that are commands: real ones, told on standard input, heard by how they end."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridle.config.hooks import CommandLine
from bridle.events import ToolResultEvent
from bridle.protocols.hooks import HookEvent, HookResult
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.runtime.hooks import as_hooks
from bridle.stores.memory_store import MemoryStore
from rig import call, run

WRITE = HookEvent("before_tool", "s1", "/w", 3, tool="write", arguments={"path": "ä.txt"})
AFTER = HookEvent("after_tool", "s1", "/w", 3, tool="write", result="done", ok=False)


def heard(root, command, event=WRITE, seconds=10.0):
    """What that command says as a hook of a file in that folder, for a workspace elsewhere."""
    line = CommandLine((event.moment,), command, seconds=seconds, origin=f"{root}/hooks.yaml:1")
    return run(as_hooks([line], f"{root}/ws").run(event))


def test_it_is_told_everything_on_standard_input_and_runs_beside_its_file(tmp_path):
    assert heard(tmp_path, "cat > told.json; pwd > where; printf hi > out.txt") == HookResult()
    assert json.loads((tmp_path / "told.json").read_text()) == {
        "moment": "before_tool",
        "session_id": "s1",
        "cwd": "/w",
        "turn": 3,
        "prompt": "",
        "tool": "write",
        "call_id": "",
        "arguments": {"path": "ä.txt"},
        "result": "",
        "ok": True,
    }
    assert (tmp_path / "where").read_text().strip() == str(tmp_path.resolve())


def test_words_are_run_as_they_are_and_a_string_by_the_shell(tmp_path):
    script = tmp_path / "my check"
    script.write_text('#!/bin/sh\nprintf "%s|" "$@" > words\n')
    script.chmod(0o700)
    assert heard(tmp_path, ("./my check", "$HOME", "a b", "*")) == HookResult()
    assert (tmp_path / "words").read_text() == "$HOME|a b|*|"
    assert heard(tmp_path, 'test -n "$HOME" && exit 2') == HookResult(deny="it gave no reason")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", HookResult()),
        (" \n", HookResult()),
        ('{"word": "mind the gap"}', HookResult(word="mind the gap")),
        ('  {"deny": "no"}\n', HookResult(deny="no")),
        ('{"arguments": {"path": "b"}}', HookResult(arguments={"path": "b"})),
        ('{"prompt": "x", "word": null}', HookResult()),
    ],
)
def test_a_json_object_is_heard(tmp_path, printed, said):
    (tmp_path / "says").write_text(printed)
    assert heard(tmp_path, "cat says") == said


@pytest.mark.parametrize(
    "printed",
    [
        "all is well",
        "[1, 2]",
        '"deny"',
        '[{"deny": "no"}]',
        'checking…\n{"deny": "no"}',
        '\ufeff{"deny": "no"}',
        '{"Deny": "no"}',
        '{"decision": "deny", "word": "x"}',
        '{"word": "x"} {"deny": "no"}',
    ],
)
def test_what_may_have_been_meant_as_a_no_is_one_beforehand(tmp_path, printed):
    (tmp_path / "says").write_text(printed)
    said = heard(tmp_path, "cat says")
    assert "the hook `cat says` broke: it printed" in said.deny
    assert said == HookResult(deny=said.deny)
    assert heard(tmp_path, "cat says >&2") == HookResult()


@pytest.mark.parametrize("printed", ["all is well", "[1, 2]", '{"status": "ok"}'])
def test_afterwards_other_output_is_not_heard(tmp_path, printed):
    (tmp_path / "says").write_text(printed)
    assert heard(tmp_path, "cat says", AFTER) == HookResult()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 1", "exit code 1"),
        ("echo the disk is full >&2; exit 3", "exit code 3: the disk is full"),
        ("kill -9 $$", "exit code -9"),
        (("./there-is-no-such-program",), "exit code 127"),
        ("echo '{\"deny\": '", "it printed what begins like JSON and is none"),
        ("echo '{\"deny\": true}'", "it said what nobody understands"),
        ('echo \'{"arguments": "a"}\'', "it said what nobody understands"),
        ('printf \'{"word": "\\377"}\'', "it printed what begins like JSON and is none"),
        ("yes", "it printed more than 64 KB"),
        ("yes >&2", "it printed more than 64 KB"),
    ],
)
def test_one_that_breaks_has_denied_beforehand_and_afterwards_it_is_said(tmp_path, command, why):
    before = heard(tmp_path, command)
    assert why in before.deny
    assert before == HookResult(deny=before.deny)
    assert heard(tmp_path, command, AFTER) == HookResult(word=before.deny)


def test_a_deny_has_the_first_lines_of_standard_error_as_its_reason(tmp_path):
    many = "seq 1 100 >&2; exit 2"
    assert heard(tmp_path, many) == HookResult(deny="1\n2\n3\n4\n5")
    sly = "printf 'no\\033[2J way\\n' >&2; echo '{\"word\": \"yes\"}'; exit 2"
    assert heard(tmp_path, sly, AFTER) == HookResult(deny="no\\x1b[2J way")


def is_there(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid):
    """Wait until a process is gone; the suite's own time limit is the deadline."""
    while is_there(pid):
        time.sleep(0.005)
    return True


def there(path):
    """Wait until a file is there."""
    while not path.exists():
        time.sleep(0.005)


DAEMON = "setsid sh -c 'echo $$ > new; mv new daemon; exec sleep 100' >/dev/null 2>&1 &"
BEGUN = "while [ ! -e daemon ]; do sleep 0.01; done"


def test_one_that_hangs_has_denied(tmp_path):
    said = heard(tmp_path, "sleep 100 & exec sleep 100", seconds=0.1)
    assert said == HookResult(deny=said.deny)
    assert said.deny.endswith("broke: it did not end within 0.1 seconds")


def test_one_that_is_interrupted_is_ended_with_everybody_that_it_started(tmp_path):
    async def story():
        command = f"{DAEMON} {BEGUN}; echo $$ > new; mv new me; exec sleep 100"
        line = CommandLine(("before_tool",), command, origin=f"{tmp_path}/hooks.yaml:1")
        hooks = as_hooks([line], f"{tmp_path}/ws")
        hearing = asyncio.create_task(hooks.run(WRITE))
        await asyncio.to_thread(there, tmp_path / "me")
        hearing.cancel()
        await asyncio.wait([hearing])
        return hearing.cancelled()

    assert run(story())
    pids = [int((tmp_path / name).read_text()) for name in ("daemon", "me")]
    assert [gone(pid) for pid in pids] == [True, True]


def test_what_it_leaves_behind_is_ended_when_it_has_ended(tmp_path):
    assert heard(tmp_path, f"{DAEMON} {BEGUN}") == HookResult()
    assert gone(int((tmp_path / "daemon").read_text()))


def test_it_knows_no_key_and_little_else_of_our_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    monkeypatch.setenv("SOMETHING_ELSE", "canary")
    monkeypatch.setenv("BRIDLE_API_KEY", "canary")
    heard(tmp_path, "env > seen; cat /proc/$PPID/environ >> seen || true")
    seen = (tmp_path / "seen").read_text("utf-8", "replace")
    assert "canary" not in seen
    assert "PATH=" in seen


def test_a_very_long_result_is_cut_for_it(tmp_path):
    event = HookEvent("after_tool", tool="read", result="x" * 3_000_000)
    assert heard(tmp_path, "wc -c > size", event) == HookResult()
    assert int((tmp_path / "size").read_text()) < 1_010_000


def test_in_an_engine_a_command_denies_a_call_by_its_name(tmp_path):
    async def story():
        script = [call("write", path="a", content="x"), call("read", path="b"), "ok"]
        line = CommandLine(("before_tool",), "echo no >&2; exit 2", ("write",))
        given = {"store": MemoryStore(), "mode": "auto", "workspace": tmp_path, "sandbox": "none"}
        async with build_engine(Scripted(script), hooks=[line], **given) as engine:
            done = await engine.run("go")
            return [
                record.event.output.text
                for record in engine.store.read(done.session_id)
                if isinstance(record.event, ToolResultEvent)
            ]

    (tmp_path / "b").write_text("bee\n")
    first, second = run(story())
    assert first == "not run: a hook denied it: no"
    assert "bee" in second
    assert not (tmp_path / "a").exists()


def test_a_hook_ends_with_a_bridle_that_is_killed(tmp_path):
    program = (
        "import asyncio\nfrom bridle.config.hooks import CommandLine\n"
        "from bridle.protocols.hooks import HookEvent\nfrom bridle.runtime.hooks import as_hooks\n"
        "line = CommandLine(('before_turn',), 'echo $$ > me.new; mv me.new me; exec sleep 100', "
        "origin='hooks.yaml:1')\n"
        "asyncio.run(as_hooks([line], 'ws').run(HookEvent('before_turn')))\n"
    )
    bridle = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=os.environ)
    while not (tmp_path / "me").exists():
        assert bridle.poll() is None
        time.sleep(0.005)
    bridle.kill()
    bridle.wait()
    assert gone(int((tmp_path / "me").read_text()))
