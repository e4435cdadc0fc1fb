"""What the chat's server needs from this machine: its packages, its secret, its database.

A secret is read from a private file, or created and stored in one. It is never printed.
"""

import os
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bridle.cli.commands.chat_server import DATABASE
from bridle.config.paths import state_folder
from bridle.distribution import install_hint
from bridle.errors import ConfigError, MissingExtra

_NEEDED = ("starlette", "uvicorn", "httptools", "sqlmodel", "alembic", "mcp", "jwt")


def check_installed() -> None:
    """Raise `MissingExtra` where what serves a chat is not there."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingExtra(
            f"the packages for the chat server are not installed: {', '.join(missing)}",
            hint=install_hint("chat"),
        )


def check_model(model: str | None) -> None:
    """Raise `MissingModel` if none is named and none is found: its users would talk to rules."""
    if not model:
        from bridle.config.loader import load_settings
        from bridle.runtime.providers import find_provider

        find_provider(load_settings({}, os.environ).settings, probe=list).provider()


def named_database(flags: dict[str, Any]) -> bool:
    """Did anybody say which database? An application of somebody's own has one already."""
    return bool(flags["database"] or os.environ.get(DATABASE))


def database_url(given: str | None) -> str:
    """The database that was named, or the usual one."""
    return given or os.environ.get(DATABASE) or str(state_folder(os.environ) / "chat.db")


def log_file() -> Path:
    """Where the chat's server says what happened to it."""
    return state_folder(os.environ) / "server" / "chat.log"


def secret_of(given: str | None) -> str:
    """The secret in that file; in the usual one, which is made where there is none."""
    from bridle.server.tokens import read_private, write_private

    path = Path(given) if given else state_folder(os.environ) / "server" / "chat-secret"
    try:
        return read_private(path).decode("utf-8").strip()
    except FileNotFoundError:
        if given:
            raise ConfigError(
                f"there is no file {given}",
                hint=f"Create one: (umask 077; openssl rand -hex 32 > {given})",
            ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the secret in {path} cannot be read: {error}", error) from error
    made = secrets.token_hex(32)
    write_private(path, made.encode() + b"\n")
    return made
