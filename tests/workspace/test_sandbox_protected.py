"""What runs code at the person's next step is not changed by a command, in real repositories."""

import os
import subprocess

import pytest
from cage import LEVELS, execute, lacks

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]


@pytest.fixture(params=LEVELS)
def level(request):
    if why := lacks("own", request.param):
        pytest.skip(why)
    return request.param


@pytest.fixture
def repo(tmp_path):
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=repo, check=True)
    return repo


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_absent_cannot_be_made_either(repo, level):
    """Nothing of the cover stays behind; bridle's own folder is not covered, but taken away."""
    subprocess.run(["rm", "-r", ".git/hooks", ".git/info"], cwd=repo, check=True)
    before = everything(repo)
    command = (
        "mkdir -p .bridle .git/hooks .git/info; echo x > .bridle/policy.yaml; "
        "echo x > .git/hooks/pre-commit; echo x > .git/info/attributes; true"
    )
    found = execute(repo, level, command)
    assert ".bridle/policy.yaml" in found.stops
    assert (".git/hooks" in found.stops) == (level == "landlock")
    assert everything(repo) == before
    assert not (repo / ".bridle").exists()


def test_a_command_that_touches_nothing_leaves_nothing(tmp_path, level):
    found = execute(tmp_path, level, "true")
    assert (found.ok, found.stops, list(tmp_path.iterdir())) == (True, "", [])


def test_more_hooks_than_are_held_stay_no_more_than_one_does(repo, level):
    before = everything(repo)
    flood = "(cd .git/hooks && touch $(seq 4100) post-checkout); true"
    execute(repo, level, flood)
    assert everything(repo) == before


POINTERS = {
    "commondir": "echo ../../../../evil > {own}/commondir",
    "gitdir": "echo /evil/.git > {own}/gitdir",
    "config.worktree": "printf '[core]\\n fsmonitor = ./evil\\n' > {own}/config.worktree",
    "modules": "mkdir -p {own}/modules/m/hooks; echo x > {own}/modules/m/hooks/post-checkout",
}


@pytest.mark.parametrize("what", POINTERS)
def test_a_worktree_stays_with_its_repository(repo, tmp_path, level, what):
    root = tmp_path / "tree"
    words = ["worktree", "add", "-q", str(root), "-b", "other"]
    subprocess.run(["git", *words], cwd=repo, check=True)
    own = repo / ".git/worktrees/tree"
    before = {path: path.read_bytes() for path in own.iterdir() if path.is_file()}
    done = execute(root, level, POINTERS[what].format(own=own) + "; true")
    after = {path: path.read_bytes() for path in own.iterdir() if path.is_file()}
    assert after == before
    if level == "landlock":
        assert (str(own) in done.stops, done.ok) == (True, False)
    assert not os.path.lexists(own / "modules/m/hooks/post-checkout")
    commit = f"echo x > a; git add a; {' '.join(GIT)} commit -qm y && git log --format=%s -1"
    assert "y\n" in execute(root, level, commit).text


NESTED = (
    "mkdir lib && cd lib && git init -q && echo x > x && git add x && "
    + " ".join(GIT)
    + " commit -qm x && cd .. && git add lib 2>/dev/null; "
)
EVIL = "printf '#!/bin/sh\\ntouch ../ran ran\\n' > lib/evil; chmod +x lib/evil; "
AWAY = "git -C lib config core.fsmonitor ./evil; mv lib/.git other"
WILD = {
    "a monitor": ("git -C lib config core.fsmonitor ./evil", "lib/.git/config"),
    "a hook": (
        "cp lib/evil lib/.git/hooks/post-index-change",
        "lib/.git/hooks/post-index-change",
    ),
    "a repository in a folder": (
        f"{AWAY}; echo 'gitdir: ../other' > lib/.git",
        "other/config",
    ),
    "a repository behind a link": (
        f"{AWAY}; ln -s ../other lib/.git",
        "lib/.git",
    ),
}


def ran(repo):
    """Does the person's own look at the repository run anything?"""
    (repo / "lib/x").write_text("changed")
    for words in (["status"], ["diff"]):
        subprocess.run(["git", *words], cwd=repo, capture_output=True)
    return (repo / "ran").exists() or (repo / "lib/ran").exists()


@pytest.mark.parametrize(("make", "culprit"), WILD.values(), ids=WILD)
def test_a_repository_inside_that_would_run_code_is_set_aside(repo, level, make, culprit):
    found = execute(repo, level, NESTED + EVIL + make + "; true")
    assert (f"{culprit} (git would run code" in found.stops, found.ok) == (True, False)
    assert not ran(repo)


def test_without_that_it_would_run(repo):
    """Otherwise the test above could not fail."""
    script = NESTED + EVIL + WILD["a monitor"][0]
    subprocess.run(["bash", "-c", script], cwd=repo, check=True)
    assert ran(repo)


def test_an_ordinary_submodule_is_let_be(repo, level):
    found = execute(repo, level, NESTED + "git -C lib config user.name n && git status --short")
    assert (found.ok, found.stops) == (True, "")
    assert (repo / "lib/.git/config").exists()


def test_a_repository_that_was_wild_before_is_the_persons_own(repo, level):
    subprocess.run(["git", "config", "core.sshCommand", "x"], cwd=repo, check=True)
    found = execute(repo, level, "echo x > a; git add a")
    assert (found.ok, found.stops) == (True, "")
