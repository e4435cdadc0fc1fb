"""What whoever starts the server knows and it does not: settings, keys, models, who carried what.

Values and a promise; nothing is made here.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from bridle.engine.engine import Engine
from bridle.policy import Mode
from bridle.protocols.provider import Provider
from bridle.stores.reader import SessionFolder

FACE = "acp"  # in the log: where the session was begun


class EditorMcpServer(Struct, frozen=True):
    """An MCP server that the editor names: a program with its words, or an address."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"<server {self.name}>"  # variables and headers may be secret


class EngineKey(Struct, frozen=True):
    """Where sessions work: the folder that the editor names, and what it has there.

    `agent` carries the turns where it is another than usual: a session that another agent carried
    is carried on by it.
    """

    workspace: str
    also: tuple[str, ...] = ()
    servers: tuple[EditorMcpServer, ...] = ()
    agent: str = ""


class EditorHost(Protocol):
    """Whoever started the server."""

    @property
    def folder(self) -> SessionFolder:
        """Where the sessions are kept."""
        ...

    @property
    def person(self) -> str:
        """In whose name prompts and answers are recorded."""
        ...

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Those that may be chosen."""
        ...

    def engine(self, place: EngineKey) -> Engine:
        """A new engine for that place. Raise `ConfigError`."""
        ...

    def carrier(self, session_id: str) -> str:
        """The agent that carried a session; empty where it is the usual one."""
        ...

    def models(self) -> Sequence[str]:
        """Names of models that may be chosen, beside the one in use."""
        ...

    def provider(self, model: str) -> Provider:
        """The side of that model. Raise `ConfigError`."""
        ...
