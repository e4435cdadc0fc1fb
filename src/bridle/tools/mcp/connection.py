"""One connection to one server, by the official SDK, owned by one task from its start to its end.

The SDK wants to be opened and closed by the same task; calls come from others. Loaded with the
first server that is needed: the SDK takes a second.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from pydantic import ValidationError

from bridle.distribution import version
from bridle.errors import ToolError
from bridle.tools.mcp.eliciting import Ask, elicit
from bridle.tools.mcp.guarded import FORGOTTEN
from bridle.tools.mcp.pipe import Pipe
from bridle.tools.mcp.spec import Spec
from bridle.tools.mcp.web import Web
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.tools.mcp.signing_in import Visitor

_PARTING = 4.0  # seconds for an orderly end
_PAGES = 200
_LAST = 600  # characters of what a server wrote last
_MOST = 20_000  # tools, resources or prompts of one server
_log = logging.getLogger("mcp")
_log.addHandler(logging.NullHandler())  # nobody asked for its lines on their terminal


class Lost(ToolError):
    """The connection is not there any more; what was under way may have happened."""

    retryable = True  # to connect, that is; a call is not sent again


class Forgotten(Lost):
    """It refused this very request, of a session that it does not know: it has done nothing."""


class Connection:
    """Open from `open` to `close`, or until the server is gone: then it is not opened again."""

    def __init__(
        self,
        spec: Spec,
        folder: str,
        on_change: Callable[[], None] = lambda: None,
        *,
        elicits: bool = False,
        visitor: "Visitor | None" = None,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._elicits = elicits
        self._way: Pipe | Web = Pipe(spec, folder) if spec.command else Web(spec, visitor)
        self._way.on_change = on_change
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self.asking: list[Ask | None] = []  # of the calls that are under way

    @property
    def is_open(self) -> bool:
        """Can something be asked?"""
        if self._client is None or self._task is None or self._way.lost:
            return False
        return not self._task.done()

    @property
    def client(self) -> Client:
        """The SDK's client. Raise `Lost`."""
        if self._client is None or not self.is_open:
            raise Lost(self._why("it is not connected"))
        return self._client

    async def open(self, mode: str = "auto") -> None:
        """Connect, and be told by `ToolError` where that does not work. The caller has a clock."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._own(ready, mode))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let go; nothing of it runs any more afterwards."""
        self._stop.set()
        if self._task is None:
            return
        if self._client is None:
            self._task.cancel()  # it is still being opened
        await asyncio.wait([self._task], timeout=_PARTING)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_PARTING)

    async def _own(self, ready: "asyncio.Future[None]", mode: str) -> None:
        try:
            async with self._made(mode) as client:
                self._client = client
                if not ready.done():
                    ready.set_result(None)
                await self._until_over()
        except asyncio.CancelledError as error:
            self._error = error
            if not ready.done():
                ready.cancel()
        except (Exception, BaseExceptionGroup) as error:  # the SDK raises groups of what happened
            self._error = error
            if not ready.done():
                ready.set_exception(self.worded(error))
        finally:
            self._client = None
            if not ready.done():
                ready.set_exception(Lost(self._why("it has ended")))

    async def _until_over(self) -> None:
        """Until it is closed from here, or the server has ended."""
        guard = self._way.guard
        assert guard is not None
        waits = [asyncio.ensure_future(one.wait()) for one in (self._stop, guard.over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    def _made(self, mode: str) -> Client:
        return Client(
            self._way.open(),
            mode=mode,
            cache=None,
            list_roots_callback=self._roots,
            elicitation_callback=self._elicit if self._elicits else None,
            client_info=types.Implementation(name="bridle", version=version()),
        )

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        folder = Path(self._folder)
        root = types.Root.model_validate({"uri": folder.as_uri(), "name": folder.name})
        return types.ListRootsResult(roots=[root])

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Asked of the person behind the only call that is under way; otherwise: no."""
        ask = self.asking[0] if len(self.asking) == 1 else None
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        schema = dict(params.requested_schema)
        found = await elicit(self._spec.name, params.message, schema, ask)
        if found is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=found)

    async def tools(self) -> list[types.Tool]:
        """Every tool that it lists, page by page."""
        found: list[types.Tool] = []
        async for page in _pages(self.client.list_tools):
            found += page.tools
            if len(found) >= _MOST:
                break
        return found[:_MOST]

    async def resources(self) -> list[types.Resource | types.ResourceTemplate]:
        """Every resource that it lists, and every pattern of them."""
        found: list[types.Resource | types.ResourceTemplate] = []
        if self.client.server_capabilities.resources is None:
            return found
        async for page in _pages(self.client.list_resources):
            found += page.resources
        try:
            async for more in _pages(self.client.list_resource_templates):
                found += more.resource_templates
        except MCPError:
            _log.debug("no patterns of resources", exc_info=True)  # many servers know of none
        return found[:_MOST]

    async def prompts(self) -> list[types.Prompt]:
        """Every prompt that it lists."""
        found: list[types.Prompt] = []
        if self.client.server_capabilities.prompts is None:
            return found
        async for page in _pages(self.client.list_prompts):
            found += page.prompts
        return found[:_MOST]

    def worded(self, error: BaseException) -> ToolError:
        """What went wrong, for a person and the model: one sentence, no vendor's class."""
        leaf = _leaf(error)
        if isinstance(leaf, ToolError):
            return leaf
        if self._spec.tokens and (refused := _unsigned(leaf)) is not None:
            return refused
        if isinstance(leaf, MCPError) and leaf.error.data is FORGOTTEN:
            return Forgotten(self._why(""), leaf)
        if isinstance(leaf, MCPError) and leaf.code != types.CONNECTION_CLOSED:
            said = f"it said: {one_line(leaf.message, 400)}"
            trouble = f"{self._way.trouble}; " if self._way.trouble else ""
            return ToolError(f"{trouble}{said}", leaf)
        if self.is_open and not isinstance(leaf, MCPError):
            return ToolError(f"its answer cannot be read: {_unread(leaf)}", leaf)
        if isinstance(leaf, MCPError):
            return Lost(self._why("it has ended"), leaf)
        return Lost(self._why(_plain(leaf)), leaf)

    def _why(self, usual: str) -> str:
        guard = self._way.guard
        said = "it sent more messages than anybody could use" if guard and guard.flooded else ""
        said = said or self._way.trouble or usual
        words = one_line(_last_lines(self._way.last_words), 800)
        return f"{said}; its last words: {words}" if words else said


def _last_lines(text: str) -> str:
    """Whole lines from the end, as many as fit; a very long last one from its beginning."""
    kept: list[str] = []
    for line in reversed(text.strip().splitlines()):
        if kept and sum(map(len, kept)) + len(line) > _LAST:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


async def _pages(ask: Callable[..., Any]) -> Any:
    """The pages of a list, until there is none, or a server goes round in circles."""
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_PAGES):
        page = await ask(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            return
        seen.add(cursor)


def _unsigned(error: BaseException) -> ToolError | None:
    """Why signing in did not work, where it was that."""
    from mcp.client.auth.exceptions import OAuthFlowError

    if not isinstance(error, OAuthFlowError):
        return None
    return ToolError(f"signing in did not work: {one_line(str(error), 300)}", error)


def _unread(error: BaseException) -> str:
    """What was wrong with an answer, without the words of whoever found it."""
    if isinstance(error, ValidationError) and (found := error.errors()):
        place = ".".join(map(str, found[0]["loc"]))
        return one_line(f"{place}: {found[0]['msg']}", 400)
    return one_line(str(error), 400)


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _plain(error: BaseException) -> str:
    said = one_line(str(error), 300)
    kind = type(error).__name__
    if kind in ("ConnectError", "ConnectTimeout", "ConnectionRefusedError"):
        return f"nobody answers there ({said or kind})"
    return f"the connection failed: {said or kind}"
