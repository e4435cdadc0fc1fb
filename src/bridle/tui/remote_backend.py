"""Sessions on a server: the same conversation, over `bridle.client`.

Nothing is read from this machine's sessions; lists, files and rules come from the server. What it
says is somebody else's text: whoever shows it neutralises it.
"""

import os
from shlex import quote

from bridle.client import Client, FollowedSession, SessionInfo
from bridle.config.user_commands import load_user_commands, user_command_folder
from bridle.errors import SessionError, UnknownSession
from bridle.events import ApprovalAsked
from bridle.policy import MODES, Mode
from bridle.presentation.commands import Command
from bridle.protocols.session import Conversation
from bridle.protocols.session_service import SessionService
from bridle.protocols.session_values import Choice
from bridle.tui.session_backend import Place, SessionBackend, pages, with_chosen
from bridle.workspace.text import one_line

_CALLS = 3  # that are listed by name


class RemoteBackend(SessionBackend):
    """A conversation on a server. `again` is the beginning of the address to come back to."""

    def __init__(
        self, client: Client, session: FollowedSession, *, again: str = "", me: str = "me"
    ) -> None:
        self._client = client
        self._followed = session
        self._again = again
        self._me = me
        self.session: Conversation = session
        self.seen = session.seq

    @property
    def service(self) -> SessionService:
        """The server."""
        return self._client

    async def enter(self) -> None:
        """Read what stands beside the session, which is open already."""
        await self._followed.refresh()

    async def leave(self) -> None:
        """Stop watching; the session goes on."""
        await self._followed.close()

    @property
    def is_begun(self) -> bool:
        """Whether the session has a log: on a server it always has."""
        return True

    @property
    def is_settled(self) -> bool:
        """Whether everything that ran in this process is recorded: nothing runs here."""
        return True

    @property
    def began(self) -> int:
        """The record from which on the session is shown: its beginning."""
        return 0

    @property
    def me(self) -> str:
        """Who we are to the server."""
        return self._me

    @property
    def model(self) -> str:
        """The model's name, with its provider's."""
        return self._followed.model or "a model of the server's"

    @property
    def agent(self) -> str:
        """The agent that runs the turns."""
        return self._followed.agent

    @property
    def mode(self) -> Mode:
        """What holds for the next call. A mode that we do not know is shown as the strictest."""
        mode = self._followed.mode
        return mode if mode in MODES else "plan"

    @property
    def place(self) -> Place:
        """The folder that is worked on, and the server."""
        return Place(workspace=self._followed.workspace, server=self._client.where)

    @property
    def window(self) -> int:
        """The model's context window; 0: not known."""
        return self._followed.window or 0

    def commands(self) -> tuple[Command, ...]:
        """The user's own commands of this machine; a folder on a server has none here."""
        return load_user_commands(user_command_folder(os.environ))

    def again(self) -> str:
        """The command that comes back to this session."""
        name = quote(one_line(self._followed.id, 100))
        return f"bridle attach {self._again} {name}" if self._again else f"bridle attach {name}"

    def remarks(self) -> tuple[str, ...]:
        """Nothing: what becomes of the connection is reported where the client was made."""
        return ()

    async def renew(self) -> None:
        """Begin a new session, in the same folder and in the server's usual mode."""
        await self._move(await self._client.session(workspace=self._followed.workspace))

    async def resume(self, start: str) -> None:
        """Go to another session, by the beginning of its id or of its last part."""
        info = await find_session(self._client, start)
        if info.id != self._followed.id:
            await self._move(await self._client.session(info.id))

    async def fork(self, at: int | None) -> None:
        """Go on in a copy of this session; this one stays as it is."""
        copy = await self._followed.fork(at)
        await self._move(await self._client.session(copy.id))

    async def change_model(self, name: str) -> None:
        """Use another model for the same session. If it cannot be had, nothing changes."""
        await self._followed.configure(model=name)

    async def change_agent(self, name: str) -> None:
        """Use another agent for the same session. If it cannot be had, nothing changes."""
        await self._followed.configure(agent=name)

    async def models(self) -> tuple[Choice, ...]:
        """Return the models that the server offers."""
        return with_chosen(await self._client.models(), self.model)

    async def agents(self) -> tuple[Choice, ...]:
        """Return the agents that the server offers."""
        return with_chosen(await self._client.agents(), self.agent)

    async def doctor(self) -> tuple[str, ...]:
        """Return what was found on the server's machine, a line each."""
        return (await self._client.doctor()).lines

    async def preview_rule(self, session_id: str, asked: ApprovalAsked) -> tuple[str, ...]:
        """Return the proposed rule, what it would have covered, and where it goes."""
        rule = asked.proposal
        calls = (await self._client.preview_rule(session_id, rule)).calls
        several = f"{len(calls)} calls" if len(calls) > 1 else "one call"
        some = f": {', '.join(calls[:_CALLS])}" if calls else ""
        covered = f"it would have covered {several if calls else 'none'} of this session{some}"
        return f"{rule}, in this folder alone", covered, "into the server's own rules"

    def current(self, asked: ApprovalAsked) -> str | None:
        """Return None: the files may be on another machine."""
        return None

    async def _move(self, session: FollowedSession) -> None:
        """Go on to another session, and stop watching the one before."""
        before, self._followed = self._followed, session
        self.session, self.seen = session, session.seq
        await before.close()
        await session.refresh()


async def find_session(client: Client, start: str) -> SessionInfo:
    """Return the session whose id begins so, or its last part. Raise `UnknownSession`."""
    found: list[SessionInfo] = []
    async for page in pages(client):
        found += [info for info in page if _is_meant(info.id, start)]
    exact = [info for info in found if info.id == start]
    if not found:
        raise UnknownSession(f"the server has no session {start!r}")
    if len(exact or found) > 1:
        some = ", ".join(info.id for info in found[:4])
        raise SessionError(
            f"{len(found)} sessions begin with {start!r}", hint=f"For example {some}."
        )
    return (exact or found)[0]


def _is_meant(session_id: str, start: str) -> bool:
    return bool(start) and (
        session_id.startswith(start) or session_id.rpartition("-")[2].startswith(start)
    )
