"""One session at the editor: prompts go in, what happens is told, questions are put.

Follows the session's records as long as it is open, whoever began the turn: another process may
send a prompt, too. A prompt is answered when everything that happened in its turn has been told.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import RequestError, schema
from pydantic import BaseModel

from bridle.agents.acp.updates import to_stop_reason, to_wire
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.errors import ModelRefused, SessionClosed, StoreFailed
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ChildEnded,
    ChildStarted,
    Event,
    ModeChanged,
    PromptReceived,
    ResponseCompleted,
    TitleChanged,
    ToolCallReady,
    TurnEnded,
    TurnParked,
    UsageReported,
)
from bridle.messages import File, Image, Part, Text, ToolCall, ToolOutput, to_parts
from bridle.policy import Mode
from bridle.protocols.provider import Provider
from bridle.protocols.session import TurnResult
from bridle.protocols.store import Record
from bridle.server.acp import options
from bridle.server.acp.file_changes import file_changes
from bridle.server.acp.host import EditorHost
from bridle.server.acp.jsonrpc import Peer
from bridle.server.acp.permissions import ChildApprovals, PermissionRequests
from bridle.server.acp.replay import read_replay, session_info_update
from bridle.server.acp.updates import (
    Calls,
    message_update,
    notification,
    prompt_updates,
    turn_usage,
    usage_update,
)
from bridle.workspace.fs import is_below
from bridle.workspace.text import one_line

log = logging.getLogger(__name__)

_STOPS: dict[str, schema.StopReason] = {"max_tokens": "max_tokens", "refusal": "refusal"}


class EditorSession:
    """An open session, and the editor that shows it."""

    def __init__(self, peer: Peer, engine: Engine, session: Session, host: EditorHost) -> None:
        self.session = session
        self._peer = peer
        self._engine = engine
        self._host = host
        self._calls = Calls(engine.parts.workspace.root)
        self._questions = PermissionRequests(peer, session.id, host.person, self._show_asked)
        self._children = ChildApprovals(engine, self._questions, self._tell_result)
        self._last = session.seq
        self._told: set[str] = set()  # calls that the editor knows
        self._ended = 0  # the newest turn whose end has been told
        self._stopped = ""  # why the model stopped last
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._telling = asyncio.Event()  # is somebody telling?
        self._models: list[Provider] = []  # chosen here, and to be closed here

    @property
    def id(self) -> str:
        """The session's."""
        return self.session.id

    @property
    def root(self) -> str:
        """The folder that it works on."""
        return self._engine.parts.workspace.root

    def state(self) -> dict[str, Any]:
        """What can be chosen, and what is: for the answer that names the session."""
        modes = options.mode_state(self.session.mode, self._modes())
        return {"modes": to_wire(modes), "configOptions": [to_wire(one) for one in self.settings()]}

    def settings(self) -> list[options.Setting]:
        """Mode and model, as settings."""
        models = self._host.models() if self._engine.parts.agent is None else ()
        return options.settings(self.session.mode, self._modes(), self.session.model, models)

    def _modes(self) -> tuple[Mode, ...]:
        here = self.session.mode
        return (*self._host.modes, *(() if here in self._host.modes else (here,)))

    async def replay(self) -> None:
        """Tell what was said so far."""
        last = self._last
        past = await asyncio.to_thread(read_replay, self._engine.store.read(self.id), last)
        for update in past.updates(self.root):
            await self.tell(update)
        self._told = {call.id for one in past.messages for call in one.tool_calls}

    async def rest(self) -> None:
        """Tell nothing for the moment: it will be told from the beginning."""
        if self._following is not None:
            self._telling.clear()
            self._following.cancel()
            await asyncio.wait([self._following])
        self._last = self.session.seq

    async def begin(self) -> None:
        """Tell what happens from here on; what was left behind goes on."""
        await self.tell(options.commands())
        if self.session.title:
            await self.tell(session_info_update(self.session.title))
        await self._tell_use()
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(_note)
        self._telling.set()
        if self.session.is_parked or (self.session.history.waiting and not self.session.is_busy):
            await self.session.resume()
        for asked in list(self.session.history.pending.values()):  # they were put before
            self._questions.put(self.session, asked)

    async def prompt(self, parts: tuple[Part, ...]) -> schema.PromptResponse:
        """One prompt, to its end. Raise `RequestError` where the turn failed."""
        await self._telling.wait()  # else its end could be seen before what happened
        turn = await self.session.send(parts, when="queue", by=self._host.person)
        try:
            result = await self.session.wait(turn)
            if not isinstance(result.error, StoreFailed):  # then its end was never written
                await self._seen(turn)
        except asyncio.CancelledError:
            await self.session.interrupt(by=self._host.person, turn=turn)
            raise
        return await self._response(result)

    async def interrupt(self) -> None:
        """The person has had enough of it."""
        await self.session.interrupt(by=self._host.person)

    async def choose_mode(self, mode: str) -> None:
        """Have that mode from now on. Raise `RequestError`."""
        found = next((one for one in self._host.modes if one == mode), None)
        if found is None:
            offered = ", ".join(self._host.modes)
            raise RequestError(-32602, f"there is no mode {mode!r} here; there are {offered}")
        await self.session.set_mode(found, by=self._host.person)
        if not self.session.seq:  # it is recorded, and told, with the first prompt
            await self._tell_choices()

    async def choose_model(self, model: str) -> None:
        """Have that model from the next turn on. Raise `RequestError`."""
        if self._engine.parts.agent is not None:
            raise RequestError(
                -32602, "another agent carries this session, with a model of its own"
            )
        provider = await asyncio.to_thread(self._host.provider, model)
        self._models.append(provider)
        self.session.configure(provider=provider)
        await self._tell_choices()

    async def obey(self, word: str, rest: str) -> None:
        """Do what a command says. Raise `AgentError`."""
        said = "nothing was allowed for longer"
        if word == "compact":
            shorter = await self.session.compact(by=self._host.person)
            said = "the conversation is shorter now" if shorter else "there is nothing to shorten"
        elif word == "rename":
            await self.session.rename(rest)
            said = "renamed"
        elif self.session.grants():
            await self.session.revoke(by=self._host.person)
            said = "what was allowed for this session is asked about again"
        await self.tell(message_update(said))

    async def tell(self, update: BaseModel) -> None:
        """Say it to the editor."""
        await self._peer.notify("session/update", notification(self.id, update))

    async def close(self) -> None:
        """Let the session go: a turn that waits for a person is parked, any other is ended."""
        await self._questions.close()
        await self.session.close()
        if self._following is not None:
            await asyncio.wait([self._following])
        await self._children.close()
        for one in self._models:
            await one.close()

    async def _follow(self) -> None:
        """Tell everything until the session is closed."""
        async with aclosing(self.session.subscribe(self._last)) as records:
            async for record in records:
                self._last = record.seq
                await self._take(record)
        self._ended = 1 << 62
        self._news.set()

    async def _take(self, record: Record) -> None:
        event = record.event
        for update in await self._updates(event):
            await self.tell(update)
        match event:
            case ApprovalAsked():
                self._questions.put(self.session, event)
            case ApprovalAnswered(shown=shown):
                self._questions.withdraw(shown)
            case ChildStarted(session_id=child):
                self._children.watch(child)
            case ChildEnded(session_id=child):
                await self._children.leave(child)
            case ResponseCompleted(stop_reason=reason):
                self._stopped = reason
            case TurnEnded(turn=turn) | TurnParked(turn=turn):
                await self._questions.close()
                self._ended = turn
                self._news.set()

    async def _updates(self, event: Event) -> list[BaseModel]:
        match event:
            case ToolCallReady(call=call):
                return [await self._announced(call)]
            case PromptReceived(letter=letter) if letter:  # the editor shows its own prompts
                return prompt_updates(event.parts or to_parts(event.content))
            case ModeChanged():
                await self._tell_choices()
            case TitleChanged(title=title):
                return [session_info_update(title)]
            case UsageReported():
                await self._tell_use()
            case _:
                found = self._calls.update(event)
                return [found] if found is not None else []
        return []

    async def _announced(self, call: ToolCall) -> BaseModel:
        """The call, with what it would change, for those who have not heard of it."""
        found = await asyncio.to_thread(file_changes, call, self._engine.parts.workspace)
        known = call.id in self._told
        self._told.add(call.id)
        return self._calls.refresh(call, found) if known else self._calls.start(call, found)

    async def _show_asked(self, asked: ApprovalAsked) -> schema.ToolCallUpdate:
        """Have the editor show what is asked about, as it would be now."""
        update = await self._announced(asked.call)
        await self.tell(update)
        fields = {name: getattr(update, name) for name in update.model_fields_set}
        fields.pop("session_update", None)
        return schema.ToolCallUpdate(**fields)

    async def _tell_result(self, output: ToolOutput) -> None:
        """What came of a task's call that was asked about here."""
        await self.tell(self._calls.end(output))

    async def _tell_choices(self) -> None:
        mode = schema.CurrentModeUpdate(
            session_update="current_mode_update", current_mode_id=self.session.mode
        )
        settings = schema.ConfigOptionUpdate(
            session_update="config_option_update", config_options=self.settings()
        )
        for update in (mode, settings):
            await self.tell(update)

    async def _tell_use(self) -> None:
        found = usage_update(self.session.metrics, self.session.window)
        if found is not None and self.session.metrics.invocations:
            await self.tell(found)

    async def _seen(self, turn: int) -> None:
        """Until the end of that turn has been told."""
        while self._ended < turn and self._following is not None and not self._following.done():
            self._news.clear()
            waiting = asyncio.ensure_future(self._news.wait())
            try:
                both = (waiting, self._following)
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()

    async def _response(self, result: TurnResult) -> schema.PromptResponse:
        """How the turn ended. What failed is an error, with the sentence for a person."""
        if isinstance(result.error, ModelRefused):
            stop: schema.StopReason = "refusal"
            return schema.PromptResponse(stop_reason=stop, usage=turn_usage(result.metrics))
        if result.reason == "failed":
            if result.error is not None:
                raise result.error
            raise SessionClosed(result.detail or "the turn failed")
        stop = to_stop_reason(result.reason)
        if result.reason == "done":
            stop = _STOPS.get(self._stopped, "end_turn")
        elif result.reason == "parked":
            stop = "cancelled"
        elif result.reason != "interrupted" and result.detail:
            await self.tell(message_update(f"\n\n[stopped: {result.detail}]"))
        return schema.PromptResponse(stop_reason=stop, usage=turn_usage(result.metrics))


def _note(following: "asyncio.Task[None]") -> None:
    """What broke it is said once, here."""
    if not following.cancelled() and (error := following.exception()) is not None:
        log.error("a session can be told no longer", exc_info=error)


_MENTION = 500  # characters of a name or an address


def parse_blocks(blocks: Sequence[Any], root: str) -> tuple[Part, ...]:
    """The parts of a prompt. Raise `RequestError` for what no model here takes."""
    return tuple(_part(one, root) for one in blocks)


def _part(block: Any, root: str) -> Part:
    match block:
        case schema.TextContentBlock():
            return Text(block.text)
        case schema.ImageContentBlock():
            return Image(block.mime_type, block.data)
        case schema.ResourceContentBlock():
            return Text(_mention(block.uri, block.name, root))
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as found):
            where = _mention(found.uri, "", root)
            return Text(f"\n<file name={where!r}>\n{found.text}\n</file>\n")
        case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as found):
            kind = found.mime_type or "application/octet-stream"
            if kind.startswith("image/"):
                return Image(kind, found.blob)
            return File(kind, found.blob, one_line(found.uri.rpartition("/")[2], _MENTION))
    raise RequestError(-32602, f"a prompt cannot hold {getattr(block, 'type', 'that')} here")


def _mention(uri: str, name: str, root: str) -> str:
    """A file of the workspace by its path there; anything else by its address."""
    found = urlsplit(uri)
    if found.scheme == "file":
        path = unquote(found.path)
        inside = os.path.relpath(path, root) if is_below(path, root) else path
        return one_line(inside, _MENTION)
    said = one_line(uri, _MENTION)
    return f"[{one_line(name, _MENTION)}]({said})" if name else said


def parse_command(parts: Sequence[Part]) -> tuple[str, str]:
    """The command that a prompt is, such as `/compact`, and what is said behind it; or nothing."""
    first = parts[0].text.strip() if parts and isinstance(parts[0], Text) else ""
    if len(parts) != 1 or not first.startswith("/"):
        return "", ""
    word, _, rest = first.partition(" ")
    return word[1:], rest.strip()
