"""Diagnostics after an edit: a real linter looks at what was changed, judged and confined."""

import shlex
import sys
from pathlib import Path

import pytest

from bridle import HookEvent, HookResult, hook
from bridle.config.diagnostics import Check, parse_check, parse_diagnostics
from bridle.config.folder import load_diagnostics
from bridle.config.trust import Trust
from bridle.errors import ConfigError
from bridle.events import ToolResultEvent, TraceEvent
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.runtime.diagnostics import Diagnostics
from bridle.stores.memory_store import MemoryStore
from bridle.workspace.workspace import Workspace
from rig import call, run

RUFF = str(Path(sys.executable).with_name("ruff"))
LINT = f"{RUFF} check --no-cache --isolated --output-format=concise {{files}}"
BAD = "import os\n"


async def edited(root, lines, *calls, **options):
    """A turn that makes these calls: what the model reads of each, and what the log says of it."""
    given = {"store": MemoryStore(), "mode": "auto", **options}
    script = [*calls, "ok"]
    async with build_engine(Scripted(script), workspace=root, diagnostics=lines, **given) as engine:
        done = await engine.run("go")
        events = [record.event for record in engine.store.read(done.session_id)]
    outputs = [one.output for one in events if isinstance(one, ToolResultEvent)]
    traces = [one.detail for one in events if isinstance(one, TraceEvent) and one.kind == "hook"]
    return outputs, traces


def write(path="a.py", content=BAD):
    return call("write", path=path, content=content)


def test_what_the_linter_says_is_handed_to_the_model_and_recorded(tmp_path):
    [output], [trace] = run(edited(tmp_path, [LINT], write()))
    assert not output.is_error
    assert "a.py:1:8: F401" in output.text
    assert output.text.index("diagnostics: `") > 0
    assert trace["moment"] == "after_tool"
    assert "F401" in trace["word"]


def test_a_file_that_is_fine_is_not_spoken_of(tmp_path):
    [output], traces = run(edited(tmp_path, [LINT], write(content="x = 1\n")))
    assert "diagnostics" not in output.text
    assert traces == []


def test_only_the_changed_files_are_looked_at_by_whoever_can_read_them(tmp_path):
    (tmp_path / "other.py").write_text(BAD)
    outputs, traces = run(edited(tmp_path, [LINT], write("notes.md"), write("b.py")))
    assert "diagnostics" not in outputs[0].text
    assert "b.py" in outputs[1].text and "other.py" not in outputs[1].text
    assert len(traces) == 1


def test_a_patch_and_an_edit_are_looked_at_too(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    patch = (
        "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+import os\n"
        "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-y = 1\n+import re\n"
    )
    reading = [call("read", path="a.py"), call("read", path="b.py")]
    outputs, _ = run(edited(tmp_path, [LINT], *reading, call("apply_patch", patch=patch)))
    assert "a.py:1:8" in outputs[2].text and "b.py:1:8" in outputs[2].text


def test_an_edit_that_failed_is_not_looked_at(tmp_path):
    (tmp_path / "a.py").write_text(BAD)
    wrong = call("edit", path="a.py", old="nothing", new="x")
    outputs, traces = run(edited(tmp_path, [LINT], call("read", path="a.py"), wrong))
    assert outputs[1].is_error and traces == []


def test_a_rule_that_denies_the_command_denies_it_here(tmp_path):
    [output], _ = run(
        edited(tmp_path, ["touch ran {files}"], write(), rules=["deny: shell(touch *)"])
    )
    assert "was not run: a rule forbids it" in output.text
    assert not (tmp_path / "ran").exists()


def test_a_policy_engine_of_ones_own_is_asked(tmp_path):
    class Strict:
        async def evaluate(self, tool, arguments):
            return "denied" if tool.name == "shell" else "allowed"

    [output], _ = run(edited(tmp_path, ["touch ran"], write(), policy=Strict()))
    assert "was not run" in output.text
    assert not (tmp_path / "ran").exists()


def test_the_floor_holds(tmp_path):
    [output], _ = run(edited(tmp_path, ["rm -rf / {files}"], write()))
    assert "was not run" in output.text


def test_without_a_sandbox_only_what_would_run_unasked_is_run(tmp_path):
    """What a linter runs may be what the model has just written: its plugins, its settings."""
    [output], _ = run(edited(tmp_path, [LINT], write(), sandbox="none"))
    assert "without a sandbox that takes a rule that allows it" in output.text
    rules = [f"allow: shell({RUFF} *)"]
    [output], _ = run(edited(tmp_path, [LINT], write("b.py"), sandbox="none", rules=rules))
    assert "F401" in output.text


def test_it_runs_in_the_sandbox_without_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret-0000")
    outside = tmp_path.parent / "outside"
    root = tmp_path / "w"
    root.mkdir()
    code = (
        f"import os; open({str(outside)!r}, 'w'); exit(repr(os.environ.get('ANTHROPIC_API_KEY')))"
    )
    line = shlex.join(["python3", "-c", code])
    [output], _ = run(edited(root, [line], write()))
    assert output.text.endswith("exit code 1\nNone]")
    assert "very-secret" not in output.text
    assert not outside.exists()


def test_the_words_that_are_judged_are_the_words_that_run(tmp_path):
    """A file's name is one word, whatever it is called; nothing of it is obeyed."""
    name = "-x; touch pwned $(touch pwned) `touch pwned` 'q' \".py"
    line = "*.py: python3 -c 'import sys; sys.exit(repr(sys.argv[1:]))' {files}"
    [output], _ = run(edited(tmp_path, [line], write(name)))
    assert repr(["./" + name]) in output.text
    assert not (tmp_path / "pwned").exists()


def test_nothing_in_a_command_line_is_expanded(tmp_path):
    line = "python3 -c 'import sys; sys.exit(repr(sys.argv[1:]))' $HOME ~ * ; touch pwned"
    [output], _ = run(edited(tmp_path, [line], write()))
    assert "['$HOME', '~', '*', ';', 'touch', 'pwned']" in output.text
    assert not (tmp_path / "pwned").exists()


def test_what_it_says_is_bounded_and_harmless(tmp_path):
    line = "python3 -c \"print(chr(27) + '[2J' + 'x' * 100000); raise SystemExit(1)\""
    [output], _ = run(edited(tmp_path, [line], write()))
    assert len(output.text) < 9000
    assert "\x1b" not in output.text and "\\x1b[2J" in output.text


def test_one_that_never_ends_is_ended(tmp_path):
    workspace = Workspace(tmp_path)
    (tmp_path / "a.py").write_text("")
    check = parse_check("sleep 600", "here")
    voice = Diagnostics([check], workspace, seconds=0.2)
    voice._decide = allowed
    said = run(voice.run(HookEvent("after_tool", tool="write", arguments={"path": "a.py"})))
    assert said == HookResult(word="diagnostics: `sleep 600` did not end within 0.2 seconds")


async def allowed(line):
    from bridle.policy import Decision

    return Decision("allow", "in this test")


def test_a_program_that_there_is_not_is_said_so(tmp_path):
    [output], _ = run(edited(tmp_path, ["no-such-linter {files}"], write()))
    assert "exit code 127" in output.text


def test_hooks_of_ones_own_are_still_heard(tmp_path):
    @hook("after_tool")
    def mine(event):
        return HookResult(word="mine")

    [output], _ = run(edited(tmp_path, [LINT], write(), hooks=mine))
    assert "mine" in output.text and "F401" in output.text


def test_secrets_are_taken_out_of_what_it_says(tmp_path):
    line = "python3 -c \"raise SystemExit('the word is xyzzy-0000')\""
    [output], [trace] = run(edited(tmp_path, [line], write(), redact=["xyzzy-[0-9]+"]))
    assert "xyzzy" not in output.text + trace["word"]


@pytest.mark.parametrize(
    ("text", "words", "patterns"),
    [
        ("ruff check {files}", ("ruff", "check", "{files}"), ("*.py", "*.pyi")),
        ("python3 -m mypy", ("python3", "-m", "mypy"), ("*.py", "*.pyi")),
        ("mylint 'a b'", ("mylint", "a b"), ("*",)),
        ("*.c,*.h: mylint", ("mylint",), ("*.c", "*.h")),
        ("/x/bin/shellcheck {files}", ("/x/bin/shellcheck", "{files}"), ("*.sh", "*.bash")),
    ],
)
def test_a_command_line_is_understood(text, words, patterns):
    assert parse_check(text, "here") == Check(words, patterns, "here")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has to be one line of text"),
        (7, "has to be one line of text"),
        ("a\nb", "has to be one line of text"),
        ("ruff 'x", "No closing quotation"),
        ("{files}", "names no program"),
        ("ruff --x={files}", "inside a word"),
    ],
)
def test_a_line_that_cannot_be_understood_is_refused(text, said):
    with pytest.raises(ConfigError, match="here: .*" + said):
        parse_check(text, "here")


@pytest.mark.parametrize(
    "text", ["diagnostics: 7", "rules: []", "- [a]", "- 7", "- x\n" * 21, "a: [", "- 'x"]
)
def test_a_file_that_cannot_be_understood_is_refused_with_its_line(text):
    with pytest.raises(ConfigError, match=r"f\.yaml:\d+"):
        parse_diagnostics(text, Path("f.yaml"))


def test_a_folders_own_count_when_it_is_trusted_and_not_when_they_changed(tmp_path):
    state, root = tmp_path / "state", tmp_path / "w"
    (root / ".bridle").mkdir(parents=True)
    file = root / ".bridle" / "diagnostics.yaml"
    file.write_text("diagnostics:\n  - ruff check {files}\n")
    environ = {"BRIDLE_STATE": str(state), "HOME": str(tmp_path)}
    found = load_diagnostics(root, ["mylint"], environ)
    assert [one.words[0] for one in found.items] == ["mylint"]
    assert found.notes[0][0] == "this folder has its own diagnostics, which do not run"
    Trust(state).grant(root)
    found = load_diagnostics(root, ["mylint"], environ)
    assert [one.words[0] for one in found.items] == ["mylint", "ruff"]
    assert found.items[1].origin == f"{file}:2"
    file.write_text("- touch pwned\n")
    assert len(load_diagnostics(root, (), environ).items) == 0
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere.yaml")
    (tmp_path / "elsewhere.yaml").write_text("- touch pwned\n")
    Trust(state).grant(root)
    assert len(load_diagnostics(root, (), environ).items) == 0
