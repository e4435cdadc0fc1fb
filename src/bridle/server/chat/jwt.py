"""Tokens of the chat: JSON Web Tokens, checked strictly. Who a token names is all that is learnt.

A token is signed with a secret (HS256) or by one of the keys in a JWKS file; which algorithms count
is said by the key and never by the token. It has to say for whom it is (`sub`), until when (`exp`)
and, unless that is switched off, for which audience. No HTTP here.
"""

import json
import logging
import time
from pathlib import Path
from typing import Any, Protocol

import jwt
from jwt.types import Options

from bridle.errors import ConfigError

AUDIENCE = "bridle-chat"
SHORTEST = 32  # characters of a secret: what HS256 is worth
_LEEWAY = 5.0  # seconds that clocks may differ
_SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_LONGEST = 8_192  # characters of a token
_log = logging.getLogger("bridle.server")


class InvalidToken(Exception):
    """The token names nobody. `expired`: it once did."""

    def __init__(self, why: str, *, expired: bool = False) -> None:
        super().__init__(why)
        self.expired = expired


class KeySource(Protocol):
    """Where the key for a token comes from."""

    def key(self, head: dict[str, Any]) -> tuple[Any, list[str]]:
        """The key, and the algorithms that it may be used with. Raise `InvalidToken`."""
        ...


class SharedSecret:
    """One secret that signs and checks. Raise `ConfigError` where it is too short."""

    def __init__(self, secret: str) -> None:
        if len(secret) < SHORTEST:
            raise ConfigError(
                f"the secret has fewer than {SHORTEST} characters, and could be guessed",
                hint="Make one with: openssl rand -hex 32",
            )
        self._secret = secret

    def __repr__(self) -> str:
        return "SharedSecret(…)"

    def key(self, head: dict[str, Any]) -> tuple[Any, list[str]]:
        """The secret, for HS256 alone."""
        return self._secret, ["HS256"]

    def mint(self, user: str, seconds: float, audience: str = AUDIENCE) -> str:
        """A token for that user. Raise `ConfigError` for a name that no user may have."""
        if not is_user(user):
            raise ConfigError(
                f"no user can be called {user!r}",
                hint="A name has no slash and is none of the server's own addresses.",
            )
        now = time.time()
        said: dict[str, Any] = {"sub": user, "iat": int(now), "exp": int(now + seconds)}
        if audience:
            said["aud"] = audience
        return jwt.encode(said, self._secret, algorithm="HS256")


class JwksFile:
    """Public keys of a JWKS file, read anew when it changes. Raise `ConfigError` at the start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._found: list[Any] = []
        self._read()

    def key(self, head: dict[str, Any]) -> tuple[Any, list[str]]:
        """The key that the token names; without a name, the only one there is."""
        try:
            self._read()
        except ConfigError as error:  # the keys that were good stay good
            _log.error("the keys were not read again: %s", error.message)
        name = head.get("kid")
        fitting = [one for one in self._found if name is None or one.key_id == name]
        if len(fitting) != 1:
            raise InvalidToken("no key fits")
        return fitting[0], [fitting[0].algorithm_name]

    def _read(self) -> None:
        try:
            about = self._path.stat()
            if (seen := (about.st_mtime_ns, about.st_size)) == self._seen:
                return
            found = _keys(json.loads(self._path.read_bytes()))
        except (OSError, ValueError) as error:
            raise _unreadable(self._path, str(error)) from error
        if not found:
            raise _unreadable(self._path, "there is no public key for signatures in it")
        self._seen, self._found = seen, found


def _keys(whole: Any) -> list[Any]:
    """Those that check signatures; secrets have no place in such a file."""
    listed = whole.get("keys") if isinstance(whole, dict) else None
    found = []
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or one.get("kty") == "oct" or one.get("use") == "enc":
            continue
        try:
            key = jwt.PyJWK.from_dict(one)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        if key.algorithm_name in _SIGNED:
            found.append(key)
    return found


def _unreadable(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"the keys in {path} cannot be read: {why}",
        hint='It is a JSON file with {"keys": […]}, as an identity provider publishes it.',
    )


class JwtVerifier:
    """Says whom a token names."""

    def __init__(self, keys: KeySource, audience: str = AUDIENCE, issuer: str = "") -> None:
        self._keys = keys
        self._audience, self._issuer = audience, issuer

    def user(self, token: str) -> str:
        """The user. Raise `InvalidToken`."""
        if not token or len(token) > _LONGEST:
            raise InvalidToken("no token")
        try:
            key, algorithms = self._keys.key(jwt.get_unverified_header(token))
            said = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=self._audience or None,
                issuer=self._issuer or None,
                leeway=_LEEWAY,
                options=self._options(),
            )
        except jwt.ExpiredSignatureError as error:
            raise InvalidToken("expired", expired=True) from error
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidToken(type(error).__name__) from error
        user = said["sub"]
        if not isinstance(user, str) or not is_user(user):
            raise InvalidToken("no user can be called that")
        return user

    def _options(self) -> Options:
        needed = ["exp", "sub", *(["aud"] if self._audience else [])]
        return {"require": needed, "verify_aud": bool(self._audience)}


RESERVED = frozenset(
    (
        *("agents", "agui", "approvals", "assets", "chat", "doctor", "events", "favicon.svg"),
        *("health", "login", "logout", "mcp", "me", "metrics", "models", "openapi.json", "page"),
        *("ready", "search", "sessions", "static", "status", "tasks", "token", "tokens", "users"),
        *("v1", "workspaces", "conversations", ".", "..", "admin", "api", "system"),
    )
)
LONGEST = 200  # characters, as the database keeps them


def is_user(name: str) -> bool:
    """May a user be called that?"""
    return (
        0 < len(name) <= LONGEST
        and name == name.strip()
        and name.isprintable()
        and "/" not in name
        and "\\" not in name
        and name.casefold() not in RESERVED
    )
