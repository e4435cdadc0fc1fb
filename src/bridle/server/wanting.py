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
from bridle.server.refusals import UnknownWorkspace
from bridle.stores.carrier import carried
from bridle.stores.copying import is_imported


class Earlier(Struct, frozen=True):
    """Where a session worked, and who carried it; `model` is as the log has it."""

    workspace: str
    model: str = ""
    agent: str = ""

    def wanted(self, usual: Engine) -> Wanted:
        """What to ask for, where this is how sessions usually go on there."""
        label, agent = usual.provider.info.label, usual.parts.agent
        if self.agent:
            return Wanted(self.workspace, agent="" if self.agent == label else self.agent)
        if not self.model or self.model == label:
            return Wanted(self.workspace)
        provider, _, model = self.model.partition("/")
        return Wanted(self.workspace, provider, model, LOOP if agent is not None else "")


def earlier(ground: Ground, session_id: str) -> Earlier:
    """How that session was carried last. Raise `UnknownSession`, `UnknownWorkspace`."""
    _, head = ground.known(session_id)
    if is_imported(ground.folder, session_id):
        raise UnknownWorkspace(
            f"session {session_id} was brought in from elsewhere, and has no folder here yet",
            hint="Resume it with the workspacePath that it is to work in.",
        )
    found = carried(ground.folder.path(session_id))
    there = found.workspace if ground.allows(found.workspace) else ""
    workspace = there if there and Path(there).is_dir() else head.workspace
    if not workspace or not Path(workspace).is_dir():
        raise UnknownWorkspace(
            f"the folder {workspace!r} of session {session_id} is not there",
            hint="If it was moved, resume the session with its workspacePath.",
        )
    named = found.agent if is_agent(found.agent) else found.model
    agent = named if is_agent(named) else ""
    return Earlier(str(Path(workspace).resolve()), "" if agent else found.model, agent)
