"""Signing in with a browser: a code that is good once, and what stands for the person then.

A sign-in has two halves. A cookie alone is worth nothing, because a browser sends it to every port
of a host; the page keeps the other half, a key, and sends it in a header. Codes live in memory and
not long. Sign-ins are kept, as hashes, in a file that servers share: a restart signs nobody out,
and what one server ends is over for all. A sign-in belongs to the very token that its name had
then, in its role: it ends with that, and a name that comes back does not bring it back.
"""

import fcntl
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bridle.errors import ConfigError
from bridle.server.auth import OWNER, Caller, is_same_secret
from bridle.server.middleware import TokenBucket
from bridle.server.problems import ProblemError, problem_error
from bridle.server.tokens import Tokens, hash_token, read_private, write_private
from bridle.workspace.text import quantity

KEPT_FILE, LOCK_FILE = "sign-ins.json", "sign-ins.lock"
CODE_SECONDS = 15 * 60
SIGNED_IN_SECONDS = 30 * 24 * 3600
EACH = 50  # sign-ins of one name; its oldest go first, and nobody else's
_WRONG, _WRONG_A_SECOND = 20, 2.0  # codes and tokens, before who sends them is told to wait

_log = logging.getLogger("bridle.server")


class Code(Struct, frozen=True):
    """Whom a code signs in, which token they had when it was made, and until when."""

    name: str
    token: str
    until: float


class SignIn(Struct, frozen=True):
    """Whose it is, the token that it belongs to, the hash of its key, and until when."""

    name: str
    token: str
    key: str
    until: float


class SignInKeys(NamedTuple):
    """What a sign-in is known by: both are needed."""

    cookie: str
    key: str


class Authenticator:
    """Tokens and sign-ins together: everything by which a caller is known.

    `clock` is the time of the day, which sign-ins are kept by; `steady` never goes back.
    """

    def __init__(
        self,
        tokens: Tokens,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tokens = tokens
        self._clock, self._steady = clock, steady
        self._codes: dict[str, Code] = {}
        self._wrong = TokenBucket(_WRONG_A_SECOND, _WRONG, steady)
        self._kept = SignInFile(tokens.folder)
        self._leavers: dict[str, set[Callable[[], object]]] = {}

    def caller(self, token: str) -> Caller | None:
        """Whom a token names."""
        return self.tokens.caller(token)

    def signed_in(self, cookie: str, key: str) -> Caller | None:
        """Whom both halves name, as long as they have the token that they had then."""
        found = self._kept.look().get(hash_token(cookie))
        if (
            found is None
            or not is_same_secret(hash_token(key), found.key)
            or found.until < self._clock()
        ):
            return None
        return self.tokens.named(found.name) if self._is_current(found) else None

    def leavers(self, cookie: str) -> set[Callable[[], object]]:
        """What is called when that sign-in ends here: whatever still answers it."""
        return self._leavers.setdefault(hash_token(cookie), set())

    def code(self, name: str = OWNER) -> str:
        """A new code with which that person can sign in once, within a quarter of an hour."""
        now = self._steady()
        self._codes = {code: one for code, one in self._codes.items() if one.until > now}
        code = secrets.token_urlsafe(24)
        self._codes[hash_token(code)] = Code(name, self.tokens.stamp(name), now + CODE_SECONDS)
        return code

    def sign_in(self, code: str, only: str = "") -> SignInKeys:
        """Both halves of a new sign-in. A code is used up by this.

        With `only`, the code has to be that person's. Raise `ProblemError` if it is not, or if
        the code is wrong, was used, or is too old.
        """
        found = self._codes.get(hash_token(code))
        if found is None or found.until < self._steady() or not self._is_current(found):
            raise self._no(
                "The code is wrong, was used already, or is too old.",
                "Start `bridle serve` again for a new address, or sign in with a token.",
            )
        if only and only != found.name:
            raise problem_error(
                "other_name",
                f"The code would sign you in as {found.name}; you are {only}.",
                "Sign in without `only` if that is what you want.",
            )
        del self._codes[hash_token(code)]
        return self._keep(found.name, found.token)

    def sign_in_by_token(self, token: str) -> SignInKeys:
        """Both halves of a new sign-in. Raise `ProblemError`: the token is wrong."""
        caller = self.tokens.caller(token)
        if caller is None:
            raise self._no("The token is wrong.", "Ask whoever runs the server for one.")
        return self._keep(caller.name, self.tokens.stamp(caller.name))

    def sign_out(self, cookie: str) -> None:
        """That sign-in is over, and so is what still answers it."""
        name = hash_token(cookie)
        with self._kept.changing() as kept:
            kept.pop(name, None)
        for leave in list(self._leavers.pop(name, ())):
            leave()

    def _no(self, what: str, hint: str) -> ProblemError:
        """A wrong one. It cannot be guessed, so that too many only say so, and lock nobody out."""
        if seconds := self._wrong.wait(""):
            wait = quantity(round(seconds), "second")
            return problem_error(
                "rate_limited",
                "Too many codes or tokens were wrong.",
                f"Try again in {wait}, or with the right one at once.",
                ((b"retry-after", b"%d" % (int(seconds) + 1)),),
            )
        return problem_error("no_token", what, hint)

    def _keep(self, name: str, token: str) -> SignInKeys:
        halves, now = (
            SignInKeys(secrets.token_urlsafe(32), secrets.token_urlsafe(32)),
            self._clock(),
        )
        with self._kept.changing() as kept:
            over = [
                one
                for one, found in kept.items()
                if found.until <= now or not self._is_current(found)
            ]
            same_name = [one for one, found in kept.items() if found.name == name]
            for one in {*over, *same_name[: -(EACH - 1)]}:
                kept.pop(one)
            until = now + SIGNED_IN_SECONDS
            kept[hash_token(halves.cookie)] = SignIn(name, token, hash_token(halves.key), until)
        return halves

    def _is_current(self, found: Code | SignIn) -> bool:
        return bool(found.token) and is_same_secret(found.token, self.tokens.stamp(found.name))


class SignInFile:
    """The file of sign-ins, which several servers may share: each change is made of what is there.

    By the hash of their cookies, the oldest first.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._lock = folder / KEPT_FILE, folder / LOCK_FILE
        self._seen: tuple[int, int, int] | None = None
        self._found: dict[str, SignIn] = {}
        self._refresh()  # a file that cannot be trusted is no file to start with

    def look(self) -> dict[str, SignIn]:
        """All of them as they are now. A file that has become bad has none."""
        try:
            self._refresh()
        except (ConfigError, OSError) as error:
            _log.error("no sign-in counts: %s", error)
            self._seen, self._found = None, {}
        return self._found

    @contextmanager
    def changing(self) -> Iterator[dict[str, SignIn]]:
        """All of them, to be changed and written, while nobody else does."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # held for the writing of one small file
            self._seen = None
            before = self.look()
            found = dict(before)
            yield found
            if found != before:
                write_private(self._file, msgspec.json.encode(found))
                self._refresh()
        finally:
            os.close(handle)

    def _refresh(self) -> None:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            self._seen, self._found = None, {}
            return
        seen = found.st_ino, found.st_mtime_ns, found.st_size
        if seen != self._seen:
            self._found = _decoded(self._file)
            self._seen = seen


def _decoded(path: Path) -> dict[str, SignIn]:
    try:
        return msgspec.json.decode(read_private(path), type=dict[str, SignIn])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", hint="Remove it: people then sign in again."
        ) from error
