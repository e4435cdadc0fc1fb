"""Sessions of this machine, for the terminal and the REPL: with an engine of this process.

One session is talked to at a time. If it is left while its turn runs, it goes on here until the
turn is done. A session that another process owns is attached to, and stays where it is. Another
model or folder needs another engine, in which the session is resumed.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from bridle.cli.approval_prompt import file_content
from bridle.cli.exit_codes import COLLECTED
from bridle.cli.find import find_session
from bridle.cli.options import to_settings
from bridle.cli.session_edit import edit_session
from bridle.cli.setup import Setup
from bridle.cli.user_input import user_name
from bridle.config.loader import load_settings
from bridle.config.paths import state_folder
from bridle.config.settings import Settings
from bridle.config.trust import Trust, command_files
from bridle.config.user_commands import load_user_commands, user_command_folder
from bridle.engine.engine import Engine
from bridle.engine.engine_config import Approver
from bridle.engine.session import Session
from bridle.errors import AgentError, SessionBusy, SessionError
from bridle.events import ApprovalAsked
from bridle.policy import Mode
from bridle.presentation.amounts import budget_lines
from bridle.presentation.commands import Command
from bridle.protocols.provider import Provider
from bridle.protocols.session import Answer
from bridle.protocols.session_service import SessionService
from bridle.protocols.session_values import Choice, ForkRequest, SessionInfo, UndoPreview
from bridle.protocols.store import InboxMessage, SessionSummary
from bridle.runtime.recorded_mode import record_mode
from bridle.stores.locks import describe_process
from bridle.stores.reader import SessionFolder
from bridle.stores.session_index import last_run
from bridle.stores.transfer import head_of
from bridle.tui.machine import git_branch, sandbox_level
from bridle.tui.session_backend import (
    AllSessions,
    Place,
    SessionBackend,
    check_amount,
    to_wire,
    with_chosen,
)

if TYPE_CHECKING:
    from bridle.cli.server_setup import ChoiceList
    from bridle.runtime.followed_session import FollowedSession
    from bridle.service.local_service import LocalService

_CLOSING = 5.0  # seconds that sessions which the service has opened have to end
_NEW = {"resume": None, "go_on": False, "worktree": None, "mode": None, "yes": False}


def local_backend(
    flags: dict[str, Any], face: str = "tui", *, in_background: bool = False
) -> "LocalBackend":
    """Return a backend for these flags. Warnings about settings are among its remarks."""
    remarks: list[str] = []
    with collected_warnings(remarks):
        return LocalBackend(
            Setup(flags), flags, face=face, told=remarks, in_background=in_background
        )


def make_service(folder: SessionFolder, flags: dict[str, Any], face: str) -> "LocalService":
    """Return a service for all sessions of this user, with engines as the flags say."""
    from bridle.cli.server_setup import engine_factory
    from bridle.service.engine_pool import EnginePool
    from bridle.service.local_service import LocalService

    engines = EnginePool(engine_factory({**flags, **_NEW}, face))
    return LocalService(folder.folder, engines, None, user=user_name())


class LocalBackend(SessionBackend):
    """A conversation in an engine of this process, or attached to in another process.

    With an `approver`, approval requests are put to it; otherwise they wait for `answer`. `told`
    gets what is worth a line and is no error; if it is None, that goes to standard error. With
    `in_background` the first session is one that exists; if no process owns it, it is resumed in
    the background. `tell` is called with what becomes of the connection to there.
    """

    def __init__(
        self,
        setup: Setup,
        flags: dict[str, Any],
        *,
        face: str = "tui",
        approver: Approver | None = None,
        told: list[str] | None = None,
        in_background: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.setup = setup
        self.here = describe_process(os.getpid())
        self._flags = flags
        self._face = face
        self._approver = approver
        self._told = told
        self._said: list[str] = []  # where the session works, if that is somewhere else
        self._in_background = in_background
        self._tell = tell or self._said.append
        self._chosen_mode = setup.chosen_mode  # by a flag, for every session here; None: its own
        self._engine: Engine | None = None
        self._left: set[Engine] = set()  # of another model or folder, in which a turn still runs
        self._attached: _Attached | None = None
        self._service: LocalService | None = None
        self._closing: tuple[Session, ...] = ()
        self._own: Session | None = None  # the session, if it is in an engine of ours

    @property
    def service(self) -> "LocalService":
        """All sessions of this user. Our own engines are part of it."""
        if self._service is None:
            self._service = make_service(self.setup.folder, self._flags, self._face)
            for engine in self.engines:
                self._service.engines.adopt(engine)
        return self._service

    @property
    def session_service(self) -> SessionService:
        """Where the verbs for this session go."""
        return self.service if self._attached is None else self._attached.service

    # The session

    async def enter(self) -> None:
        """Open the session that was asked for, or a new one (written at its first prompt)."""
        with collected_warnings(self._told):
            earlier = self.setup.earlier
            attached = None if earlier is None else await self._attach(earlier.id)
            if attached is None and earlier is not None and self._in_background:
                attached = await _connect_background(earlier.id, self._tell)
            if attached is None:
                await self._start(self.setup, self.setup.provider())
                self._said += filter(None, [self.setup.worktree_note])
            else:
                self._set_attached(attached)
                self.seen = attached.session.seq

    async def leave(self) -> None:
        """Close everything; what runs elsewhere goes on, what runs here is recorded and stopped."""
        self._closing = tuple(each for engine in self.engines for each in engine.sessions())
        try:
            await self._detach()
            if self._service is not None:
                await self._service.stop(_CLOSING)
        finally:
            for engine in self.engines:
                await engine.close()

    @property
    def is_settled(self) -> bool:
        """While leaving: whether the end of everything that ran here is in its log."""
        return all(not each.is_busy and each.durable >= each.seq for each in self._closing)

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The engine of this session, and those in which a turn was left running."""
        mine = (self._engine,) if self._engine is not None else ()
        return (*mine, *self._left)

    @property
    def engine(self) -> Engine:
        """The engine of this session. It is made when it is needed, which attaching does not."""
        if self._engine is None:
            self._engine = self._make_engine(self.setup, self.setup.provider())
        return self._engine

    @property
    def is_own(self) -> bool:
        """Whether the session is in an engine of this process, which asks for approvals itself."""
        return self._own is not None

    @property
    def is_begun(self) -> bool:
        """Whether the session has a log yet."""
        return self.session.seq > 0

    @property
    def began(self) -> int:
        """The record from which on the session is shown: its beginning."""
        return 0

    @property
    def me(self) -> str:
        """Who sits here."""
        return user_name()

    @property
    def model(self) -> str:
        """The model's name, with its provider's; or the agent's, with the model it was given."""
        if self._attached is not None:
            return self._attached.session.model
        chosen = self.setup.agent_model
        return f"{self.engine.provider.info.label}{f' ({chosen})' if chosen else ''}"

    @property
    def agent(self) -> str:
        """The agent that runs the turns."""
        return self.setup.agent if self._attached is None else self._attached.session.agent

    @property
    def mode(self) -> Mode:
        """What holds for the next call, also before the first prompt."""
        return self.session.mode

    @property
    def place(self) -> Place:
        """Where it works."""
        if self._attached is not None:
            folder = self._attached.session.workspace
            where = self._attached.where
            return Place(workspace=folder, branch="" if where else git_branch(folder), server=where)
        root, level = str(self.setup.workspace), sandbox_level(self.setup.settings.sandbox)
        return Place(workspace=root, sandbox=level, branch=git_branch(root))

    @property
    def window(self) -> int:
        """The model's context window in tokens; 0: not known."""
        return self.session.window or 0

    def commands(self) -> tuple[Command, ...]:
        """The user's own commands, and those of the folder if it is trusted."""
        root = self.setup.workspace
        trust, found = Trust(state_folder(os.environ)), []
        try:
            for name in command_files(root):
                if (data := trust.read(root, name)) is not None:
                    found.append((str(root / name), data))
        except AgentError:  # `bridle trust` says what is wrong
            found = []
        return load_user_commands(user_command_folder(os.environ), found)

    def again(self) -> str:
        """The command that comes back to this session."""
        if (self._own is None and self._attached is None) or not self.is_begun:
            return ""
        is_background = self._in_background and self._attached is not None
        verb = "attach" if is_background else "--resume"
        return f"bridle {verb} {self.session.id}"

    def remarks(self) -> tuple[str, ...]:
        """What was worth a line since the last time."""
        remarks = (*(self._told or ()), *self._said)
        self._said.clear()
        if self._told is not None:
            self._told.clear()
        return remarks

    # From session to session

    async def renew(self) -> None:
        """Begin a new session, in the mode that the settings say."""
        session = await self.engine.session()
        record_mode(session)
        await self._move_to_own(session, 0)

    async def resume(self, start: str) -> None:
        """Go to another session; one that another process owns is attached to."""
        with collected_warnings(self._told):
            summary = await asyncio.to_thread(find_session, self.setup.folder, start)
            if summary.id == self.session.id:
                return
            seen = (await asyncio.to_thread(head_of, self.setup.folder, summary.id)).seq
            if (mine := self._get_open(summary.id)) is not None:
                await self._move_to_own(mine, seen)
            elif (attached := await self._attach(summary.id)) is not None:
                await self._move_to_attached(attached, seen)
            elif self._is_elsewhere(summary) or self._has_another_model(summary):
                await self._change({"workspace": None, "resume": summary.id})
            else:
                session = await self.engine.session(summary.id)
                record_mode(session)
                await self._move_to_own(session, seen)

    async def fork(self, at: int | None) -> None:
        """Go on in a copy of this session; this one stays as it is."""
        self._check_begun()
        copy = await self.session_service.fork(self.session.id, ForkRequest(at), self.me)
        await self.resume(copy.id)

    async def rewind(self, turns: int) -> int:
        """Go back by so many turns; return the record that it went back to."""
        self._check_begun()
        return await super().rewind(turns)

    async def change_model(self, name: str) -> None:
        """Use another model for the same session. If it cannot be had, nothing changes."""
        await self._switch({"provider": None, "model": name})

    async def change_agent(self, name: str) -> None:
        """Use another agent for the same session. If it cannot be had, nothing changes."""
        if self._attached is None and name == self.setup.agent:
            return  # it keeps the model that was chosen for it
        chosen = {"agent": name, "provider": None, "model": None}
        await self._switch(chosen)
        self._flags = {**self._flags, **chosen}

    # All sessions

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked` if another process owns it."""
        if (session := self._get_open(session_id)) is not None:
            await session.rename(title)
        elif session_id == self.session.id:
            await self.session.rename(title)
        else:
            await rename_closed(self.setup.folder, session_id, title)

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Answer an approval request of any session; the first answer wins."""
        is_here = self._get_open(session_id) is not None or session_id == self.session.id
        owner = None if is_here else await asyncio.to_thread(self.service.catalog.owner, session_id)
        if is_here or owner is not None:
            await super().answer(session_id, asked, answer)
        elif not await self._answer_in_background(session_id, asked, answer):
            await asyncio.to_thread(self._leave_answer, session_id, asked, answer)

    async def models(self) -> tuple[Choice, ...]:
        """Return the models that are known here; the one that answers now is chosen."""
        return with_chosen(await self._choices().models(), self.model)

    async def agents(self) -> tuple[Choice, ...]:
        """Return the agents that can run turns here."""
        return with_chosen(await self._choices().agents(), self.agent)

    async def doctor(self) -> tuple[str, ...]:
        """Return what was found on this machine, a line each."""
        from bridle.cli.checkup import report_lines

        return await asyncio.to_thread(report_lines)

    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """Return the proposed rule, what it would have covered, and where it goes."""
        from bridle.cli.approval_prompt import rule_preview

        text = await asyncio.to_thread(rule_preview, asked, session_id)
        return tuple(line.strip() for line in text.splitlines())

    def current(self, asked: ApprovalAsked) -> str | None:
        """Return what the file that a call would change contains now; None: not known."""
        return file_content(asked)

    # This session. One of our own may have no log yet, so its engine is asked.

    async def export(self, path: Path, form: str, *, force: bool = False) -> tuple[Path, int]:
        """Write this session to a private file; return its path and size."""
        self._check_begun()
        return await super().export(path, form, force=force)

    async def undo_preview(self, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn (0: the newest that changed something) would do."""
        self._check_begun()
        return await super().undo_preview(turn)

    async def tools(self) -> tuple[Choice, ...]:
        """Return the tools that the model has."""
        if self._attached is not None:
            return await super().tools()
        from bridle.service.inventory import tools_of

        return tools_of(self.engine).choices

    async def mcp(self) -> tuple[Choice, ...]:
        """Return the MCP servers of this folder; of one that is not used, why."""
        from bridle.service.inventory import servers_of

        return (await asyncio.to_thread(servers_of, self.place.workspace)).choices

    async def rules(self) -> tuple[Choice, ...]:
        """Return the mode, the grants and the rules of this session."""
        if self._own is None:
            return await super().rules()
        from bridle.service.inventory import rules_of

        own = self._own
        return rules_of(self.engine.parts.rules, own.mode, own.grants()).choices

    async def budget(self) -> tuple[tuple[str, str, str], ...]:
        """Return the limits as name, used, most."""
        if self._own is None:
            return await super().budget()
        return budget_lines(asdict(self._own.limits), self._own.metrics)

    async def set_budget(self, money: float) -> None:
        """Lower the limit for the session's money, from the next turn on."""
        if self._own is None:
            await super().set_budget(money)
            return
        check_amount(money)
        limits = replace(self._own.limits, max_session_cost=money)
        await self._own.lower_limits(limits, by=self.me)

    async def files(self, query: str, limit: int = 50) -> tuple[str, ...]:
        """Return files of the workspace that fit, the best first."""
        root = await asyncio.to_thread(os.path.realpath, self.place.workspace)
        return (await self.service.workspace_files(root, query, limit)).paths

    # How it is done

    def _get_open(self, session_id: str) -> Session | None:
        """Return that session, if it is open in an engine of ours."""
        sessions = (engine.get_open(session_id) for engine in self.engines)
        return next((each for each in sessions if each is not None), None)

    def _check_begun(self) -> None:
        if not self.is_begun:
            raise SessionError("this session is empty", hint="Send a prompt first.")

    def _choices(self) -> "ChoiceList":
        from bridle.cli.server_setup import ChoiceList
        from bridle.service.choices import AllowedChoices

        return ChoiceList(self.setup.settings, AllowedChoices())

    async def _attach(self, session_id: str) -> "_Attached | None":
        """Attach to the process that owns that session; None if no other process does.

        A background session is reached through the server that runs it, which can do everything
        with it. Any other owner is reached through the session's inbox and log.
        """
        from bridle.stores.file_catalog import FileCatalog

        catalog = FileCatalog(self.setup.folder.folder)
        owner = await asyncio.to_thread(catalog.owner, session_id)
        if owner is None:
            return None
        if owner.is_self and (self._service is None or self.service.get_open(session_id) is None):
            return None
        from bridle.cli.background_server import background_server_of

        server = background_server_of(session_id)
        if server is not None and server.pid == owner.pid:
            with suppress(AgentError):  # if it cannot be talked to, its inbox can be used
                return await _connect_background(session_id, self._tell)
        followed = await self.service.open(session_id)
        return _Attached(followed, self.service, AsyncExitStack())

    async def _answer_in_background(
        self, session_id: str, asked: ApprovalAsked, answer: Answer
    ) -> bool:
        """Have the session's own background process resume it; False if it has none."""
        from bridle.cli.background_server import background_server_of, connect_background

        if background_server_of(session_id) is None:
            return False
        try:
            async with connect_background(session_id) as client:
                given = to_wire(answer, asked.shown)
                await client.answer(session_id, asked.call.id, given, answer.by or self.me)
        except AgentError as error:
            if error.kind != "agent":
                raise
            return False  # that process cannot be started: the answer waits
        return True

    def _leave_answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Put an answer into the inbox, where it waits until a process owns the session."""
        from bridle.runtime.inbox_sender import new_message_id, send_message

        message = InboxMessage(
            new_message_id(),
            "answer",
            answer.by or self.me,
            call_id=asked.call.id,
            shown=asked.shown,
            allowed=answer.allowed,
            scope=answer.scope,
            word=answer.word,
            rule=answer.rule,
        )
        send_message(self.setup.folder, session_id, message)

    async def _switch(self, chosen: dict[str, Any]) -> None:
        """Go on with the same session in another engine, in the same mode."""
        if self._attached is not None:
            given = {key: value for key, value in chosen.items() if value}
            await self._attached.session.configure(**given)
            return
        if self.session.is_busy:
            raise SessionBusy(
                "a turn is running, so nothing was changed",
                hint="Wait until it has ended, or stop it.",
            )
        begun = self.session.seq > 0
        again = {"resume": self.session.id if begun else None, "workspace": self._where}
        with collected_warnings(self._told):
            await self._change({**chosen, **again}, keep_mode=True)

    @property
    def _where(self) -> str:
        return str(self.setup.workspace)

    def _is_elsewhere(self, summary: SessionSummary) -> bool:
        """Whether that session works in another folder than this one."""
        folder = summary.workspace
        if not folder or not Path(folder).is_dir():
            return False
        return os.path.realpath(folder) != os.path.realpath(self._where)

    def _has_another_model(self, summary: SessionSummary) -> bool:
        """Whether that session has another model than this one, and no flag names a model."""
        if self.setup.is_model_named or self.setup.agent != "loop":
            return False
        last = last_run(self.setup.folder.path(summary.id))
        effort = self.setup.settings.effort
        if last.agent or not last.model:
            return False
        return last.model != self.engine.provider.info.label or last.effort not in ("", effort)

    async def _change(self, chosen: dict[str, Any], *, keep_mode: bool = False) -> None:
        """Make another engine, and its session. If it cannot be had, nothing has ended."""
        mode, session_id, before = self.session.mode, self.session.id, self.setup
        session_id = session_id if self.session.seq and self._attached is None else ""
        setup = Setup({**self._flags, "go_on": False, "worktree": None, **chosen})
        provider = setup.provider()
        if keep_mode:
            setup.chosen_mode = mode
        await self._detach()
        if self._engine is not None:
            await self._let_go(self._engine)
        try:
            await self._start(setup, provider)
        except BaseException:  # back to where we were
            self.setup, self._engine = before, None
            session = await self.engine.session(session_id or None)
            record_mode(session)
            self._set_own(session)
            raise

    async def _let_go(self, engine: Engine) -> None:
        """Close an engine, unless a turn still runs in it: then it is kept until we leave."""
        if any(each.is_busy for each in engine.sessions()):
            self._left.add(engine)
            return
        self._left.discard(engine)
        if self._service is not None:
            self._service.engines.release(engine)
        await engine.close()

    async def _start(self, setup: Setup, provider: Provider) -> None:
        self.setup = setup
        self._engine = engine = self._make_engine(setup, provider)
        try:
            self.seen = setup.last_seq
            self._set_own(await setup.session(engine))
        except BaseException:
            if self._service is not None:
                self._service.engines.release(engine)
            await engine.close()
            raise

    def _make_engine(self, setup: Setup, provider: Provider) -> Engine:
        engine = setup.engine(provider, self._approver, self._face, on_ask="wait")
        if self._service is not None:
            self._service.engines.adopt(engine)
        return engine

    def _set_own(self, session: Session) -> None:
        self.session, self._own, self._attached = session, session, None

    def _set_attached(self, attached: "_Attached") -> None:
        self.session, self._own, self._attached = attached.session, None, attached

    async def _move_to_own(self, session: Session, seen: int) -> None:
        """Go on to a session in an engine of ours; leave the one before."""
        await self._detach()
        self._set_own(session)
        self.seen = seen
        mode = self._chosen_mode
        if mode is not None and session.mode != mode:
            await session.set_mode(mode)

    async def _move_to_attached(self, attached: "_Attached", seen: int) -> None:
        """Go on to a session of another process; leave the one before."""
        await self._detach()
        self._set_attached(attached)
        self.seen = seen

    async def _detach(self) -> None:
        """Leave the session that is talked to. What runs in it here goes on."""
        if self._attached is not None:
            attached, self._attached = self._attached, None
            await attached.close()
        elif self._own is not None and self._own.is_inactive:
            await self._own.close()


class _Attached:
    """A session that another process owns, and the service through which it is reached.

    `where` is what that process is called, if it is a server.
    """

    def __init__(
        self,
        session: "FollowedSession",
        service: SessionService,
        leaving: AsyncExitStack,
        where: str = "",
    ) -> None:
        self.session = session
        self.service = service
        self.where = where
        self._leaving = leaving

    async def close(self) -> None:
        """Stop following it; it goes on where it is."""
        await self.session.close()
        await self._leaving.aclose()


async def _connect_background(session_id: str, tell: Callable[[str], None]) -> _Attached:
    """Attach through the process for background sessions, which resumes the session if needed."""
    from bridle.cli.background_server import connect_background

    async with AsyncExitStack() as leaving:
        client = await leaving.enter_async_context(connect_background(session_id, tell))
        session = await client.session(session_id)
        return _Attached(session, client, leaving.pop_all(), client.where)
    raise AssertionError("the block returns or raises")


class EarlierSessions:
    """The sessions of this user before one is opened: what `bridle --resume` lets choose from."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.workspace = os.path.realpath(flags.get("workspace") or ".")
        self._flags = flags
        self._settings: Settings = load_settings(to_settings({**flags, "resume": None})).settings
        self._backend = _Sessions(flags)

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[SessionInfo, ...]:
        """Return the newest sessions that fit, and what each does."""
        return await self._backend.sessions(query, limit)

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """Return the end of a session's conversation as plain text."""
        return await self._backend.preview(session_id, lines)

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked` if another process has it open."""
        await rename_closed(self._backend.folder, session_id, title)

    async def delete(self, session_id: str) -> None:
        """Delete a session for good. Raise `SessionLocked` if another process has it open."""
        await self._backend.service.delete(session_id, user_name())

    def news(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions has changed. Never ends."""
        return self._backend.news()

    async def close(self) -> None:
        """Close what was opened to list them."""
        await self._backend.service.stop(_CLOSING)


class _Sessions(AllSessions):
    """All sessions of this user, and no conversation."""

    def __init__(self, flags: dict[str, Any]) -> None:
        self.here = describe_process(os.getpid())
        self.folder = SessionFolder(state_folder(os.environ))
        self._flags = flags
        self._service: LocalService | None = None

    @property
    def me(self) -> str:
        """Who sits here."""
        return user_name()

    @property
    def service(self) -> "LocalService":
        """All sessions of this user."""
        if self._service is None:
            self._service = make_service(self.folder, self._flags, "tui")
        return self._service


async def rename_closed(folder: SessionFolder, session_id: str, title: str) -> None:
    """Give a session that is not open here a title, without running anything in it."""
    summary = await asyncio.to_thread(find_session, folder, session_id)
    await asyncio.to_thread(edit_session, summary, lambda session: session.rename(title))


@contextmanager
def collected_warnings(remarks: list[str] | None) -> Iterator[None]:
    """Collect warnings that commands print on standard error; None leaves them there."""
    before = COLLECTED.set(remarks)
    try:
        yield
    finally:
        COLLECTED.reset(before)
