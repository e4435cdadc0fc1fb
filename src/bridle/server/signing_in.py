"""Signing in with a browser: a code that is good once, and what a cookie stands for then.

Codes live in memory and not long. Sign-ins are kept, as hashes, so that a restart of the server
signs nobody out. A sign-in is worth as much as the token of its name is now.
"""

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.server.caller import OWNER, Caller
from bridle.server.limits import Meter
from bridle.server.problems import refused
from bridle.server.tokens import Tokens, hashed, read_private, write_private

KEPT_FILE = "sign-ins.json"
CODE_SECONDS = 15 * 60
SIGNED_IN_SECONDS = 30 * 24 * 3600
_MOST = 1_000  # sign-ins that are kept; the oldest go first
_TRIES, _TRIES_A_SECOND = 10, 1 / 30  # wrong codes from one address


class SignIn(Struct, frozen=True):
    """Whose cookie it is, and until when."""

    name: str
    until: float


class Door:
    """Tokens and sign-ins together: everything by which a caller is known."""

    def __init__(self, tokens: Tokens, clock: Callable[[], float] = time.time) -> None:
        self.tokens = tokens
        self._clock = clock
        self._codes: dict[str, SignIn] = {}
        self._wrong = Meter(_TRIES_A_SECOND, _TRIES, clock)
        self._file: Path = tokens.folder / KEPT_FILE
        self._kept = _kept(self._file)

    def caller(self, token: str) -> Caller | None:
        """Whom a token names."""
        return self.tokens.caller(token)

    def signed_in(self, cookie: str) -> Caller | None:
        """Whom a cookie names, as long as they have a token."""
        found = self._kept.get(hashed(cookie))
        if found is None or found.until < self._clock():
            return None
        return self.tokens.named(found.name)

    def code(self, name: str = OWNER) -> str:
        """A new code with which that person can sign in once, within a quarter of an hour."""
        now = self._clock()
        self._codes = {code: one for code, one in self._codes.items() if one.until > now}
        code = secrets.token_urlsafe(24)
        self._codes[hashed(code)] = SignIn(name, now + CODE_SECONDS)
        return code

    def sign_in(self, code: str, address: str = "") -> str:
        """What the cookie is to say. A token will do as a code, any number of times.

        Raise `Refused`: the code is wrong, was used, or is too old.
        """
        if seconds := self._wrong.wait(address, take=0):
            raise refused(
                "rate_limited",
                "Too many codes were wrong.",
                f"Try again in {seconds:.0f} seconds.",
                ((b"retry-after", b"%d" % (int(seconds) + 1)),),
            )
        name = self._named(code)
        if name:
            return self._keep(name)
        self._wrong.wait(address)
        raise refused(
            "no_token",
            "The code is wrong, was used already, or is too old.",
            "Start `bridle serve` again for a new address, or sign in with a token.",
        )

    def _named(self, code: str) -> str:
        """Whose code or token that is. A code is used up by this."""
        found = self._codes.pop(hashed(code), None)
        if found is not None:
            return found.name if found.until >= self._clock() else ""
        caller = self.tokens.caller(code)
        return caller.name if caller else ""

    def sign_out(self, cookie: str) -> None:
        """That cookie names nobody any more."""
        if self._kept.pop(hashed(cookie), None) is not None:
            self._write()

    def _keep(self, name: str) -> str:
        cookie, now = secrets.token_urlsafe(32), self._clock()
        self._kept[hashed(cookie)] = SignIn(name, now + SIGNED_IN_SECONDS)
        alive = [(one, kept) for one, kept in self._kept.items() if kept.until > now]
        self._kept = dict(alive[-_MOST:])
        self._write()
        return cookie

    def _write(self) -> None:
        write_private(self._file, msgspec.json.encode(self._kept))


def _kept(path: Path) -> dict[str, SignIn]:
    try:
        return msgspec.json.decode(read_private(path), type=dict[str, SignIn])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", hint="Remove it: people then sign in again."
        ) from error
