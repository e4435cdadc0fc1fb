"""One MCP server: connected when it is needed; if that fails, tried again after a while.

It knows which definitions of its tools were accepted (pinned) and which it has now. A call that was
sent is not sent again, because it may have had an effect. The only exception is a call that was
refused by a server which no longer knew our session: it was not carried out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bridle.distribution import install_hint
from bridle.errors import MissingExtra, ToolError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.pins import PinnedServer, Pins
from bridle.tools.mcp.spec import ConnectionLost, ServerSpec, SessionExpired
from bridle.tools.mcp.tool import (
    CompileSchema,
    Progress,
    ToolDefinition,
    parse_definition,
    to_result,
)
from bridle.tools.thread_pool import in_thread
from bridle.workspace.programs import fingerprints, mentioned_files
from bridle.workspace.text import one_line, quantity

if TYPE_CHECKING:
    from bridle.tools.mcp.connection import Connection
    from bridle.tools.mcp.oauth import Browser

_LIST_SECONDS = 60.0  # for which a list of tools counts as current
_TRIES = 3  # to connect by HTTP
_RETRY_SECONDS = 0.5  # between the first two of them
_PAUSE, _MAX_PAUSE = 5.0, 60.0  # seconds without a try after a failure
_MAX_FOLDERS = 200  # workspaces whose files are remembered
_MAX_REQUESTED = 200  # tools

T = TypeVar("T")


class Server:
    """A server, running or not. `on_change` is called when its tools have changed.

    `elicits`: it may ask the person, through the context of a call. `browser` is needed to sign in.
    """

    def __init__(
        self, spec: ServerSpec, folder: str, pins: Pins, compile_schema: CompileSchema
    ) -> None:
        self.spec = spec
        self.elicits = False
        self.browser: Browser | None = None
        self.on_change: Callable[[], None] = lambda: None
        self.problem = spec.problem
        self._folder = folder
        self._pins = pins
        self._compile = compile_schema
        saved = pins.read()
        self.is_known = saved is not None and saved.seen
        self.pinned = {tool.name: tool for tool in saved.tools} if saved else {}
        self.requested_tools = list(saved.requested_tools) if saved else []
        self._mode = saved.mode if saved else "auto"
        self._live: dict[str, ToolDefinition] | None = None  # what it has now, once it was asked
        self._listed_at = 0.0
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._failures = 0
        self._no_try_before = 0.0
        # The files that its command names, as they have to be when it is started. They are pinned
        # the first time that we see them, even if it is not started then: later, others may write.
        if saved is not None and folder in saved.files and not spec.trusted:
            self._files = saved.files[folder]
        else:
            self._files = self._hash_files()
            if self._files and (saved is None or folder not in saved.files):
                self._save()

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self.spec.name

    @property
    def definitions(self) -> dict[str, ToolDefinition]:
        """Its tools as they are now or, if it was not asked yet, as they were."""
        return self.pinned if self._live is None else self._live

    @property
    def is_open(self) -> bool:
        """Whether it is running, as far as is known."""
        return self._connection is not None and self._connection.is_open

    # --- requests ---

    async def call(
        self, definition: ToolDefinition, arguments: dict[str, Any], context: ToolContext[Any]
    ) -> ToolResult:
        """Call one of its tools. Raise `ToolError`."""
        progress = Progress(context)

        async def call_once() -> Any:
            async with self._open_connection(context.ask) as connection:
                self._check_definition(definition)
                answer = connection.client.call_tool(
                    definition.name, arguments, progress_callback=progress.report
                )
                return await self._answer(connection, answer, is_call=True)

        try:
            answer = await call_once()
        except SessionExpired:
            answer = await call_once()
        return await to_result(answer, context)

    def _check_definition(self, judged: ToolDefinition) -> None:
        """Raise `ToolError` unless it still is the tool that was judged.

        If a person has just allowed it although it was not pinned, it is pinned now.
        """
        now = (self._live or {}).get(judged.name)
        if now is None:
            raise ToolError(f"Not run: {self.name} has no tool {judged.name!r} any more.")
        if now.digest != judged.digest or now.problem:
            raise ToolError(
                f"Not run: {self.name} describes this tool differently than before. "
                "If it is still what you want, call it again: a person is asked, and told why."
            )
        if self.pinned.get(judged.name) != now:
            self.pinned[judged.name] = now
            self._save()
            self.on_change()

    async def ask(self, request: "Callable[[Connection], Awaitable[T]]", ask: Any = None) -> T:
        """Send a request other than a call, within the server's time limit. Raise `ToolError`."""
        async with self._open_connection(ask) as connection:
            try:
                async with asyncio.timeout(self.spec.timeout):
                    return await self._answer(connection, request(connection))
            except TimeoutError:
                raise self._no_answer() from None

    @asynccontextmanager
    async def _open_connection(self, ask: Any) -> "AsyncIterator[Connection]":
        """Yield a connection; meanwhile the server may ask the person through `ask`."""
        connection = await self.connect()
        connection.askers.append(ask)
        try:
            yield connection
        finally:
            connection.askers.remove(ask)

    async def _answer(
        self, connection: "Connection", answer: Awaitable[T], *, is_call: bool = False
    ) -> T:
        """Await an answer. What goes wrong becomes a `ToolError`."""
        try:
            return await answer
        except (asyncio.CancelledError, TimeoutError):
            raise
        except Exception as error:  # of the SDK, pydantic, httpx: all of it is this server's
            problem = connection.to_tool_error(error)
            if isinstance(problem, ConnectionLost):
                await self._disconnect(connection)
            if isinstance(problem, SessionExpired):
                raise SessionExpired(f"{self.name} has forgotten the session", error) from error
            if isinstance(problem, ConnectionLost):
                unknown = "; whether the call had an effect is not known" if is_call else ""
                message = f"{self.name} is gone: {problem.message}{unknown}"
                raise ToolError(message, error) from error
            raise ToolError(f"{self.name} failed: {problem.message}", error) from error

    # --- the connection ---

    async def connect(self) -> "Connection":
        """Return a connection, opened if need be, with a current list of tools."""
        async with self._lock:
            if self.spec.problem:
                raise ToolError(f"{self.name} cannot be used: {self.spec.problem}")
            connection = self._connection
            if connection is not None and connection.is_open:
                if _now() - self._listed_at > _LIST_SECONDS:
                    await self._list_tools(connection)
                return connection
            await self._disconnect()
            connection = await self._open()
            try:
                await self._list_tools(connection)
            except ToolError as error:
                await self._disconnect()
                raise self._failure(error.message.rstrip(".")) from error
            self._failures, self.problem = 0, ""
            return connection

    async def _open(self) -> "Connection":
        if (wait := self._no_try_before - _now()) > 0:
            raise ToolError(
                f"{self.name} cannot be reached: {self.problem}. "
                f"It is tried again in {wait:.0f} seconds at the earliest."
            )
        connection_class = await in_thread(_load_sdk)  # does not count as the server's time
        if self.spec.command:
            await in_thread(self._check_files)
        try:
            async with asyncio.timeout(self.spec.timeout):
                self._connection = await self._try_to_open(connection_class)
        except TimeoutError:
            limit = quantity(self.spec.timeout, "second")
            raise self._failure(f"it did not start within {limit}") from None
        except ToolError as error:
            raise self._failure(error.message) from error
        return self._connection

    async def _try_to_open(self, connection_class: "type[Connection]") -> "Connection":
        """Open a connection. Try again if a server behind a URL has perhaps just been restarted."""
        for count in range(_TRIES):
            connection = connection_class(
                self.spec,
                self._folder,
                self._expire_list,
                elicits=self.elicits,
                browser=self.browser,
            )
            try:
                await connection.open(self._mode)
            except ToolError as error:
                if self.spec.command or not error.retryable or count + 1 == _TRIES:
                    raise
            else:
                return connection
            await asyncio.sleep(_RETRY_SECONDS * 2**count)
        raise AssertionError("unreachable")

    def _failure(self, reason: str) -> ToolError:
        """Note that it cannot be reached, and return the error."""
        self.problem = reason
        self._no_try_before = _now() + min(_PAUSE * 2**self._failures, _MAX_PAUSE)
        self._failures += 1
        self._mode = "auto"
        return ToolError(f"{self.name} cannot be reached: {reason}.")

    def _no_answer(self) -> ToolError:
        limit = quantity(self.spec.timeout, "second")
        return ToolError(f"{self.name} did not answer within {limit}.")

    async def _disconnect(self, lost: "Connection | None" = None) -> None:
        """Close the connection. If `lost` is given, only if it is still the current one."""
        if lost is not None and lost is not self._connection:
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Stop it."""
        await self._disconnect()

    # --- its tools ---

    def _expire_list(self) -> None:
        """Have the tools listed again before the next call: the server says that they changed."""
        self._listed_at = float("-inf")

    async def _list_tools(self, connection: "Connection") -> None:
        try:
            async with asyncio.timeout(self.spec.timeout):
                tools = await self._answer(connection, connection.tools())
        except TimeoutError:
            await self._disconnect()
            raise self._no_answer() from None
        live = await in_thread(self._parse_definitions, tools)
        self._listed_at = _now()
        self._mode = "legacy" if connection.client.session.initialize_result else "auto"
        if live == self._live:
            return
        self._live = live
        if not self.is_known:  # seen for the first time: its tools are accepted as they are
            self.is_known = True
            self.pinned = dict(live)
            self._save()
        self.on_change()

    def _parse_definitions(self, tools: list[Any]) -> dict[str, ToolDefinition]:
        definitions: dict[str, ToolDefinition] = {}
        for tool in tools:
            definition = parse_definition(
                tool.name, tool.description or "", tool.input_schema, self._compile
            )
            definitions.setdefault(definition.name, definition)
        return definitions

    def add_requested_tools(self, names: list[str]) -> None:
        """Offer these tools from now on, even if there are too many to offer all."""
        new = [name for name in names if name not in self.requested_tools]
        if new:
            self.requested_tools = (self.requested_tools + new)[-_MAX_REQUESTED:]
            self._save()
            self.on_change()

    def accept(self) -> None:
        """Accept its tools as they are now, because the person has seen them."""
        if self._live is not None:
            self.pinned = dict(self._live)
            self._save()
            self.on_change()

    # --- the files that its command names ---

    def _hash_files(self) -> dict[str, str]:
        words = (*self.spec.command, *self.spec.env.values()) if self.spec.command else ()
        if not words:
            return {}
        files = mentioned_files(words, self.spec.cwd or self._folder, self._folder)
        return dict(fingerprints(files, self._folder))

    def _check_files(self) -> None:
        """Raise `ToolError` unless the files are as they were accepted."""
        now = self._hash_files()
        if now == self._files:
            return
        if not self.spec.trusted:
            saved = self._pins.read()
            if saved is not None and saved.files.get(self._folder) == now:
                self._files = now  # another process has accepted them meanwhile
                return
        names = sorted({name for name, _ in now.items() ^ self._files.items()})
        command = "trust" if self.spec.trusted else f"mcp test {self.name} --accept"
        raise ToolError(
            f"{self.name} is not started: {one_line(', '.join(names), 200)}, which its command "
            "names, is not what it was when it was accepted. "
            f"A person has to look: `bridle {command}` accepts it."
        )

    def accept_files(self) -> None:
        """Accept the files as they are now, because the person has decided so."""
        if not self.spec.trusted:
            self._files = self._hash_files()
            self._save()

    def _save(self) -> None:
        if not self.is_known and (self.spec.trusted or not self._files):
            return
        saved = self._pins.read()  # has the files of other workspaces, too
        files = {} if saved is None else dict(saved.files)
        files.pop(self._folder, None)
        if self._files and not self.spec.trusted:
            files[self._folder] = self._files
        pinned = PinnedServer(
            server=self.name,
            identity=self.spec.identity,
            tools=tuple(self.pinned.values()),
            requested_tools=tuple(self.requested_tools),
            mode=self._mode,
            files=dict(list(files.items())[-_MAX_FOLDERS:]),
            seen=self.is_known,
        )
        self._pins.write(pinned)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _load_sdk() -> "type[Connection]":
    """Import the SDK, which takes a second: in a thread, so that others need not wait."""
    try:
        from bridle.tools.mcp.connection import Connection
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "MCP servers need the package `mcp`, which is not installed", hint=install_hint("mcp")
        ) from error
    return Connection
