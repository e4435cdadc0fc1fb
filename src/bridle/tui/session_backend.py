"""One conversation at a time, and what a person asks about all sessions: over any service."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from msgspec import MsgspecError, Struct, json
from msgspec.structs import asdict, replace

from bridle.errors import ConfigError, SessionBusy, SessionError
from bridle.events import ApprovalAsked, MessageAdded, PromptReceived, Rewound
from bridle.messages import Message
from bridle.policy import Mode
from bridle.presentation.amounts import budget_lines
from bridle.presentation.commands import Command
from bridle.protocols.codec import decode_data
from bridle.protocols.session import Answer, Conversation
from bridle.protocols.session_service import SessionService
from bridle.protocols.session_values import (
    ApprovalAnswer,
    ApprovalRequest,
    Budget,
    Choice,
    Choices,
    SearchHit,
    SessionInfo,
    SessionLimits,
    SessionUpdate,
    UndoPreview,
    UndoRequest,
)
from bridle.workspace import fs
from bridle.workspace.text import quantity

_PAGE = 200  # sessions that are asked for at a time
_PAGES = 500  # a server whose list never ends is not asked for ever
_NAMED = 3  # calls that are listed by name


class Asked(Struct, frozen=True, kw_only=True):
    """A question of any session that waits for a person."""

    session_id: str
    title: str
    asked: ApprovalAsked
    diff: str = ""


class Place(Struct, frozen=True, kw_only=True):
    """What the status bar says besides model, agent and mode."""

    workspace: str
    sandbox: str = ""  # the active level, or "none"; empty: not known
    branch: str = ""
    server: str = ""  # empty: here


class SessionList(Protocol):
    """The sessions of a user. Raises `AgentError` and nothing else."""

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[SessionInfo, ...]:
        """Return the newest sessions that fit, and what each does."""
        ...

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """Return the end of a session's conversation as plain text."""
        ...

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title. Raise `SessionLocked` if another process has it open."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; one that runs is refused."""
        ...

    def news(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions changed. Never ends."""
        ...


class AllSessions(ABC):
    """What can be asked about all sessions of a service."""

    here = ""  # how `SessionInfo.holder` describes this process

    @property
    @abstractmethod
    def service(self) -> SessionService:
        """Where the sessions are."""
        ...

    @property
    @abstractmethod
    def me(self) -> str:
        """The name under which the person here does things."""
        ...

    async def sessions(self, query: str = "", limit: int = 200) -> tuple[SessionInfo, ...]:
        """Return the newest sessions that fit, and what each does."""
        infos: list[SessionInfo] = []
        async for page in pages(self.service, query, min(_PAGE, limit)):
            infos += page[: limit - len(infos)]
            if len(infos) >= limit:
                break
        return tuple(
            replace(info, holder="here") if self.here and info.holder == self.here else info
            for info in infos
        )

    async def preview(self, session_id: str, lines: int = 40) -> str:
        """Return the end of a session's conversation as plain text."""
        return ending((await self.service.history(session_id)).messages, lines)

    async def search(self, words: str, limit: int = 20) -> tuple[SearchHit, ...]:
        """Return where the words occur, in all sessions."""
        return (await self.service.search(words, limit)).hits

    async def pending(self) -> tuple[Asked, ...]:
        """Return the approval requests of all sessions that need an answer."""
        requests = (await self.service.pending()).approvals
        asked = (asked_of(request) for request in requests if not request.posted)
        return tuple(each for each in asked if each is not None)

    def news(self) -> AsyncGenerator[None, None]:
        """Yield each time something about the sessions has changed. Never ends."""
        return self.service.changes()


class SessionBackend(AllSessions):
    """One conversation at a time, and what can be asked about all sessions of a service.

    `service` may take a while to be ready, so it is a property. The subclasses know how to move
    from one session to another.
    """

    session: Conversation
    seen: int = 0  # the newest record of the session as it was entered: what follows is new

    @property
    def session_service(self) -> SessionService:
        """Where the verbs for this session go."""
        return self.service

    @property
    def is_own(self) -> bool:
        """Whether the session is in an engine of this process, which asks for approvals itself."""
        return False

    @abstractmethod
    async def enter(self) -> None:
        """Be in the session that was asked for, or in a new one (written at its first prompt)."""
        ...

    @abstractmethod
    async def leave(self) -> None:
        """Let everything go; what runs elsewhere goes on."""
        ...

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """While it is left: is the end of everything that ran in this process in its log?"""
        ...

    @property
    @abstractmethod
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        ...

    @property
    @abstractmethod
    def began(self) -> int:
        """From which record on a face shows the session; 0: from its beginning."""
        ...

    @property
    @abstractmethod
    def model(self) -> str: ...

    @property
    @abstractmethod
    def agent(self) -> str: ...

    @property
    @abstractmethod
    def mode(self) -> Mode:
        """What holds for the next call, also before the first prompt."""
        ...

    @property
    @abstractmethod
    def place(self) -> Place: ...

    @property
    @abstractmethod
    def window(self) -> int:
        """The model's context window in tokens; 0: not known."""
        ...

    @abstractmethod
    def commands(self) -> tuple[Command, ...]:
        """The user's own `/` commands that count here."""
        ...

    @abstractmethod
    def again(self) -> str:
        """The command that comes back to this session; empty where there is nothing to come to."""
        ...

    @abstractmethod
    def remarks(self) -> tuple[str, ...]:
        """What is worth a line to the person and is no error; each is handed out once."""
        ...

    @abstractmethod
    async def renew(self) -> None:
        """A new session, in the mode that the settings say."""
        ...

    @abstractmethod
    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id or of its last part.

        One that another process holds is attached to: watched, answered, steered, stopped.
        """
        ...

    @abstractmethod
    async def fork(self, at: int | None) -> None: ...

    @abstractmethod
    async def change_model(self, name: str) -> None: ...

    @abstractmethod
    async def change_agent(self, name: str) -> None: ...

    @abstractmethod
    async def models(self) -> tuple[Choice, ...]: ...

    @abstractmethod
    async def agents(self) -> tuple[Choice, ...]: ...

    @abstractmethod
    async def doctor(self) -> tuple[str, ...]:
        """What was found on the machine where the sessions live, a line each."""
        ...

    @abstractmethod
    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """The proposed rule, what it would have covered, where it goes: a line each."""
        ...

    @abstractmethod
    def current(self, asked: ApprovalAsked) -> str | None:
        """What the file that a call would change holds now; None: not known."""
        ...

    # All sessions

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session a title."""
        if session_id == self.session.id:
            await self.session.rename(title)
        else:
            await self.service.change(session_id, SessionUpdate(title=title), self.me)

    async def delete(self, session_id: str) -> None:
        """Delete a session for good; not one that is running, or this one."""
        if session_id == self.session.id:
            raise SessionBusy(
                "this is the session that you are in, and it was not deleted",
                hint="Switch to another session first: /new, or /resume ID.",
            )
        if (await self.service.info(session_id)).state == "running":
            raise SessionBusy(
                f"session {session_id} runs, and was not deleted", hint="Stop it first."
            )
        await self.service.delete(session_id, self.me)

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Answer an approval request of any session; the first answer wins."""
        by = answer.by or self.me
        if session_id == self.session.id:
            await self.session.answer(asked.call.id, answer, shown=asked.shown, by=by)
        else:
            await self.service.answer(session_id, asked.call.id, to_wire(answer, asked.shown), by)

    # This session

    async def undo_preview(self, turn: int = 0) -> UndoPreview:
        """Return what undoing a turn (0: the newest that changed something) would do."""
        return await self.session_service.undo_preview(self.session.id, turn)

    async def undo(self, shown: UndoPreview) -> None:
        """Restore what was shown, also files that have changed since."""
        request = UndoRequest(shown.turn, shown.token, "overwrite")
        await self.session_service.undo(self.session.id, request, self.me)

    async def tools(self) -> tuple[Choice, ...]:
        """Return the tools that the model has."""
        return (await self.session_service.tools(self.session.id)).choices

    async def mcp(self) -> tuple[Choice, ...]:
        """Return the MCP servers of the session's folder."""
        return (await self.session_service.mcp_servers(self.session.id)).choices

    async def rules(self) -> tuple[Choice, ...]:
        """Return the mode, the grants and the rules of this session."""
        return (await self.session_service.rules(self.session.id)).choices

    async def budget(self) -> tuple[tuple[str, str, str], ...]:
        """Return the limits as name, used, most."""
        return budget_rows(await self.session_service.budget(self.session.id))

    async def set_budget(self, money: float) -> None:
        """Lower the limit for the session's money, from the next turn on."""
        check_amount(money)
        limits = SessionLimits(max_session_cost=money)
        await self.session_service.set_budget(self.session.id, limits, self.me)

    async def files(self, query: str, limit: int = 50) -> tuple[str, ...]:
        """Return files of the workspace that fit, the best first."""
        return (await self.session_service.files(self.session.id, query, limit)).paths

    async def rewind(self, turns: int) -> int:
        """Go back by so many turns; return the record that it went back to."""
        place = await record_before(self.session, turns)
        await self.session.rewind(place, by=self.me)
        return place

    async def change_mode(self, mode: Mode) -> None:
        """Set what may run without asking, from the next call on."""
        await self.session.set_mode(mode, by=self.me)

    async def export(self, path: Path, form: str, *, force: bool = False) -> tuple[Path, int]:
        """Write this session to a private file of this machine; return its path and size."""
        pieces = self.session_service.export(self.session.id, form)
        data = b"".join([piece async for piece in pieces])
        return await asyncio.to_thread(_write_private, path, data, force)


async def pages(
    service: SessionService, query: str = "", size: int = _PAGE
) -> AsyncGenerator[tuple[SessionInfo, ...], None]:
    """Yield all sessions, page by page."""
    cursor = ""
    for _ in range(_PAGES):
        page = await service.list(query, size, cursor)
        yield page.sessions
        if not page.sessions or not (cursor := page.next):
            return


def display_state(info: SessionInfo) -> str:
    """Return what a session does, as people see it.

    `asks`: its owner waits for an answer. `parked`: nobody owns it, and answers are missing.
    `stopped`: a person interrupted it. Otherwise the state.
    """
    if info.waiting and not info.holder:
        return "parked"
    if info.state == "waiting":
        return "asks"
    return "stopped" if info.state == "failed" and info.reason == "interrupted" else info.state


def ending(messages: Iterable[Message], lines: int) -> str:
    """Return the last lines of a conversation, with who said each."""
    text: list[str] = []
    for message in messages:
        if message.role in ("user", "assistant") and message.content.strip():
            mark = "> " if message.role == "user" else ""
            text += [mark + line for line in message.content.strip().splitlines()] + [""]
        text += [f"[{call.name}]" for call in message.tool_calls]
    return "\n".join(text[-lines:]).strip("\n")


def asked_of(request: ApprovalRequest) -> Asked | None:
    """Return the approval request; None if its parts contradict each other."""
    try:
        asked = decode_data(json.encode({**request.asked, "type": "approval_asked"}))
    except (MsgspecError, UnicodeEncodeError, TypeError, ValueError):
        return None
    if not isinstance(asked, ApprovalAsked):
        return None
    if (asked.call.id, asked.shown) != (request.call_id, request.shown) or not request.session_id:
        return None
    return Asked(
        session_id=request.session_id,
        title=request.session_title,
        asked=asked,
        diff=request.diff,
    )


def to_wire(answer: Answer, shown: str) -> ApprovalAnswer:
    """Return an answer to the request with this fingerprint."""
    return ApprovalAnswer(answer.allowed, shown, answer.scope, answer.word, answer.rule)


def with_chosen(choices: Choices, chosen: str) -> tuple[Choice, ...]:
    """Return the choices; `chosen` is the default, and first if it is not among them."""
    marked = tuple(
        replace(choice, default=is_same(choice.name, chosen)) for choice in choices.choices
    )
    if not any(choice.default for choice in marked):
        return (Choice(chosen, default=True), *marked)
    return marked


def is_same(name: str, chosen: str) -> bool:
    """Do both name one choice? Models that answer from here have two spellings: `offline` and
    `offline/offline`, `scripted:FILE` and `scripted/MODEL`."""
    vendor, _, model = chosen.partition("/")
    written_so = "scripted:" if vendor == "scripted" else "\0"
    return name == chosen or (name == vendor == model) or name.startswith(written_so)


def budget_rows(budget: Budget) -> tuple[tuple[str, str, str], ...]:
    """Return limits as name, used, most."""
    return budget_lines(asdict(budget.limits), budget.metrics)


def check_amount(money: float) -> None:
    """Raise `SessionError` if this is no amount of money."""
    if not 0 < money < 1e9:
        raise SessionError(
            "that is not an amount of money",
            hint="Enter an amount in dollars, for example 2.50.",
        )


async def record_before(session: Conversation, turns: int) -> int:
    """Return the record just before the last so many turns of the conversation."""
    prompts: dict[int, int] = {}  # received: its turn, by number of record
    begins: list[tuple[int, int]] = []  # turn, and the record of its first prompt
    newest = session.seq
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            match record.event:
                case PromptReceived(turn=turn):
                    prompts[record.seq] = turn
                case MessageAdded(prompt=prompt) if prompt in prompts:
                    if not begins or begins[-1][0] != prompts[prompt]:
                        begins.append((prompts[prompt], prompt))
                case Rewound(to=to):
                    begins = [begin for begin in begins if begin[1] <= to]
            if record.seq >= newest:
                break
    if not 0 < turns <= len(begins):
        count = quantity(len(begins), "turn")
        raise SessionError(f"the conversation has {count}, and {turns} were to go")
    return begins[-turns][1] - 1


def _write_private(path: Path, data: bytes, force: bool) -> tuple[Path, int]:
    full = Path.cwd() / path.expanduser()
    try:
        fs.write_private(full, data, sync=True, overwrite=force)
    except FileExistsError:
        raise ConfigError(
            f"{full} exists already, and was not changed", hint="Name another file."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{full} cannot be written: {error.strerror}", hint="Name another file."
        ) from error
    return full, len(data)
