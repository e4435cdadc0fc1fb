"""An engine has the gate's parts: machine, rules, sandbox, undo, somebody's own policy (A5)."""

import subprocess
import sys

import pytest

from bridle.errors import ConfigError
from bridle.events import ToolResultEvent
from bridle.policy import Decision
from bridle.protocols.session import NO, YES
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.stores.memory_store import MemoryStore
from rig import run


def outcome(tmp_path, name, arguments, **options):
    """The one result of that call, and what was asked."""
    asked = []

    async def approver(question):
        asked.append(question.reason)
        return options.get("answer", NO)

    async def story():
        script = [{"calls": [{"name": name, "arguments": arguments}]}, "ok"]
        given = {"store": MemoryStore(), "sandbox": "none", "approver": approver, **options}
        given.pop("answer", None)
        async with build_engine(Scripted(script), workspace=tmp_path, **given) as engine:
            result = await engine.run("go")
            return [
                record.event.output
                for record in engine.store.read(result.session_id)
                if isinstance(record.event, ToolResultEvent)
            ]

    [output] = run(story())
    return output, asked


def test_rules_are_given_in_their_words(tmp_path):
    output, asked = outcome(
        tmp_path, "shell", {"command": "touch made"}, rules=["allow: shell(touch *)"]
    )
    assert (output.is_error, asked) == (False, [])
    assert (tmp_path / "made").exists()
    with pytest.raises(ConfigError, match="rules: `touch` is not a rule"):
        build_engine(Scripted([]), rules=["touch"])


def test_an_ordinary_look_around_asks_nobody(tmp_path):
    output, asked = outcome(tmp_path, "shell", {"command": "ls -la && pwd"})
    assert (output.is_error, asked) == (False, [])


def test_the_floor_holds_whatever_is_set(tmp_path):
    class Yes:
        async def evaluate(self, tool, arguments):
            return Decision("allow")

    output, asked = outcome(
        tmp_path,
        "shell",
        {"command": "rm -rf /"},
        rules=["allow: *"],
        mode="auto",
        policy=Yes(),
        answer=YES,
    )
    assert output.is_error
    assert asked == []


def test_a_policy_engine_of_ones_own_is_asked(tmp_path):
    """`evaluate(tool, arguments)`, awaited (A5)."""
    seen = []

    class No:
        async def evaluate(self, tool, arguments):
            seen.append((tool.name, arguments))
            return "denied"

    output, _ = outcome(tmp_path, "shell", {"command": "ls"}, policy=No())
    assert output.is_error
    assert seen == [("shell", {"command": "ls"})]


def test_what_is_not_understood_does_not_run_with_yes_outside_a_sandbox(tmp_path):
    output, asked = outcome(
        tmp_path, "shell", {"command": 'touch "$(echo made)"'}, mode="auto", answer=YES
    )
    assert output.is_error
    assert asked == []
    assert not (tmp_path / "made").exists()


def test_another_folder_is_worked_on_by_the_persons_word(tmp_path):
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "a.txt").write_text("hello\n")
    arguments = {"path": str(other / "a.txt")}
    inside, _ = outcome(root, "read", arguments, also=[other])
    outside, _ = outcome(root, "read", arguments)
    assert (inside.is_error, outside.is_error) == (False, True)
    assert "hello" in inside.text


def test_bridles_own_folders_are_nobody_elses(tmp_path):
    state = tmp_path / "state"
    (state / "sessions").mkdir(parents=True)
    (state / "trust.json").write_text("{}")
    output, asked = outcome(
        tmp_path, "read", {"path": "state/trust.json"}, store=None, state=state, mode="auto"
    )
    assert output.is_error
    assert asked == []


def test_hosts_make_a_tool_for_pages(tmp_path):
    async def offered(hosts):
        model = Scripted(["ok"])
        store = MemoryStore()
        async with build_engine(model, store=store, workspace=tmp_path, hosts=hosts) as engine:
            await engine.run("go")
        return {tool.name for tool in model.requests[0].tools}

    assert run(offered(["example.com"])) - run(offered([])) == {"web_fetch"}


WRITE = ("write", {"path": "a.txt", "content": "a"})


@pytest.mark.parametrize(
    ("options", "keeps"), [({}, True), ({"undo": False}, False), ({"store": None}, True)]
)
def test_what_a_turn_changes_is_kept_in_the_state_folder(tmp_path, options, keeps):
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    output, _ = outcome(root, *WRITE, mode="edits", state=state, **options)
    assert not output.is_error
    assert (state / "undo").exists() is keeps


def test_a_store_of_ones_own_without_a_state_keeps_nothing_in_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path / "state"))
    root = tmp_path / "root"
    root.mkdir()
    output, _ = outcome(root, *WRITE, mode="edits")
    assert not output.is_error
    assert not (tmp_path / "state").exists()


def test_a_sandbox_that_is_not_there_is_refused_by_name():
    with pytest.raises(ConfigError) as caught:
        build_engine(Scripted([]), sandbox="chroot")
    assert caught.value.message == "there is no sandbox 'chroot'"


def test_building_an_engine_loads_no_grammar_no_yaml_and_looks_for_no_sandbox(tmp_path):
    code = (
        "import sys, bridle\n"
        f"bridle.build_engine('offline', state={str(tmp_path)!r}, rules=['allow: shell(ls)'])\n"
        "print(*[name for name in sys.modules if name.partition('.')[0] in\n"
        "        ('tree_sitter', 'tree_sitter_bash', 'yaml')\n"
        "        or name.startswith('bridle.command_analysis.')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.strip() == ""
