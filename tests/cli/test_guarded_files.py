"""What needs a person's permission cannot be had through a script, also with `--yes`."""

import os
import sys

import pytest
from cli_program import Program

from rig import call

SECRET = "the-canary-sings"
PYTHON = os.path.realpath(sys.executable)
READER = f"{PYTHON} -c \"print(open('.env').read())\""
WRITER = (
    "echo evil > .envrc; mkdir -p .vscode; echo evil > .vscode/tasks.json; echo evil > .mcp.json"
)


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def level(request: pytest.FixtureRequest, bridle: Program) -> str:
    (bridle.workspace / ".env").write_text(f"KEY={SECRET}\n")
    return bridle.use_sandbox(request.param)


def texts(bridle: Program) -> list[str]:
    return [one["text"] for one in bridle.results()]


def test_a_script_does_not_read_credentials_with_yes(bridle: Program, level: str):
    if level != "bubblewrap":
        pytest.skip("only bubblewrap can hide a file of the workspace, and the guide says so")
    (bridle.workspace / "tool.sh").write_text("cat .env")
    model = bridle.script(
        call("shell", command=READER), call("shell", command="bash tool.sh"), "Done."
    )
    done = bridle.run("run", "look", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    assert not any(SECRET in text for text in texts(bridle))
    assert "PermissionError" in texts(bridle)[0]
    assert "commands cannot read .env, because it holds credentials" in texts(bridle)[0]


@pytest.mark.parametrize("before", ["ls .env", "ls sub", "cd sub", "touch sub"])
def test_a_command_that_needs_no_permission_opens_nothing(bridle: Program, level: str, before: str):
    (bridle.workspace / "sub").mkdir()
    (bridle.workspace / "sub/.env").write_text(f"KEY={SECRET}\n")
    script = f"cd {bridle.workspace}; cat .env sub/.env; echo evil > sub/.envrc"
    (bridle.workspace / "tool.sh").write_text(script)
    line = f"{before}; bash {bridle.workspace}/tool.sh"
    model = bridle.script(call("shell", command=line), "Done.")
    done = bridle.run("run", "look", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    assert (SECRET in texts(bridle)[0]) == (level != "bubblewrap")
    assert not (bridle.workspace / "sub/.envrc").exists()


def test_a_rule_opens_a_file_to_what_commands_start(bridle: Program, level: str):
    rule = ("--rule", "allow: read(.env)")
    model = bridle.script(call("shell", command=READER), "Done.")
    done = bridle.run("run", "look", "--yes", "-m", model, *rule)
    assert done.returncode == 0, done.stderr
    assert SECRET in texts(bridle)[0]


def test_a_person_who_allows_a_command_that_names_the_file_opens_it(bridle: Program, level: str):
    model = bridle.script(call("shell", command=f"cat .env; {READER}"))
    done = bridle.run("run", "look", "--on-ask", "park", "-m", model)
    assert done.returncode == 3, done.stderr
    session = bridle.logs()[-1].parent.name
    bridle.run("approvals", "answer", session, "yes")
    after = bridle.script("Done.", name="after")
    assert bridle.run("run", "--resume", session, "-m", after).returncode == 0
    assert texts(bridle)[0].count(SECRET) == 2


def test_a_script_does_not_make_files_that_run_by_themselves(bridle: Program, level: str):
    (bridle.workspace / "tool.sh").write_text(WRITER)
    model = bridle.script(call("shell", command="bash tool.sh"), "Done.")
    done = bridle.run("run", "look", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    for name in (".envrc", ".vscode/tasks.json", ".mcp.json"):
        assert not (bridle.workspace / name).exists()
    assert "only a person may allow changes to files that run by themselves" in texts(bridle)[0]
    for change in bridle.recorded("files"):
        assert all(".bridle-refused-" in one["path"] for one in change["files"])
    assert bridle.run("undo", bridle.logs()[-1].parent.name, "--yes").returncode == 0
    assert sorted(path.name for path in bridle.workspace.iterdir()) == [".env", "tool.sh"]


def test_a_rule_lets_commands_change_what_it_names(bridle: Program, level: str):
    (bridle.workspace / "tool.sh").write_text(WRITER)
    model = bridle.script(call("shell", command="bash tool.sh"), "Done.")
    done = bridle.run("run", "look", "--yes", "-m", model, "--rule", "allow: write(.vscode/**)")
    assert done.returncode == 0, done.stderr
    assert (bridle.workspace / ".vscode/tasks.json").read_text() == "evil\n"
    assert not (bridle.workspace / ".envrc").exists()
