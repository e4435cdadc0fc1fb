"""The sandbox: what is there, what works inside, what it says; escapes are tried beside this."""

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cage import LEVELS, SandboxRig, execute, lacks, probed_without_bubblewrap, run

from bridle.errors import ConfigError
from bridle.workspace import sandbox, seccomp
from bridle.workspace.git.worktree import LinkedRepository, linked_repository
from bridle.workspace.process.command import Command
from bridle.workspace.sandbox import ProbeResult, Sandbox, probe, supervised_start, tool_chains

pytestmark = pytest.mark.slow


@pytest.fixture(params=LEVELS)
def level(request):
    if why := lacks("own", request.param):
        pytest.skip(why)
    return request.param


def ok(found):
    assert found.ok, found.text
    return found.data["output"]


def test_the_best_level_is_taken_and_says_why():
    found = probe()
    assert found.level in ("bubblewrap", "landlock", "none")
    assert found.why
    assert probe("auto") == found
    assert probe("none") == ProbeResult("none", "it was switched off")
    with pytest.raises(ConfigError, match="There is no sandbox named 'cage'"):
        probe("cage")


def test_the_environment_chooses_a_level_and_whoever_builds_it_may_choose_another(tmp_path):
    none = {"BRIDLE_SANDBOX": "none", "HOME": str(tmp_path / "home")}
    assert Sandbox(str(tmp_path), environment=none).level == "none"
    root = tmp_path / "work"
    root.mkdir()
    assert Sandbox(str(root), environment=none, level="none").level == "none"
    auto = {**os.environ, "BRIDLE_SANDBOX": "auto"}
    assert (
        Sandbox(str(root), environment=auto).probe_result
        == Sandbox(str(root), level="auto").probe_result
    )


def test_landlock_alone_holds_an_ordinary_user_and_root_only_if_asked_for():
    for user in ("own", "ordinary"):
        if why := lacks(user, "landlock"):
            pytest.skip(why)
    unasked = probed_without_bubblewrap("own")
    if os.geteuid() == 0:
        assert unasked.startswith("none ")
        assert "Landlock alone hardly restricts root" in unasked
    for said in (
        probed_without_bubblewrap("own", "landlock"),
        probed_without_bubblewrap("ordinary"),
    ):
        assert said.startswith("landlock ")
        assert "modes, owners and times of your files elsewhere can be changed" in said
        assert "credentials in the workspace can be read" in said


def test_there_is_no_sandbox_around_the_whole_file_system():
    assert Sandbox("/").probe_result == ProbeResult(
        "none", "the workspace is the whole file system"
    )


def test_landlock_does_not_promise_what_it_cannot_keep(tmp_path):
    """What lies in the workspace cannot be hidden by it, so it says that there is none."""
    if why := lacks("own", "landlock"):
        pytest.skip(why)
    state = tmp_path / "state"
    hidden = {"hidden": [str(state)], "level": "landlock"}
    assert Sandbox(str(tmp_path), **hidden).level == "landlock"
    state.mkdir()
    with pytest.raises(ConfigError, match=f"{state} is inside the workspace, and Landlock cannot"):
        assert Sandbox(str(tmp_path), **hidden).level


def test_bubblewrap_hides_what_lies_in_the_workspace(tmp_path, monkeypatch):
    if why := lacks("own", "bubblewrap"):
        pytest.skip(why)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("canary")
    (tmp_path / ".netrc").write_text("canary")
    found = execute(tmp_path, "bubblewrap", "ls -a .ssh; cat .netrc; echo x > .ssh/new; ls")
    assert "canary" not in found.text
    assert [one.name for one in (tmp_path / ".ssh").iterdir()] == ["id"]


def test_git_works_inside(tmp_path, level):
    command = (
        "git init -q . && git config user.name n && git config user.email e@x && echo a > a && "
        "git add a && git commit -qm one && git log --format=%s && git status --short"
    )
    assert ok(execute(tmp_path, level, command)) == "one\n"


def test_python_works_inside(tmp_path, level):
    program = "import ssl, tempfile, subprocess; tempfile.TemporaryFile(); print(6 * 7)"
    assert ok(execute(tmp_path, level, f"{sys.executable} -c '{program}'")) == "42\n"


def test_pytest_works_inside(tmp_path, level):
    (tmp_path / "test_a.py").write_text(
        "import asyncio, os\n"
        "def test_a(tmp_path): (tmp_path / 'x').write_text('x')\n"
        "def test_loop(): asyncio.run(asyncio.sleep(0))\n"
        "def test_home(): assert os.environ['HOME']\n"
    )
    found = execute(tmp_path, level, f"{sys.executable} -m pytest -q -p no:cacheprovider")
    assert "3 passed" in ok(found)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_compiler_works_inside(tmp_path, level):
    (tmp_path / "a.c").write_text('#include <stdio.h>\nint main() { puts("built"); }\n')
    assert ok(execute(tmp_path, level, "cc -o a a.c && ./a")) == "built\n"


def test_the_shell_itself_works_inside(tmp_path, level):
    command = (
        "cat <<< here; cat <(echo there); sort /dev/fd/0 < <(printf 'b\\na\\n'); "
        "echo x > /dev/null; yes | head -1; mkdir -p d/e && mv d/e f && rmdir f d; mkfifo p; "
        "ln -s p q; echo t > $TMPDIR/t && cat $TMPDIR/t; ps -o pid= -p $$ | wc -l"
    )
    assert ok(execute(tmp_path, level, command)).split() == [
        *("here", "there", "a", "b", "y", "t", "1")
    ]


def test_a_command_that_the_sandbox_stopped_is_told_so(tmp_path, level):
    found = execute(tmp_path, level, "touch /usr/here")
    assert not found.ok
    assert f"the sandbox ({level}) is active: no network" in found.text
    assert "sandbox=false" in found.text
    fine = execute(tmp_path, level, "echo permission denied")
    assert "sandbox" not in fine.text


def test_without_the_sandbox_the_same_command_gets_out(tmp_path, level):
    root, outside = tmp_path / "work", tmp_path / "outside"
    root.mkdir()
    found = execute(root, level, f"echo x > {outside}", sandbox=False)
    assert (found.ok, found.data["sandbox"], outside.read_text()) == (True, "none", "x\n")
    outside.unlink()
    execute(root, level, f"echo x > {outside}")
    assert not outside.exists()


def test_the_temporary_folder_is_private_and_goes(tmp_path, level):
    told = ok(execute(tmp_path, level, "stat -c %a $TMPDIR; echo $TMPDIR"))
    mode, folder = told.split()
    assert mode == "700"
    assert not Path(folder).exists()


def test_what_git_and_bridle_run_is_not_written_in_bubblewrap(tmp_path):
    if why := lacks("own", "bubblewrap"):
        pytest.skip(why)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    command = "echo x > .git/hooks/pre-commit; echo x >> .git/config; echo fine > .git/x"
    found = execute(tmp_path, "bubblewrap", command)
    assert found.stops == ""
    assert not (tmp_path / ".git/hooks/pre-commit").exists()
    assert (tmp_path / ".git/x").exists()


def repository(path):
    git = ["git", "-C", str(path), "-c", "user.name=n", "-c", "user.email=e@x"]
    path.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    return git


def test_a_worktree_can_commit_into_its_repository(tmp_path, level):
    git = repository(tmp_path / "main")
    root = tmp_path / "tree"
    subprocess.run([*git, "worktree", "add", "-q", str(root), "-b", "other"], check=True)
    command = (
        "git -c user.name=n -c user.email=e@x commit -q --allow-empty -m two && "
        "git log --format=%s; echo x > ../main/.git/hooks/pre-commit"
    )
    found = execute(root, level, command)
    assert found.data["output"].splitlines()[:2] == ["two", "one"]
    assert not (tmp_path / "main/.git/hooks/pre-commit").exists()


def test_the_word_of_a_worktree_is_believed_only_when_it_is_mutual(tmp_path):
    git = repository(tmp_path / "main")
    root, forged = tmp_path / "tree", tmp_path / "forged"
    subprocess.run([*git, "worktree", "add", "-q", str(root), "-b", "other"], check=True)
    forged.mkdir()
    (forged / ".git").write_text((root / ".git").read_text())
    assert linked_repository(str(root)).readable == (str(tmp_path / "main/.git"),)
    assert linked_repository(str(forged)) == LinkedRepository()
    (forged / ".git").write_text(f"gitdir: {tmp_path}\n")
    assert linked_repository(str(forged)) == LinkedRepository()
    assert linked_repository(str(tmp_path / "main")) == LinkedRepository()


def test_no_tool_chain_shows_the_home_folder(tmp_path):
    """A path of the environment that contains it, or a place of credentials, is not read."""
    home = tmp_path / "home"
    for part in (".ssh", ".cargo/bin", ".pyenv/shims", "bin"):
        (home / part).mkdir(parents=True)
    (home / ".cargo/credentials.toml").touch()
    places = (f"{home}", f"{tmp_path}", "/", f"{home}/.ssh", f"{home}/.cargo", f"{home}/bin")
    environment = {"HOME": str(home), "PATH": ":".join(places), "GOPATH": str(home)}
    found = [one for one in tool_chains(environment, ()) if one.startswith(str(tmp_path))]
    assert found == [f"{home}/{part}" for part in (".pyenv", ".cargo/bin", "bin")]


def test_a_tool_chain_behind_a_link_is_there_by_both_names(tmp_path, level):
    """Also where what is named lies below the link, as a venv's own programs do."""
    real, link, root = (tmp_path / name for name in ("real", "link", "work"))
    (real / "venv" / "bin").mkdir(parents=True)
    (real / "venv" / "bin" / "tool").write_text("#!/bin/sh\necho here\n")
    (real / "venv" / "bin" / "tool").chmod(0o755)
    (real / "venv" / "newest").symlink_to("bin")
    link.symlink_to(real / "venv")
    root.mkdir()
    known = {
        "HOME": str(tmp_path / "home"),
        "VIRTUAL_ENV": str(link),
        "JAVA_HOME": str(real / "venv" / "newest"),
        "PATH": f"{link}/bin:/usr/bin:/bin",
    }
    sandbox = Sandbox(str(root), level=level, environment=known)
    found = run(root, sandbox, f"{link}/bin/tool; {real}/venv/newest/tool; {link}/newest/tool")
    assert ok(found) == "here\n" * 3


@pytest.mark.parametrize("abi", range(1, 7))
def test_rules_for_an_older_kernel_hold_as_well(tmp_path, abi):
    """What that kernel does not know of is left out, and cutting a file is refused otherwise."""
    if why := lacks("own", "landlock"):
        pytest.skip(why)
    if abi > sandbox.version():
        pytest.skip("this kernel does not know so much")
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_text("untouched")
    system = ["/usr", "/bin", "/lib", "/lib64", "/etc"]
    attributes, rules = sandbox.ruleset(system, [str(root)], [], network=False, abi=abi)
    confinement = attributes, rules, seccomp.compile_filter((), truncates=abi >= 3)
    script = f"echo x > a; cat a; echo y >> {outside}; cat {outside}; truncate -s 0 {outside}"
    said = []
    command = Command(
        ["/bin/sh", "-c", script],
        str(root),
        lambda data: said.append(data) is None,
        starter=lambda argv, lifeline: supervised_start(argv, lifeline, confinement),
    )
    asyncio.run(command.run(20, {"PATH": "/usr/bin:/bin"}))
    assert b"".join(said).startswith(b"x\n")
    assert b"untouched" not in b"".join(said)
    assert outside.read_text() == "untouched"


def test_devices_are_never_made_and_rights_fit_the_kernel():
    attributes, rules = sandbox.ruleset(["/usr"], ["/w"], ["/dev/null"], network=False, abi=1)
    assert len(attributes) == 8
    attributes, rules = sandbox.ruleset(["/usr"], ["/w"], ["/dev/null"], network=False, abi=6)
    assert len(attributes) == 24
    devices = stat.S_IFCHR and (1 << 6 | 1 << 11)
    assert [access & devices for _, access in rules] == [0, 0, 0]


def test_a_filter_is_whole_instructions_and_short_enough_for_the_kernel():
    if seccomp.machine() is None:
        pytest.skip("no filter is known for this machine")
    for families in ((), seccomp.OPEN, seccomp.LOCAL):
        program = seccomp.compile_filter(families)
        assert len(program) % 8 == 0
        assert 0 < len(program) // 8 <= 4096
    assert len(seccomp.compile_filter((), truncates=False)) > len(seccomp.compile_filter(()))


def test_a_ground_for_tests_is_removed():
    made = SandboxRig("own")
    made.close()
    assert not os.path.lexists(made.base)


def test_a_command_holds_no_handle_of_ours(tmp_path, level):
    """Its output, nothing to read, and the one through which it says where it is."""
    found = ok(execute(tmp_path, level, "ls -l /proc/self/fd"))
    targets = [line.rpartition(" -> ")[2] for line in found.splitlines() if " -> " in line]
    pipes = {one for one in targets if one.startswith("pipe:")}
    assert "/dev/null" in targets
    assert len(pipes) == 2
    assert [one for one in targets if one.startswith(("socket:", str(tmp_path.parent)))] == []


def test_a_second_root_is_written_and_a_third_is_not(tmp_path, level):
    root, second, third = (tmp_path / name for name in ("root", "second", "third"))
    for folder in (root, second, third):
        folder.mkdir()
    sandbox = Sandbox(str(root), roots=[str(second)], level=level)
    start = "echo x > ../second/x; echo x > ../third/x; ls ../second"
    found = run(root, sandbox, start, also=[second])
    assert found.data["output"].splitlines()[-1] == "x"
    assert [len(list(folder.iterdir())) for folder in (second, third)] == [1, 0]


def test_a_network_that_is_allowed_is_there(tmp_path, level):
    sandbox = Sandbox(str(tmp_path), level=level, network=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = run(tmp_path, sandbox, f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo in")
        assert ok(found) == "in\n"
    socket_of_others = f"{sys.executable} -c 'import socket; socket.socket(socket.AF_UNIX)'"
    assert "Operation not permitted" in run(tmp_path, sandbox, socket_of_others).text


def test_inside_bubblewrap_programs_reach_each_other(tmp_path):
    """The network of its own has a loopback, and sockets with names work."""
    if why := lacks("own", "bubblewrap"):
        pytest.skip(why)
    (tmp_path / "a.py").write_text(
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(s.getsockname())\n"
        "u = socket.socket(socket.AF_UNIX); u.bind('s'); u.listen()\n"
        "socket.socket(socket.AF_UNIX).connect('s'); print('reached')\n"
    )
    assert ok(execute(tmp_path, "bubblewrap", f"{sys.executable} -W ignore a.py")) == "reached\n"


def test_a_wrapping_that_does_not_work_here_is_not_used(tmp_path):
    """Something that bwrap cannot mount: the best that is left is taken, or it says so."""
    if why := lacks("own", "bubblewrap"):
        pytest.skip(why)
    root = tmp_path / "root"
    root.mkdir()
    sandbox = Sandbox(str(root))
    root.rmdir()
    assert sandbox.level in ("landlock", "none")
    wanted = Sandbox(str(root), level="bubblewrap")
    with pytest.raises(ConfigError, match="The sandbox bubblewrap cannot be used: bubblewrap does"):
        assert wanted.level
