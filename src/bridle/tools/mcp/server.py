"""One server: connected when it is needed, asked again after a while where that does not work.

Knows which definitions of its tools were accepted (its pins), and which it has now. A call that was
sent is never sent again: what its effect was, nobody knows. But for one that was itself refused by
a server which had forgotten the session: that had none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bridle.distribution import install_hint
from bridle.errors import MissingExtra, ToolError
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.mcp.definition import Compile, Definition, define
from bridle.tools.mcp.pins import Pinned, Pins
from bridle.tools.mcp.spec import Spec
from bridle.tools.threads import in_thread
from bridle.workspace.named import fingerprints, named_files
from bridle.workspace.text import one_line, quantity

if TYPE_CHECKING:
    from bridle.tools.mcp.connection import Connection
    from bridle.tools.mcp.signing_in import Visitor

FRESH = 60.0  # seconds for which a list of tools is believed
_TRIES = 3
_AGAIN = 0.5  # seconds between the first two of them
_REST, _LONGEST = 5.0, 60.0  # seconds for which one that failed is let alone
_FOLDERS = 200  # workspaces of which is remembered what its command names there
_NAMED = 200  # tools that are looked for and remembered

T = TypeVar("T")


class Forgetful(ToolError):
    """The server has forgotten the session, and done nothing: it can be asked again."""


class Server:
    """A server, whether it runs or not. `changed` is called when its tools are others."""

    def __init__(self, spec: Spec, folder: str, pins: Pins, compile_schema: Compile) -> None:
        self.spec = spec
        self.elicits = False
        self.visitor: Visitor | None = None  # who can give consent in a browser
        self.changed: Callable[[], None] = lambda: None
        self._folder = folder
        self._pins = pins
        self._compile = compile_schema
        known = pins.read()
        self.is_known = known is not None and known.seen
        self.pinned = {one.name: one for one in known.tools} if known else {}
        self.wanted = list(known.wanted) if known else []
        self._mode = known.mode if known else "auto"
        self.live: dict[str, Definition] | None = None  # those that it has now, once it was asked
        self._listed = 0.0
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self.trouble = spec.problem
        self._files = self._accepted(known)
        if self._files and (known is None or folder not in known.files):
            self._keep()

    @property
    def name(self) -> str:
        """Its name in the settings."""
        return self.spec.name

    @property
    def definitions(self) -> dict[str, Definition]:
        """Its tools: as they are, or, while it was not asked, as they were."""
        return self.pinned if self.live is None else self.live

    @property
    def is_open(self) -> bool:
        """Does it run, as far as is known?"""
        return self._connection is not None and self._connection.is_open

    async def call(
        self, definition: Definition, arguments: dict[str, Any], context: ToolContext[Any]
    ) -> ToolResult:
        """Have one of its tools called. Raise `ToolError`."""
        from bridle.tools.mcp.progress import Progress
        from bridle.tools.mcp.result import to_result

        hear = Progress(context).hear

        async def once() -> Any:
            async with self._asked(context.ask) as connection:
                self._compare(definition)
                name = definition.name
                work = connection.client.call_tool(name, arguments, progress_callback=hear)
                return await self._heard(connection, work, sent=True)

        try:
            found = await once()
        except Forgetful:
            found = await once()
        return await to_result(found, context)

    def _compare(self, judged: Definition) -> None:
        """Is it the tool that was judged? One that a person has just allowed is pinned as it is."""
        now = (self.live or {}).get(judged.name)
        if now is None:
            raise ToolError(f"Not run: {self.name} has no tool {judged.name!r} any more.")
        if now.digest != judged.digest or now.problem:
            raise ToolError(
                f"Not run: {self.name} says something else of this tool than before. "
                "If it is still what you want, call it again: a person is asked, and told why."
            )
        if self.pinned.get(judged.name) != now:
            self.pinned[judged.name] = now
            self._keep()
            self.changed()

    async def ask(self, work: "Callable[[Connection], Awaitable[T]]", ask: Any = None) -> T:
        """Have something asked of it, within its time. Raise `ToolError`."""
        async with self._asked(ask) as connection:
            try:
                async with asyncio.timeout(self.spec.timeout):
                    return await self._heard(connection, work(connection))
            except TimeoutError:
                raise self._slow() from None

    @asynccontextmanager
    async def _asked(self, ask: Any) -> "AsyncIterator[Connection]":
        connection = await self.connected()
        connection.asking.append(ask)
        try:
            yield connection
        finally:
            connection.asking.remove(ask)

    async def _heard(
        self, connection: "Connection", work: Awaitable[T], *, sent: bool = False
    ) -> T:
        from bridle.tools.mcp.connection import Forgotten, Lost

        try:
            return await work
        except (asyncio.CancelledError, TimeoutError):
            raise
        except Exception as error:  # the SDK, pydantic, httpx: whatever, it is this server's
            said = connection.worded(error)
            if isinstance(said, Forgotten):
                await self._drop(connection)
                raise Forgetful(f"{self.name} has forgotten the session", error) from error
            if isinstance(said, Lost):
                await self._drop(connection)
                unknown = "; whether the call had an effect is not known" if sent else ""
                raise ToolError(f"{self.name} is gone: {said.message}{unknown}", error) from error
            raise ToolError(f"{self.name} failed: {said.message}", error) from error

    async def connected(self) -> "Connection":
        """The connection, opened if need be, with a list of tools that is fresh."""
        async with self._lock:
            if self.spec.problem:
                raise ToolError(f"{self.name} cannot be used: {self.spec.problem}")
            connection = self._connection
            if connection is None or not connection.is_open:
                await self._drop()
                return await self._begun()
            if self._now() - self._listed > FRESH:
                await self._list(connection)
            return connection

    async def _begun(self) -> "Connection":
        """A new connection. One that ends with the first question is as good as none."""
        connection = await self._open()
        try:
            await self._list(connection)
        except ToolError as error:
            await self._drop()
            raise self._failed(error.message.rstrip(".")) from error
        self._failures, self.trouble = 0, ""
        return connection

    async def _open(self) -> "Connection":
        if (wait := self._not_before - self._now()) > 0:
            raise ToolError(
                f"{self.name} cannot be reached: {self.trouble}. "
                f"It is tried again in {wait:.0f} seconds at the earliest."
            )
        connection_of = await in_thread(_sdk)  # which is our time, and not the server's
        if self.spec.command:
            await in_thread(self._check_files)
        try:
            async with asyncio.timeout(self.spec.timeout):
                self._connection = await self._tried(connection_of)
        except TimeoutError:
            limit = quantity(self.spec.timeout, "second")
            raise self._failed(f"it did not start within {limit}") from None
        except ToolError as error:
            raise self._failed(error.message) from error
        return self._connection

    async def _tried(self, connection_of: "type[Connection]") -> "Connection":
        """Try, and try again: a server that has just been restarted is there in a moment."""
        for count in range(_TRIES):
            connection = connection_of(
                self.spec,
                self._folder,
                self._overtaken,
                elicits=self.elicits,
                visitor=self.visitor,
            )
            try:
                await connection.open(self._mode)
            except ToolError as error:
                if self.spec.command or not error.retryable or count + 1 == _TRIES:
                    raise
            else:
                return connection
            await asyncio.sleep(_AGAIN * 2**count)
        raise AssertionError("unreachable")

    def _failed(self, why: str) -> ToolError:
        self.trouble = why
        self._not_before = self._now() + min(_REST * 2**self._failures, _LONGEST)
        self._failures += 1
        self._mode = "auto"
        return ToolError(f"{self.name} cannot be reached: {why}.")

    def _slow(self) -> ToolError:
        limit = quantity(self.spec.timeout, "second")
        return ToolError(f"{self.name} did not answer within {limit}.")

    def _overtaken(self) -> None:
        """It says that its tools have changed: look again before the next call."""
        self._listed = float("-inf")

    async def _list(self, connection: "Connection") -> None:
        """Look at its tools, and compare them with what was accepted."""
        try:
            async with asyncio.timeout(self.spec.timeout):
                found = await self._heard(connection, connection.tools())
        except TimeoutError:
            await self._drop()
            raise self._slow() from None
        live = await in_thread(self._defined, found)
        self._listed = self._now()
        self._mode = "legacy" if connection.client.session.initialize_result else "auto"
        if live == self.live:
            return
        self.live = live
        if not self.is_known:  # seen for the first time: from here on they are what they are
            self.is_known = True
            self.pinned = dict(live)
            self._keep()
        self.changed()

    def _defined(self, found: list[Any]) -> dict[str, Definition]:
        tools: dict[str, Definition] = {}
        for one in found:
            made = define(one.name, one.description or "", one.input_schema, self._compile)
            tools.setdefault(made.name, made)
        return tools

    def want(self, names: list[str]) -> None:
        """Offer these from now on, though there are too many to offer all."""
        new = [name for name in names if name not in self.wanted]
        if new:
            self.wanted = (self.wanted + new)[-_NAMED:]
            self._keep()
            self.changed()

    def accept(self) -> None:
        """The person has seen what it has now, and that is what it is."""
        if self.live is not None:
            self.pinned = dict(self.live)
            self._keep()
            self.changed()

    def _accepted(self, known: Pinned | None) -> dict[str, str]:
        """The files that its command names, as they are to be whenever it is started.

        The first look counts, whether or not it is started then: from here on others may write.
        """
        if known is not None and self._folder in known.files and not self.spec.trusted:
            return known.files[self._folder]
        return self._files_now()

    def _files_now(self) -> dict[str, str]:
        words = (*self.spec.command, *self.spec.env.values()) if self.spec.command else ()
        if not words:
            return {}
        found = named_files(words, self.spec.cwd or self._folder, self._folder)
        return dict(fingerprints(found, self._folder))

    def _check_files(self) -> None:
        """Is what it would run what was accepted? Raise `ToolError`."""
        now = self._files_now()
        if now == self._files:
            return
        known = None if self.spec.trusted else self._pins.read()
        if (
            known is not None and known.files.get(self._folder) == now
        ):  # accepted meanwhile, by another process
            self._files = now
            return
        names = sorted({name for name, _ in now.items() ^ self._files.items()})
        again = (
            "`bridle trust` accepts it"
            if self.spec.trusted
            else (f"`bridle mcp test {self.name} --accept` accepts it")
        )
        raise ToolError(
            f"{self.name} is not started: {one_line(', '.join(names), 200)}, which its command "
            f"names, is not what it was when it was accepted. A person has to look: {again}."
        )

    def accept_files(self) -> None:
        """The person has the files that its command names run as they are now."""
        if not self.spec.trusted:
            self._files = self._files_now()
            self._keep()

    def _keep(self) -> None:
        if not self.is_known and (self.spec.trusted or not self._files):
            return
        tools = tuple(self.pinned.values())
        wanted = tuple(self.wanted)
        name, identity = self.name, self.spec.identity
        files = self._all_files()
        self._pins.keep(Pinned(name, identity, tools, wanted, self._mode, files, self.is_known))

    def _all_files(self) -> dict[str, dict[str, str]]:
        """Those of this workspace, with what is known of others; trust remembers its own."""
        known = self._pins.read()
        others = {} if known is None else dict(known.files)
        others.pop(self._folder, None)
        if self._files and not self.spec.trusted:
            others[self._folder] = self._files
        return dict(list(others.items())[-_FOLDERS:])

    async def _drop(self, gone: "Connection | None" = None) -> None:
        """Let go of the connection; where one is named, only while it is still that one."""
        if gone is not None and gone is not self._connection:
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Leave nothing running."""
        await self._drop()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _sdk() -> "type[Connection]":
    """The SDK takes a second to load: in a thread, so that nobody waits who does not need it."""
    try:
        from bridle.tools.mcp.connection import Connection
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "MCP servers need the package `mcp`, which is not installed", hint=install_hint("mcp")
        ) from error
    return Connection
