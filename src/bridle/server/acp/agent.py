"""What an editor can ask of bridle: sessions begun, taken up, listed, forked; prompts; choices.

Each method is a model of the library's schema and a few lines. Owns the engines, one for each
place, and the conversations, one for each open session, and closes them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, schema
from pydantic import BaseModel, ValidationError

from bridle import __version__
from bridle.agents.acp.updates import to_wire
from bridle.engine.engine import Engine, new_id
from bridle.errors import SessionClosed, SessionLocked, UnknownSession
from bridle.server.acp.host import EditorHost, EditorMcpServer, EngineKey
from bridle.server.acp.jsonrpc import JsonLines, Peer, Reply
from bridle.server.acp.options import COMMANDS, MODE, MODEL
from bridle.server.acp.session import EditorSession, parse_blocks, parse_command
from bridle.stores.reader import SessionFolder
from bridle.stores.transfer import delete, fork
from bridle.workspace.text import one_line

Asked = Callable[[Any], Awaitable[Any]]


class EditorAgent:
    """bridle, as one editor sees it."""

    def __init__(self, lines: JsonLines, host: EditorHost) -> None:
        self._host = host
        self._peer = Peer(lines, self._asked, self._told)
        self._engines = Engines(host)
        self._conversations: dict[str, EditorSession] = {}
        self._methods: dict[str, tuple[type[BaseModel], Asked]] = {
            "initialize": (schema.InitializeRequest, self._initialize),
            "authenticate": (schema.AuthenticateRequest, self._authenticate),
            "session/new": (schema.NewSessionRequest, self._new),
            "session/load": (schema.LoadSessionRequest, self._load),
            "session/resume": (schema.ResumeSessionRequest, self._resume),
            "session/fork": (schema.ForkSessionRequest, self._fork),
            "session/list": (schema.ListSessionsRequest, self._list),
            "session/close": (schema.CloseSessionRequest, self._close),
            "session/delete": (schema.DeleteSessionRequest, self._delete),
            "session/prompt": (schema.PromptRequest, self._prompt),
            "session/set_mode": (schema.SetSessionModeRequest, self._set_mode),
            "session/set_config_option": (
                schema.SetSessionConfigOptionSelectRequest,
                self._set_option,
            ),
        }

    async def serve(self) -> None:
        """Until the editor has nothing more to say."""
        await self._peer.serve()

    async def close(self) -> None:
        """Park what waits for a person, interrupt the rest, and leave nothing running."""
        self._peer.hurry()
        try:
            closing = [one.close() for one in self._conversations.values()]
            await asyncio.gather(*closing, return_exceptions=True)
            await self._engines.close()
        finally:
            await self._peer.close()

    async def _asked(self, method: str, params: Any) -> Any:
        if method not in self._methods:
            raise RequestError.method_not_found(method)
        model, answer = self._methods[method]
        try:
            request = model.model_validate({} if params is None else params)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
            words = f"{method} cannot be understood: {where or 'its parameters'}"
            raise RequestError(-32602, words) from error
        return await answer(request)

    async def _told(self, method: str, params: Any) -> None:
        if method == "session/cancel":
            found = schema.CancelNotification.model_validate(params)
            if (one := self._conversations.get(found.session_id)) is not None:
                await one.interrupt()

    async def _initialize(self, request: schema.InitializeRequest) -> dict[str, Any]:
        can = schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            mcp_capabilities=schema.McpCapabilities(http=True),
            session_capabilities=schema.SessionCapabilities(
                list=schema.SessionListCapabilities(),
                delete=schema.SessionDeleteCapabilities(),
                additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
                fork=schema.SessionForkCapabilities(),
                resume=schema.SessionResumeCapabilities(),
                close=schema.SessionCloseCapabilities(),
            ),
        )
        me = schema.Implementation(name="bridle", title="bridle", version=__version__)
        return to_wire(
            schema.InitializeResponse(
                protocol_version=PROTOCOL_VERSION,
                agent_capabilities=can,
                agent_info=me,
                auth_methods=[],
            )
        )

    async def _authenticate(self, request: schema.AuthenticateRequest) -> dict[str, Any]:
        raise RequestError(-32602, "no login is needed; keys are set as for `bridle run`")

    async def _new(self, request: schema.NewSessionRequest) -> Reply:
        engine = await self._engines.at(place_of(request))
        one = self._opened(EditorSession(self._peer, engine, await engine.session(), self._host))
        return Reply({"sessionId": one.id, **one.state()}, one.begin)

    async def _load(self, request: schema.LoadSessionRequest) -> Reply:
        one = await self._taken_up(request, request.session_id)
        await one.replay()
        return Reply(one.state(), one.begin)

    async def _resume(self, request: schema.ResumeSessionRequest) -> Reply:
        one = await self._taken_up(request, request.session_id)
        return Reply(one.state(), one.begin)

    async def _fork(self, request: schema.ForkSessionRequest) -> Reply:
        name = new_id()
        await asyncio.to_thread(fork, self._host.folder, request.session_id, None, name)
        one = await self._taken_up(request, name)
        return Reply({"sessionId": one.id, **one.state()}, one.begin)

    async def _list(self, request: schema.ListSessionsRequest) -> dict[str, Any]:
        found = await asyncio.to_thread(
            list_sessions, self._host.folder, request.cwd or "", request.cursor or ""
        )
        return to_wire(found)

    async def _close(self, request: schema.CloseSessionRequest) -> dict[str, Any]:
        await self._let_go(self._known(request.session_id))
        return {}

    async def _delete(self, request: schema.DeleteSessionRequest) -> dict[str, Any]:
        if (one := self._conversations.get(request.session_id)) is not None:
            await self._let_go(one)
        await asyncio.to_thread(delete, self._host.folder, request.session_id)
        return {}

    async def _prompt(self, request: schema.PromptRequest) -> dict[str, Any]:
        one = self._known(request.session_id)
        parts = parse_blocks(request.prompt, one.root)
        word, rest = parse_command(parts)
        if word in COMMANDS:
            await one.obey(word, rest)
            return to_wire(schema.PromptResponse(stop_reason="end_turn"))
        return to_wire(await one.prompt(parts))

    async def _set_mode(self, request: schema.SetSessionModeRequest) -> dict[str, Any]:
        await self._known(request.session_id).choose_mode(request.mode_id)
        return {}

    async def _set_option(
        self, request: schema.SetSessionConfigOptionSelectRequest
    ) -> dict[str, Any]:
        one = self._known(request.session_id)
        if request.config_id == MODE:
            await one.choose_mode(request.value)
        elif request.config_id == MODEL:
            await one.choose_model(request.value)
        else:
            raise RequestError(-32602, f"there is no setting {request.config_id!r}")
        return {"configOptions": [to_wire(found) for found in one.settings()]}

    def _known(self, session_id: str) -> EditorSession:
        one = self._conversations.get(session_id)
        if one is None or one.session.is_closed:
            raise UnknownSession(
                f"the session {session_id!r} is not open here", hint="Load it, or begin another."
            )
        return one

    async def _taken_up(self, request: Any, session_id: str) -> EditorSession:
        """The session, held by us from now on. Raise `UnknownSession`, `SessionLocked`."""
        if (before := self._conversations.get(session_id)) is not None:
            await before.rest()
            return before
        if not await asyncio.to_thread(self._is_there, session_id):
            raise UnknownSession(f"there is no session {session_id!r}")
        agent = await asyncio.to_thread(self._host.carrier, session_id)
        engine = await self._engines.at(place_of(request, agent))
        try:
            session = await engine.session(session_id)
        except SessionLocked as error:
            error.hint = "Close it there, or look at it with `bridle sessions show`."
            raise
        return self._opened(EditorSession(self._peer, engine, session, self._host))

    def _is_there(self, session_id: str) -> bool:
        return Path(self._host.folder.path(session_id)).is_file()

    def _opened(self, one: EditorSession) -> EditorSession:
        self._conversations[one.id] = one
        return one

    async def _let_go(self, one: EditorSession) -> None:
        self._conversations.pop(one.id, None)
        await one.close()


_PAGE = 50


class Engines:
    """The engines that are open."""

    def __init__(self, host: EditorHost) -> None:
        self._host = host
        self._engines: dict[EngineKey, Engine] = {}
        self._making = asyncio.Lock()
        self._closed = False

    async def at(self, place: EngineKey) -> Engine:
        """The engine of that place. Raise `ConfigError`, `RequestError`."""
        async with self._making:
            if self._closed:
                raise SessionClosed("bridle is ending, and begins nothing new")
            if place not in self._engines:
                for folder in (place.workspace, *place.also):
                    await asyncio.to_thread(_check, folder)
                self._engines[place] = await asyncio.to_thread(self._host.engine, place)
            return self._engines[place]

    async def close(self) -> None:
        """Close all of them, and their sessions."""
        async with self._making:
            self._closed = True
            for engine in self._engines.values():
                await engine.close()
            self._engines.clear()


def _check(folder: str) -> None:
    if not Path(folder).is_absolute():
        raise RequestError(-32602, f"{folder!r} is not a whole path")
    if not Path(folder).is_dir():
        raise RequestError(-32602, f"there is no folder {folder!r}")


def place_of(request: Any, agent: str = "") -> EngineKey:
    """Where the editor wants a session to be."""
    also = tuple(request.additional_directories or ())
    servers = tuple(map(_server, request.mcp_servers or ()))
    return EngineKey(os.path.normpath(request.cwd), also, servers, agent)


def _server(given: Any) -> EditorMcpServer:
    if isinstance(given, schema.McpServerStdio):
        env = tuple((one.name, one.value) for one in given.env or ())
        return EditorMcpServer(given.name, (given.command, *(given.args or ())), env)
    if isinstance(given, schema.HttpMcpServer):
        headers = tuple((one.name, one.value) for one in given.headers or ())
        return EditorMcpServer(given.name, url=given.url, headers=headers)
    raise RequestError(
        -32602, "an MCP server is reached as a program, or over HTTP; no other way is taken here"
    )


def list_sessions(folder: SessionFolder, cwd: str, cursor: str) -> schema.ListSessionsResponse:
    """One page of them. Raise `RequestError` for a cursor that was never handed out."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RequestError(-32602, f"{one_line(cursor, 40)!r} is no cursor of a list")
    wanted = os.path.realpath(cwd) if cwd else ""
    found = [
        one
        for one in folder.sessions()
        if one.workspace and wanted in ("", os.path.realpath(one.workspace))
    ]
    start = int(cursor or 0)
    page = [
        schema.SessionInfo(
            session_id=one.id,
            cwd=one.workspace,
            title=one_line(one.title) or None,
            updated_at=one.updated_at or None,
        )
        for one in found[start : start + _PAGE]
    ]
    more = str(start + _PAGE) if len(found) > start + _PAGE else None
    return schema.ListSessionsResponse(sessions=page, next_cursor=more)
