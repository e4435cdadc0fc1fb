"""The chat beside the sessions: `bridle serve --chat`, one address, tokens of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bridle.cli.chat_server_setup import check_installed, check_model, database_url, secret_of
from bridle.errors import ConfigError

if TYPE_CHECKING:
    from bridle.server.chat.app import ChatServer


@asynccontextmanager
async def chat_beside(flags: dict[str, Any], port: int) -> "AsyncIterator[ChatServer | None]":
    """The chat to mount beside the sessions, if it was asked for."""
    if not flags["chat"]:
        yield None
        return
    check_installed()
    _check_reach(flags)
    check_model(flags.get("model"))
    from bridle.server.chat.app import ChatSettings, create_chat_server

    setup = ChatSettings(
        database=database_url(flags["chat_database"]),
        secret=secret_of(flags["chat_secret_file"]),
        model=flags.get("model") or "",
        host=flags["host"],
        port=port,
        allowed=tuple(flags["allowed"]),
    )
    chat = create_chat_server(setup, alone=False)
    await chat.room.app.start()
    try:
        yield chat
    finally:
        await chat.room.app.close()


def _check_reach(flags: dict[str, Any]) -> None:
    from bridle.server.http import check_listen_address

    try:
        check_listen_address(flags["host"], explicit=bool(flags["chat_secret_file"]))
    except ConfigError as error:
        raise ConfigError(
            error.message,
            hint="Choose a secret for the chat (--chat-secret-file).",
        ) from error
