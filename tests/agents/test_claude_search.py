"""Claude Code's searches are made by our tools: what is protected reaches no model unasked."""

import pytest
from claude_rig import says, soak, uses, workspace
from test_claude_engine import engine_with, told

from bridle.agents.claude_code.tool_mapping import (
    empty_search,
    is_own_search,
    search_answer,
    to_ours,
)
from bridle.policy import parse_rule
from rig import results, run

SECRET = "hunter2xyz"
ROOTS = ("/work/space",)


def searched(tmp_path, *calls, **options):
    """The program makes these calls in a folder with a secret: all that the model was sent."""
    root = workspace(tmp_path)
    (root / ".env").write_text(f"PASSWORD={SECRET}\n")
    (root / "a.py").write_text("PASS = 1\n")

    async def work():
        script = [{**uses(*calls[0]), "calls": [uses(*one)["calls"][0] for one in calls]}]
        async with engine_with([*script, says("well")], tmp_path, **options) as (engine, server):
            session, result = await told(engine, "go")
            return engine, session.id, result, str([one.body for one in server.requests])

    engine, session_id, result, sent = run(work())
    assert (result.reason, result.text) == ("done", "well")
    return results(engine, session_id), sent


GREP = ("Grep", {"pattern": "PASS", "output_mode": "content"})
HOW = [
    {"mode": "ask"},
    pytest.param({"mode": "plan"}, marks=soak),
    pytest.param({"mode": "auto"}, marks=soak),
    pytest.param({"mode": "auto", "rules": [parse_rule("deny: read(.env)")]}, marks=soak),
]


@pytest.mark.parametrize("options", HOW)
def test_a_search_over_a_folder_leaves_its_secrets_out(tmp_path, options):
    here = str(workspace(tmp_path))
    calls = (GREP, ("Grep", {"pattern": "PASS", "path": here}), ("Glob", {"pattern": "*.py"}))
    found, sent = searched(tmp_path, *calls, **options)
    assert SECRET not in sent
    assert sorted((text, failed) for _, text, failed in found) == [
        ("a.py", False),  # they are made at once
        ("a.py:1:PASS = 1", False),
        ("a.py:1:PASS = 1", False),
    ]
    assert sent.count("a.py:1:PASS = 1") == 2  # and the model has read what ours has found


def test_what_our_tools_cannot_search_is_judged_as_the_programs_own():
    def ours(name, **given):
        return is_own_search(name, to_ours(name, given, ROOTS))

    assert ours("Grep", pattern="x") and ours("Grep", pattern="x", path="/work/space/sub")
    assert ours("Glob", pattern="*.py") and not ours("Read", file_path="/work/space/a")
    assert not ours("Grep", pattern="x", path="/etc") and not ours("Grep", pattern="x", path="~/x")
    assert not ours("Grep", pattern="x", multiline=True) and not ours("Glob", pattern="/etc/*")
    assert not ours("Grep", pattern="x", path="../other")


def test_the_program_searches_where_nothing_is_and_is_told_what_had_no_effect():
    assert empty_search("Grep", {"pattern": "x"})["path"] == "/dev/null"
    assert search_answer("Grep", {"pattern": "x", "-A": 3, "type": "py"}, "a:1:x")["content"] == (
        "a:1:x\n[-A, type had no effect: read the files for more]"
    )
