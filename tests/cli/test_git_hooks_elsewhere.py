"""Hooks that git finds by its configuration cannot be written by a command or unasked."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_program import Program

from rig import call

HOOK = "#!/bin/sh\necho kept\n"


@pytest.fixture
def repository(bridle: Program) -> Program:
    """A repository whose hooks lie in `githooks`, and whose configuration includes a file."""
    hooks = bridle.workspace / "githooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text(HOOK)
    (bridle.workspace / "team.ini").write_text("[user]\n\tname = team\n")
    for words in (
        ["init", "-q"],
        ["config", "core.hooksPath", "githooks"],
        ["config", "include.path", "../team.ini"],
    ):
        subprocess.run(["git", *words], cwd=bridle.workspace, check=True, env=bridle.environ)
    return bridle


def test_no_tool_writes_them_unasked_in_the_mode_auto(repository: Program):
    model = repository.script(
        call("write", path="githooks/pre-push", content="evil"),
        call("shell", command="echo evil > githooks/pre-commit"),
        call("write", path="team.ini", content="evil"),
        call("write", path=".ripgreprc", content="--pre=evil"),
        call("read", path="gha-creds-1.json"),
        "Done.",
    )
    (repository.workspace / "gha-creds-1.json").write_text('{"secret": "s3cr3t"}')
    repository.run("run", "go", "--yes", "-m", model)
    texts = [one["text"] for one in repository.results()]
    assert len(texts) == 5
    assert all(text.startswith("not run: ") for text in texts), texts
    assert "core.hooksPath leads there" in texts[0]
    assert (repository.workspace / "githooks/pre-commit").read_text() == HOOK
    assert not (repository.workspace / "githooks/pre-push").exists()


def nest(bridle: Program, how: str) -> str:
    """Put a repository into the workspace whose hooks lie in `shared`. Return its folder."""
    other = bridle.workspace.parent / "other"
    inner = bridle.workspace / "libs/inner"

    def git(folder: Any, *words: str) -> None:
        named = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        allowed = ["-c", "protocol.file.allow=always"]
        words_before = ["git", *named, *allowed, "-C", str(folder)]
        subprocess.run([*words_before, *words], check=True, env=bridle.environ, capture_output=True)

    if how == "clone":
        inner.mkdir(parents=True)
        git(inner, "init", "-q")
    else:
        other.mkdir()
        git(other, "init", "-q")
        git(other, "commit", "-qm", "one", "--allow-empty")
        git(bridle.workspace, "submodule", "--quiet", "add", str(other), "libs/inner")
    git(inner, "config", "core.hooksPath", "shared")
    (inner / "shared").mkdir()
    (inner / "shared/pre-commit").write_text(HOOK)
    return "libs/inner"


@pytest.mark.parametrize("how", ["clone", "submodule"])
@pytest.mark.parametrize("level", ["bubblewrap", "landlock", "none"])
def test_a_script_that_changes_hooks_of_a_nested_repository_leaves_nothing_behind(
    bridle: Program, level: str, how: str
):
    bridle.use_sandbox(level)
    subprocess.run(["git", "init", "-q"], cwd=bridle.workspace, check=True, env=bridle.environ)
    inner = bridle.workspace / nest(bridle, how)
    (bridle.workspace / "named.sh").write_text(
        f"for f in shared/pre-commit shared/new; do echo evil > {inner}/$f; done"
    )
    (bridle.workspace / "own.sh").write_text(
        f"d=$(git -C {inner} rev-parse --git-dir); cd {inner}; echo evil > $d/hooks/pre-commit"
    )
    model = bridle.script(
        call("shell", command="bash named.sh"), call("shell", command="bash own.sh"), "Done."
    )
    bridle.run("run", "go", "--yes", "-m", model)
    assert (inner / "shared/pre-commit").read_text() == HOOK
    assert not (inner / "shared/new").exists()
    words = ["git", "-C", str(inner), "rev-parse", "--absolute-git-dir"]
    place = subprocess.run(words, check=True, env=bridle.environ, capture_output=True, text=True)
    assert not (Path(place.stdout.strip()) / "hooks/pre-commit").exists(), bridle.results()
    if how == "clone" or level != "bubblewrap":  # there, those of submodules are read-only
        assert "been restored" in bridle.results()[-1]["text"]


@pytest.mark.parametrize("level", ["bubblewrap", "none"])
def test_a_command_may_remove_a_nested_repository(bridle: Program, level: str):
    bridle.use_sandbox(level)
    subprocess.run(["git", "init", "-q"], cwd=bridle.workspace, check=True, env=bridle.environ)
    inner = bridle.workspace / "build/fetched"
    inner.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True, env=bridle.environ)
    (bridle.workspace / "clean.sh").write_text("rm -rf build")
    model = bridle.script(call("shell", command="bash clean.sh"), "Done.")
    done = bridle.run("run", "go", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    assert not (bridle.workspace / "build").exists(), bridle.results()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock", "none"])
def test_a_script_that_changes_them_leaves_nothing_behind(repository: Program, level: str):
    repository.use_sandbox(level)
    script = repository.workspace / "tool.sh"
    script.write_text("for f in githooks/pre-commit githooks/new team.ini; do echo evil > $f; done")
    model = repository.script(call("shell", command="bash tool.sh"), "Done.")
    repository.run("run", "go", "--yes", "-m", model)
    assert (repository.workspace / "githooks/pre-commit").read_text() == HOOK
    assert not (repository.workspace / "githooks/new").exists()
    assert "team" in (repository.workspace / "team.ini").read_text()


def test_git_may_change_branches_that_have_other_hooks(repository: Program):
    def git(*words: str) -> None:
        named = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(
            ["git", *named, *words],
            cwd=repository.workspace,
            check=True,
            env=repository.environ,
            capture_output=True,
        )

    git("config", "--unset", "include.path")  # git takes a person where it could run programs
    hook = repository.workspace / "githooks/commit-msg"
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "other")
    hook.write_text(HOOK)
    git("add", "-A")
    git("commit", "-qm", "two")
    git("checkout", "-q", "-")
    assert not hook.exists()
    model = repository.script(call("shell", command="git checkout -q other"), "Done.")
    done = repository.run("run", "go", "--yes", "-m", model)
    assert done.returncode == 0, done.stderr
    assert hook.read_text() == HOOK, repository.results()
