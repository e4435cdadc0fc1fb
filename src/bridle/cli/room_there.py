"""A room for a session that lives on a server: the same conversation, over its verbs.

Nothing is read from this machine's sessions; lists, searches and files come from the server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import click

from bridle.cli.asking import Asker
from bridle.cli.changing import back
from bridle.cli.questions import Questions
from bridle.cli.render import letter_line, one_line
from bridle.cli.room import Room
from bridle.cli.screen import Screen
from bridle.cli.sessions import when
from bridle.cli.style import cut
from bridle.cli.taking import write_private
from bridle.client import Client, RemoteSession, SessionLine
from bridle.errors import SessionError, UnknownSession
from bridle.events import ApprovalAsked, PromptReceived
from bridle.promises.session import Conversation
from bridle.promises.store import Record

_PAGE = 200


class FarRoom(Room):
    """A conversation on somebody's server, ours or another's."""

    session: RemoteSession
    _questions: Questions

    def __init__(self, client: Client, first: RemoteSession, screen: Screen, asker: Asker) -> None:
        super().__init__(screen, asker)
        self._client = client
        self._first = first
        self._sent: list[str] = []  # our own words, which stand on the screen already

    async def enter(self) -> None:
        """Look at the session from where its newest turn began; in a pipe, from now on."""
        seen = self._first.began if self._asker.lines.is_terminal else self._first.seq
        await self._enter(self._first, seen)

    async def leave(self) -> None:
        """Watch no longer; the session goes on."""
        await self._leave()
        await self.session.close()

    @property
    def model(self) -> str:
        """The model's name, with its provider's."""
        return self.session.line.model or "a model of the server's"

    @property
    def agent(self) -> str:
        """Who carries the turns."""
        return self.session.line.agent or "loop"

    @property
    def place(self) -> str:
        """The folder that is worked on, and the server."""
        return f"{self.session.line.workspace} · {self._client.where}"

    @property
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        return True

    async def play(self, text: str) -> None:
        """One turn; what a parked one asks comes first."""
        self._sent.append(" ".join(text.split()))
        if self.session.is_parked:
            await self.carry_on()
        await self._heard(self._play(text))

    async def _play(self, text: str) -> None:
        self._tell(await self._watch.play(text))

    async def carry_on(self) -> None:
        """What is under way in this session, to its end: it is on the screen already."""
        if self.session.is_parked or self.session.is_busy:
            await self._heard(self._go_on())

    async def _go_on(self) -> None:
        self._tell(await self._watch.go_on())

    async def _heard(self, work: Coroutine[Any, Any, None]) -> None:
        """Do that, as long as somebody is here who can answer what is asked on the way."""
        working = asyncio.ensure_future(work)
        unheard = asyncio.ensure_future(self._questions.unheard.wait())
        try:
            await asyncio.wait([working, unheard], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise SessionError(
                    "the turn waits for an answer that nobody here can give; it is kept",
                    hint=f"Answer it at a terminal: bridle attach, with {self.session.id}.",
                )
            working.result()
        finally:
            unheard.cancel()
            working.cancel()
            await asyncio.wait([working, unheard])

    async def renew(self) -> None:
        """A new session, in the same folder."""
        line = self.session.line
        await self._move(await self._client.session(workspace=line.workspace), 0)

    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id or of its last part."""
        found = await find_line(self._client, start)
        if found.id != self.session.id:
            session = await self._client.session(found.id)
            await self._move(session, session.seq)

    async def fork(self, at: int | None) -> None:
        """On in a copy of this session; this one stays as it is."""
        await self.resume((await self.session.fork(at)).id)

    async def rewind(self, turns: int) -> int:
        """So many turns back; the record that it went back to."""
        records, seq = [], self.session.seq
        async for record in self.session.subscribe():
            records.append(record)
            if record.seq >= seq:
                break
        place = back(records, turns)
        await self.session.rewind(place)
        return place

    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""
        await self.session.use(model=name)

    async def change_agent(self, name: str) -> None:
        """Another agent for the same session. When it cannot be had, nothing changes."""
        await self.session.use(agent=name)

    async def listed(self) -> Iterable[str]:
        """The newest sessions, a line each."""
        found = (await self._client.sessions(limit=10)).sessions
        return [line_of(one, self.screen) for one in found] or ["There are no sessions yet."]

    async def searched(self, words: str) -> Iterable[str]:
        """Where that was said, in all sessions, a line each."""
        paint, width = self.screen.paint, self.screen.width
        found = await self._client.search(words)
        return [
            f"{paint.cyan(one_line(one.session_id))} {paint.dim(f'#{one.seq}')}  "
            f"{cut(one_line(one.text or one.title), max(20, width - len(one.session_id) - 10))}"
            for one in found
        ]

    async def export(self, path: Path, form: str) -> int:
        """Write this session to a file that is private; how many bytes it has."""
        data = await self.session.export(form)
        return await asyncio.to_thread(write_private, path, iter([data]))

    def _show(self, record: Record) -> None:
        if isinstance(record.event, PromptReceived):
            words = " ".join(record.event.content.split())
            if words in self._sent:
                self._sent.remove(words)
                return
        asked = self.screen.is_prompting
        show(self.screen, record)
        self._questions.take(record)
        taken = asked and not self.screen.is_prompting
        if taken and not self.session.is_busy and self.on_end is not None:
            self.on_end()  # a line of somebody else's has taken the prompt away

    async def _enter(self, session: Conversation, seen: int) -> None:
        assert isinstance(session, RemoteSession)
        self._questions = Questions(session, self._asker, self.screen)
        self._asker.previewed = previewing(session)
        await super()._enter(session, seen)
        self._questions.begin()

    async def _leave(self) -> None:
        await self._questions.close()
        await super()._leave()


def show(screen: Screen, record: Record) -> None:
    """Show a record of a session that several people may talk to: prompts have names."""
    if isinstance(record.event, PromptReceived):
        screen.line(letter_line(record.event, screen.paint, screen.width))
    else:
        screen.feed(record)


def previewing(session: RemoteSession) -> Callable[[ApprovalAsked], Awaitable[str]]:
    """A rule and what it would have covered, as the server tells it."""

    async def previewed(asked: ApprovalAsked) -> str:
        calls = await session.preview(asked.proposal)
        several = f"{len(calls)} calls" if len(calls) > 1 else "one call"
        some = f": {', '.join(calls[:3])}" if calls else ""
        covered = f"it would have covered {several if calls else 'none'} of this session{some}"
        lines = [f"{asked.proposal}, in this folder alone", covered, "into the server's own rules"]
        return "\n".join(f"  {one_line(line)}" for line in lines)

    return previewed


def line_of(one: SessionLine, screen: Screen) -> str:
    """A session as a list shows it: id, when, what it does, title."""
    paint = screen.paint
    state = f"asks {one.waiting}" if one.waiting else one.state
    room = max(10, screen.width - len(one.id) - 30)
    title = cut(one_line(one.title) or "(no prompt)", room)
    known = f"{paint.cyan(one_line(one.id))}  {when(one.updated_at)}"
    return f"{known}  {paint.yellow(state.ljust(7))}  {title}"


async def find_line(client: Client, start: str) -> SessionLine:
    """The session whose id begins so, or its last part. Raise `UnknownSession`."""
    found, cursor = [], ""
    while True:
        page = await client.sessions(limit=_PAGE, cursor=cursor)
        found += [one for one in page.sessions if _fits(one.id, start)]
        if not (cursor := page.next):
            break
    if not found:
        raise UnknownSession(f"the server has no session {start!r}")
    exact = [one for one in found if one.id == start]
    if len(exact or found) > 1:
        some = ", ".join(one.id for one in found[:4])
        raise click.UsageError(f"{len(found)} sessions begin with {start!r}\nFor example {some}.")
    return (exact or found)[0]


def _fits(session_id: str, start: str) -> bool:
    return bool(start) and (
        session_id.startswith(start) or session_id.rpartition("-")[2].startswith(start)
    )
