"""What is found of a call before it is decided: its acts, and what care they take (A4, A5)."""

import subprocess
import sys

import pytest

from bridle.engine.gate import facts_of
from bridle.errors import ToolError
from bridle.messages import ToolCall
from bridle.policy import Act, Facts, ToolPolicy, decide
from bridle.tools.builtin import builtin_tools
from bridle.tools.function import as_tool
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace

TOOLS = {tool.name: tool for tool in builtin_tools(hosts=("example.com",))}


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("x = 1\n")
    return LocalMachine(Workspace(tmp_path))


def facts(machine, name, cwd="", sandboxed=False, **arguments):
    tool = TOOLS[name]
    return facts_of(ToolCall("c", name, arguments), tool, machine, cwd=cwd, sandbox=sandboxed)


def test_a_plain_tool_is_its_name_and_its_subject():
    def launch(path: str) -> str:
        """Launch it."""
        return path

    tool = as_tool(launch)
    found = facts_of(ToolCall("c", tool.name, {"path": "x"}), tool)
    assert found == Facts(tool.policy, "x")


def test_a_plain_tool_loads_no_grammar_and_no_ground():
    """The way of every call stays short."""
    code = (
        "import sys\n"
        "from bridle.engine.gate import facts_of\n"
        "from bridle.messages import ToolCall\n"
        "from bridle.tools.function import as_tool\n"
        "def f(a: int) -> int:\n    'Do it.'\n"
        "facts_of(ToolCall('c', 'f', {'a': 1}), as_tool(f))\n"
        "print(*[name for name in sys.modules if 'tree_sitter' in name\n"
        "        or name.startswith(\n"
        "        ('bridle.command_analysis', 'bridle.workspace.machine', 'yaml'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.strip() == ""


def test_a_file_tool_has_an_act_for_its_path_from_the_root(machine):
    read = facts(machine, "read", path="./src/../src/a.py")
    assert read.acts == (
        Act(("read",), "src/a.py", "reads", also=("./src/../src/a.py",), is_path=True),
    )
    edit = facts(machine, "edit", path="src/a.py", old="1", new="2")
    assert edit.acts == (Act(("edit", "write"), "src/a.py", "edits", is_path=True),)
    listed = facts(machine, "list")
    assert [act.subject for act in listed.acts] == ["."]
    assert {read.floor, edit.floor, listed.floor, read.guard, edit.guard} == {""}


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x", "/proc/self/root/etc"])
def test_a_path_that_leads_out_is_for_nobody(machine, path):
    for name in ("read", "write"):
        assert facts(machine, name, path=path).floor


def test_where_a_link_leads_is_what_counts(machine, tmp_path):
    (tmp_path / "inner").symlink_to("src/a.py")
    (tmp_path / "outer").symlink_to("/etc/passwd")
    assert [act.subject for act in facts(machine, "read", path="inner").acts] == ["src/a.py"]
    assert facts(machine, "read", path="inner").acts[0].also == ("inner",)
    assert facts(machine, "read", path="outer").floor


@pytest.mark.parametrize("path", [".env", "sub/.ENV", "id_rsa", "server.pem"])
def test_credentials_inside_are_for_a_person_alone(machine, path):
    assert facts(machine, "read", path=path).guard
    assert facts(machine, "write", path=path, content="").guard


def test_what_runs_by_itself_is_guarded_or_forbidden_and_may_be_read(machine):
    written = {
        name: facts(machine, "write", path=name, content="")
        for name in (".github/workflows/ci.yml", ".git/hooks/pre-commit", ".bridle/policy.yaml")
    }
    assert [bool(one.guard) for one in written.values()] == [True, False, False]
    assert [bool(one.floor) for one in written.values()] == [False, True, True]
    assert not facts(machine, "read", path=".github/workflows/ci.yml").guard


class Several:
    """A tool that says which paths it touches."""

    name = "several"
    description = ""
    parameters = {}
    policy = ToolPolicy(edits=True, files=True)

    def __init__(self, *paths, error=None):
        self._paths, self._error = paths, error

    def touched(self, arguments):
        if self._error is not None:
            raise self._error
        return self._paths


CALL = ToolCall("c", "several", {})


def test_each_path_of_a_call_counts_and_the_strictest_care_wins(machine):
    found = facts_of(CALL, Several("src/a.py", ".env", "../out"), machine)
    assert [act.subject for act in found.acts][:2] == ["src/a.py", ".env"]
    assert found.floor
    assert found.guard


def test_paths_that_the_tool_refuses_are_refused_in_its_words(machine):
    found = facts_of(CALL, Several(error=ToolError("there is no patch in it")), machine)
    assert found.floor == "there is no patch in it"


@pytest.mark.parametrize("tool", [Several(), Several(5), Several(error=KeyError("patch"))])
def test_paths_that_nobody_can_tell_are_not_understood(machine, tool):
    found = facts_of(CALL, tool, machine)
    assert found.opaque
    assert decide(CALL, found, (), "auto").verdict == "deny"


def test_a_command_is_judged_in_its_folder(machine, tmp_path):
    found = facts(machine, "shell", command="cat a.py > b.py", cwd=str(tmp_path / "src"))
    assert (found.floor, found.guard, found.opaque) == ("", "", "")
    assert {(act.names[-1], act.subject, act.does) for act in found.acts} == {
        ("shell", "cat a.py", "reads"),
        ("read", "src/a.py", "reads"),
        ("write", "src/b.py", "edits"),
    }
    assert facts(machine, "shell", command="rm -rf /").floor
    assert facts(machine, "shell", command="cat .env").guard
    assert facts(machine, "shell", command="echo $(date)").opaque


def test_leaving_the_sandbox_is_for_a_person_alone(machine):
    inside = facts(machine, "shell", command="ls", sandboxed=True)
    outside = facts(machine, "shell", command="ls", sandbox=False, sandboxed=True)
    assert (inside.sandboxed, inside.guard) == (True, "")
    assert (outside.sandboxed, outside.guard) == (False, "it would run outside the sandbox")
    later = facts(machine, "shell", command="ls", background=True, sandboxed=True)
    assert later == inside


@pytest.mark.parametrize("arguments", [{}, {"command": None}, {"command": ["ls"]}])
def test_a_command_that_is_none_is_not_understood(machine, arguments):
    assert facts(machine, "shell", **arguments).opaque


def test_without_a_ground_a_command_is_not_understood_and_paths_are_taken_at_their_word():
    assert facts(None, "shell", command="ls").opaque
    assert facts(None, "read", path="a").acts == (Act(("read",), "a", "reads", is_path=True),)


@pytest.mark.parametrize(
    ("url", "host", "also"),
    [
        ("https://Example.com/x", "example.com", ("https://Example.com/x",)),
        ("http://example.com:8", "example.com:8", ("example.com", "http://example.com:8")),
        ("http://[", "", ("http://[",)),
        (5, "", ()),
    ],
)
def test_a_page_is_known_by_its_host(url, host, also):
    found = facts(None, "web_fetch", url=url)
    assert found.acts == (Act(("web_fetch", "fetch"), host, found.acts[0].does, also=also),)


@pytest.mark.parametrize("path", ["~", "~/x", "~/../x", "$HOME/x", "${HOME}/x"])
@pytest.mark.parametrize("name", ["read", "write", "edit", "glob", "grep", "list"])
def test_a_home_that_nobody_expands_makes_no_folder_of_that_name(machine, name, path):
    """A later `rm -rf ~` would not mean it."""
    found = facts(machine, name, path=path)
    head = path.partition("/")[0]
    assert found.floor == f"{head} is not expanded: give the path relative to the workspace"


@pytest.mark.parametrize("path", ["./~/x", "a~", "~a", "a/~/b", "$HOMES/x"])
def test_names_that_only_look_like_a_home_are_names(machine, path):
    assert facts(machine, "write", path=path, content="").floor == ""
