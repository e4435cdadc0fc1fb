"""What can be done to a session beside prompts and answers: begun, changed, ended, forked, deleted.

Each is a verb of the session itself, which is taken up for it. Where another process holds it, only
an interrupt can be handed on; everything else says that the session is in use there.
"""

import asyncio
import re

from bridle.engine.engine import new_id
from bridle.engine.history import as_of
from bridle.engine.session import Session
from bridle.errors import SessionLocked
from bridle.events import InterruptRequested, ModeChanged, TitleChanged
from bridle.policy import Mode
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import NewSession, ResumeOptions, SessionLimits, SessionUpdate
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import new_message_id
from bridle.service.engine_pool import EngineSpec, previous_run
from bridle.service.inbox_client import InboxClient
from bridle.service.open_sessions import OnChange, OpenSessions, resume_session
from bridle.service.session_info import summarize_log
from bridle.service.session_limits import narrowed
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.transfer import delete, fork

_PATIENCE = 2.0  # seconds that an interrupt is waited for; it goes on all the same
_LONGEST = 500  # characters of a title or a tag
_FORK = re.compile(r" \(fork(?: (\d+))?\)$")


def fork_title(title: str) -> str:
    """What a fork of a session with that title is called: `… (fork)`, `… (fork 2)`."""
    if not title:
        return ""
    number = int(found[1] or 1) + 1 if (found := _FORK.search(title)) else 1
    ending = f" (fork {number})" if number > 1 else " (fork)"
    return _FORK.sub("", title)[: _LONGEST - len(ending)] + ending


class Verbs:
    """Does them."""

    def __init__(
        self, ground: WorkspaceScope, holding: OpenSessions, posting: InboxClient, tell: OnChange
    ) -> None:
        self._ground = ground
        self._holding = holding
        self._posting = posting
        self._tell = tell
        self._leaving: set[asyncio.Task[None]] = set()

    async def create(self, wanted: NewSession, by: str) -> Session:
        """A new session, whose first record is on disk. Raise `UnknownWorkspace`."""
        self._holding.check_taking()
        root = await asyncio.to_thread(self._ground.workspace, wanted.workspace_path)
        title = _text(wanted.title, "title")
        session = await self._holding.begin(
            EngineSpec(root, wanted.provider, wanted.model, wanted.agent)
        )
        if wanted.mode is not None:
            session.emit_with_first_prompt(ModeChanged(wanted.mode, by, "chosen at the start"))
            session.history.mode = wanted.mode
        if title:
            session.emit_with_first_prompt(TitleChanged(title))
        await session.begin()
        return session

    async def resume(self, session_id: str, how: ResumeOptions, by: str) -> None:
        """Take it up, perhaps elsewhere or with another model; what was left behind goes on."""
        wanted = await self._wanted(session_id, how.workspace_path, _given(how))
        async with self._holding.use(session_id, wanted) as session:
            await session.begin()
            await resume_session(session)

    async def change(self, session_id: str, change: SessionUpdate, by: str) -> None:
        """Another title, tags, mode, model or agent. Raise `SessionBusy`, `SessionLocked`."""
        tags = None if change.tags is None else [_text(one, "tag") for one in change.tags]
        title = None if change.title is None else _text(change.title, "title")
        if title == "" or (tags is not None and not all(tags)):
            raise BadRequest("a title or a tag is empty", hint="Leave it out, or say some words.")
        given = _given(change)
        wanted = await self._wanted(session_id, "", given) if given else None
        async with self._holding.use(session_id, wanted) as session:
            if wanted is not None:
                await session.begin()
            if title is not None and title != session.title:
                await session.rename(title)
            if tags is not None:
                await session.tag(tags)
            if change.mode is not None:
                await session.set_mode(change.mode, by=by)
        self._tell(session_id, "changed")

    async def interrupt(self, session_id: str, by: str) -> None:
        """End the turn that runs or is parked; nothing to end is no error."""
        self._holding.check_taking()
        if (session := self._holding.get_open(session_id)) is not None:
            await asyncio.to_thread(self._ground.known, session_id)
            await self._stop(session, by)
        elif await self._posting.elsewhere(session_id):
            await self._stop_there(session_id, by)
        elif await asyncio.to_thread(self._is_left, session_id):
            try:
                async with self._holding.use(session_id) as taken:
                    await self._stop(taken, by)
            except SessionLocked:
                await self._stop_there(session_id, by)

    async def rewind(self, session_id: str, to: int, by: str) -> None:
        """Make the conversation again what it was at a record."""
        async with self._holding.use(session_id) as session:
            await session.rewind(to, by=by)

    async def compact(self, session_id: str, by: str) -> None:
        """Shorten the conversation now."""
        async with self._holding.use(session_id) as session:
            await session.compact(by=by)

    async def set_budget(self, session_id: str, limits: SessionLimits, by: str) -> None:
        """Narrower limits, from the next turn on."""
        async with self._holding.use(session_id) as session:
            await session.lower_limits(narrowed(session.limits, limits), by=by)

    async def fork(self, session_id: str, at: int | None, title: str) -> str:
        """A new session that begins as this one did; its id."""
        self._holding.check_taking()
        if at is not None and at < 1:
            raise BadRequest(f"there is no record {at}", hint="Records are numbered from 1.")
        await asyncio.to_thread(self._ground.known, session_id)
        if self._holding.get_open(session_id) is not None:
            async with self._holding.use(session_id) as session:
                await session.begin()  # what was said so far is to be in it
        name = new_id()
        await asyncio.to_thread(fork, self._ground.folder, session_id, at, name, title=title)
        self._tell(name, "changed")
        return name

    async def mode_at(self, session_id: str, at: int) -> Mode | None:
        """The mode of its own that it had at a record; auto ends with a process, and is none."""
        await asyncio.to_thread(self._ground.known, session_id)
        then = await asyncio.to_thread(lambda: as_of(self._ground.folder.read(session_id), at))
        return then.mode if then.mode and then.mode != "auto" else None

    async def delete(self, session_id: str) -> None:
        """Remove it for good. Raise `SessionBusy`, `SessionLocked`."""
        self._holding.check_taking()
        await asyncio.to_thread(self._ground.known, session_id)
        await self._holding.let_go(session_id)
        await asyncio.to_thread(delete, self._ground.folder, session_id)
        self._tell(session_id, "deleted")

    async def close(self) -> None:
        """Wait for what was left to itself; sessions are closed by now."""
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _wanted(
        self, session_id: str, workspace: str, given: dict[str, str]
    ) -> EngineSpec | None:
        """What the session is to have, where it is to have something else; None: as it was."""
        if not workspace and not given:
            return None
        await asyncio.to_thread(self._ground.known, session_id)
        before = await asyncio.to_thread(previous_run, self._ground, session_id, workspace)
        if given:
            return EngineSpec(before.workspace, **given)
        return (await self._holding.as_before(before))[0] if before.moved else None

    async def _stop(self, session: Session, by: str) -> None:
        """A tool that does not let go is not waited for here."""
        stopping = asyncio.ensure_future(session.interrupt(by=by))
        self._leaving.add(stopping)
        stopping.add_done_callback(self._leaving.discard)
        done, _ = await asyncio.wait([stopping], timeout=_PATIENCE)
        for one in done:
            one.result()

    async def _stop_there(self, session_id: str, by: str) -> None:
        letter = InboxMessage(new_message_id(), "interrupt", by)

        def done(record: Record) -> bool | None:
            event = record.event
            handled = isinstance(event, InterruptRequested) and event.letter == letter.id
            return handled or None

        await self._posting.post(session_id, letter, done)

    def _is_left(self, session_id: str) -> bool:
        """Is there a turn that nobody carries?"""
        return summarize_log(self._ground.folder, session_id).history.running > 0


def _given(wanted: ResumeOptions | SessionUpdate) -> dict[str, str]:
    """Who is to carry it, as far as that is said."""
    found = {name: getattr(wanted, name, None) for name in ("provider", "model", "agent")}
    return {name: value for name, value in found.items() if value}


def _text(text: str, what: str) -> str:
    """Words on one line. Raise `BadRequest` for too many."""
    words = " ".join(text.split())
    if len(words) > _LONGEST:
        raise BadRequest(f"the {what} is longer than {_LONGEST} characters")
    return words
