"""From settings to a chat that can be served: its database, its model, its keys, its application.

The settings are one plain value, because a worker process gets them as JSON through a pipe: a
secret is in no argument list and in no environment.
"""

from pathlib import Path

from msgspec import Struct

from bridle.chat.app import ChatApp
from bridle.chat.app_named import named_app
from bridle.chat.service_values import ServiceLimits
from bridle.server.chat import ChatServer
from bridle.server.chatting.bearing import AUDIENCE, Bearing, Keys, KeySet, Secret
from bridle.server.chatting.room import ChatRoom
from bridle.server.guard import Names


class ChatSetup(Struct, frozen=True, kw_only=True):
    """How a chat is served. `secret` or `jwks`; `app` is MODULE:NAME of an application.

    `model` empty: the one whose key is there, or else the assistant's own rules. `database` empty:
    the application's own.
    """

    database: str
    secret: str = ""
    jwks: str = ""
    audience: str = AUDIENCE
    issuer: str = ""
    model: str = ""
    app: str = ""
    a_minute: int = 60
    a_day: float = 0.0
    host: str = "127.0.0.1"
    port: int = 0
    allowed: tuple[str, ...] = ()
    log: str = ""

    def __repr__(self) -> str:
        """For logs: neither the secret nor the password of the database."""
        return f"ChatSetup(app={self.app!r}, host={self.host!r}, port={self.port})"


def server_of(setup: ChatSetup, *, alone: bool = True) -> ChatServer:
    """The chat that the settings describe. Raise `ConfigError`."""
    names = Names(setup.port, setup.host, setup.allowed)
    return ChatServer(ChatRoom(app_of(setup), bearing_of(setup)), names, alone=alone)


def bearing_of(setup: ChatSetup) -> Bearing:
    """Who is believed."""
    keys: Keys = KeySet(Path(setup.jwks)) if setup.jwks else Secret(setup.secret)
    return Bearing(keys, setup.audience, setup.issuer)


def app_of(setup: ChatSetup) -> ChatApp:
    """The task assistant, or the application that was named. Raise `ConfigError`."""
    if setup.app:
        return named_app(setup.app, setup.database, setup.model)
    limits = ServiceLimits(messages_a_minute=setup.a_minute, dollars_a_day=setup.a_day)
    return ChatApp(database=setup.database, provider=setup.model or None, limits=(limits,))
