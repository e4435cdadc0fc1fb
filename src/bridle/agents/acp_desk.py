"""What an ACP agent has us do: read and write files, run commands. Through the gate, each of them.

A file is read and written through the workspace, as text and without line numbers; what was written
before stays with undo. A command is run by our own shell. Where the agent was allowed a change
before and now hands us exactly that change to write, it is not asked about again.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from acp import RequestError, schema

from bridle.agents.acp_calls import INFORMATIVE, Wanted, command_line, near
from bridle.agents.acp_reins import Reins
from bridle.errors import ToolError
from bridle.messages import ToolOutput
from bridle.tools.encoding import Coding, decode, shown
from bridle.tools.nearby import unified
from bridle.tools.shell import LONGEST
from bridle.workspace.paths import Workspace
from bridle.workspace.text import one_line, shorten

MOST_BYTES = 10 * 1024 * 1024  # of a file that is handed over
MOST_TERMINALS = 64
_SHOWN = 100_000  # characters of a file that the log keeps
_NOT_FOUND = -32002


class Desk:
    """The files and commands of one turn."""

    def __init__(self, reins: Reins) -> None:
        self._reins = reins
        self._files = Workspace(reins.root)
        self._terminals: dict[str, _Terminal] = {}
        self._made = 0

    async def read(self, request: schema.ReadTextFileRequest, call_id: str) -> dict[str, Any]:
        """A file's text, or some lines of it, exactly as it stands."""
        where: dict[str, Any] = {"path": near(request.path, self._reins.root)}
        if request.line:
            where["offset"] = request.line
        if request.limit:
            where["limit"] = request.limit
        found = await self._reins.permit("read", where, call_id)
        if not found:
            raise RequestError(-32603, found.message or "not allowed")
        if found.updated_input is not None:  # a hook's: that is what is read, and nothing else
            where = found.updated_input
        try:
            text = await asyncio.to_thread(self._text, str(where.get("path", "")))
        except ToolError as error:
            await self._reins.finish(found.call_id, error.message, ok=False)
            raise RequestError(_NOT_FOUND, error.message) from error
        text = lines_of(text, where.get("offset"), where.get("limit"))
        await self._reins.finish(found.call_id, shorten(shown(text), _SHOWN))
        return {"content": text}

    async def write(
        self, request: schema.WriteTextFileRequest, call_id: str, promised: bool
    ) -> dict[str, Any]:
        """Replace a file. `promised`: it is the change that this call was allowed to make."""
        if promised:
            await self._write(request)
            return {}
        arguments = {"path": near(request.path, self._reins.root), "content": request.content}
        found = await self._reins.permit("write", arguments, call_id)
        if not found:
            raise RequestError(-32603, found.message or "not allowed")
        if found.updated_input is not None:
            request = request.model_copy(update={"content": found.updated_input.get("content", "")})
            request.path = found.updated_input.get("path", request.path)
        try:
            diff = await self._write(request)
        except RequestError as error:
            await self._reins.finish(found.call_id, str(error), ok=False)
            raise
        where = self._files.relative(request.path)
        data, said = {"path": where, "diff": diff}, f"Wrote `{one_line(where, 200)}`."
        await self._reins.finish(found.call_id, said, data=data)
        return {}

    def promised(self, wants: tuple[Wanted, ...], path: str, content: str) -> Wanted | None:
        """The call of these that would make exactly this of the file."""
        fitting = (one for one in wants if self._is_same(one, path))
        return next((one for one in fitting if self._made_by(one) == content), None)

    def command_of(self, request: schema.CreateTerminalRequest) -> str:
        """The command as our shell is given it. Raise `RequestError` where it is none."""
        command = [request.command, *request.args] if request.args else request.command
        folder = request.cwd or self._reins.root
        if not Path(folder).is_absolute() or not Path(folder).is_dir():
            raise RequestError.invalid_params({"details": "cwd is no absolute path of a folder"})
        given = [(one.name, one.value) for one in request.env or () if one.name not in INFORMATIVE]
        line = command_line(command, folder, self._reins.root, given)
        if not line:
            raise RequestError.invalid_params({"details": "that is no command"})
        return line

    async def run(self, line: str, limit: int | None, call_id: str, allowed: str) -> dict[str, Any]:
        """Start a command; it is asked about, and what came of it is the terminal's output.

        `allowed` is the call by which exactly this was allowed to the agent, if there was one.
        """
        if len(self._terminals) >= MOST_TERMINALS:
            raise RequestError(-32603, f"more than {MOST_TERMINALS} terminals")
        self._made += 1
        name = f"terminal-{self._made}"
        arguments: dict[str, Any] = {"command": line}
        if not allowed:
            arguments["timeout"] = LONGEST
        work = self._reins.run("shell", arguments, allowed or call_id or name)
        self._terminals[name] = _Terminal(asyncio.ensure_future(work), limit)
        return {"terminalId": name}

    def output(self, name: str) -> dict[str, Any]:
        """What the command has said. Ours says it when it is over."""
        terminal = self._at(name)
        found: dict[str, Any] = {"output": "", "truncated": False}
        if terminal.work.done():
            found["output"], found["truncated"] = terminal.said()
            found["exitStatus"] = terminal.status()
        return found

    async def wait(self, name: str) -> dict[str, Any]:
        """How the command ended, once it has."""
        terminal = self._at(name)
        await asyncio.wait([terminal.work])
        return terminal.status()

    async def kill(self, name: str) -> dict[str, Any]:
        """End the command; the terminal stays."""
        await self._at(name).end()
        return {}

    async def release(self, name: str) -> dict[str, Any]:
        """End the command, and forget it."""
        await self._at(name).end()
        self._terminals.pop(name, None)
        return {}

    async def close(self) -> None:
        """Nothing runs on."""
        for terminal in list(self._terminals.values()):
            await terminal.end()
        self._terminals.clear()

    def _at(self, name: str) -> "_Terminal":
        try:
            return self._terminals[name]
        except KeyError:
            raise RequestError(_NOT_FOUND, "there is no such terminal") from None

    def _text(self, path: str) -> str:
        return self._decoded(path)[0]

    def _decoded(self, path: str) -> tuple[str, Coding]:
        data = self._files.read(path, MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ToolError(f"`{one_line(path, 200)}` is larger than {MOST_BYTES:,} bytes.")
        return decode(self._files.relative(path), data)

    async def _write(self, request: schema.WriteTextFileRequest) -> str:
        try:
            return await asyncio.to_thread(self._replace, request.path, request.content)
        except ToolError as error:
            raise RequestError(-32603, error.message) from error

    def _replace(self, path: str, content: str) -> str:
        """Write it in the file's own encoding, and say what became different."""
        where = self._files.relative(path)
        before, coding = "", Coding()
        if self._files.exists(path):
            with suppress(ToolError):  # a binary or very large file is replaced unseen
                before, coding = self._decoded(path)
        self._files.write(path, coding.encode(content, where))
        return unified(where, shown(before), shown(content))

    def _is_same(self, want: Wanted, path: str) -> bool:
        try:
            named = str(want.arguments.get("path", ""))
            return self._files.relative(named) == self._files.relative(path)
        except ToolError:
            return False

    def _made_by(self, want: Wanted) -> str | None:
        """What the file would hold after the call; None where that cannot be said."""
        given = want.arguments
        if want.name == "write":
            return str(given["content"])
        if want.name != "edit":
            return None
        try:
            text = self._text(given["path"])
        except ToolError:
            return None
        for piece in given.get("edits") or [given]:
            if text.count(piece["old"]) != 1:
                return None
            text = text.replace(piece["old"], piece["new"])
        return text


class _Terminal:
    """One command and what came of it."""

    def __init__(self, work: "asyncio.Future[ToolOutput]", limit: int | None) -> None:
        self.work = work
        self._limit = limit

    def said(self) -> tuple[str, bool]:
        """The end of its output, as much as was asked for, and whether that is not all."""
        output = self._output()
        data = output.data if isinstance(output.data, dict) else {}
        text = data["output"] if isinstance(data.get("output"), str) else output.text
        whole = text.encode("utf-8", "replace")
        if self._limit is None or len(whole) <= self._limit:
            return text, False
        return whole[len(whole) - self._limit :].decode("utf-8", "ignore"), True

    def status(self) -> dict[str, Any]:
        """The exit code, or that there is none."""
        output = self._output()
        data = output.data if isinstance(output.data, dict) else {}
        code = data.get("exit_code")
        if isinstance(code, int):
            return {"exitCode": code} if code >= 0 else {"signal": str(-code)}
        if self.work.cancelled() or data.get("timed_out"):
            return {"signal": "SIGKILL"}
        return {"exitCode": 1 if output.is_error else 0}

    async def end(self) -> None:
        """It runs no longer."""
        if not self.work.done():
            self.work.cancel()
        await asyncio.wait([self.work])

    def _output(self) -> ToolOutput:
        if self.work.cancelled():
            return ToolOutput("", "ended", is_error=True)
        if (error := self.work.exception()) is not None:
            return ToolOutput("", str(error), is_error=True)
        return self.work.result()


def lines_of(text: str, line: int | None, limit: int | None) -> str:
    """The lines from there on, and not more than so many."""
    if not line and limit is None:
        return text
    lines = text.split("\n")
    kept = [f"{one}\n" for one in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    start = max((line or 1) - 1, 0)
    return "".join(kept[start : None if limit is None else start + limit])
