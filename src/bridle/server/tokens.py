"""Tokens: who they name, and where they are kept. No HTTP here.

The server's own token lies in plain in a file of its own, so that programs of the same user can
read it; of every other token only the hash is kept, a line each. Files that others can read are
not trusted: they are refused. Changes made by another process count at once.
"""

import hashlib
import logging
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.protocols.session_values import ROLES, Role
from bridle.server.auth import OWNER, Caller, is_same_secret
from bridle.workspace import fs

OWN_FILE = "token"
NAMED_FILE = "tokens.jsonl"

RESERVED = frozenset(  # who the log says it was where it was nobody's token
    (
        *("agent", "approver", "close", "engine", "expiry", "grant", "hook", "hooks", OWNER),
        *("model", "nobody", "plan", "policy", "recovery", "replay", "rule", "server", "session"),
        *("system", "task", "then", "tool", "user"),
    )
)

_log = logging.getLogger("bridle.server")


class NamedToken(Struct, frozen=True):
    """A token, as its file has it: whose it is, what they may, and the hash of it."""

    name: str
    role: Role
    hash: str


class Tokens:
    """The tokens that open this server's door.

    `own` is used instead of the one that lies in the folder, where it is given. `named` is another
    file than the usual one.
    """

    def __init__(self, folder: Path, own: str = "", named: Path | None = None) -> None:
        self.folder = folder
        self.own = own or _own(folder / OWN_FILE)
        self._file = named or folder / NAMED_FILE
        self._seen: tuple[int, int, int] | None = None
        self._named: tuple[NamedToken, ...] = ()
        self._refresh()  # a file that cannot be trusted is no file to start with

    def caller(self, token: str) -> Caller | None:
        """Whom it names."""
        if is_same_secret(token, self.own):
            return Caller(OWNER, "admin")
        self._look()
        digest = hash_token(token)
        found = [one for one in self._named if is_same_secret(one.hash, digest)]
        return Caller(found[0].name, found[0].role) if found else None

    def named(self, name: str) -> Caller | None:
        """Who has that name, as long as they have a token."""
        if name == OWNER:
            return Caller(OWNER, "admin")
        self._look()
        return next((Caller(one.name, one.role) for one in self._named if one.name == name), None)

    def stamp(self, name: str) -> str:
        """What tells the token that somebody has now, in its role, from any other; or nothing."""
        if name == OWNER:
            return hash_token(f"{OWNER} admin {hash_token(self.own)}")
        self._look()
        found = (f"{one.name} {one.role} {one.hash}" for one in self._named if one.name == name)
        return next(map(hash_token, found), "")

    def list(self) -> tuple[NamedToken, ...]:
        """The named ones."""
        self._refresh()
        return self._named

    def add(self, name: str, role: Role) -> str:
        """A new token for somebody; it is shown this once. Raise `ConfigError`."""
        if role not in ROLES:
            raise ConfigError(f"there is no role {role!r}", hint=f"Roles: {', '.join(ROLES)}.")
        if not _is_name(name) or self.named(name) is not None:
            raise ConfigError(
                f"{name!r} cannot be the name of a new token",
                hint="Use letters, digits, '-', '_', '.' or '@', and a name that is not in use "
                "and that means nothing else in a log (expiry, grant, hook, task …).",
            )
        token = secrets.token_urlsafe(32)
        self._keep((*self._named, NamedToken(name, role, hash_token(token))))
        return token

    def revoke(self, name: str) -> None:
        """Their token opens nothing any more. Raise `ConfigError`."""
        self._refresh()
        rest = tuple(one for one in self._named if one.name != name)
        if len(rest) == len(self._named):
            raise ConfigError(
                f"nobody named {name!r} has a token", hint="List the tokens to see the names."
            )
        self._keep(rest)

    def _keep(self, tokens: Sequence[NamedToken]) -> None:
        write_private(self._file, b"".join(msgspec.json.encode(one) + b"\n" for one in tokens))
        self._refresh()

    def _look(self) -> None:
        """Read the file again if it is another. One that has become bad names nobody."""
        try:
            self._refresh()
        except (ConfigError, OSError) as error:
            _log.error("no named token counts: %s", error)
            self._seen, self._named = None, ()

    def _refresh(self) -> None:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            self._seen, self._named = None, ()
            return
        seen = found.st_ino, found.st_mtime_ns, found.st_size
        if seen != self._seen:
            self._named = _decoded(read_private(self._file), self._file)
            self._seen = seen


def hash_token(token: str) -> str:
    """What is kept of a token. It is random and long, so that a plain hash is enough."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def read_private(path: Path) -> bytes:
    """A file that is this user's alone. Raise `ConfigError` where others could have touched it."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(
                f"{path} can be read or written by others, so it is not trusted",
                hint=f"Make it yours alone (chmod 600 {path}), and make new tokens if it was not.",
            )
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Put it there as a whole, for this user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        fs.write_private(path, content, sync=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # a write names no file


def _own(path: Path) -> str:
    """The server's own token; made where there is none."""
    try:
        token = read_private(path).decode("ascii", "replace").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode() + b"\n")
    if len(token) < 16:
        raise ConfigError(
            f"{path} holds no token that is long enough",
            hint="Remove the file: the server makes a new one when it starts.",
        )
    return token


def _decoded(content: bytes, path: Path) -> tuple[NamedToken, ...]:
    """The lines of a token file: JSON, or the same as items of a YAML list."""
    found: dict[str, NamedToken] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            one = msgspec.convert(_line(line.strip()), NamedToken)
        except (msgspec.ValidationError, ValueError) as error:
            is_word = len(line.split()) == 1 and "{" not in line
            raise _bad(path, number, "it is one word" if is_word else str(error)) from error
        if not _is_name(one.name) or one.name in found:
            why = "is no name, means something else in a log, or stands there twice"
            raise _bad(path, number, f"{one.name!r} {why}")
        found[one.name] = one
    return tuple(found.values())


def _line(text: str) -> Any:
    import yaml  # a token file is JSON nearly always

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        return yaml.safe_load(text.removeprefix("- "))
    except yaml.YAMLError as error:
        raise ValueError("it is neither JSON nor YAML") from error


def _bad(path: Path, number: int, why: str) -> ConfigError:
    return ConfigError(
        f"line {number} of {path} is not a named token: {why}",
        hint='This file lists the tokens of other people, one a line: {"name": "ann", "role": '
        '"drive", "hash": "sha256:…"}. `bridle serve token add ann` writes such a line and prints '
        "the token. Your own token is given with --token TOKEN.",
    )


def _is_name(name: str) -> bool:
    if name.casefold() in RESERVED:
        return False
    return 0 < len(name) <= 64 and all(one.isalnum() or one in "-_.@" for one in name)
