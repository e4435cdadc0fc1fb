"""Where sessions live, as a face at a terminal needs it: in this process, or on a server.

The screen and the REPL know this protocol alone. `cli/local_backend.py` implements it for this
machine, `remote_backend.py` over HTTP. Everything here is a value or a protocol.
Text in these values comes from files, models and servers: whoever shows it neutralises it.
"""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from bridle.events import ApprovalAsked
from bridle.policy import Mode
from bridle.presentation.commands import Command
from bridle.protocols.session import Answer, Conversation
from bridle.protocols.session_values import Choice, SearchHit, SessionInfo, UndoPreview


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


class House(SessionList, Protocol):
    """One conversation at a time, and everything around it. Raises `AgentError` and nothing else.

    A verb that moves to another session changes `session`; the caller then watches that one. Verbs
    that cannot be done change nothing.
    """

    session: Conversation
    seen: int  # the newest record as it was entered: what comes after it is news

    async def enter(self) -> None:
        """Be in the session that was asked for, or in a new one (written at its first prompt)."""
        ...

    async def leave(self) -> None:
        """Let everything go; what runs elsewhere goes on."""
        ...

    @property
    def is_settled(self) -> bool:
        """While it is left: is the end of everything that ran in this process in its log?"""
        ...

    @property
    def is_own(self) -> bool:
        """Whether the session is in an engine of this process, which asks for approvals itself."""
        ...

    @property
    def is_begun(self) -> bool:
        """Is there a log of this session yet?"""
        ...

    @property
    def began(self) -> int:
        """From which record on a face shows the session; 0: from its beginning."""
        ...

    @property
    def me(self) -> str:
        """The name under which the person here does things: it stands in logs, and is not shown."""
        ...

    @property
    def model(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def mode(self) -> Mode:
        """What holds for the next call, also before the first prompt."""
        ...

    @property
    def place(self) -> Place: ...
    @property
    def window(self) -> int:
        """The model's context window in tokens; 0: not known."""
        ...

    def commands(self) -> tuple[Command, ...]:
        """The user's own `/` commands that count here."""
        ...

    def again(self) -> str:
        """The command that comes back to this session; empty where there is nothing to come to."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What is worth a line to the person and is no error; each is handed out once."""
        ...

    async def renew(self) -> None:
        """A new session, in the mode that the settings say."""
        ...

    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id or of its last part.

        One that another process holds is attached to: watched, answered, steered, stopped.
        """
        ...

    async def fork(self, at: int | None) -> None: ...
    async def rewind(self, turns: int) -> int: ...
    async def change_model(self, name: str) -> None: ...
    async def change_agent(self, name: str) -> None: ...
    async def change_mode(self, mode: Mode) -> None: ...
    async def search(self, words: str, limit: int = 20) -> tuple[SearchHit, ...]: ...
    async def export(self, path: Path, form: str, *, force: bool = False) -> tuple[Path, int]:
        """Write this session to a private file of this machine: where it is, how many bytes."""
        ...

    async def undo_preview(self, turn: int = 0) -> UndoPreview: ...
    async def undo(self, shown: UndoPreview) -> None: ...
    async def models(self) -> tuple[Choice, ...]: ...
    async def agents(self) -> tuple[Choice, ...]: ...
    async def tools(self) -> tuple[Choice, ...]: ...
    async def mcp(self) -> tuple[Choice, ...]: ...
    async def rules(self) -> tuple[Choice, ...]:
        """The rules that hold, the mode, the grants of this session."""
        ...

    async def budget(self) -> tuple[tuple[str, str, str], ...]:
        """Limits as name, used, most."""
        ...

    async def set_budget(self, money: float) -> None: ...
    async def doctor(self) -> tuple[str, ...]:
        """What was found on the machine where the sessions live, a line each."""
        ...

    async def files(self, query: str, limit: int = 50) -> tuple[str, ...]:
        """Files of the workspace that fit, the best first; what git ignores is left out."""
        ...

    async def pending(self) -> tuple[Asked, ...]:
        """The questions of all sessions that wait for an answer, this one's among them."""
        ...

    async def answer(self, session_id: str, asked: ApprovalAsked, answer: Answer) -> None:
        """Answer a question of any session; the first answer wins."""
        ...

    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """The proposed rule, what it would have covered, where it goes: a line each."""
        ...

    def current(self, asked: ApprovalAsked) -> str | None:
        """What the file that a call would change holds now; None: not known."""
        ...
