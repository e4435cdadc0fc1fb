"""The shell of Claude Code's commands: what it tells them, and how they end."""

import os
import subprocess
from pathlib import Path

from claude_rig import Gate, Whole, claude, runs, says, workspace

import bridle.agents.claude_code
from bridle.workspace.process.command import INHERITED, clean_environment
from rig import run

SHELL = Path(bridle.agents.claude_code.__file__).with_name("shell.sh")
OWN = {"CLAUDECODE": "1", "GIT_EDITOR": "true"}
SECRETS = dict.fromkeys(
    (
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AWS_API_KEY", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
        *("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", "CLAUDE_CODE_MESSAGING_TOKEN", "AWS_SESSION_TOKEN"),
        *("AZURE_CLIENT_SECRET", "GOOGLE_API_KEY", "HTTPS_PROXY", "https_proxy", "SOMETHING_NEW"),
    ),
    "secret",
)


def told(environment):
    """What a command finds in its environment."""
    ended = subprocess.run([SHELL, "exec env -0"], env=environment, capture_output=True, check=True)
    found = dict(each.split("=", 1) for each in ended.stdout.decode().split("\0") if each)
    return {name: value for name, value in found.items() if name not in ("_", "SHLVL")}


def test_a_command_is_told_what_ours_are_told_and_no_secret(monkeypatch):
    for name in (*INHERITED, "LC_ALL", "LC_TIME"):
        if name != "PATH":
            monkeypatch.setenv(name, f"a value\nof 'two' $lines \"{name}\"\n")
    monkeypatch.setenv("TZ", "")
    known = {**clean_environment(), "PWD": str(Path.cwd())}
    assert told({**known, **SECRETS}) == {**known, **OWN}


def test_a_command_runs_as_it_is_and_its_end_is_the_shells():
    command = "printf '%s|' \"$0\" \"$#\" 'a  b' $((1+1)); echo oh >&2; exit 3"
    ended = subprocess.run([SHELL, command], env=dict(os.environ), capture_output=True, text=True)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("bash|0|a  b|2|", "oh\n", 3)


def test_the_programs_own_commands_work_as_before_and_find_none_of_its_secrets(
    tmp_path, monkeypatch
):
    for name in ("CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "ANTHROPIC_AWS_API_KEY"):
        monkeypatch.setenv(name, "of-nobody-else")

    async def work():
        root = workspace(tmp_path)
        (root / "sub").mkdir()
        script = [runs("printenv; cd sub; pwd; exit 3"), runs("pwd; echo oh >&2"), says("ok")]
        session = Whole(root)
        async with claude(script, tmp_path) as (agent, _):
            await agent.execute("go", session, can_use_tool=Gate())
        (_, first, worked, _), (_, second, still, _) = session.finished
        assert (worked, still) == (False, True)
        assert first.startswith("Exit code 3") and first.rstrip().endswith(f"{root}/sub")
        assert second.split() == [str(root), "oh"]
        assert f"HOME={tmp_path}/home" in first and "CLAUDECODE=1" in first
        secrets = ("of-nobody-else", "CLAUDE_CODE_", "ANTHROPIC_")
        assert [each for each in secrets if each in first] == []

    run(work())
