"""What the bar says of this machine: bounded, and true."""

import os
import subprocess

from bridle.tui.machine import git_branch, sandbox_level


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_the_branch_is_found_from_below_in_worktrees_and_on_no_branch(tmp_path):
    root, tree = tmp_path / "r", tmp_path / "tree"
    (root / "deep").mkdir(parents=True)
    git(root, "init", "-q", "-b", "feature/one")
    assert git_branch(str(root / "deep")) == "feature/one"
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(root, *named, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", "-b", "two", str(tree))
    assert git_branch(str(tree)) == "two"
    git(root, "checkout", "-q", "--detach")
    assert len(git_branch(str(root))) == 8


def test_a_head_that_is_a_pipe_a_link_or_a_flood_is_no_branch(tmp_path):
    folder = tmp_path / ".git"
    folder.mkdir()
    os.mkfifo(folder / "HEAD")
    assert git_branch(str(tmp_path)) == ""
    (folder / "HEAD").unlink()
    (folder / "HEAD").symlink_to("/etc/hostname")
    assert git_branch(str(tmp_path)) == ""
    (folder / "HEAD").unlink()
    (folder / "HEAD").write_text("ref: refs/heads/" + "x" * 1_000_000)
    assert len(git_branch(str(tmp_path))) < 2000
    (folder / "HEAD").write_bytes(b"\xff\xfe")
    assert git_branch(str(tmp_path)) == ""


def test_what_commands_run_in_is_said(tmp_path):
    assert sandbox_level("none") == "none"
    assert sandbox_level("auto") in ("bubblewrap", "landlock", "none")
