"""A house whose sessions live on a server: the same conversation, over `bridle.client`.

Nothing is read from this machine's sessions; lists, files and rules come from the server. What it
says is somebody else's text: whoever shows it neutralises it. A file is written only where the
person here has said.
"""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from shlex import quote

from msgspec.structs import asdict

from bridle.client import Client, RemoteSession, SessionDetail, SessionInfo, UndoPreview
from bridle.errors import SessionBusy, SessionError, UnknownSession
from bridle.events import ApprovalAsked
from bridle.policy import MODES, Mode
from bridle.presentation.amounts import budget_lines
from bridle.presentation.commands import Command
from bridle.protocols.session import Answer, Conversation
from bridle.tui.house import HOW_RESTORED, Asked, Found, Listed, Named, Place, Undone
from bridle.tui.house_asked import asked_of, ending
from bridle.tui.house_listed import listed
from bridle.tui.house_there_values import back, lines_of_rule, to_named, write_private
from bridle.tui.own_commands import own_commands, own_folder
from bridle.workspace.text import one_line

_PAGE = 200
_PAGES = 500  # nobody has more


class FarHouse:
    """A conversation on somebody's server, ours or another's: keeps the promise `House`."""

    session: Conversation

    def __init__(
        self, client: Client, first: RemoteSession, *, again: str | None = None, me: str = "me"
    ) -> None:
        self._client = client
        self._there = first
        self.session = first
        self._again = quote(client.where) if again is None else again
        self.seen = first.seq
        self._me = me

    async def enter(self) -> None:
        """The session was opened by whoever made the house; see what stands beside it."""
        await self._there.look()

    async def leave(self) -> None:
        """Watch no longer; the session goes on."""
        await self._there.close()

    @property
    def is_begun(self) -> bool:
        """There is a log of it, on the server."""
        return True

    @property
    def is_settled(self) -> bool:
        """Nothing runs here."""
        return True

    @property
    def began(self) -> int:
        """From its beginning."""
        return 0

    @property
    def me(self) -> str:
        """Who we are to the server."""
        return self._me

    @property
    def model(self) -> str:
        """The model's name, with its provider's."""
        return self._there.line.model or "a model of the server's"

    @property
    def agent(self) -> str:
        """Who carries the turns."""
        return self._there.line.agent or "loop"

    @property
    def mode(self) -> Mode:
        """What holds for the next call; what is no mode of ours is shown as the strictest."""
        mode = self._there.mode
        return mode if mode in MODES else "plan"

    @property
    def place(self) -> Place:
        """The folder that is worked on, and the server."""
        return Place(workspace=self._there.line.workspace, server=self._client.where)

    @property
    def window(self) -> int:
        """Not known until the session was looked at."""
        line = self._there.line
        return line.context.window if isinstance(line, SessionDetail) else 0

    def commands(self) -> tuple[Command, ...]:
        """The user's own of this machine; a folder on a server has none here."""
        return own_commands(own_folder(os.environ))

    def again(self) -> str:
        """The command that comes back to this session; the id is the server's own word."""
        name = quote(one_line(self._there.id, 100))
        return f"bridle attach {self._again} {name}" if self._again else f"bridle attach {name}"

    def remarks(self) -> tuple[str, ...]:
        """What becomes of the connection is told where the client was made."""
        return ()

    async def renew(self) -> None:
        """A new session, in the same folder and in the server's usual mode."""
        await self._move(await self._client.session(workspace=self._there.line.workspace))

    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id or of its last part."""
        found = await find_line(self._client, start)
        if found.id != self._there.id:
            await self._move(await self._client.session(found.id))

    async def fork(self, at: int | None) -> None:
        """On in a copy of this session; this one stays as it is."""
        copy = await self._there.fork(at)
        await self._move(await self._client.session(copy.id))

    async def rewind(self, turns: int) -> int:
        """So many turns back; the record that it went back to."""
        place = await back(self._there, turns)
        await self._there.rewind(place)
        return place

    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""
        await self._there.configure(model=name)

    async def change_agent(self, name: str) -> None:
        """Another agent for the same session. When it cannot be had, nothing changes."""
        await self._there.configure(agent=name)

    async def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from the next call on."""
        await self._there.set_mode(mode)

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[Listed, ...]:
        """The newest sessions of the server that fit, and what each does."""
        found: list[Listed] = []
        async for page in pages(self._client, query, min(_PAGE, limit)):
            found += map(listed, page[: limit - len(found)])
            if len(found) >= limit:
                break
        return tuple(found)

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """The end of a session's conversation as plain text."""
        return ending(await self._client.messages(session_id), lines)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        if session_id == self._there.id:
            await self._there.rename(title)
        else:
            await self._client.rename(session_id, title)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; one that runs, or that is talked to, is refused."""
        if session_id == self._there.id:
            raise SessionBusy(
                "this is the session that you are in, and it was not deleted",
                hint="Go to another one first: /new, or /resume ID.",
            )
        if (await self._client.look(session_id)).state == "running":
            raise SessionBusy(
                f"session {session_id} runs, and was not deleted", hint="Stop it first."
            )
        await self._client.delete(session_id)

    async def search(self, words: str, limit: int = 20) -> tuple[Found, ...]:
        """Where that was said, in all sessions of the server."""
        found = await self._client.search(words, limit=limit)
        return tuple(
            Found(
                session_id=one.session_id,
                seq=one.seq,
                title=one.title,
                text=one.text,
                kind=one.kind,
            )
            for one in found
        )

    async def export(self, path: Path, form: str, *, force: bool = False) -> tuple[Path, int]:
        """Write this session to a private file of this machine: where it is, how many bytes."""
        data = await self._there.export(form)
        return await write_private(path, data, force=force)

    async def undo_preview(self, turn: int = 0) -> Undone:
        """What an undo of that turn (0: the newest that changed something) would do."""
        seen = await self._there.undo_preview(turn)
        return Undone(
            turn=seen.turn,
            files=tuple(
                (one.path, HOW_RESTORED.get(one.how, one.how), one.diff) for one in seen.files
            ),
            uncovered=seen.uncovered,
            clashes=tuple((one.path, one.why, one.diff) for one in seen.clashes),
            token=seen.token,
        )

    async def undo(self, shown: Undone) -> None:
        """Put back what was shown, also what changed since."""
        await self._there.undo(UndoPreview(turn=shown.turn, token=shown.token), clashes="overwrite")

    async def models(self) -> tuple[Named, ...]:
        """The models that the server offers."""
        return to_named(await self._client.models(), self.model)

    async def agents(self) -> tuple[Named, ...]:
        """The agents that the server offers."""
        return to_named(await self._client.agents(), self.agent)

    async def tools(self) -> tuple[Named, ...]:
        """The tools that the model has."""
        return to_named(await self._client.choices(self._there.id, "tools"))

    async def mcp(self) -> tuple[Named, ...]:
        """The MCP servers of the session's folder."""
        return to_named(await self._client.choices(self._there.id, "mcp"))

    async def rules(self) -> tuple[Named, ...]:
        """The rules that hold there, the mode, the grants of this session."""
        return to_named(await self._client.choices(self._there.id, "rules"))

    async def budget(self) -> tuple[tuple[str, str, str], ...]:
        """Limits as name, used, most."""
        found = await self._there.budget()
        return budget_lines(asdict(found.limits), found.metrics)

    async def set_budget(self, money: float) -> None:
        """A lower limit for the session's money, from the next turn on."""
        if not 0 < money < 1e9:
            raise SessionError(
                "that is not an amount of money",
                hint="Enter an amount in dollars, for example 2.50.",
            )
        await self._there.set_budget(max_session_cost=money)

    async def doctor(self) -> tuple[str, ...]:
        """What was found on the server's machine, a line each."""
        return await self._client.doctor()

    async def files(self, query: str, limit: int = 50) -> tuple[str, ...]:
        """Files of the session's folder that fit, the best first."""
        return await self._client.files(self._there.id, query, limit=limit)

    async def pending(self) -> tuple[Asked, ...]:
        """The questions of all sessions of the server that wait for an answer."""
        told = (asked_of(one) for one in await self._client.pending() if not one.posted)
        return tuple(one for one in told if one is not None)

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Answer a question of any session; the first answer wins."""
        call, shown = asked.call.id, asked.shown
        if session_id == self._there.id:
            await self._there.answer(call, answer, shown=shown, by=answer.by)
        else:
            await self._client.answer(session_id, call, answer, shown=shown)

    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """The proposed rule, what it would have covered, where it goes: a line each."""
        calls = await self._client.preview(session_id, asked.proposal)
        return lines_of_rule(asked.proposal, calls)

    def current(self, asked: ApprovalAsked) -> str | None:
        """The files are on another machine, perhaps."""
        return None

    def news(self) -> AsyncGenerator[None, None]:
        """Something about the server's sessions changed. Never ends."""
        return self._client.news()

    async def _move(self, session: RemoteSession) -> None:
        """On to another session; the one before is watched no longer."""
        before, self._there = self._there, session
        self.session, self.seen = session, session.seq
        await before.close()
        await session.look()


async def pages(
    client: Client, query: str = "", size: int = _PAGE
) -> AsyncGenerator[tuple[SessionInfo, ...], None]:
    """The server's sessions, page by page; one that never ends is not turned for ever."""
    cursor = ""
    for _ in range(_PAGES):
        page = await client.sessions(query=query, limit=size, cursor=cursor)
        yield page.sessions
        if not page.sessions or not (cursor := page.next):
            return


async def find_line(client: Client, start: str) -> SessionInfo:
    """The session whose id begins so, or its last part. Raise `UnknownSession`, `SessionError`."""
    found: list[SessionInfo] = []
    async for page in pages(client):
        found += [one for one in page if _fits(one.id, start)]
    exact = [one for one in found if one.id == start]
    if not found:
        raise UnknownSession(f"the server has no session {start!r}")
    if len(exact or found) > 1:
        some = ", ".join(one.id for one in found[:4])
        raise SessionError(
            f"{len(found)} sessions begin with {start!r}", hint=f"For example {some}."
        )
    return (exact or found)[0]


def _fits(session_id: str, start: str) -> bool:
    return bool(start) and (
        session_id.startswith(start) or session_id.rpartition("-")[2].startswith(start)
    )
