"""The tool `shell`: real processes, and none of them left behind."""

import asyncio
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from early_clock import TIME, out_of_time

from bridle.errors import ToolError
from bridle.events import Event, ToolOutputDelta
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.output import LIMIT, BoundedOutput
from bridle.tools.shell.tool import Shell, find_bash
from bridle.workspace.workspace import Workspace


def run(root: Path, command: str, **arguments: Any) -> ToolResult:
    context: ToolContext[Any] = ToolContext(Workspace(root), "1")
    return asyncio.run(Shell().execute({"command": command, **arguments}, context))


def alive(pid: int) -> bool:
    """Does the process run? A zombie that nobody has collected yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    return Path("/proc").exists() is False


ENDED: dict[str, Any] = {"exit_code": 0, "output": "", "timed_out": False, "sandbox": "none"}


def pids(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"pid (\d+)\n", text)]


def test_a_command_gives_its_output_and_its_exit_code(tmp_path: Path) -> None:
    """(A4)"""
    (tmp_path / "a").touch()
    assert run(tmp_path, "ls; pwd; echo oops >&2") == ToolResult(
        True,
        f"a\n{tmp_path}\noops\n[exit code 0]",
        {**ENDED, "output": f"a\n{tmp_path}\noops\n"},
    )
    assert run(tmp_path, "printf x; exit 3") == ToolResult(
        False, "x\n[exit code 3]", {**ENDED, "exit_code": 3, "output": "x"}
    )
    assert run(tmp_path, "true").text == "(no output)\n[exit code 0]"
    assert run(tmp_path, "kill -SEGV $$").text == "(no output)\n[ended by signal SIGSEGV]"


def test_a_line_that_begins_with_dashes_is_run_as_it_was_judged(tmp_path: Path) -> None:
    """(A4) It is no option of the shell, nor of what hands it on."""
    found = run(tmp_path, "--version; echo ran >mark; -c oops; echo end")
    assert (found.ok, found.text.splitlines()[-2:]) == (True, ["end", "[exit code 0]"])
    assert "--version: command not found" in found.text
    assert "-c: command not found" in found.text
    assert (tmp_path / "mark").read_text() == "ran\n"
    assert not run(tmp_path, "--noprofile").ok


def test_no_other_shell_takes_the_place_of_bash(tmp_path: Path) -> None:
    """(A4) What was judged for bash is not handed to whatever shell there is."""
    there, gone = tmp_path / "bash", tmp_path / "none"
    there.touch()
    assert find_bash((str(gone), str(there))) == str(there)
    with pytest.raises(ToolError) as refused:
        find_bash((str(gone),))
    assert str(refused.value.message) == (
        f"Not run: commands are run by bash, and it is in none of {gone}. "
        "Another shell would read some of them differently from how they were judged."
    )


def test_a_command_gets_no_input_and_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("BASH_ENV", "/etc/passwd")
    monkeypatch.setenv("LD_PRELOAD_X", "sk-secret")
    monkeypatch.setenv("LC_TIME", "C")
    found = run(tmp_path, "cat; env").data["output"]
    assert "sk-secret" not in found
    assert "BASH_ENV" not in found
    assert {"TERM=dumb", "LC_TIME=C"} <= set(found.splitlines())


def test_output_is_said_while_the_command_runs(tmp_path: Path) -> None:
    """The command waits for a file that is only made once its first line was heard."""
    said: list[str] = []

    def hear(event: Event) -> None:
        assert isinstance(event, ToolOutputDelta)
        said.append(event.text)
        (tmp_path / "heard").touch()

    context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "7", emit=hear)
    command = "echo first; until [ -e heard ]; do sleep 0.01; done; echo second"
    found = asyncio.run(Shell().execute({"command": command}, context))
    assert "".join(said) == "first\nsecond\n"
    assert found.text == "first\nsecond\n[exit code 0]"


def test_endless_output_is_kept_in_bounds(tmp_path: Path) -> None:
    """(A13)"""
    said: list[Event] = []
    context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "7", emit=said.append)
    command = "echo start; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end"
    found = asyncio.run(Shell().execute({"command": command}, context))
    assert len(found.text) < LIMIT + 200
    assert found.text.startswith("start\nxxx")
    assert found.text.endswith("xxx\nend\n[exit code 0]")
    assert "characters are left out here" in found.text
    assert sum(len(event.text) for event in said) < LIMIT + 200


def test_what_is_kept_and_what_is_left_out_add_up() -> None:
    output = BoundedOutput(lambda text: None, limit=30)
    for number in range(100):
        output.add_bytes(f"{number:02d} ".encode())
    head, gap, tail = output.text.partition("\n[… 270 characters are left out here …]\n")
    assert (head, bool(gap), tail) == ("00 01 02 03 04 05 06", True, "6 97 98 99 "[-10:])


@pytest.mark.parametrize("pieces", [["abcdefgh", "ij"], ["abcde", "fgh"], ["abc", "defgh", "ij"]])
def test_what_is_said_ends_where_the_limit_is(pieces: list[str]) -> None:
    said: list[str] = []
    output = BoundedOutput(said.append, limit=5)
    for piece in pieces:
        output.add_bytes(piece.encode())
    assert "".join(said) == "abcde\n[… more output, not shown here]\n"


def test_a_character_that_comes_in_two_halves_is_whole() -> None:
    said: list[str] = []
    output = BoundedOutput(said.append)
    output.add_bytes("é".encode()[:1])
    output.add_bytes("é".encode()[1:] + b"\xff")
    output.add_bytes(b"", final=True)
    assert ("".join(said), output.text) == ("é\ufffd", "é\ufffd")


STUBBORN = "trap '' TERM; "


@pytest.mark.parametrize("before", ["", STUBBORN], ids=["willing", "stubborn"])
def test_a_command_out_of_time_is_ended_with_its_children(tmp_path: Path, before: str) -> None:
    """(M6, A13)"""
    command = (
        f"{before}echo pid $$; (sleep 1000 & echo pid $!; wait) & sleep 1000 & echo pid $!; wait"
    )
    hear = out_of_time(lambda said: len(pids(said)) == 3)
    context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "1", emit=hear)
    found = asyncio.run(Shell().execute({"command": command, "timeout": TIME}, context))
    assert found.ok is False
    assert found.data["timed_out"] is True
    assert found.data["exit_code"] is None
    assert found.text.endswith("[timed out after 60 s; the command and its children were ended]")
    assert len(pids(found.text)) == 3
    until_gone(lambda: not any(map(alive, pids(found.text))))


def test_the_deadline_of_the_run_bounds_the_command(tmp_path: Path) -> None:
    """(M6)"""

    async def scenario() -> ToolResult:
        deadline = asyncio.get_running_loop().time() + 0.3
        context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "1", deadline=deadline)
        return await Shell().execute({"command": "sleep 1000"}, context)

    assert asyncio.run(scenario()).data["timed_out"] is True


@pytest.mark.parametrize("before", ["", STUBBORN], ids=["willing", "stubborn"])
def test_a_cancelled_command_leaves_no_process(tmp_path: Path, before: str) -> None:
    """(M6)"""
    said: list[str] = []

    async def scenario() -> None:
        ready = asyncio.Event()

        def hear(event: Event) -> None:
            assert isinstance(event, ToolOutputDelta)
            said.append(event.text)
            if len(pids("".join(said))) == 3:
                ready.set()

        context: ToolContext[Any] = ToolContext(Workspace(tmp_path), "1", emit=hear)
        command = (
            f"{before}echo pid $$; sleep 1000 & echo pid $!; (sleep 999 & echo pid $!; wait) & wait"
        )
        task = asyncio.create_task(Shell().execute({"command": command}, context))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    found = pids("".join(said))
    assert len(found) == 3
    until_gone(lambda: not any(map(alive, found)))


def until_gone(gone: Callable[[], bool]) -> None:
    """KILL has been sent; the kernel may need a moment to carry it out."""
    for _ in range(3000):
        if gone():
            return
        threading.Event().wait(0.01)
    raise AssertionError("a process is still there")


def test_children_that_stay_behind_end_with_the_command(tmp_path: Path) -> None:
    command = "sleep 1000 & echo pid $!; sleep 1000 >/dev/null 2>&1 & echo pid $!"
    found = run(tmp_path, command)
    assert found.text.endswith("[exit code 0]")
    assert len(pids(found.text)) == 2
    until_gone(lambda: not any(map(alive, pids(found.text))))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo \0", "embedded null byte"),
        ("echo \ud800", "surrogates"),
        ("x" * 3_000_000, "too long"),
    ],
)
def test_a_command_that_cannot_start_is_said(tmp_path: Path, command: str, words: str) -> None:
    with pytest.raises(ToolError, match=f"The command cannot be started: .*{words}"):
        run(tmp_path, command)


def test_no_handle_and_no_child_is_left(tmp_path: Path) -> None:
    run(tmp_path, "true")
    before = len(list(Path("/dev/fd").iterdir()))
    for command in ("true", "exit 1", "sleep 10"):
        run(tmp_path, command, timeout=0.2)
    assert len(list(Path("/dev/fd").iterdir())) == before
