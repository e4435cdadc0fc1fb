"""A house whose sessions live in this process: an engine of ours, and the logs of this user.

Moving from session to session is in `house_here_moving.py`, what is asked about all sessions in
`house_here_desk.py`. Here are the verbs.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from bridle.cli.approver import file_content
from bridle.cli.commands.sessions.edit import back
from bridle.cli.commands.sessions.transfer import fork_session, pieces_of, write_private
from bridle.cli.find import find_session
from bridle.cli.house_here_moving import Moving
from bridle.cli.house_here_words import overheard, plainly
from bridle.cli.setup import Setup
from bridle.cli.user_input import user_name
from bridle.config.paths import state_folder
from bridle.config.trust import Trust, command_files
from bridle.errors import AgentError, SessionBusy, SessionError
from bridle.events import ApprovalAsked
from bridle.policy import Mode
from bridle.presentation.amounts import budget_lines
from bridle.presentation.commands import Command
from bridle.protocols.session import Answer
from bridle.tui.house import Asked, Found, Listed, Named, Place, Undone
from bridle.tui.machine import branch_of, sandbox_here
from bridle.tui.own_commands import own_commands, own_folder


def own_house(flags: dict[str, Any], face: str = "tui") -> "OwnHouse":
    """A house as the flags say; what the settings complain of is among its remarks."""
    told: list[str] = []
    with plainly(), overheard(told):
        return OwnHouse(Setup(flags), flags, face=face, told=told)


class OwnHouse(Moving):
    """A conversation here, and everything around it: keeps the promise `tui.house.House`."""

    @property
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        return self.session.seq > 0

    @property
    def began(self) -> int:
        """From its beginning."""
        return 0

    @property
    def me(self) -> str:
        """Who sits here."""
        return user_name()

    @property
    def model(self) -> str:
        """The model's name, with its provider's; or the agent's, with the model it was told."""
        if self._attached is not None:
            return self._attached.model
        chosen = self.setup.agent_model
        return f"{self.engine.provider.info.label}{f' ({chosen})' if chosen else ''}"

    @property
    def agent(self) -> str:
        """Who carries the turns."""
        return self.setup.agent if self._attached is None else self._attached.agent

    @property
    def mode(self) -> Mode:
        """What holds for the next call, also before the first prompt."""
        return self.session.mode

    @property
    def place(self) -> Place:
        """Where it works."""
        if self._attached is not None:
            there = self._attached.workspace
            return Place(workspace=there, branch=branch_of(there))
        root, level = str(self.setup.workspace), sandbox_here(self.setup.settings.sandbox)
        return Place(workspace=root, sandbox=level, branch=branch_of(root))

    @property
    def window(self) -> int:
        """The model's context window in tokens; 0: not known."""
        return getattr(self.session, "window", None) or 0

    def commands(self) -> tuple[Command, ...]:
        """The user's own, and those of the folder where it is trusted."""
        root = self.setup.workspace
        trust, found = Trust(state_folder(os.environ)), []
        try:
            for name in command_files(root):
                if (data := trust.read(root, name)) is not None:
                    found.append((str(root / name), data))
        except AgentError:  # `bridle trust` says what is wrong
            found = []
        return own_commands(own_folder(os.environ), found)

    def again(self) -> str:
        """The command that comes back to this session."""
        there = hasattr(self, "session") and self.is_begun
        return f"bridle --resume {self.session.id}" if there else ""

    def remarks(self) -> tuple[str, ...]:
        """What was worth a line since the last time."""
        found = (*(self._told or ()), *self._said)
        self._said.clear()
        if self._told is not None:
            self._told.clear()
        return found

    async def fork(self, at: int | None) -> None:
        """On in a copy of this session; this one stays as it is."""
        self._check_begun()
        folder = self.setup.folder
        with plainly():
            name = await asyncio.to_thread(fork_session, folder, self.session.id, at)
        await self.resume(name)

    async def rewind(self, turns: int) -> int:
        """So many turns back; the record that it went back to."""
        self._check_begun()
        folder, name = self.setup.folder, self.session.id
        with plainly():
            place = await asyncio.to_thread(lambda: back(folder.read(name), turns))
        await self.session.rewind(place, by=user_name())
        return place

    async def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from the next call on; shown as soon as it holds."""
        await self.session.set_mode(mode, by=user_name())

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[Listed, ...]:
        """The newest sessions that fit, and what each does."""
        return await self.desk.sessions(query, limit)

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """The end of a session's conversation as plain text."""
        return await self.desk.preview(session_id, lines)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked` where another process holds it."""
        if (session := self.get_open(session_id)) is not None:
            await session.rename(title)
        elif session_id == self.session.id:
            await self.session.rename(title)
        else:
            await self.desk.rename(session_id, title)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; one that runs, or that is talked to, is refused."""
        if session_id == self.session.id:
            raise SessionBusy(
                "this is the session that you are in, and it was not deleted",
                hint="Go to another one first: /new, or /resume ID.",
            )
        if (session := self.get_open(session_id)) is not None:
            session.check_idle()
            await session.close()
        await self.desk.delete(session_id)

    async def search(self, words: str, limit: int = 20) -> tuple[Found, ...]:
        """Where that was said, in all sessions."""
        return await self.desk.search(words, limit)

    async def export(self, path: Path, form: str, *, force: bool = False) -> tuple[Path, int]:
        """Write this session to a private file: where it is, how many bytes."""
        self._check_begun()
        folder, name = self.setup.folder, self.session.id

        def write() -> tuple[Path, int]:
            place = Path.cwd() / path.expanduser()
            found = find_session(folder, name)
            return place, write_private(place, pieces_of(folder, found, form), force=force)

        with plainly():
            return await asyncio.to_thread(write)

    async def undo_preview(self, turn: int = 0) -> Undone:
        """What an undo of that turn (0: the newest that changed something) would do."""
        self._check_begun()
        return await self.desk.undo_preview(self.session.id, turn)

    async def undo(self, shown: Undone) -> None:
        """Put back what was shown; say so in the log."""
        self._check_begun()
        await self.desk.undo(self.session, shown)

    async def models(self) -> tuple[Named, ...]:
        """The models that are known here; the one that answers now is the chosen one."""
        return await self.desk.models(self.model)

    async def agents(self) -> tuple[Named, ...]:
        """Who can carry turns here."""
        return await self.desk.agents(self.agent)

    async def tools(self) -> tuple[Named, ...]:
        """The tools that the model has."""
        from bridle.cli.house_here_facts import to_named
        from bridle.service.inventory import tools_of

        if self._attached is not None:
            return to_named(await self.desk.sessions_of_all.inventory.tools(self.session.id))
        return to_named(tools_of(self.engine))

    async def mcp(self) -> tuple[Named, ...]:
        """The MCP servers of this folder; of one that does not count, why."""
        from bridle.cli.house_here_facts import to_named
        from bridle.service.inventory import servers_of

        return to_named(await asyncio.to_thread(servers_of, self.place.workspace))

    async def rules(self) -> tuple[Named, ...]:
        """The rules that hold, the mode, the grants of this session."""
        from bridle.cli.house_here_facts import rule_names, to_named

        if self._attached is not None:
            return to_named(await self.desk.sessions_of_all.inventory.rules(self.session.id))
        return rule_names(self.engine, self.session)

    async def budget(self) -> tuple[tuple[str, str, str], ...]:
        """Limits as name, used, most."""
        from bridle.cli.house_here_facts import budget_of

        if self._attached is not None:
            found = await self.desk.sessions_of_all.budget(self.session.id)
            return budget_lines(asdict(found.limits), found.metrics)
        return budget_of(self.session, self.engine.parts.limits)

    async def set_budget(self, money: float) -> None:
        """A lower limit for the session's money, from the next turn on."""
        from bridle.cli.house_here_facts import narrow

        await narrow(self.session, money)

    async def doctor(self) -> tuple[str, ...]:
        """What was found on this machine, a line each."""
        from bridle.cli.checkup import report_lines

        return await asyncio.to_thread(report_lines)

    async def files(self, query: str, limit: int = 50) -> tuple[str, ...]:
        """Files of the workspace that fit, the best first; what git ignores is left out."""
        return await self.desk.files(self.place.workspace, query, limit)

    async def pending(self) -> tuple[Asked, ...]:
        """The questions of all sessions that wait for an answer."""
        return await self.desk.pending()

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Answer a question of any session; the first answer wins."""
        call, shown, by = asked.call.id, asked.shown, answer.by or user_name()
        if (session := self.get_open(session_id)) is not None:
            await session.answer(call, answer, shown=shown, by=by)
        elif session_id == self.session.id:
            await self.session.answer(call, answer, shown=shown, by=by)
        else:
            await self.desk.answer(session_id, asked, answer)

    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """The proposed rule, what it would have covered, where it goes: a line each."""
        from bridle.cli.approver import rule_preview

        said = await asyncio.to_thread(rule_preview, asked, session_id)
        return tuple(line.strip() for line in said.splitlines())

    def current(self, asked: ApprovalAsked) -> str | None:
        """What the file that a call would change holds now; None: not known."""
        return file_content(asked)

    def news(self) -> AsyncGenerator[None, None]:
        """Something about the sessions changed. Never ends."""
        return self.desk.news(lambda: self.engines)

    def _check_begun(self) -> None:
        if not self.is_begun:
            raise SessionError("nothing was said in this session yet", hint="Send a prompt first.")
