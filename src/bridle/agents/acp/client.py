"""What an ACP agent has bridle do: read and write files, and run commands, each through the gate.

A file is read and written through the workspace, as text and without line numbers; what it held
before is kept for undo. A command is run by our own shell. If the agent was already allowed to make
a change, and now hands us exactly that change to write, it is not asked about again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from acp import RequestError, schema
from msgspec.structs import replace

from bridle.agents.acp.tool_mapping import IGNORED_VARIABLES, MappedCall, relative_path, shell_line
from bridle.errors import ToolError
from bridle.events import Event, TextDelta, TraceEvent
from bridle.messages import ToolOutput
from bridle.protocols.agent import OnTextChunk, OnToolActivity, Permission, ToolActivity
from bridle.tools.encoding import Encoding, decode, replace_bad_bytes
from bridle.tools.shell.tool import LONGEST
from bridle.tools.unified_diff import unified_diff
from bridle.workspace.text import one_line, shorten
from bridle.workspace.workspace import Workspace

# What a turn of an ACP agent uses of bridle: its session and the callbacks.
#
# A session that is not bridle's may have an id, a folder, a mode and a place for the agent's own
# id, and nothing more. What it cannot do is left out here, and without a gate nothing is allowed.

_NO_GATE = "no one can be asked here, so nothing is allowed"


class Host:
    """The session and the callbacks of one turn."""

    def __init__(
        self,
        session: Any,
        can_use_tool: Callable[..., Any] | None,
        on_text_chunk: OnTextChunk | None,
        on_tool_activity: OnToolActivity | None,
    ) -> None:
        self.session = session
        self.root = str(session.working_directory)
        self._can_use_tool = can_use_tool
        self._on_text_chunk = on_text_chunk
        self._on_tool_activity = on_tool_activity
        self._emit: Callable[[Event], None] | None = getattr(session, "emit", None)

    async def emit(self, event: Event) -> None:
        """Have the event recorded and shown."""
        if self._emit is not None:
            self._emit(event)
        elif isinstance(event, TextDelta) and self._on_text_chunk is not None:
            await self._on_text_chunk(event.text)

    async def notify(self, kind: str, message: str, **detail: Any) -> None:
        """Show the person a message."""
        await self.emit(TraceEvent(kind, {**detail, "message": message}))

    async def show_activity(self, activity: ToolActivity | None) -> None:
        """Show which tool is running."""
        if self._on_tool_activity is not None:
            await self._on_tool_activity(activity)

    async def request_permission(
        self, name: str, arguments: dict[str, Any], call_id: str
    ) -> Permission:
        """Ask the gate whether the agent may do this by itself.

        A callback that is not bridle's may answer with another class, or with a plain bool.
        """
        if self._can_use_tool is None:
            return Permission(False, _NO_GATE, call_id=call_id)
        answer = await self._can_use_tool(name, arguments, call_id)
        if isinstance(answer, Permission):
            return answer if answer.call_id else replace(answer, call_id=call_id)
        behavior = getattr(answer, "behavior", None)
        return Permission(behavior == "allow" if behavior else bool(answer), call_id=call_id)

    async def run_tool(self, name: str, arguments: dict[str, Any], call_id: str) -> ToolOutput:
        """Run one of our own tools."""
        call = getattr(self.session, "call", None)
        if call is None:
            return ToolOutput(call_id, _NO_GATE, is_error=True, name=name)
        output: ToolOutput = await call(name, arguments, call_id, anew=True)
        return output

    async def finish(self, call_id: str, text: str, *, ok: bool = True, data: Any = None) -> None:
        """Report the result of a call that was allowed."""
        if (finish := getattr(self.session, "finish", None)) is not None:
            await finish(call_id, text, ok=ok, data=data)

    @property
    def state(self) -> dict[str, Any]:
        """What the session stores for this agent: a copy."""
        return dict(getattr(self.session, "state", None) or {})

    def update_state(self, **changes: Any) -> None:
        """Store these values with the session."""
        state = self.state
        if hasattr(self.session, "state") and any(state.get(k) != v for k, v in changes.items()):
            self.session.state = {**state, **changes}


MAX_BYTES = 10 * 1024 * 1024  # of a file that is passed to the agent
MAX_TERMINALS = 64
_LOGGED = 100_000  # characters of a file that the log keeps
_NOT_FOUND = -32002


class Client:
    """The files and commands of one turn."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._files = Workspace(host.root)
        self._terminals: dict[str, _Terminal] = {}
        self._terminal_count = 0

    async def read(self, request: schema.ReadTextFileRequest, call_id: str) -> dict[str, Any]:
        """Return a file's text, or some lines of it, exactly as they are."""
        arguments: dict[str, Any] = {"path": relative_path(request.path, self._host.root)}
        if request.line:
            arguments["offset"] = request.line
        if request.limit:
            arguments["limit"] = request.limit
        permission = await self._host.request_permission("read", arguments, call_id)
        if not permission:
            raise RequestError(-32603, permission.message or "not allowed")
        if permission.updated_input is not None:  # a hook has changed the call
            arguments = permission.updated_input
        try:
            text = await asyncio.to_thread(self._text, str(arguments.get("path", "")))
        except ToolError as error:
            await self._host.finish(permission.call_id, error.message, ok=False)
            raise RequestError(_NOT_FOUND, error.message) from error
        text = lines_of(text, arguments.get("offset"), arguments.get("limit"))
        await self._host.finish(permission.call_id, shorten(replace_bad_bytes(text), _LOGGED))
        return {"content": text}

    async def write(self, request: schema.WriteTextFileRequest, call_id: str) -> dict[str, Any]:
        """Replace a file, if the gate allows it."""
        arguments = {
            "path": relative_path(request.path, self._host.root),
            "content": request.content,
        }
        permission = await self._host.request_permission("write", arguments, call_id)
        if not permission:
            raise RequestError(-32603, permission.message or "not allowed")
        if (changed := permission.updated_input) is not None:  # a hook has changed the call
            request = request.model_copy(update={"content": changed.get("content", "")})
            request.path = changed.get("path", request.path)
        try:
            diff = await self._write(request)
        except RequestError as error:
            await self._host.finish(permission.call_id, str(error), ok=False)
            raise
        path = self._files.relative(request.path)
        await self._host.finish(
            permission.call_id,
            f"Wrote `{one_line(path, 200)}`.",
            data={"path": path, "diff": diff},
        )
        return {}

    async def write_allowed(self, request: schema.WriteTextFileRequest) -> dict[str, Any]:
        """Replace a file by a change that the agent was already allowed to make."""
        await self._write(request)
        return {}

    def call_that_writes(
        self, calls: tuple[MappedCall, ...], path: str, content: str
    ) -> MappedCall | None:
        """Return the call of these that gives the file exactly this content."""
        same_path = (call for call in calls if self._is_about(call, path))
        return next((call for call in same_path if self._content_after(call) == content), None)

    def shell_line(self, request: schema.CreateTerminalRequest) -> str:
        """Return the command as our shell gets it. Raise `RequestError` if it is not one."""
        command = [request.command, *request.args] if request.args else request.command
        folder = request.cwd or self._host.root
        if not Path(folder).is_absolute() or not Path(folder).is_dir():
            raise RequestError.invalid_params(
                {"details": "cwd is not the absolute path of a folder"}
            )
        variables = [
            (variable.name, variable.value)
            for variable in request.env or ()
            if variable.name not in IGNORED_VARIABLES
        ]
        line = shell_line(command, folder, self._host.root, variables)
        if not line:
            raise RequestError.invalid_params({"details": "that is not a command"})
        return line

    async def run(
        self, line: str, limit: int | None, *, call_id: str = "", allowed_call_id: str = ""
    ) -> dict[str, Any]:
        """Start a command in a terminal, through the gate. Its result is the terminal's output.

        `allowed_call_id`: the call by which the agent was already allowed to run exactly this.
        """
        if len(self._terminals) >= MAX_TERMINALS:
            raise RequestError(-32603, f"more than {MAX_TERMINALS} terminals")
        self._terminal_count += 1
        name = f"terminal-{self._terminal_count}"
        arguments: dict[str, Any] = {"command": line}
        if not allowed_call_id:
            arguments["timeout"] = LONGEST
        work = self._host.run_tool("shell", arguments, allowed_call_id or call_id or name)
        self._terminals[name] = _Terminal(asyncio.ensure_future(work), limit)
        return {"terminalId": name}

    def output(self, name: str) -> dict[str, Any]:
        """Return the output of a command. Our shell has it when the command has ended."""
        terminal = self._terminal(name)
        answer: dict[str, Any] = {"output": "", "truncated": False}
        if terminal.work.done():
            answer["output"], answer["truncated"] = terminal.text()
            answer["exitStatus"] = terminal.exit_status()
        return answer

    async def wait(self, name: str) -> dict[str, Any]:
        """Wait for a command, and return how it ended."""
        terminal = self._terminal(name)
        await asyncio.wait([terminal.work])
        return terminal.exit_status()

    async def kill(self, name: str) -> dict[str, Any]:
        """End a command; its terminal stays."""
        await self._terminal(name).end()
        return {}

    async def release(self, name: str) -> dict[str, Any]:
        """End a command, and forget its terminal."""
        await self._terminal(name).end()
        self._terminals.pop(name, None)
        return {}

    async def close(self) -> None:
        """End every command."""
        for terminal in list(self._terminals.values()):
            await terminal.end()
        self._terminals.clear()

    def _terminal(self, name: str) -> "_Terminal":
        try:
            return self._terminals[name]
        except KeyError:
            raise RequestError(_NOT_FOUND, "there is no such terminal") from None

    def _text(self, path: str) -> str:
        return self._read_text(path)[0]

    def _read_text(self, path: str) -> tuple[str, Encoding]:
        data = self._files.read(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ToolError(f"`{one_line(path, 200)}` is larger than {MAX_BYTES:,} bytes.")
        return decode(self._files.relative(path), data)

    async def _write(self, request: schema.WriteTextFileRequest) -> str:
        try:
            return await asyncio.to_thread(self._replace, request.path, request.content)
        except ToolError as error:
            raise RequestError(-32603, error.message) from error

    def _replace(self, path: str, content: str) -> str:
        """Write a file in its own encoding, and return the difference."""
        where = self._files.relative(path)
        before, encoding = "", Encoding()
        if self._files.exists(path):
            with suppress(ToolError):  # a binary or very large file is replaced without a diff
                before, encoding = self._read_text(path)
        self._files.write(path, encoding.encode(content, where))
        return unified_diff(where, replace_bad_bytes(before), replace_bad_bytes(content))

    def _is_about(self, call: MappedCall, path: str) -> bool:
        try:
            call_path = str(call.arguments.get("path", ""))
            return self._files.relative(call_path) == self._files.relative(path)
        except ToolError:
            return False

    def _content_after(self, call: MappedCall) -> str | None:
        """Return what the file would hold after the call; None if that cannot be said."""
        arguments = call.arguments
        if call.name == "write":
            return str(arguments["content"])
        if call.name != "edit":
            return None
        try:
            text = self._text(arguments["path"])
        except ToolError:
            return None
        for edit in arguments.get("edits") or [arguments]:
            if text.count(edit["old"]) != 1:
                return None
            text = text.replace(edit["old"], edit["new"])
        return text


class _Terminal:
    """One command and its result."""

    def __init__(self, work: "asyncio.Future[ToolOutput]", limit: int | None) -> None:
        self.work = work
        self._limit = limit

    def text(self) -> tuple[str, bool]:
        """Return the end of its output, as much as was asked for, and whether it was cut."""
        output = self._output()
        data = output.data if isinstance(output.data, dict) else {}
        text = data["output"] if isinstance(data.get("output"), str) else output.text
        whole = text.encode("utf-8", "replace")
        if self._limit is None or len(whole) <= self._limit:
            return text, False
        return whole[len(whole) - self._limit :].decode("utf-8", "ignore"), True

    def exit_status(self) -> dict[str, Any]:
        """Return the exit code, or the signal."""
        output = self._output()
        data = output.data if isinstance(output.data, dict) else {}
        code = data.get("exit_code")
        if isinstance(code, int):
            return {"exitCode": code} if code >= 0 else {"signal": str(-code)}
        if self.work.cancelled() or data.get("timed_out"):
            return {"signal": "SIGKILL"}
        return {"exitCode": 1 if output.is_error else 0}

    async def end(self) -> None:
        """End the command if it still runs."""
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
    """Return the lines from number `line` on, at most `limit` of them."""
    if not line and limit is None:
        return text
    lines = text.split("\n")
    whole = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    start = max((line or 1) - 1, 0)
    return "".join(whole[start : None if limit is None else start + limit])
