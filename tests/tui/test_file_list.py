"""What the side panel and the conversation say of changed files, todos, plans and failures."""

import subprocess

import pytest

from bridle.events import (
    ApprovalAsked,
    FileChange,
    FilesChanged,
    PromptReceived,
    Todo,
    TodosChanged,
    ToolCallReady,
)
from bridle.messages import ToolCall, ToolOutput
from bridle.presentation.blocks import Call, Notice, Reply
from bridle.presentation.calls import result_summary
from tui.test_blocks import folded
from tui.test_blocks_drawn import drawn


def git(folder, *words):
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *named, "-C", str(folder), *words], check=True, capture_output=True)


def changed(**files):
    names = {name.replace("_", "."): how for name, how in files.items()}
    return FilesChanged(1, files=tuple(FileChange(name, how) for name, how in names.items()))


def test_files_that_were_committed_or_removed_since_are_not_listed_any_more(tmp_path):
    git(tmp_path, "init", "-q")
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("new\n")
    state = folded(changed(a_py="added", b_py="added", c_py="added", gone_py="added")).state
    git(tmp_path, "add", "a.py")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "b.py").unlink()
    state.forget_files(str(tmp_path))
    assert state.files == {"c.py": "added"}


def test_without_git_files_are_listed_as_long_as_they_are_there(tmp_path):
    (tmp_path / "a.py").write_text("new\n")
    state = folded(changed(a_py="changed", b_py="added", c_py="deleted")).state
    state.forget_files(str(tmp_path))
    assert state.files == {"a.py": "changed", "c.py": "deleted"}


def test_caches_are_no_news():
    paths = (".pytest_cache/README.md", "src/__pycache__/a.cpython-311.pyc", "a.pyc")
    event = FilesChanged(1, files=tuple(FileChange(path, "added") for path in paths))
    fold = folded(event)
    assert not any(isinstance(one, Notice) for one in fold.blocks)
    assert fold.state.files == {}


def test_a_finished_list_of_todos_goes_with_the_next_turn():
    done, doing = Todo("one", "completed"), Todo("two", "in_progress")
    begin = PromptReceived("go on", turn=2)
    assert folded(TodosChanged((done, doing)), begin).state.todos == (done, doing)
    assert folded(TodosChanged((done, done)), begin).state.todos == ()


def test_a_plan_is_drawn_as_the_markdown_that_it_is():
    plan = ToolCall("c1", "exit_plan_mode", {"plan": "# Fix it\n\n1. **look**"})
    fold = folded(ToolCallReady(plan), ApprovalAsked(plan, "x"))
    replies = [one.text for one in fold.blocks if isinstance(one, Reply)]
    assert replies == ["# Fix it\n\n1. **look**"]


def test_a_command_in_the_background_is_said_to_run():
    output = ToolOutput("c1", "[job-1 runs …]", name="shell", data={"job": "job-1"})
    assert result_summary(output) == "runs in the background as job-1"


def test_a_failed_command_says_its_exit_code_first_whatever_notes_follow_it():
    kept = "[the whole output is kept: shell_output with id 'c1' and a line number reads it]"
    data = {"exit_code": 3, "output": "one\n[2, 3]\n"}
    text = f"one\n[2, 3]\n[exit code 3]\n{kept}"
    failed = ToolOutput("c1", text, is_error=True, name="shell", data=data)
    assert result_summary(failed) == "exit code 3 · [2, 3] (2 lines)"
    silent = {"exit_code": 3, "output": ""}
    text = f"(no output)\n[exit code 3]\n{kept}"
    assert result_summary(ToolOutput("c1", text, is_error=True, name="shell", data=silent)) == (
        "exit code 3 · no output"
    )


def test_a_note_about_the_sandbox_does_not_hide_why_a_command_failed():
    note = "[commands cannot read .env, because it holds credentials]"
    text = f"[exit code 5]\nFAILED (failures=1)\n[exit code 1]\n{note}"
    assert result_summary(ToolOutput("c1", text, is_error=True, name="shell")) == (
        "exit code 1 · FAILED (failures=1) (2 lines)"
    )


def test_a_failed_command_shows_its_last_lines_and_unfolds_to_all_of_them():
    lines = [f"line {number}" for number in range(1, 3001)]
    result = "\n".join([*lines, "", "[exit code 3]"])
    call = Call("c", "shell", "make", "failed", result=result, summary="exit code 3")
    assert drawn(call)[0] == "✗ shell make · exit code 3"
    assert drawn(call)[-2:] == ["  │ line 3000", "  │ [exit code 3]"]
    assert len(drawn(call)) == 9
    whole = drawn(call, unfolded=True)
    assert [row for row in whole if "line" in row] == [f"  │ {line}" for line in lines]


def test_a_failed_command_that_said_nothing_is_one_line():
    result = "(no output)\n[exit code 3]"
    call = Call("c", "shell", "false", "failed", result=result, summary="exit code 3 · no output")
    assert drawn(call) == ["✗ shell false · exit code 3 · no output"]


def test_a_long_diff_says_exactly_how_much_more_there_is():
    diff = "--- a\n+++ a\n" + "".join(f"+{number}\n" for number in range(2500))
    rows = drawn(Call("c", "write", "a", "done", diff=diff), unfolded=True)
    assert rows[-1] == "  │ … 500 more lines"


def of(command, *lines):
    """The one line on a command that said these lines."""
    data = {"exit_code": 0, "output": "\n".join(lines)}
    text = "\n".join([*lines, "[exit code 0]"])
    return result_summary(ToolOutput("c1", text, name="shell", data=data), command)


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "cd src && ls -a", "make -s; find . -name '*.py'", "git ls-files"),
        *("rg 'a|b' src | ls", "/bin/ls 2>/dev/null", "cat a.txt || ls"),
    ],
)
def test_of_what_only_lists_the_first_entries_are_shown_and_their_number(command):
    names = ("README.md", "basket.py", "tests", "zoo.py")
    assert of(command, *names) == "4 lines: README.md, basket.py, tests, zoo.py"
    many = [f"tests/test_{number}.py" for number in range(30)]
    shown = "tests/test_0.py, tests/test_1.py, tests/test_2.py, …"
    assert of(command, *many) == f"30 lines: {shown}"
    assert of(command, "x" * 80, "y") == "2 lines"
    assert of(command, "only") == "only"


@pytest.mark.parametrize(
    "command", ["cat a.py", "ls | sort", "git log --oneline", "cd src; rg 'a;b' . 2>&1", "git diff"]
)
def test_of_what_only_prints_text_the_number_of_lines_is_shown(command):
    assert of(command, "def f():", "    return 1") == "2 lines"


@pytest.mark.parametrize(
    "command", ["pytest", "ls && make test", "grep x y | tail -1", "echo 'ls", "", "git commit"]
)
def test_of_what_comes_to_an_end_the_last_line_is_shown(command):
    assert of(command, "a.py ..", "2 passed") == "2 passed (2 lines)"


def test_a_task_is_summed_up_by_what_its_subagent_said():
    said = "The task is done. (session x)\nWhat it said last follows.\n\nTwo bugs.\nIn a.py."
    assert result_summary(ToolOutput("c1", said, name="task")) == "Two bugs."
    silent = "The task is done. (session x)\nIt said nothing."
    assert result_summary(ToolOutput("c1", silent, name="task")) == "2 lines"


def test_a_list_of_a_folder_says_how_many_entries_and_the_first_of_them():
    said = "src/\n  a.py  20 B\nREADME.md  1.2 KB\na  b.txt  3 B"
    output = ToolOutput("c1", said, name="list", data={"entries": 4})
    assert result_summary(output) == "4 entries: src/, README.md, a  b.txt, …"
    found = ToolOutput("c1", "a.py\nb.py\n[… and 900 more]", name="glob", data={"count": 902})
    assert result_summary(found) == "902 files: a.py, b.py, …"
    none = ToolOutput("c1", "No file fits `*.rs`.", name="glob", data={"count": 0})
    assert result_summary(none) == "No file fits `*.rs`."
