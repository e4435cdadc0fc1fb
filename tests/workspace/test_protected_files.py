"""Protected files are as they were, whatever a command did to them."""

import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bridle.workspace.protected_files import ProtectedFiles, Restoration


@pytest.fixture
def root(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    hook = tmp_path / ".git/hooks/pre-commit"
    hook.write_bytes(b"#!/bin/sh\nexit 0\n\xff\n")
    hook.chmod(0o755)
    (tmp_path / ".bridle").mkdir()
    (tmp_path / ".bridle/policy.yaml").write_text("- deny: shell(curl *)\n")
    return tmp_path


def snapshot(root):
    found = {}
    for top in (".git/hooks", ".git/config", ".bridle"):
        path = root / top
        there = path.is_symlink() or path.exists()
        for one in [path, *(path.rglob("*") if path.is_dir() else ())][: None if there else 0]:
            status = one.lstat()
            kind = stat.S_IFMT(status.st_mode)
            data = str(one.readlink()) if one.is_symlink() else ""
            found[str(one)] = (kind, stat.S_IMODE(status.st_mode), data)
            if one.is_file() and not one.is_symlink():
                found[str(one)] += (one.read_bytes(),)
    return found


CHANGES = {
    "a hook is written": ("echo x > .git/hooks/pre-push", [".git/hooks/pre-push"]),
    "a hook is changed": ("echo x >> .git/hooks/pre-commit", [".git/hooks/pre-commit"]),
    "a hook is removed": ("rm .git/hooks/pre-commit", [".git/hooks/pre-commit"]),
    "a mode is changed": ("chmod 600 .git/hooks/pre-commit", [".git/hooks/pre-commit"]),
    "a sample is switched on": (
        "chmod +x .git/hooks/pre-push.sample; mv .git/hooks/pre-push.sample .git/hooks/pre-push",
        [".git/hooks/pre-push", ".git/hooks/pre-push.sample"],
    ),
    "a program is configured": (
        "git config core.fsmonitor ./evil.sh",
        [".git/config"],
    ),
    "hooks are taken elsewhere": ("git config core.hooksPath .hooks", [".git/config"]),
    "the configuration is removed": ("rm .git/config", [".git/config"]),
    "the configuration becomes a link": (
        "echo '[core]' > c; rm .git/config; ln -s ../c .git/config",
        [".git/config"],
    ),
    "a policy is changed": ("echo > .bridle/policy.yaml", [".bridle/policy.yaml"]),
    "a folder is new": (
        "mkdir .bridle/more; echo x > .bridle/more/y",
        [".bridle/more", ".bridle/more/y"],
    ),
    "a folder is gone": ("rm -r .bridle", [".bridle", ".bridle/policy.yaml"]),
    "a folder becomes a file": (
        "rm -r .bridle; echo x > .bridle",
        [".bridle", ".bridle/policy.yaml"],
    ),
    "a pipe stands there": ("mkfifo .bridle/p", [".bridle/p"]),
}


@pytest.mark.parametrize(("command", "names"), CHANGES.values(), ids=CHANGES)
def test_what_a_command_changed_is_put_back(root, command, names):
    before = snapshot(root)
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    assert snapshot(root) != before
    assert watched.restore() == Restoration(tuple(names))
    assert snapshot(root) == before
    assert watched.restore() == Restoration()


def test_hooks_that_became_a_link_are_a_folder_again_and_nothing_is_written_through_it(root):
    before = snapshot(root)
    (root / "trap").mkdir()
    (root / "trap/pre-commit").write_text("theirs")
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["sh", "-ec", "rm -r .git/hooks; ln -s ../trap .git/hooks"], cwd=root)
    assert watched.restore().lost == ()
    assert snapshot(root) == before
    assert (root / "trap/pre-commit").read_text() == "theirs"
    assert [path.name for path in (root / "trap").iterdir()] == ["pre-commit"]


HARMLESS = {
    "nothing": "true",
    "a touch": "touch .git/config .git/hooks/pre-commit",
    "a commit": "git -c user.name=n -c user.email=e@x commit -q --allow-empty -m x",
    "a remote": "git remote add origin https://example.com/x.git",
    "a branch that follows another": "git config branch.a.remote .",
    "a name": "git config user.name n",
    "other files": "echo x > a; mkdir .git/extra",
}


@pytest.mark.parametrize("command", HARMLESS.values(), ids=HARMLESS)
def test_what_can_run_nothing_is_let_be(root, command):
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    before = snapshot(root)
    assert watched.restore() == Restoration()
    assert snapshot(root) == before


HOSTILE = (
    "git remote set-url origin https://example.com/evil.git",
    "git config remote.origin.pushurl https://example.com/evil.git",
    "git remote remove origin",
    "git remote add evil 'ext::sh -c evil'",
    "git config url.https://evil/.insteadOf https://example.com/",
    "git config alias.status '!evil'",
    "git config include.path ../evil",
    "git config branch.main.mergeOptions '-s evil'",
    "git config branch.main.remote https://example.com/evil.git",
    "git config branch.main.pushRemote ../evil",
    "git remote add evil ../evil; git config branch.main.remote evil",
    "git remote add evil ../evil; git config branch.main.pushRemote evil",
    "git remote add evil ../evil; git config remote.pushDefault evil",
    "printf '[core] fsmonitor = evil\\n' >> .git/config",
)


@pytest.mark.parametrize("command", HOSTILE)
def test_a_configuration_that_runs_or_redirects_is_put_back(root, command):
    add = ["git", "remote", "add", "origin", "https://example.com/x.git"]
    subprocess.run(add, cwd=root, check=True)
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    before = snapshot(root)
    subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    assert watched.restore() == Restoration((".git/config",))
    assert snapshot(root) == before


def test_a_branch_may_follow_a_remote_that_was_there(root):
    for words in (["remote", "add", "up", "https://example.com/x.git"], ["branch", "-M", "main"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["git", "config", "branch.main.remote", "up"], cwd=root, check=True)
    assert watched.restore() == Restoration()
    watched.take_snapshot()
    subprocess.run(["git", "remote", "add", "other", "../x"], cwd=root, check=True)
    assert watched.restore() == Restoration()
    subprocess.run(["git", "remote", "add", "origin", "../x"], cwd=root, check=True)
    assert watched.restore() == Restoration((".git/config",))


def test_a_clone_into_the_workspace_is_let_be(root, tmp_path_factory):
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty"]
    subprocess.run([*commit, "-m", "x"], cwd=root, check=True)
    work = tmp_path_factory.mktemp("clone")
    watched = ProtectedFiles(str(work))
    watched.take_snapshot()
    subprocess.run(["git", "clone", "-q", str(root), str(work)], check=True)
    assert watched.restore() == Restoration()
    assert "[branch" in (work / ".git/config").read_text()


def test_a_new_repository_is_let_be_and_one_with_a_hook_is_not(tmp_path):
    watched = ProtectedFiles(str(tmp_path))
    watched.take_snapshot()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert watched.restore() == Restoration()
    (tmp_path / ".git/hooks/post-checkout").write_text("evil")
    assert watched.restore() == Restoration((".git/hooks/post-checkout",))
    assert (tmp_path / ".git/config").exists()


def test_a_git_folder_that_is_gone_is_told(root):
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["rm", "-r", ".git"], cwd=root, check=True)
    found = watched.restore()
    assert (found.restored, ".git/config" in found.lost) == ((), True)
    assert not (root / ".git").exists()


def test_the_configuration_of_a_submodule_is_protected(root):
    module = root / ".git/modules/lib"
    (module / "hooks").mkdir(parents=True)
    (module / "objects").mkdir()
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text("[core]\n\tbare = false\n")
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    (module / "config").write_text("[core]\n\tfsmonitor = evil\n")
    (module / "hooks/post-checkout").write_text("evil")
    (module / "objects/pack").write_text("x")
    assert set(watched.restore().restored) == {
        ".git/modules/lib/config",
        ".git/modules/lib/hooks/post-checkout",
    }
    assert (module / "config").read_text() == "[core]\n\tbare = false\n"
    assert (module / "objects/pack").exists()


@pytest.fixture
def nested(root):
    """What is protected of a workspace with a repository inside, which is no submodule."""
    inner = root / "libs/inner"
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    (inner / ".git/hooks/pre-commit").write_text("mine")
    watched = ProtectedFiles(str(root))
    watched.repositories = ("libs/inner",)
    watched.take_snapshot()
    return watched


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("echo x > .git/hooks/pre-commit", [".git/hooks/pre-commit"]),
        ("echo x > .git/hooks/pre-push", [".git/hooks/pre-push"]),
        ("git config core.fsmonitor ./evil.sh", [".git/config"]),
        ("git remote add origin https://example.com/x.git", []),
        ("git -c user.name=n -c user.email=e@x commit -q --allow-empty -m x", []),
    ],
)
def test_a_repository_inside_the_workspace_is_protected_like_its_own(root, nested, command, names):
    before = (root / "libs/inner/.git/hooks/pre-commit").read_text()
    subprocess.run(["sh", "-ec", command], cwd=root / "libs/inner", check=True)
    assert nested.restore() == Restoration(tuple(f"libs/inner/{name}" for name in names))
    assert (root / "libs/inner/.git/hooks/pre-commit").read_text() == before
    assert not (root / "libs/inner/.git/hooks/pre-push").exists()


def test_a_nested_repository_may_be_removed_and_has_its_hooks_if_it_is_back(root, nested):
    moving = "mv libs/inner away; echo evil > away/.git/hooks/pre-commit"
    subprocess.run(["sh", "-ec", moving], cwd=root, check=True)
    assert nested.restore() == Restoration()
    nested.take_snapshot()
    subprocess.run(["mv", "away", "libs/inner"], cwd=root, check=True)
    assert nested.restore() == Restoration(("libs/inner/.git/hooks/pre-commit",))
    assert (root / "libs/inner/.git/hooks/pre-commit").read_text() == "mine"


def test_a_folder_of_our_own_that_looks_like_a_repository_is_brought_back(root):
    own = root / ".bridle/x/.git/config"
    own.parent.mkdir(parents=True)
    own.write_text("[core]")
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    subprocess.run(["rm", "-r", ".bridle/x/.git"], cwd=root, check=True)
    assert watched.restore().restored
    assert own.read_text() == "[core]"


def test_what_the_person_changes_between_commands_stays(root):
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    (root / ".git/hooks/pre-push").write_text("mine")
    watched.take_snapshot()
    assert watched.restore() == Restoration()
    assert (root / ".git/hooks/pre-push").read_text() == "mine"


def test_with_more_than_is_looked_at_nothing_is_taken_for_new(root):
    """What comes into view when something before it goes is left where it is."""
    folder = root / ".bridle"
    for number in range(40):
        (folder / f"{number:02d}").write_text(str(number))
    watched = ProtectedFiles(str(root), [".bridle"], most=20)
    watched.take_snapshot()
    (folder / "03").unlink()
    (folder / "04").write_text("changed")
    assert watched.restore() == Restoration((".bridle/03", ".bridle/04"))
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"{number:02d}" for number in range(40)),
        "policy.yaml",
    ]


@pytest.mark.parametrize("place", [".git/hooks", ".git/modules/lib/hooks", ".bridle"])
def test_more_than_is_held_hides_nothing_that_is_new(root, place):
    module = root / ".git/modules/lib"
    (module / "objects").mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text("[core]\n")
    (root / place).mkdir(exist_ok=True)
    before = set((root / place).rglob("*"))
    watched = ProtectedFiles(str(root), most=30)
    watched.take_snapshot()
    for number in range(100):
        (root / place / f"a{number:02d}").write_text("x")
    (root / place / "post-checkout").write_text("evil")
    found = watched.restore()
    assert (len(found.restored), found.lost) == (101, ())
    assert set((root / place).rglob("*")) == before


def test_many_in_one_place_hide_nothing_in_another(root):
    for number in range(40):
        (root / ".bridle" / f"{number:02d}").write_text(str(number))
        (root / ".git/hooks" / f"a{number:02d}.sample").write_text(str(number))
    watched = ProtectedFiles(str(root), most=35)
    watched.take_snapshot()
    (root / ".git/info/attributes").write_text("* filter=evil\n")
    assert watched.restore() == Restoration((".git/info/attributes",))


def test_a_folder_of_modules_that_looks_like_a_repository_hides_nothing(root):
    module = root / ".git/modules/lib"
    for folder in ("objects", "hooks"):
        (module / folder).mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text("[core]\n")
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    (root / ".git/modules/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/modules/objects").mkdir()
    (module / "hooks/post-checkout").write_text("evil")
    assert watched.restore() == Restoration((".git/modules/lib/hooks/post-checkout",))


def test_a_folder_too_deep_to_be_removed_is_out_of_the_way(tmp_path):
    watched = ProtectedFiles(str(tmp_path))
    watched.take_snapshot()
    script = "import os\nfor n in ['.bridle', *'a' * 1500]: os.mkdir(n); os.chdir(n)"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    found = watched.restore()
    assert (".bridle" in found.restored, found.lost) == (True, ())
    assert not (tmp_path / ".bridle").exists()
    subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)


def test_an_empty_folder_is_swept_and_not_told(tmp_path):
    watched = ProtectedFiles(str(tmp_path))
    watched.take_snapshot()
    (tmp_path / ".bridle").mkdir()
    assert watched.restore() == Restoration()
    assert list(tmp_path.iterdir()) == []


@given(some.binary(max_size=400))
def test_no_bytes_of_a_configuration_break_it(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("w")
    (root / ".git").mkdir()
    config = root / ".git/config"
    config.write_bytes(b"[core]\n\tbare = false\n")
    watched = ProtectedFiles(str(root))
    watched.take_snapshot()
    config.write_bytes(data)
    found = watched.restore()
    assert found in (Restoration(), Restoration((".git/config",)))
    if found:
        assert config.read_bytes() == b"[core]\n\tbare = false\n"
