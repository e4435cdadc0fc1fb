"""What a session had when it was carried last, and so what it is to have again. Reads the log.

A log that was brought in from elsewhere names folders and programs of another machine: of that
nothing counts.
"""

from pathlib import Path

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.runtime.agents import LOOP, is_agent
from bridle.server.ground import Ground
from bridle.server.opening import Wanted
from bridle.server.refusals import OtherWorkspace, UnknownWorkspace
from bridle.stores.session_index import last_run
from bridle.stores.transfer import is_imported


class Earlier(Struct, frozen=True):
    """Where a session works, and who carried it; `model` is as the log has it.

    `moved`: it is to have this folder because its own is not here.
    """

    workspace: str
    model: str = ""
    agent: str = ""
    moved: bool = False
    effort: str = ""

    @property
    def who(self) -> str:
        """Who carried it, in words."""
        return self.agent or self.model

    def wanted(self, usual: Engine) -> Wanted:
        """What to ask for, where this is how sessions usually go on there."""
        label, agent = usual.provider.info.label, usual.parts.agent
        if self.agent:
            return Wanted(self.workspace, agent="" if self.agent == label else self.agent)
        if not self.model or self.model == label:
            told = usual.parts.config.effort
            return Wanted(self.workspace, effort="" if self.effort == told else self.effort)
        provider, _, model = self.model.partition("/")
        loop = LOOP if agent is not None else ""
        return Wanted(self.workspace, provider, model, loop, self.effort)


def earlier(ground: Ground, session_id: str, path: str = "") -> Earlier:
    """How that session was carried last. Raise `UnknownSession`, `UnknownWorkspace`.

    A `path` is the folder that it is to work in. One whose own folder is there stays in it, because
    what it read, changed and was allowed is of that folder: raise `OtherWorkspace`.
    """
    _, head = ground.known(session_id)
    wanted = ground.workspace(path) if path else ""
    if is_imported(ground.folder, session_id):
        if wanted:
            return Earlier(wanted, moved=True)
        raise UnknownWorkspace(
            f"session {session_id} was brought in from elsewhere, and has no folder here yet",
            hint="Resume it with the workspacePath that it is to work in.",
        )
    found = last_run(ground.folder.path(session_id))
    own = _own(ground, found.workspace, head.workspace)
    if not own and not wanted:
        raise UnknownWorkspace(
            f"the folder {head.workspace!r} of session {session_id} is not there",
            hint="If it was moved, resume the session with its workspacePath.",
        )
    if own and wanted not in ("", own):
        raise OtherWorkspace(f"session {session_id} works in {own!r}, and stays there")
    named = found.agent if is_agent(found.agent) else found.model
    agent = named if is_agent(named) else ""
    model, effort = ("", "") if agent else (found.model, found.effort)
    return Earlier(own or wanted, model, agent, not own, effort)


def _own(ground: Ground, newest: str, first: str) -> str:
    """The folder of a session, where it is there."""
    allowed = newest if ground.allows(newest) else ""
    places = (Path(one) for one in (allowed, first) if one)
    return next((str(one.resolve()) for one in places if one.is_dir()), "")
