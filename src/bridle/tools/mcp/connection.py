"""One connection to one server, by the official SDK.

The SDK has to be opened and closed by the same task, but calls come from others. So a task owns the
connection from its start to its end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
from mcp import Client, MCPError
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.session import ClientRequestContext
from pydantic import ValidationError

from bridle.distribution import version
from bridle.errors import ToolError
from bridle.tools.mcp.message_filter import SESSION_EXPIRED
from bridle.tools.mcp.oauth import Browser
from bridle.tools.mcp.spec import ConnectionLost, ServerSpec, SessionExpired
from bridle.tools.mcp.transports import HttpTransport, StdioTransport
from bridle.workspace.text import neutral, one_line

_CLOSE_SECONDS = 4.0
_MAX_PAGES = 200  # of a list
_MAX_ITEMS = 20_000  # tools, resources or prompts of one server
_MAX_STDERR = 600  # characters that are quoted
_log = logging.getLogger("mcp")
_log.addHandler(logging.NullHandler())  # without it, its lines would go to the terminal

Ask = Callable[[str], Awaitable[str]]


class Connection:
    """Open from `open` to `close`, or until the server ends. Then it is not opened again.

    `askers` are the functions by which the calls that are running can ask the person.
    """

    def __init__(
        self,
        spec: ServerSpec,
        folder: str,
        on_change: Callable[[], None] = lambda: None,
        *,
        elicits: bool = False,
        browser: Browser | None = None,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._elicits = elicits
        self._transport = (
            StdioTransport(spec, folder, on_change)
            if spec.command
            else HttpTransport(spec, browser, on_change)
        )
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.askers: list[Ask | None] = []

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        if self._client is None or self._task is None or self._transport.is_expired:
            return False
        return not self._task.done()

    @property
    def client(self) -> Client:
        """The SDK's client. Raise `ConnectionLost`."""
        if self._client is None or not self.is_open:
            raise ConnectionLost(self._reason("it is not connected"))
        return self._client

    # --- its life ---

    async def open(self, mode: str = "auto") -> None:
        """Connect. Raise `ToolError`. The caller limits the time."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run(ready, mode))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close it; nothing of it runs afterwards."""
        self._closing.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()  # it is still being opened
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)

    async def _run(self, ready: "asyncio.Future[None]", mode: str) -> None:
        """Own the connection until it is closed, or the server has ended."""
        try:
            client = Client(
                self._transport.open(),
                mode=mode,
                cache=None,
                list_roots_callback=self._list_roots,
                elicitation_callback=self._elicit if self._elicits else None,
                client_info=types.Implementation(name="bridle", version=version()),
            )
            async with client as self._client:
                if not ready.done():
                    ready.set_result(None)
                stream = self._transport.stream
                assert stream is not None
                ends = [
                    asyncio.ensure_future(event.wait()) for event in (self._closing, stream.ended)
                ]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for end in ends:
                        end.cancel()
        except asyncio.CancelledError:
            if not ready.done():
                ready.cancel()
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises groups
            if not ready.done():
                ready.set_exception(self.to_tool_error(error))
        finally:
            self._client = None
            if not ready.done():
                ready.set_exception(ConnectionLost(self._reason("it has ended")))

    # --- what the server asks for ---

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        folder = Path(self._folder)
        root = types.Root.model_validate({"uri": folder.as_uri(), "name": folder.name})
        return types.ListRootsResult(roots=[root])

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Ask the person behind the only call that is running; decline if there are more."""
        ask = self.askers[0] if len(self.askers) == 1 else None
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        schema = dict(params.requested_schema)
        answer = await elicit(self._spec.name, params.message, schema, ask)
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=answer)

    # --- what it has ---

    async def tools(self) -> list[types.Tool]:
        """Return all of its tools."""
        tools: list[types.Tool] = []
        async for page in _pages(self.client.list_tools):
            tools += page.tools
            if len(tools) >= _MAX_ITEMS:
                break
        return tools[:_MAX_ITEMS]

    async def resources(self) -> list[types.Resource | types.ResourceTemplate]:
        """Return all of its resources and resource templates."""
        resources: list[types.Resource | types.ResourceTemplate] = []
        if self.client.server_capabilities.resources is None:
            return resources
        async for page in _pages(self.client.list_resources):
            resources += page.resources
        try:
            async for page in _pages(self.client.list_resource_templates):
                resources += page.resource_templates
        except MCPError:
            _log.debug("no resource templates", exc_info=True)  # many servers do not know them
        return resources[:_MAX_ITEMS]

    async def prompts(self) -> list[types.Prompt]:
        """Return all of its prompts."""
        prompts: list[types.Prompt] = []
        if self.client.server_capabilities.prompts is None:
            return prompts
        async for page in _pages(self.client.list_prompts):
            prompts += page.prompts
        return prompts[:_MAX_ITEMS]

    # --- what goes wrong ---

    def to_tool_error(self, error: BaseException) -> ToolError:
        """Return the error with one sentence for a person and the model, without class names."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, ToolError):
            return error
        if self._spec.tokens and isinstance(error, OAuthFlowError):
            return ToolError(f"signing in did not work: {one_line(str(error), 300)}", error)
        if isinstance(error, MCPError):
            if error.error.data is SESSION_EXPIRED:
                return SessionExpired(self._reason(""), error)
            if error.code == types.CONNECTION_CLOSED:
                return ConnectionLost(self._reason("it has ended"), error)
            problem = f"{self._transport.problem}; " if self._transport.problem else ""
            return ToolError(f"{problem}it said: {one_line(error.message, 400)}", error)
        if self.is_open:
            return ToolError(f"its answer cannot be read: {_invalid_part(error)}", error)
        name, message = type(error).__name__, one_line(str(error), 300)
        if name in ("ConnectError", "ConnectTimeout", "ConnectionRefusedError"):
            reason = f"nobody answers there ({message or name})"
        else:
            reason = f"the connection failed: {message or name}"
        return ConnectionLost(self._reason(reason), error)

    def _reason(self, usual: str) -> str:
        """Say why the connection was lost: `usual`, unless we know better; with its stderr."""
        stream = self._transport.stream
        reason = self._transport.problem or usual
        if stream is not None and stream.is_flooded:
            reason = "it sent more messages than anybody could use"
        lines: list[str] = []  # whole lines from the end, as many as fit
        for line in reversed(self._transport.stderr_tail.strip().splitlines()):
            if lines and sum(map(len, lines)) + len(line) > _MAX_STDERR:
                break
            lines.append(line)
        stderr = one_line("\n".join(reversed(lines)), 800)
        return f"{reason}; its last words: {stderr}" if stderr else reason


async def _pages(request: Callable[..., Any]) -> Any:
    """Yield the pages of a list, until there are no more or a page is repeated."""
    cursor: str | None = None
    cursors: set[str] = set()
    for _ in range(_MAX_PAGES):
        page = await request(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None or cursor in cursors:
            return
        cursors.add(cursor)


def _invalid_part(error: BaseException) -> str:
    """Say what is wrong with an answer."""
    if isinstance(error, ValidationError) and (errors := error.errors()):
        path = ".".join(map(str, errors[0]["loc"]))
        return one_line(f"{path}: {errors[0]['msg']}", 400)
    return one_line(str(error), 400)


# --- questions of a server to the person ---

_NO = frozenset(("", "no", "n", "decline", "cancel"))
_YES = frozenset(("yes", "y", "ok"))
_MAX_QUESTION = 4_000  # characters
_MAX_FIELDS = 50
_Fields = dict[str, dict[str, Any]]


async def elicit(
    server: str, message: str, schema: dict[str, Any], ask: Ask | None
) -> dict[str, Any] | None:
    """Ask the person to fill in a form, which is put as one question.

    Fields that are left out get the form's defaults. Return None if the person declines, or no one
    can be asked.
    """
    if ask is None:
        return None
    properties = schema.get("properties")
    pairs = list(properties.items())[:_MAX_FIELDS] if isinstance(properties, dict) else []
    fields: _Fields = {name: field for name, field in pairs if isinstance(field, dict)}
    answer = (await ask(_question(server, message, fields))).strip()
    if answer.lower() in _NO:
        return None
    values = {name: field["default"] for name, field in fields.items() if "default" in field}
    if answer.lower() not in _YES or _is_single_text(fields):
        values |= _parse_answer(answer, fields)
    missing = [name for name in schema.get("required") or () if name not in values]
    return None if missing else values


def _is_single_text(fields: _Fields) -> bool:
    """Return whether one text is asked for, so that `yes` may be the answer itself."""
    kinds = [field.get("type") for field in fields.values()]
    return kinds == ["string"] and "default" not in next(iter(fields.values()))


def _question(server: str, message: str, fields: _Fields) -> str:
    lines = [f"The MCP server {server} asks: {neutral(message)[:_MAX_QUESTION]}"]
    for name, field in fields.items():
        about = str(field.get("description") or field.get("title") or field.get("type", ""))
        lines.append(f"- {one_line(name)}: {one_line(about)}")
    if len(fields) > 1:
        lines.append("Answer with a JSON object, or yes for the usual values, or no.")
    return "\n".join(lines)


def _parse_answer(answer: str, fields: _Fields) -> dict[str, Any]:
    """Parse a JSON object, or the value of the only field."""
    try:
        value = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        value = answer
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name in fields}
    if len(fields) != 1:
        return {}
    ((name, field),) = fields.items()
    return {name: answer if field.get("type") == "string" else value}
