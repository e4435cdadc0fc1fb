"""Is a repository safe? Real repositories, and real git to show what the unsafe ones would do."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from bridle.workspace.git import repository
from bridle.workspace.git.repository import Inspection, Repositories
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace

QUIET = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "PATH": os.environ["PATH"],
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, env=QUIET
    )
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a commit, in a folder `repo`."""
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    (repo / "src/a.txt").write_text("one\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    return repo


def why(folder: Path) -> str:
    return Repositories("/nonexistent").danger_reason(str(folder))


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A program that leaves a mark, and the mark is the canary."""
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\ncat\n")
    program.chmod(0o755)
    return tmp_path / "ran"


def read_everything(folder: Path) -> None:
    """What a model runs unasked."""
    for words in (["status"], ["diff"], ["log", "-p", "-1"], ["show", "HEAD"], ["branch"]):
        subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, env=QUIET, check=False, timeout=240
        )


def test_an_ordinary_repository_is_tame_from_every_folder_in_it(repo: Path) -> None:
    git(repo, "remote", "add", "origin", "https://example.org/x.git")
    git(repo, "config", "branch.main.remote", "origin")
    (repo / "deep/er").mkdir(parents=True)
    for folder in (repo, repo / "src", repo / "deep/er", repo / ".git", repo / "not/there"):
        assert why(folder) == ""


def test_a_folder_without_a_repository_is_tame(tmp_path: Path) -> None:
    assert why(tmp_path) == ""


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("core.fsmonitor", "{evil}"),
        ("diff.external", "{evil}"),
        ("diff.x.textconv", "{evil}"),
        ("filter.x.clean", "{evil}"),
        ("diff.x.command", "{evil}"),
        ("filter.x.process", "{evil}"),
    ],
)
def test_a_setting_that_runs_code_on_reading_is_wild(
    repo: Path, canary: Path, key: str, command: str
) -> None:
    """Git itself shows that it would run; nothing else in the repository is different."""
    (repo / ".gitattributes").write_text("*.txt diff=x filter=x\n")
    (repo / "src/a.txt").write_text("changed, and of another size\n")
    assert why(repo) == ""
    read_everything(repo)
    assert not canary.exists()
    git(repo, "config", key, command.format(evil=canary.parent / "evil"))
    assert why(repo / "src") == f"its configuration sets {key}"
    read_everything(repo)
    assert canary.exists()


def test_a_hook_that_runs_on_reading_is_wild(repo: Path, canary: Path) -> None:
    hook = repo / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(canary.parent / "evil")
    assert "hook" in why(repo)
    os.utime(repo / "src/a.txt", (1, 1))
    read_everything(repo)
    assert canary.exists()


def test_hooks_elsewhere_are_looked_at_where_they_are(repo: Path, tmp_path: Path) -> None:
    """Many repositories set a path for their hooks; reading runs only two kinds of them."""
    git(repo, "config", "core.hooksPath", ".husky/_")
    (repo / ".husky/_").mkdir(parents=True)
    (repo / ".husky/_/pre-commit").write_text("#!/bin/sh\n")
    assert why(repo) == ""
    (repo / ".husky/_/post-index-change").write_text("#!/bin/sh\n")
    assert "hook" in why(repo)
    git(repo, "config", "core.hooksPath", str(tmp_path / "away"))
    assert why(repo) == ""
    (tmp_path / "away").mkdir()
    (tmp_path / "away/reference-transaction").write_text("#!/bin/sh\n")
    assert "hook" in why(repo)
    git(repo, "config", "core.hooksPath", "%(prefix)/x")
    assert "core.hooksPath" in why(repo)


def test_included_files_are_wild(repo: Path) -> None:
    git(repo, "config", "include.path", "../more")
    assert why(repo) == "its configuration sets include.path"


def test_a_linked_worktree_has_the_configuration_of_its_repository(
    repo: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree))
    assert why(tree) == ""
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(tree, "config", "--worktree", "core.fsmonitor", "x")
    assert (why(tree), why(repo)) == ("its configuration sets core.fsmonitor", "")
    git(tree, "config", "--worktree", "--unset", "core.fsmonitor")
    git(repo, "config", "core.pager", "x")
    assert why(tree) == "its configuration sets core.pager"


def test_a_file_that_points_to_a_repository_elsewhere_is_followed(
    repo: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / ".git").write_text("gitdir: ../repo/.git\n")
    assert why(here) == ""
    git(repo, "config", "core.fsmonitor", "x")
    assert why(here) == "its configuration sets core.fsmonitor"
    (here / ".git").write_text("nonsense")
    assert "does not say where" in why(here)


def test_a_bare_repository_in_the_workspace_is_looked_at(repo: Path) -> None:
    """A folder of ordinary files that git takes for a repository when it is run there."""
    bare = repo / "docs"
    git(repo, "init", "-q", "--bare", str(bare))
    (bare / "sub").mkdir()
    assert why(bare / "sub") == ""
    with (bare / "config").open("a") as config:
        config.write("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = ./evil\n")
    assert why(bare / "sub") != ""
    assert why(repo) == ""


def test_a_repository_above_the_workspace_counts(repo: Path) -> None:
    machine = LocalMachine(Workspace(repo / "src"))
    assert machine.is_repository_safe("")
    git(repo, "config", "core.sshCommand", "x")
    assert not machine.is_repository_safe("")
    assert why(repo / "src") == "its configuration sets core.sshcommand"


def test_a_hidden_submodule_is_looked_at_because_git_goes_into_it(repo: Path, canary: Path) -> None:
    """Named in the index and nowhere else: `git status` runs with its configuration."""
    inner = repo / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "x").write_text("x")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "x")
    git(repo, "add", "vendor/lib")
    assert why(repo) == ""
    git(inner, "config", "core.fsmonitor", str(canary.parent / "evil"))
    assert why(repo) == "its configuration sets core.fsmonitor"
    read_everything(repo)
    assert canary.exists()


def test_an_ordinary_submodule_is_tame(repo: Path, tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    git(lib, "init", "-q")
    (lib / "x").write_text("x")
    git(lib, "add", ".")
    git(lib, "commit", "-qm", "x")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(lib), "lib")
    assert (why(repo), why(repo / "lib")) == ("", "")
    git(repo / "lib", "config", "core.worktree", "/")
    assert why(repo) == "core.worktree leads elsewhere"


@pytest.mark.parametrize(
    "config",
    [
        b"[core\n",
        b'[core]\n\tx = "\n',
        b"\0",
        b"[core]\n\tbare = false\n" * 200_000,
        b'[core]\n\tfsmonitor = " true"\n',
        b"[core]fsmonitor=x",
        b"[CORE]\nFSMONITOR=x",
        b"[core]\n\tbare = false\\\n\n\tfsmonitor = x",
        b'[core ""]\nfsmonitor = x',
    ],
)
def test_a_configuration_that_is_odd_is_wild(repo: Path, config: bytes) -> None:
    (repo / ".git/config").write_bytes(config)
    assert why(repo) != ""


def test_files_that_are_none_are_wild_and_nobody_waits(repo: Path) -> None:
    (repo / ".git/config").unlink()
    os.mkfifo(repo / ".git/config")
    assert "not a file" in why(repo)
    (repo / ".git/config").unlink()
    (repo / ".git/config").symlink_to("config")
    assert why(repo) != ""
    (repo / ".git/config").unlink()
    (repo / ".git/config").symlink_to("/dev/zero")
    assert "not a file" in why(repo)


def test_an_index_that_cannot_be_read_is_wild(repo: Path) -> None:
    (repo / ".git/index").write_bytes(b"DIRC\0\0\0\x09" + b"\0" * 40)
    assert "cannot be read" in why(repo)
    (repo / ".git/sharedindex.0").write_bytes(b"")
    assert "two parts" in why(repo)


def test_an_answer_is_remembered_until_something_changes(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was looked at: an old file, a new one, one that was not there."""
    monkeypatch.setattr(repository, "_RECENT", -1e9)  # as if all of it were old
    found = Repositories("/nonexistent")
    for _ in range(2):
        assert found.is_safe(str(repo))
        assert list(found._known) == [str(repo)]
    git(repo, "config", "core.editor", "x")
    assert not found.is_safe(str(repo))
    git(repo, "config", "--unset", "core.editor")
    assert found.is_safe(str(repo))
    (repo / ".git/config.worktree").write_text("[core]\n\tfsmonitor = x\n")
    assert not found.is_safe(str(repo))
    (repo / ".git/config.worktree").unlink()
    assert found.is_safe(str(repo))
    (repo / ".git/hooks").mkdir(exist_ok=True)
    (repo / ".git/hooks/post-index-change").write_text("")
    assert not found.is_safe(str(repo))


def test_what_has_just_changed_is_looked_at_again(repo: Path) -> None:
    later = time.time() + 1000
    os.utime(repo / ".git/config", (later, later))
    inspection = Inspection("/nonexistent")
    inspection.check(str(repo))
    assert not inspection.is_old
    assert set(inspection.stamps) >= {str(repo / ".git/config"), str(repo / ".git/index")}
    found = Repositories("/nonexistent")
    assert found.is_safe(str(repo))
    assert found._known == {}


def test_while_times_are_too_young_to_tell_of_a_change_what_is_in_a_file_does(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that leaves a file as long and as old as it was is seen all the same."""
    config = repo / ".git/config"
    config.write_text(config.read_text() + "[core]\n\tbare = false\n")
    found = Repositories("/nonexistent")
    assert found.is_safe(str(repo))
    recent = found._recent
    assert recent is not None
    stamps = dict(recent[1].stamps)
    monkeypatch.setattr(repository, "_stamp", stamps.get)
    assert found.is_safe(str(repo))
    assert found._recent is recent  # it was not judged anew
    config.write_text(config.read_text().replace("bare = false", "pager= false"))
    assert not found.is_safe(str(repo))
    assert found._known == {}


def test_what_was_young_is_remembered_by_its_times_once_it_is_old(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Repositories("/nonexistent")
    monkeypatch.setattr(repository, "_RECENT", 1e9)
    assert found.is_safe(str(repo))
    assert found._known == {}
    monkeypatch.setattr(repository, "_RECENT", -1e9)
    assert found.is_safe(str(repo))
    assert found._recent is None
    assert list(found._known) == [str(repo)]
