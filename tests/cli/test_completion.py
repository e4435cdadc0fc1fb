"""Shell completion: what is offered, in the real shells too, and that no title can do harm."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from shell_rig import Shell

from bridle.cli.completion import SHELLS, get_completion_class, script_of
from bridle.cli.main import COMMANDS, commands
from bridle.policy import MODES

BIN = str(Path(sys.executable).parent)
HOSTILE = "\x1b]52;c;AAAA\x07\x1b[2J $(touch pwned) `touch pwned` 'x' \u202e;touch pwned"
IDS = {"20260101-000000-aaaa": "mend the parser", "20260102-000000-bbbb": HOSTILE}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """A state folder with two sessions, of which one has a title that means harm."""
    folder = tmp_path_factory.mktemp("lived-in")
    bare = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}  # nothing of the machine's
    environ = bare | {"BRIDLE_STATE": str(folder / "state"), "HOME": str(folder)}
    for name, title in IDS.items():
        program = [sys.executable, "-m", "bridle", "run", "--model", "offline", "-q", "--", title]
        before = set(sessions(folder))
        subprocess.run(
            program, cwd=folder, env=environ, capture_output=True, timeout=240, check=False
        )
        [made] = set(sessions(folder)) - before
        made.rename(made.with_name(name))
    return folder / "state"


@pytest.fixture
def home(tmp_path, monkeypatch, lived_in):
    """A home with those sessions that nobody else has."""
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(lived_in, tmp_path / "state")
    return tmp_path


def sessions(home):
    return list((home / "state" / "sessions").glob("*")) if (home / "state").exists() else []


def items(shell, *words):
    """What is offered for the last of these words, as that shell asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMP_WORDS", "\n".join(["bridle", *map(shlex.quote, words)]))
        patch.setenv("COMP_CWORD", str(len(words)) if words else "1")
        asked = get_completion_class(shell)(commands, {}, "bridle", "_BRIDLE_COMPLETE")
        return asked.get_completions(*asked.get_completion_args())


def values(*words):
    found = items("bash", *words)
    kinds = {"file": ":files", "dir": ":folders"}
    return [kinds.get(one.type) or one.value for one in found]


def abouts(*words):
    return {one.value: one.help for one in items("bash", *words)}


def test_commands_are_offered_with_their_line_of_help():
    assert values("") == list(COMMANDS)
    assert abouts("sessions", "sho") == {"show": "Show what happened in a session."}


def every_option(command=commands, path=()):
    context = click.Context(command)
    for param in command.get_params(context):
        if isinstance(param, click.Option) and not param.hidden:
            yield from ((path, name) for name in param.opts if name.startswith("--"))
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from every_option(command.get_command(context, name), (*path, name))


def test_every_option_of_every_command_is_offered():
    assert [(path, one) for path, one in every_option() if one not in values(*path, one)] == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["run", "--mode", ""], list(MODES)),
        (["run", "hello", "--mode", "p"], ["plan"]),
        (["run", "--mode=p"], ["--mode=plan"]),
        (["run", "--mode", "=", "p"], ["plan"]),  # as bash splits it
        (["run", "--mode", "="], list(MODES)),
        (["run", "--agent", "c"], ["claude-code"]),
        (["run", "--model", "off"], ["offline"]),
        (["run", "-w", ""], [":folders"]),
        (["run", "--image", "a"], [":files"]),
        (["run", "--worktree", "--mo"], ["--model", "--mode"]),
        (["sessions", "import", ""], [":files"]),
        (["completion", ""], list(SHELLS)),
        (["approvals", "answer", "x", "y"], ["yes"]),
        (["run", "some", ""], []),
        (["run", "--", "--mo"], []),
        (["nothing", ""], []),
        (["sessions", "nothing", ""], []),
        (["run", "--mode", "plan; rm"], []),
        ([], list(COMMANDS)),
        (["--vers"], ["--version"]),
        (["--mode", "p"], ["plan"]),
        (["--contin"], ["--continue"]),
    ],
)
def test_what_may_come_next(words, found):
    assert values(*words) == found


def test_models_and_topics_are_offered():
    assert any(one.startswith("anthropic/claude") for one in values("run", "--model", "anth"))
    assert "exit-codes" in values("help", "e")


@pytest.mark.parametrize(
    "words", [["sessions", "show", ""], ["run", "--resume", ""], ["trace", "2026"], ["undo", ""]]
)
def test_sessions_are_offered_with_titles_that_do_no_harm(home, words):
    found = abouts(*words)
    assert sorted(found) == sorted(IDS)
    assert found["20260101-000000-aaaa"] == "mend the parser"
    assert found["20260102-000000-bbbb"].startswith(r"\x1b]52;c;AAAA\x07\x1b[2J $(touch pwned)")
    assert all(one.isprintable() for one in found.values())


def test_a_tag_that_a_shell_would_obey_is_not_offered(home):
    tag = [sys.executable, "-m", "bridle", "sessions", "tag", "20260101-000000-aaaa", "good"]
    subprocess.run(tag, check=True, capture_output=True)
    subprocess.run([*tag[:-1], "$(touch${IFS}pwned)"], check=False, capture_output=True)
    assert values("sessions", "list", "--tag", "") == ["good"]


@pytest.mark.parametrize(
    "words", [["", ""], ["run", "--model", ""], ["run", "--resume", ""], ["policy", ""]]
)
def test_no_engine_is_imported_for_it(words, home):
    asking = {"_BRIDLE_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
    asking["COMP_WORDS"] = shlex.join(["bridle", *words])
    code = (
        "import sys; from bridle.cli import main; main([]); "
        "print(*[m for m in sys.modules if m.startswith('bridle.engine') "
        "or m in ('asyncio', 'aiohttp', 'yaml', 'msgspec')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asking,
    )
    assert done.stdout.splitlines()[-1] == ""
    assert len(done.stdout.splitlines()) > 1 or words[-1] == ""


def environ(home):
    kept = {name: os.environ[name] for name in ("HOME", "BRIDLE_STATE")}
    path = f"{BIN}:/usr/bin:/bin"
    return {**kept, "PATH": path, "TERM": "xterm", "PS1": "ready> ", "LC_ALL": "C.UTF-8"}


STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set show-all-if-ambiguous on'; "),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit && compinit -u -D; "),
    "fish": (["fish", "--no-config", "-i"], ""),
}


@pytest.fixture(params=SHELLS)
def shell(request, home):
    """A shell with the script loaded as its page says."""
    name = request.param
    command, before = STARTS[name]
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: make system")
    opened = Shell(command, environ(home), str(home))
    load = (
        "bridle completion fish | source"
        if name == "fish"
        else f'eval "$(bridle completion {name})"'
    )
    opened.type(f"{before}{load}; echo lo''aded\n")
    opened.until("loaded")
    yield opened
    opened.close()


def test_in_a_real_shell_a_command_is_completed(shell):
    shell.type("bridle appr\t")
    shell.until("bridle approvals")
    shell.type("gran\t")
    shell.until("grants")


def test_in_a_real_shell_titles_are_shown_and_obeyed_by_nobody(shell, home):
    shell.type("bridle sessions show 2026\t\t")
    shown = shell.until("mend the parser")
    shell.until("touch pwned")
    assert b"\x1b]52" not in shell.said
    assert "\u202e" not in shown
    shell.type("\x15echo do''ne\n")
    shell.until("done")
    assert not (home / "pwned").exists()


def test_in_a_real_shell_files_are_completed_by_the_shell(shell, home):
    (home / "picture one.png").write_text("")
    shell.type("bridle run --image pict\t")
    assert re.search(r"picture\\? one\.png", shell.until("one.png"))


def test_it_is_the_bridle_of_the_path_that_is_asked(shell, home):
    """A program of that name in a hostile folder is not run by a press of Tab."""
    (home / "bridle").write_text("#!/bin/sh\ntouch pwned\n")
    (home / "bridle").chmod(0o755)
    shell.type("./bridle appr\t")
    shell.until("bridle approvals")
    shell.type("\x15echo do''ne\n")
    shell.until("done")
    assert not (home / "pwned").exists()


def test_a_script_is_what_the_shell_itself_takes_for_one():
    for name in SHELLS:
        if shutil.which(name):
            script = script_of(commands, name).encode()
            done = subprocess.run([name, "-n"], input=script, check=False)
            assert done.returncode == 0


def test_an_unknown_shell_is_refused_with_those_there_are(bridle):
    done = bridle.run("completion", "tcsh")
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr
