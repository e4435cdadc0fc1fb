"""Claude Code's tools in our words and back, what came of them, and how a run is judged."""

from types import SimpleNamespace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.agents.claude_code.messages import UNAVAILABLE, is_stale, is_transient, outcome_of
from bridle.agents.claude_code.options import ClaudeCodeConfig, build_options, environment
from bridle.agents.claude_code.tool_mapping import (
    OurCall,
    content_text,
    map_questions,
    to_claude,
    to_ours,
    to_path,
    tool_response,
)
from bridle.protocols.agent import RemainingBudget
from bridle.tools.builtin import builtin_tools

ROOTS = ("/work/space", "/real/space")
OURS = {tool.name: tool.parameters for tool in builtin_tools(hosts=("example.com",))}

CALLS = [
    ("Bash", {"command": "ls", "timeout": 2500}, "shell", {"command": "ls", "timeout": 2.5}, {}),
    ("Bash", {"command": "ls", "timeout": 1e9}, "shell", {"command": "ls", "timeout": 600}, {}),
    ("Bash", {"command": "x", "timeout": 0, "run_in_background": True}, "shell",
     {"command": "x", "background": True}, {}),
    ("Bash", {"command": "ls", "description": "look", "dangerouslyDisableSandbox": True}, "shell",
     {"command": "ls"}, {"description": "look", "dangerouslyDisableSandbox": True}),
    ("Edit", {"file_path": "/work/space/a/b.py", "old_string": "x", "new_string": "y",
              "replace_all": True},
     "edit", {"path": "a/b.py", "old": "x", "new": "y", "all": True}, {}),
    ("Edit", {"file_path": "/work/space/new", "old_string": "", "new_string": "y"},
     "write", {"path": "new", "content": "y"}, {"old_string": ""}),
    ("MultiEdit", {"file_path": "/real/space/a", "edits": [
        {"old_string": "x", "new_string": "y"}, {"old_string": "1", "new_string": "2",
                                                 "replace_all": True}]},
     "edit", {"path": "a", "edits": [{"old": "x", "new": "y"},
                                     {"old": "1", "new": "2", "all": True}]}, {}),
    ("NotebookEdit", {"notebook_path": "/work/space/n.ipynb", "cell_id": "c1", "new_source": "1",
                      "edit_mode": "replace"},
     "edit", {"path": "n.ipynb", "old": "[replace cell c1]", "new": "1"}, {}),
    ("NotebookEdit", {"notebook_path": "/work/space/n.ipynb", "cell_id": "c1", "new_source": "1",
                      "edit_mode": "insert", "cell_type": "markdown"},
     "edit", {"path": "n.ipynb", "old": "[insert after cell c1, as markdown]", "new": "1"}, {}),
    ("NotebookEdit", {"notebook_path": "/work/space/n.ipynb", "cell_id": "c1", "new_source": "1",
                      "edit_mode": "delete"},
     "edit", {"path": "n.ipynb", "old": "[delete cell c1]", "new": ""}, {}),
    ("NotebookEdit", {"notebook_path": "/work/space/n.ipynb", "new_source": "1"},
     "edit", {"path": "n.ipynb", "old": "[replace first cell]", "new": "1"}, {}),
    ("Write", {"file_path": "/work/space/a", "content": ""}, "write",
     {"path": "a", "content": ""}, {}),
    ("Read", {"file_path": "/etc/hosts", "offset": 0, "limit": 5}, "read",
     {"path": "/etc/hosts", "limit": 5}, {}),
    ("Edit", {"file_path": "/work/space/a", "old_string": "x", "new_string": "y",
              "replace_all": False}, "edit", {"path": "a", "old": "x", "new": "y"}, {}),
    ("Glob", {"pattern": "**/*.py", "path": "/work/space"}, "glob",
     {"pattern": "**/*.py", "path": "."}, {}),
    ("Glob", {"pattern": "/etc/ssl/*.pem"}, "glob", {"pattern": "*.pem", "path": "/etc/ssl"}, {}),
    ("Glob", {"pattern": "/work/space/a/**/*.py"}, "glob", {"pattern": "**/*.py", "path": "a"}, {}),
    ("Glob", {"pattern": "../x/{a,b}", "path": "/work/space/sub"}, "glob",
     {"pattern": "{a,b}", "path": "x"}, {}),
    ("Glob", {"pattern": "../../x"}, "glob", {"pattern": "x", "path": "/"}, {}),
    ("Glob", {"pattern": "*/../../../*"}, "glob",
     {"pattern": "work/space/*/../../../*", "path": "/"}, {}),
    ("Grep", {"pattern": "x", "-i": True, "head_limit": 9999, "-n": True}, "grep",
     {"pattern": "x", "ignore_case": True, "limit": 2000}, {"-n": True}),
    ("LS", {"path": "/work/space/sub"}, "list", {"path": "sub"}, {}),
    ("WebFetch", {"url": "https://example.com", "prompt": "sum"}, "web_fetch",
     {"url": "https://example.com"}, {"prompt": "sum"}),
    ("TodoWrite", {"todos": [{"content": "a", "status": "odd", "activeForm": "ing"}]},
     "todo_write", {"todos": [{"content": "a", "status": "pending"}]}, {}),
    ("ExitPlanMode", {"plan": "p", "planFilePath": "/x"}, "exit_plan_mode", {"plan": "p"},
     {"planFilePath": "/x"}),
    ("TaskStop", {"task_id": "b1"}, "shell_stop", {"id": "b1"}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "given_", "name", "arguments", "rest"), CALLS)
def test_a_call_of_theirs_is_a_call_of_ours_that_our_tool_would_take_P3(
    theirs, given_, name, arguments, rest
):
    assert to_ours(theirs, given_, ROOTS) == OurCall(name, arguments, rest)
    jsonschema.validate(arguments, OURS[name])


@pytest.mark.parametrize("name", ["WebSearch", "mcp__files__write", "Skill", "Monitor", "bash"])
def test_what_has_no_counterpart_keeps_its_name_and_its_arguments(name):
    assert to_ours(name, {"x": 1}, ROOTS) == OurCall(name, {"x": 1})
    assert to_claude(name, {"x": 1}, {"x": 2}, ROOTS) == {"x": 2}


@pytest.mark.parametrize(("theirs", "given_", "name", "arguments", "rest"), CALLS)
def test_what_nobody_changed_goes_back_as_it_came(theirs, given_, name, arguments, rest):
    assert to_claude(theirs, given_, arguments, ROOTS) == given_


@given(st.text(), st.text(), st.booleans())
def test_what_somebody_changed_goes_back_in_their_words(old, new, everywhere):
    before = {"file_path": "/work/space/a", "old_string": "x", "new_string": "y"}
    changed = {"path": "b/c", "old": old, "new": new, "all": everywhere}
    assert to_claude("Edit", before, changed, ROOTS) == {
        "file_path": "/work/space/b/c",
        "old_string": old,
        "new_string": new,
        "replace_all": everywhere,
    }


def test_a_change_of_a_command_keeps_what_ours_does_not_say():
    before = {"command": "rm x", "timeout": 1000, "description": "remove"}
    changed = {"command": "rm -i x", "timeout": 2.0}
    assert to_claude("Bash", before, changed, ROOTS) == {
        "command": "rm -i x",
        "timeout": 2000,
        "description": "remove",
    }
    assert to_claude("Bash", before, {"command": "true"}, ROOTS) == {
        "command": "true",
        "description": "remove",
    }


def test_a_search_that_somebody_changed_looks_where_they_said():
    before = {"pattern": "/etc/*"}
    assert to_claude("Glob", before, {"pattern": "*", "path": "src"}, ROOTS) == {
        "pattern": "*",
        "path": "/work/space/src",
    }
    assert to_claude("Glob", before, {"pattern": "*.pem", "path": "/etc"}, ROOTS) == {
        "pattern": "*.pem",
        "path": "/etc",
    }
    assert to_claude("Glob", before, {"pattern": "*.py"}, ROOTS) == {"pattern": "*.py"}


def test_a_change_of_a_notebook_that_somebody_changed_is_theirs():
    path = "/work/space/n.ipynb"
    before = {"notebook_path": path, "cell_id": "a", "new_source": "x", "edit_mode": "delete"}
    changed = {"path": "n.ipynb", "old": "[insert after cell b, as code]", "new": "y"}
    assert to_claude("NotebookEdit", before, changed, ROOTS) == {
        "notebook_path": path,
        "new_source": "y",
        "edit_mode": "insert",
        "cell_id": "b",
        "cell_type": "code",
    }
    sly = {**before, "cell": "[delete cell z]"}  # no field of theirs
    assert to_ours("NotebookEdit", sly, ROOTS).arguments["old"] == "[delete cell a]"
    same = {"path": "m.ipynb", "old": "[delete cell a]", "new": ""}
    other = {**before, "notebook_path": "/work/space/m.ipynb"}
    assert to_claude("NotebookEdit", sly, same, ROOTS) == other
    odd = to_claude("NotebookEdit", before, {**changed, "old": "something"}, ROOTS)
    assert odd == {"notebook_path": path, "new_source": "y", "cell_id": "something"}


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "work", "space"]), max_size=6)


@given(NAMES)
def test_a_path_is_from_the_root_only_where_it_lies_inside(names):
    import posixpath

    path = "/work/space/" + "/".join(names)
    found = to_path(path, ROOTS)
    real = posixpath.normpath(path)
    if real == "/work/space" or real.startswith("/work/space/"):
        assert posixpath.normpath(f"/work/space/{found}") == real and not found.startswith("/")
    else:
        assert found.startswith("/") and posixpath.normpath(found) == real


def test_a_home_folder_and_a_name_that_only_begins_like_the_root_lie_outside(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert to_path("~/.ssh/id", ROOTS) == "/home/me/.ssh/id"
    assert to_path("/work/spaceship", ROOTS) == "/work/spaceship"
    assert to_path("sub/x", ROOTS) == "sub/x"
    assert to_path(7, ROOTS) == 7


def test_each_of_several_questions_is_asked():
    one = {"question": "A?", "options": [{"label": "x", "description": "d"}, {"label": "y"}]}
    two = {"question": "B?", "options": [{"label": "only"}]}
    assert map_questions({"questions": [one, two, "strange"]}) == [
        ("A?", {"question": "A?\n- x: d", "options": ["x", "y"]}),
        ("B?", {"question": "B?"}),
    ]


RESULTS = [
    ("Bash", {"stdout": "a", "stderr": "b"}, "a\nb", None),
    ("Bash", {"stdout": "", "stderr": ""}, "(no output)", None),
    ("Read", {"type": "text", "file": {"content": "x\n"}}, "x\n", None),
    ("Read", {"type": "image"}, "[image]", None),
    ("Glob", {"filenames": ["a", "b"]}, "a\nb", None),
    ("Grep", {"mode": "content", "content": "a:1"}, "a:1", None),
    ("Grep", {"filenames": []}, "Nothing was found.", None),
    ("mcp__x__y", [{"type": "text", "text": "hi"}, {"type": "image"}], "hi\n[image]", None),
    ("Strange", {"a": 1}, '{"a":1}', None),
]


@pytest.mark.parametrize(("name", "response", "text", "data"), RESULTS)
def test_what_came_of_a_call_is_said_in_words(name, response, text, data):
    assert tuple(tool_response(name, response, ROOTS)) == (text, data)


def test_a_change_has_its_difference():
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}
    changed = {"filePath": "/work/space/f", "structuredPatch": [hunk]}
    came = tool_response("Edit", changed, ROOTS)
    diff = "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n+b\n"
    assert came.data == {"path": "f", "diff": diff}
    new = {"type": "create", "filePath": "/work/space/f", "content": "x\ny"}
    diff = "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert tool_response("Write", new, ROOTS).data == {"path": "f", "diff": diff}


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_any_answer_can_be_shown(value):
    assert isinstance(tool_response("Bash", value, ROOTS).text, str)
    assert isinstance(content_text(value), str)


def a_result(**fields):
    usual = {
        "is_error": True, "subtype": "success", "num_turns": 1, "result": "text", "errors": None,
        "terminal_reason": None, "api_error_status": None, "session_id": "c", "duration_ms": 1,
        "total_cost_usd": 0.0, "usage": {},
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **fields})


VERDICTS = [
    ({"is_error": False, "num_turns": 1}, "", "done"),
    ({"api_error_status": 529, "terminal_reason": "api_error"}, "server_error", "transient"),
    ({"api_error_status": 500}, "server_error", "transient"),
    ({"api_error_status": 529, "num_turns": 0}, "server_error", "transient"),
    ({"num_turns": 0}, "authentication_failed", "failed"),
    ({"api_error_status": 429}, "rate_limit", "transient"),
    ({"api_error_status": None}, "server_error", "transient"),
    ({"api_error_status": 401}, "authentication_failed", "failed"),
    ({"api_error_status": 400, "result": "API Error: 529 overloaded"}, "unknown", "failed"),
    ({"result": "Error 500: overloaded_error rate_limit"}, "", "failed"),
    ({"subtype": "error_max_turns", "result": None, "errors": ["limit"]}, "", "limit"),
    ({"subtype": "error_max_budget_usd", "result": None}, "", "limit"),
    ({"terminal_reason": "aborted_tools"}, "", "stopped"),
    ({"terminal_reason": "aborted_streaming"}, "", "stopped"),
]


@pytest.mark.parametrize(("fields", "error", "kind"), VERDICTS)
def test_a_result_is_judged_by_its_fields_and_not_by_its_words_P6(fields, error, kind):
    assert outcome_of(a_result(**fields), error, resumed=True).kind == kind


def test_a_resumed_run_of_no_turns_is_stale_and_one_that_was_not_resumed_is_not_P5():
    assert outcome_of(a_result(num_turns=0), "", resumed=True).kind == "stale"
    assert outcome_of(a_result(num_turns=0, is_error=False), "", resumed=True).kind == "stale"
    assert outcome_of(a_result(num_turns=0), "", resumed=False).kind == "failed"
    assert is_stale({"is_error": True, "num_turns": 0})
    assert not is_stale({"is_error": True, "num_turns": 0, "api_error_status": 529})
    assert not is_stale({"is_error": True, "num_turns": 2})


def test_the_friendly_sentence_is_the_seeds_P6():
    assert outcome_of(a_result(api_error_status=529), "", resumed=False).content == UNAVAILABLE
    assert [is_transient(each, "") for each in (None, 400, 401, 413, 429, 500, 503, 529)] == [
        *(False, False, False, False, True, True, True, True)
    ]


def a_session(**fields):
    return SimpleNamespace(working_directory="/w", mode="ask", **fields)


def test_the_options_are_those_of_config_and_session_P3():
    config = ClaudeCodeConfig(
        model="m", system_prompt="Be brief.", max_turns=7, allowed_tools=("Read",),
        disallowed_tools=("WebSearch",),
    )  # fmt: skip
    found = build_options(config, a_session(system="Of the house."), "c1")
    assert (found["cwd"], found["model"], found["max_turns"], found["resume"]) == (
        *("/w", "m", 7, "c1"),
    )
    assert found["system_prompt"]["append"] == "Be brief.\n\nOf the house."
    assert found["allowed_tools"] == ["Read"] and found["disallowed_tools"] == ["WebSearch"]
    assert found["permission_mode"] == "default" and found["setting_sources"] == []


def test_what_is_left_of_a_budget_bounds_the_program_P3():
    remaining = RemainingBudget(steps=3, money=0.5)
    found = build_options(ClaudeCodeConfig(max_turns=7), a_session(remaining=remaining), None)
    assert (found["max_turns"], found["max_budget_usd"]) == (3, 0.5)


def test_plan_mode_is_the_programs_own_and_an_instruction_P4():
    session = SimpleNamespace(working_directory="/w", mode="plan")
    found = build_options(ClaudeCodeConfig(system_prompt="Be brief."), session, None)
    assert found["permission_mode"] == "plan"
    assert found["system_prompt"]["append"].startswith("Be brief.\n\nYou are in plan mode")


def test_the_programs_environment_is_a_short_list_of_ours(monkeypatch):
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "CLAUDECODE", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://x")
    found = environment(ClaudeCodeConfig(api_key="k", program_retries=1), "/w")
    assert "secret" not in found.values()
    assert (found["ANTHROPIC_API_KEY"], found["ANTHROPIC_BASE_URL"]) == ("k", "http://x")
    assert found["CLAUDE_CODE_MAX_RETRIES"] == "1"
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert environment(ClaudeCodeConfig(), "/w")["AWS_SECRET_ACCESS_KEY"] == "secret"
