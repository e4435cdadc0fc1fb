"""What a session's shell remembers: its folder, its jobs, long output, what it guards."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import ToolError
from bridle.policy import ToolPolicy
from bridle.protocols.tool import CWD, ToolContext, ToolResult
from bridle.tools.output import BoundedOutput, OutputFile, finish_output
from bridle.tools.shell.jobs import MAX_RUNNING
from bridle.tools.shell.tool import Shell, ShellOutput, ShellStop
from bridle.workspace.workspace import Workspace


class Session:
    """A session's memory and folder, and its tools; `close` ends what it was handed."""

    def __init__(self, root: Path, folder: Path | str = "", clean: Any = None) -> None:
        self.root = root
        self.memory: dict[str, Any] = {}
        self.closers: list[Any] = []
        self._folder = str(folder)
        self._clean = clean or (lambda text: text)
        self._count = 0
        self.emit: Any = lambda event: None

    def _context(self) -> ToolContext[Any]:
        self._count += 1
        return ToolContext(
            Workspace(self.root),
            f"call_{self._count}",
            memory=self.memory,
            at_close=self.closers.append,
            folder=self._folder,
            emit=self.emit,
            redact=self._clean,
        )

    async def shell(self, command: str, **rest: Any) -> ToolResult:
        return await Shell().execute({"command": command, **rest}, self._context())

    async def output(self, name: str, **rest: Any) -> ToolResult:
        return await ShellOutput().execute({"id": name, **rest}, self._context())

    async def stop(self, name: str) -> ToolResult:
        return await ShellStop().execute({"id": name}, self._context())

    async def close(self) -> None:
        for closer in self.closers:
            await closer()


def run(work: Any) -> Any:
    async def whole() -> Any:
        found = await asyncio.wait_for(work, 240)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    return asyncio.run(whole())


def outputs(root: Path, *commands: str) -> list[str]:
    session = Session(root)

    async def work() -> list[str]:
        return [(await session.shell(command)).text for command in commands]

    found: list[str] = run(work())
    return found


def test_the_folder_of_a_command_is_where_the_next_one_starts(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    assert outputs(tmp_path, "cd 'a b'", "pwd", "cd ..; exit 3", "pwd", "(cd 'a b')", "pwd") == [
        "(no output)\n[exit code 0]\n[the next command starts in a b]",
        f"{tmp_path}/a b\n[exit code 0]",
        "(no output)\n[exit code 3]\n[the next command starts in .]",
        f"{tmp_path}\n[exit code 0]",
        "(no output)\n[exit code 0]",
        f"{tmp_path}\n[exit code 0]",
    ]


def test_the_folder_that_is_remembered_is_inside_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    moved = "[it ended outside the workspace; the next command starts in the workspace's folder]"
    for away in ("cd /", "cd ..", "cd out", f"cd {tmp_path}"):
        first, second = outputs(root, away, "pwd")
        assert first == f"(no output)\n[exit code 0]\n{moved}"
        assert second == f"{root}\n[exit code 0]"


def test_what_a_command_says_of_its_folder_is_not_believed(tmp_path: Path) -> None:
    """It may write to the handle of the report as it likes."""
    lie = "for f in /proc/self/fd/*; do n=${f##*/}; [ $n -ge 100 ] && echo /etc >&$n; done; :"
    first, second = outputs(tmp_path, lie, "pwd")
    assert second == f"{tmp_path}\n[exit code 0]"
    assert "[exit code 0]" in first


def test_a_folder_that_is_gone_is_said_and_nothing_runs_elsewhere(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work() -> str:
        await session.shell("mkdir d; cd d")
        assert session.memory[CWD] == f"{tmp_path}/d"
        (tmp_path / "d").rmdir()
        with pytest.raises(ToolError, match="the folder in which the last command ended is gone"):
            await session.shell("touch ran")
        return (await session.shell("pwd; ls")).text

    assert run(work()) == f"{tmp_path}\n[exit code 0]"


def test_a_script_that_uses_handles_and_traps_of_its_own_is_not_disturbed(tmp_path: Path) -> None:
    command = "exec 9>lock; trap 'echo bye' EXIT; set -eu; echo $#; echo x >&9; cat lock"
    assert outputs(tmp_path, command) == ["0\nx\nbye\n[exit code 0]"]
    assert outputs(tmp_path, "echo $0 $LINENO; nothing-there") == [
        "bash 1\nbash: line 1: nothing-there: command not found\n[exit code 127]"
    ]


def test_output_that_is_too_long_is_kept_and_can_be_read(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "session"
    root.mkdir()
    session = Session(root, folder)

    async def work() -> None:
        found = await session.shell("seq 1 20000; echo short >&2")
        assert "characters are left out here" in found.text
        assert found.text.endswith(
            "[the whole output is kept: shell_output with id 'call_1' and a line number reads it]"
        )
        read = await session.output("call_1", line=9999, lines=2)
        assert read.text == "  9999\t9999\n 10000\t10000\n[there is more from line 10001 on]"
        assert (await session.output("call_1", line=20001)).text == " 20001\tshort"
        with pytest.raises(ToolError, match="Nothing is kept under the id 'call_1' from line 30"):
            await session.output("call_1", line=30000)
        await session.shell("echo short")
        await session.close()

    run(work())
    (kept,) = (folder / "outputs").iterdir()
    assert kept.name == "call_1.txt"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_what_is_kept_holds_no_secret(tmp_path: Path) -> None:
    """Also one that lies where two blocks meet."""
    root, folder = tmp_path / "root", tmp_path / "session"
    root.mkdir()
    session = Session(root, folder, lambda text: text.replace("sk-canary-123456", "[redacted]"))
    line = "yes 'some words and sk-canary-123456 and more' | head -200000"
    run(session.shell(line))
    data = (folder / "outputs/call_1.txt").read_text()
    assert "canary" not in data
    assert data.count("some words and [redacted] and more\n") == 200000


def test_what_is_kept_has_an_end_and_so_has_memory(tmp_path: Path) -> None:
    """(A13)"""
    import tracemalloc

    root, folder = tmp_path / "root", tmp_path / "session"
    root.mkdir()
    session = Session(root, folder)
    tracemalloc.start()
    try:
        found = run(session.shell("head -c 200000000 /dev/zero | tr '\\0' 'x'"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.ok
    assert most < 30_000_000
    assert (folder / "outputs/call_1.txt").stat().st_size < 53_000_000


def test_an_id_is_never_a_path(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "session"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")

    async def work() -> None:
        for name in ("../../secret", "/etc/passwd", "..", "a/b", "x\0y"):
            with pytest.raises(ToolError, match="Nothing is kept"):
                await Session(root, folder).output(name, line=1)

    run(work())


def test_a_job_runs_in_the_background_and_can_be_read_and_stopped(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work() -> int:
        begun = await session.shell(
            "echo one; until [ -e go ]; do sleep 0.02; done; echo two; echo $$; exec sleep 1000",
            background=True,
        )
        assert begun == ToolResult(
            True,
            "[job-1 runs in the background; shell_output reads it, shell_stop ends it]",
            {"job": "job-1", "sandbox": "none"},
        )
        text = ""
        while "one" not in text:
            text += (await session.output("job-1", wait=0.05)).text
        (tmp_path / "go").touch()
        told = ""
        while "two" not in told or len(told.split()) < 2:
            told += (await session.output("job-1", wait=0.05)).data["output"]
        assert "one" not in told
        stopped = await session.stop("job-1")
        assert (stopped.ok, stopped.data["running"]) == (True, False)
        assert stopped.text == "[job-1 was stopped]"
        await session.close()
        return int(told.split()[1])

    assert not Path(f"/proc/{run(work())}").exists()


def test_a_job_that_ends_says_how(tmp_path: Path) -> None:
    session = Session(tmp_path)

    async def work() -> None:
        await session.shell("echo done; exit 4", background=True)
        found = await session.output("job-1", wait=30)
        assert (found.ok, found.text) == (False, "done\n[exit code 4]")
        assert found.data["exit_code"] == 4
        again = await session.output("job-1")
        assert again.text == "(no output)\n[exit code 4]"
        await session.shell("sleep 1000", background=True, timeout=0.2)
        late = await session.output("job-2", wait=30)
        assert late.text.startswith("(no output)\n[timed out after 0.2 s;")
        with pytest.raises(ToolError, match=r"There is no job 'x'. Jobs: job-1, job-2."):
            await session.stop("x")

    run(work())


def test_jobs_end_with_the_session_and_there_are_not_too_many(tmp_path: Path) -> None:
    session = Session(tmp_path)
    mark = f"{1000 + os.getpid() / 1e7:.7f}"

    async def work() -> None:
        for _ in range(MAX_RUNNING):
            await session.shell(f"sleep {mark}", background=True)
        with pytest.raises(ToolError, match=f"{MAX_RUNNING} jobs are running"):
            await session.shell("sleep 1", background=True)
        await session.close()

    run(work())
    assert subprocess.run(["pgrep", "-f", mark], capture_output=True).stdout == b""


def test_a_command_that_changes_a_hook_ends_the_turn(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    session = Session(tmp_path)
    found = run(session.shell("echo evil > .git/hooks/pre-commit; echo fine"))
    assert found.stops == "a command changed protected files: .git/hooks/pre-commit"
    assert found.ok is False
    assert found.text == (
        "fine\n[exit code 0]\n"
        "[protected files were changed and have been restored: .git/hooks/pre-commit]"
    )
    assert not (tmp_path / ".git/hooks/pre-commit").exists()


def test_a_job_that_changes_a_hook_is_noticed_by_whoever_looks_next(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    hook = tmp_path / ".git/hooks/pre-commit"
    session = Session(tmp_path)

    async def work() -> None:
        evil = "echo evil > .git/hooks/pre-commit; touch ready; sleep 1000"
        await session.shell(evil, background=True)
        while not (tmp_path / "ready").exists():
            await session.output("job-1", wait=0.02)
        found = await session.shell("true")
        assert found.stops == "a command changed protected files: .git/hooks/pre-commit"
        assert not hook.exists()
        await session.shell("echo > again; " + evil.replace("sleep 1000", "true"), background=True)
        ended = await session.output("job-2", wait=30)
        assert ended.stops == "a command changed protected files: .git/hooks/pre-commit"
        await session.close()

    run(work())
    assert not hook.exists()


def test_a_cancelled_command_leaves_protected_files_as_they_were(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    session = Session(tmp_path)

    async def work() -> None:
        ready = asyncio.Event()
        session.emit = lambda event: ready.set()
        command = "echo evil > .git/hooks/pre-commit; echo ready; sleep 1000"
        task = asyncio.create_task(session.shell(command))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())
    assert not (tmp_path / ".git/hooks/pre-commit").exists()


def test_what_the_tools_say_of_themselves() -> None:
    assert Shell.policy == ToolPolicy(risk="high", runs="command")
    for tool in (ShellOutput, ShellStop):
        assert tool.policy == ToolPolicy(read_only=True, risk="low")
    for tool in (Shell, ShellOutput, ShellStop):
        assert "\n" in tool.description or "job" in tool.description


@pytest.mark.parametrize(
    ("most", "what"), [(1_000_000, "the whole output"), (1_000, "only the beginning of the output")]
)
def test_what_is_said_to_be_kept_is_what_is_kept(tmp_path: Path, most: int, what: str) -> None:
    path = tmp_path / "outputs/x.txt"
    kept = OutputFile(str(path), lambda text: text, most)
    output = BoundedOutput(lambda event: None, keep=kept.add)
    text = "a line\n" * 10_000
    output.add_bytes(text.encode())
    output.add_bytes(b"", final=True)
    said = asyncio.run(finish_output(output, kept, "x"))
    assert said == f"{what} is kept: shell_output with id 'x' and a line number reads it"
    assert (path.read_text() == text) is (most > len(text))
