"""What git's configuration leads to inside a workspace is protected as its own hooks are."""

import os
import subprocess

import pytest

from bridle.workspace.git.paths import GitConfiguration
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def home(tmp_path, monkeypatch):
    found = tmp_path / "home"
    found.mkdir()
    monkeypatch.setenv("HOME", str(found))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.fixture
def repo(tmp_path, home):
    found = tmp_path / "repo"
    found.mkdir()
    git(found, "init", "-q")
    return found


def writing(repo, path, home):
    """What care writing that path takes."""
    return LocalMachine(Workspace(repo), home=str(home)).place(path, str(repo)).writing


def test_a_folder_of_hooks_that_the_repository_names_takes_a_person(repo, home):
    assert writing(repo, "githooks/pre-commit", home) == ""
    git(repo, "config", "core.hooksPath", "githooks")
    for path in ("githooks", "githooks/pre-commit", "githooks/lib/x.sh", "GitHooks/pre-push"):
        assert writing(repo, path, home) == "ask", path
    for path in ("githooks2/pre-commit", "src/githooks/pre-commit", "pre-commit"):
        assert writing(repo, path, home) == "", path


def test_hooks_in_the_top_folder_are_known_by_their_names(repo, home):
    git(repo, "config", "core.hooksPath", ".")
    assert writing(repo, "pre-commit", home) == "ask"
    assert writing(repo, "main.py", home) == writing(repo, "src/pre-commit", home) == ""


def test_a_file_that_the_configuration_includes_is_never_written(repo, home):
    git(repo, "config", "include.path", "../settings/git.ini")
    git(repo, "config", "includeIf.onbranch:main.path", "../branch.ini")
    assert writing(repo, "settings/git.ini", home) == "deny"
    assert writing(repo, "branch.ini", home) == "deny"
    assert writing(repo, "settings", home) == "ask"  # whoever moves the folder moves the file
    assert writing(repo, "settings/other.ini", home) == ""


def test_hooks_that_an_included_file_names_count_as_well(repo, home):
    git(repo, "config", "include.path", "../git.ini")
    (repo / "git.ini").write_text("[core]\n\thooksPath = tools/hooks\n")
    assert writing(repo, "tools/hooks/commit-msg", home) == "ask"
    assert writing(repo, "tools", home) == "ask"


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config"])
def test_the_persons_own_configuration_counts(repo, home, place):
    file = home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"[core]\n\thooksPath = .githooks\n[include]\n\tpath = {repo}/dotfiles/work.ini\n"
    )
    assert writing(repo, ".githooks/pre-commit", home) == "ask"
    assert writing(repo, "dotfiles/work.ini", home) == "deny"


def test_a_persons_configuration_that_is_a_link_into_the_workspace_is_never_written(repo, home):
    (repo / "gitsettings").write_text("[user]\n\tname = n\n")
    (home / ".gitconfig").symlink_to(repo / "gitsettings")
    assert writing(repo, "gitsettings", home) == "deny"


def test_a_linked_worktree_has_the_configuration_of_its_repository(repo, home, tmp_path):
    git(repo, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "x", "--allow-empty")
    git(repo, "config", "core.hooksPath", "githooks")
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"))
    assert writing(tmp_path / "other", "githooks/pre-commit", home) == "ask"


def test_a_change_of_the_configuration_is_seen_and_a_broken_one_is_read_as_far_as_it_goes(
    repo, home
):
    found = GitConfiguration(str(repo), str(home))
    assert found.paths.hooks_in(str(repo)) == ()
    git(repo, "config", "core.hooksPath", "one")
    assert found.paths.hooks_in(str(repo)) == ("one",)
    (repo / ".git/config").write_text("[core]\n\thooksPath = two\n[broken\n")
    assert found.paths.hooks_in(str(repo)) == ("two",)


def test_files_that_include_one_another_are_read_once(repo, home):
    git(repo, "config", "include.path", "../a.ini")
    (repo / "a.ini").write_text("[include]\n\tpath = b.ini\n")
    (repo / "b.ini").write_text("[include]\n\tpath = a.ini\n[core]\n\thooksPath = hooks\n")
    found = GitConfiguration(str(repo), str(home)).paths
    assert found.files_in(str(repo)) == ("a.ini", "b.ini")
    assert found.hooks_in(str(repo)) == ("hooks",)


def test_what_is_no_file_is_not_waited_for(repo, home):
    (repo / ".git/config").write_text("[include]\n\tpath = ../pipe\n\tpath = /dev/zero\n")
    os.mkfifo(repo / "pipe")
    assert GitConfiguration(str(repo), str(home)).paths.files_in(str(repo)) == ("pipe",)


@pytest.fixture
def nested(repo):
    """A repository inside the workspace that is no submodule."""
    found = repo / "libs/inner"
    found.mkdir(parents=True)
    git(found, "init", "-q")
    return found


def test_hooks_and_configuration_that_a_nested_repository_names_count_inside_it(repo, home, nested):
    git(nested, "config", "core.hooksPath", "githooks")
    git(nested, "config", "include.path", "../team.ini")
    assert writing(repo, "libs/inner/githooks/pre-commit", home) == "ask"
    assert writing(repo, "libs/inner/githooks", home) == "ask"
    assert writing(repo, "libs/inner/team.ini", home) == "deny"
    assert writing(repo, "libs/inner/.git/hooks/pre-commit", home) == "deny"
    for path in ("githooks/pre-commit", "libs/inner/main.py", "libs/githooks/x", "team.ini"):
        assert writing(repo, path, home) == "", path


def test_hooks_in_the_top_folder_of_a_nested_repository_are_known_by_their_names(
    repo, home, nested
):
    git(nested, "config", "core.hooksPath", ".")
    assert writing(repo, "libs/inner/pre-commit", home) == "ask"
    assert writing(repo, "libs/inner/main.py", home) == writing(repo, "pre-commit", home) == ""


def test_hooks_that_a_submodule_names_count(repo, home, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "x", "--allow-empty")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    assert (repo / "sub/.git").is_file()
    git(repo / "sub", "config", "core.hooksPath", "githooks")
    assert writing(repo, "sub/githooks/pre-commit", home) == "ask"


@pytest.mark.parametrize(
    ("path", "reading", "writing_too"),
    [("gha-creds-0123abcd.json", "ask", "ask"), (".ripgreprc", "", "ask"), ("gha.json", "", "")],
)
def test_names_that_hold_credentials_or_run_programs(repo, home, path, reading, writing_too):
    place = LocalMachine(Workspace(repo), home=str(home)).place(f"sub/{path}", str(repo))
    assert (place.reading, place.writing) == (reading, writing_too)
