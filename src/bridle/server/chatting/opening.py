"""From settings to a chat that can be served: its database, its model, its keys, its application.

The settings are one plain value, because a worker process gets them as JSON through a pipe: a
secret is in no argument list and in no environment.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.chat.app import ChatApp
from bridle.chat.service_values import ServiceLimits
from bridle.errors import ConfigError
from bridle.server.chat import ChatServer
from bridle.server.chatting.bearing import AUDIENCE, Bearing, Keys, KeySet, Secret
from bridle.server.chatting.room import ChatRoom
from bridle.server.guard import Names


class ChatSetup(Struct, frozen=True, kw_only=True):
    """How a chat is served. `secret` or `jwks`; `app` is MODULE:NAME of an application.

    `model` empty: the one whose key is there, or else the assistant's own rules.
    """

    database: str
    secret: str = ""
    jwks: str = ""
    audience: str = AUDIENCE
    issuer: str = ""
    model: str = ""
    app: str = ""
    a_minute: int = 60
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
        return _named(setup)
    return ChatApp(
        database=setup.database,
        provider=setup.model or None,
        limits=(ServiceLimits(messages_a_minute=setup.a_minute),),
    )


def _named(setup: ChatSetup) -> ChatApp:
    """It is a `ChatApp`, or a function that makes one for a database."""
    module, _, name = setup.app.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = getattr(import_module(module), name or "app", None)
    except (ModuleNotFoundError, ValueError) as error:
        raise ConfigError(
            f"there is no module {module} with an application in it",
            error,
            hint="Name it as module:name, and start the server in the folder of your project.",
        ) from error
    if callable(found) and not isinstance(found, ChatApp):
        found = _made(found, setup)
    if not isinstance(found, ChatApp):
        raise ConfigError(
            f"{setup.app} is no chat",
            hint="It has to be a ChatApp, or a function of a database's URL that returns one.",
        )
    return found


def _made(make: Callable[..., Any], setup: ChatSetup) -> Any:
    """What a function makes of the database; and of the model, where it takes one."""
    takes = signature(make).parameters
    more = {"provider": setup.model or None} if "provider" in takes else {}
    return make(setup.database, **more)
