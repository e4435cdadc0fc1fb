"""A worktree for a session, made by the real git: outside the workspace, and never thrown away."""

import os
import subprocess
from pathlib import Path

import pytest

from bridle.errors import ConfigError
from bridle.workspace.git.worktree import (
    Worktree,
    add_worktree,
    check_worktree,
    list_worktrees,
    remove_worktree,
    uncommitted_files,
)


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without a configuration, but for a name to commit with."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[user]\n\tname = a\n\temail = a@b\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / "packages/a").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    (repo / "packages/a/x.txt").write_text("one\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    return repo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state/worktrees"


def test_a_worktree_has_the_files_of_head_on_a_branch_of_its_own(repo: Path, folder: Path) -> None:
    (repo / "packages/a/x.txt").write_text("not committed")
    made = add_worktree(repo, "calm-fox", folder=folder)
    there = str(folder / "calm-fox")
    assert made == Worktree("calm-fox", there, there, "bridle/calm-fox")
    assert (folder / "calm-fox/packages/a/x.txt").read_text() == "one\n"
    assert git(Path(made.path), "branch", "--show-current") == "bridle/calm-fox"
    assert (repo / "packages/a/x.txt").read_text() == "not committed"
    assert git(repo, "status", "--porcelain") == "M packages/a/x.txt"
    assert list_worktrees(repo, folder=folder) == [made]


def test_a_workspace_below_its_repository_stays_below(repo: Path, folder: Path) -> None:
    made = add_worktree(repo / "packages/a", "w", folder=folder)
    assert made.root == str(folder / "w/packages/a")
    assert list_worktrees(repo / "packages/a", folder=folder) == [made]
    (repo / "new").mkdir()
    with pytest.raises(ConfigError, match="folder is in no commit"):
        add_worktree(repo / "new", "v", folder=folder)


def test_no_hook_of_the_repository_runs(repo: Path, folder: Path, tmp_path: Path) -> None:
    hook = repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    add_worktree(repo, "w", folder=folder)
    assert not (tmp_path / "ran").exists()
    git(repo, "worktree", "add", "-q", str(tmp_path / "by-hand"))
    assert (tmp_path / "ran").exists()


def test_a_wild_repository_is_refused_until_somebody_says_so(repo: Path, folder: Path) -> None:
    git(repo, "config", "filter.x.smudge", "touch ../ran; cat")
    with pytest.raises(ConfigError, match=r"could run code of its own \(.*filter\.x\.smudge"):
        add_worktree(repo, "w", folder=folder)
    assert not folder.exists()
    assert add_worktree(repo, "w", folder=folder, trusted=True).name == "w"


def test_without_a_repository_or_a_commit_it_is_said(tmp_path: Path, folder: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(ConfigError, match="is in no git repository that can be used") as refused:
        add_worktree(plain, "w", folder=folder)
    assert "git init" in refused.value.hint
    git(plain, "init", "-q")
    with pytest.raises(ConfigError, match="has no commit yet") as refused:
        add_worktree(plain, "w", folder=folder)
    assert "git commit" in refused.value.hint
    assert not folder.exists()


def test_without_git_it_is_said(
    repo: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="git is not installed") as refused:
        add_worktree(repo, "w", folder=folder)
    assert "without --worktree" in refused.value.hint


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "-f", "--force", "a b", "a..b", "x.lock", ".x", "é", "a" * 65]
)
def test_a_name_that_git_or_the_system_could_mistake_is_refused(
    repo: Path, folder: Path, name: str
) -> None:
    with pytest.raises(ConfigError, match="cannot be called"):
        add_worktree(repo, name, folder=folder)


def test_what_is_there_is_left_as_it_is(repo: Path, folder: Path) -> None:
    add_worktree(repo, "w", folder=folder)
    with pytest.raises(ConfigError, match="exists already"):
        add_worktree(repo, "w", folder=folder)
    git(repo, "branch", "bridle/taken")
    with pytest.raises(ConfigError, match=r"git failed: .*bridle/taken"):
        add_worktree(repo, "taken", folder=folder)
    assert [one.name for one in list_worktrees(repo, folder=folder)] == ["w"]


@pytest.mark.parametrize("change", ["edit", "new", "stage"])
def test_one_with_changes_is_not_removed(repo: Path, folder: Path, change: str) -> None:
    made = Path(add_worktree(repo, "w", folder=folder).path)
    name = "packages/a/x.txt" if change == "edit" else "new.txt"
    (made / name).write_text("work of hours")
    if change == "stage":
        git(made, "add", "new.txt")
    with pytest.raises(ConfigError, match="changes that were not committed; it is kept"):
        remove_worktree(repo, "w", folder=folder)
    assert (made / name).read_text() == "work of hours"


def test_a_branch_without_commits_goes_and_one_with_commits_stays(repo: Path, folder: Path) -> None:
    add_worktree(repo, "idle", folder=folder)
    assert remove_worktree(repo, "idle", folder=folder) is True
    made = Path(add_worktree(repo, "busy", folder=folder).path)
    (made / "new.txt").write_text("done")
    git(made, "add", ".")
    git(made, "commit", "-qm", "done")
    assert remove_worktree(repo, "busy", folder=folder) is False
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["bridle/busy", "main"]
    assert git(repo, "show", "bridle/busy:new.txt") == "done"
    assert list_worktrees(repo, folder=folder) == []
    with pytest.raises(ConfigError, match="There is no worktree called `busy`"):
        remove_worktree(repo, "busy", folder=folder)


def test_worktrees_of_others_are_not_ours(repo: Path, folder: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "mine"))
    assert list_worktrees(repo, folder=folder) == []
    with pytest.raises(ConfigError, match="no worktree called `mine`"):
        remove_worktree(repo, "mine", folder=folder)


def test_a_folder_that_a_commit_has_as_a_link_is_no_workspace(
    repo: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (repo / "sub").symlink_to(tmp_path / "secret")
    git(repo, "add", "sub")
    git(repo, "commit", "-qm", "a link")
    (repo / "sub").unlink()
    (repo / "sub").mkdir()
    with pytest.raises(ConfigError, match="in it the workspace's folder is a link"):
        add_worktree(repo / "sub", "w", folder=folder)
    [made] = list_worktrees(repo / "sub", folder=folder)
    with pytest.raises(ConfigError, match="in it the workspace's folder is a link"):
        check_worktree(made)


def test_a_git_that_lies_in_the_workspace_is_not_run(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may have put it into an environment that is active."""
    planted = repo / "packages/git"
    planted.write_text("#!/bin/sh\ntouch ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{repo / 'packages'}:{os.environ['PATH']}")
    (repo / "packages/a/x.txt").write_text("two\n")
    assert uncommitted_files(repo, ["packages/a/x.txt"]) == {"packages/a/x.txt"}
    assert list(repo.rglob("ran")) == []
