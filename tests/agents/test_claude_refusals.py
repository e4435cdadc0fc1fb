"""Calls of Claude Code that would do something else than what is judged: they are not run."""

import pytest
from claude_rig import Gate, Whole, claude, says, uses, workspace
from hypothesis import given
from hypothesis import strategies as st

from bridle.agents.claude_code.hooks import refusal
from rig import run

ROOTS = ("/w", "/real/w")
# What JavaScript's `trim` takes away: its white space and its ends of lines.
TRIMMED = [*"\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"]
TRIMMED += [chr(number) for number in range(0x2000, 0x200B)]
PLACES = [
    *(("Read", "file_path"), ("Write", "file_path"), ("Edit", "file_path")),
    *(("MultiEdit", "file_path"), ("NotebookEdit", "notebook_path"), ("LS", "path")),
    *(("Glob", "path"), ("Glob", "pattern"), ("Grep", "path"), ("Grep", "glob")),
]


@pytest.mark.parametrize(("name", "field"), PLACES)
def test_a_path_that_the_program_would_trim_is_refused(name, field):
    for blank in TRIMMED:
        for path in (f"{blank}/etc", f"a{blank}", f"/w/a{blank}/.", f" \ufeff{blank}/etc", blank):
            said = refusal(name, {field: path}, "/w", ROOTS)
            assert said.startswith(f"not run: `{field}` begins or ends with a blank.")
    assert refusal(name, {field: "/w/a b/c\u00a0d"}, "/w", ROOTS) == ""


def test_words_that_are_no_path_may_have_blanks():
    assert refusal("Grep", {"pattern": " x ", "path": "/w"}, "/w", ROOTS) == ""
    assert refusal("Write", {"file_path": "/w/a", "content": " x\n"}, "/w", ROOTS) == ""
    assert refusal("Bash", {"command": " ls "}, "/w", ROOTS) == ""


@given(st.text(), st.sampled_from(TRIMMED), st.booleans())
def test_no_path_with_a_blank_at_an_end_passes(path, blank, first):
    path = blank + path if first else path + blank
    assert refusal("Grep", {"path": path}, "/w", ROOTS)


@pytest.mark.parametrize("cwd", [None, "", "/w/sub", "/", "/w/.claude/worktrees/agent-1"])
def test_a_call_that_works_in_another_folder_is_refused(cwd):
    said = f"not run: this call would work in {cwd}, and calls are judged in /w. Work there."
    assert refusal("Bash", {"command": "ls"}, cwd, ROOTS) == said


def test_the_root_may_be_spelled_in_another_way(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for cwd in (f"{tmp_path}", f"{tmp_path}/link", f"{tmp_path}/"):
        assert refusal("Bash", {"command": "ls"}, cwd, (str(tmp_path),)) == ""


@pytest.mark.parametrize("name", ["Task", "Agent"])
def test_a_task_has_its_words_and_nothing_that_changes_where_or_how_it_runs(name):
    plain = {"description": "d", "prompt": "p", "subagent_type": "Explore", "model": "haiku"}
    assert (
        refusal(name, {**plain, "run_in_background": False, "isolation": None}, "/w", ROOTS) == ""
    )
    for field in ("isolation", "cwd", "mode", "run_in_background", "name", "something_new"):
        said = f"not run: a task cannot have `{field}` here. Leave it out."
        assert refusal(name, {**plain, field: "worktree"}, "/w", ROOTS) == said


def test_the_program_does_not_run_what_is_refused_and_the_model_reads_why(tmp_path):
    async def work():
        root, outside = workspace(tmp_path), tmp_path / "outside"
        outside.mkdir()
        (outside / "secret.txt").write_text("TOPSECRET\n")
        task = {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}
        script = [
            uses("Grep", {"pattern": "TOP", "path": f"\ufeff{outside}", "output_mode": "content"}),
            uses("Glob", {"pattern": "*", "path": f" {outside}"}),
            uses("Task", {**task, "isolation": "worktree"}),
            says("ok"),
        ]
        session, gate = Whole(root), Gate()
        async with claude(script, tmp_path) as (agent, server):
            await agent.execute("go", session, can_use_tool=gate)
            told = str(server.requests[-1].body["messages"])
        assert (gate.asked, session.calls) == ([], [])
        assert told.count("`path` begins or ends with a blank") == 2
        assert "cannot have `isolation` here" in told
        assert "TOPSECRET" not in told and "secret.txt" not in told
        refused = [each["tool"] for each in session.traces("claude_refused")]
        assert refused == ["Grep", "Glob", "Agent"]

    run(work())
