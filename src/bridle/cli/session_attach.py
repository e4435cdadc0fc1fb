"""Attach to a session that lives elsewhere: on a server (a URL), or on this machine (an ID).

A session of this machine that no process owns is resumed in the background, so that it keeps
running when the person leaves.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from bridle.cli.approval_prompt import TerminalApprover
from bridle.cli.commands.serve import server_folder
from bridle.cli.exit_codes import DONE, INTERRUPTED
from bridle.cli.find import find_session, session_folder
from bridle.cli.line_reader import LineReader
from bridle.cli.local_backend import LocalBackend, local_backend, make_service
from bridle.cli.printer import Printer
from bridle.cli.repl.loop import Repl
from bridle.cli.repl.session import ReplSession, show_record
from bridle.cli.setup import Setup
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.whereabouts import own_address
from bridle.client import Client, FollowedSession
from bridle.errors import ConfigError, UsageError
from bridle.events import ApprovalAsked, PromptReceived
from bridle.server import check_installed
from bridle.stores.reader import SessionFolder
from bridle.tui.remote_backend import RemoteBackend
from bridle.tui.remote_backend import find_session as find_remote
from bridle.workspace.text import flat

if TYPE_CHECKING:
    from bridle.tui.session_backend import SessionBackend

VARIABLE = "BRIDLE_TOKEN"
_CLOSING = 1.0  # seconds


def attach_to(target: str, session: str, flags: dict[str, Any], *, full_screen: bool) -> int:
    """Attach to a session of a server or of this machine, and return the exit code."""
    is_url = "://" in target
    if full_screen:
        if is_url:
            return _show(_ServerBackend(_address(target, session, flags)))
        check_installed()
        from bridle.cli.commands.chat import command

        params = _params_of(command, find_session(session_folder(), target).id, {})
        return _show_local(params)
    return run_async(
        _attach_to_server(target, session, flags) if is_url else _attach_locally(target, flags)
    )


def _show(backend: "SessionBackend") -> int:
    return _on_screen(lambda: backend)


def _show_local(params: dict[str, Any]) -> int:
    return _on_screen(lambda: local_backend(params, in_background=True))


def _on_screen(opening: "Callable[[], SessionBackend]") -> int:
    from bridle.cli.commands.chat import splash_for

    with splash_for(None) as splash:
        from bridle.cli.full_screen import run_screen

        outcome = run_screen(opening)
        splash.close()
        return outcome.report() or DONE


# A session of this machine


async def _attach_locally(start: str, flags: dict[str, Any]) -> int:
    screen, folder = _screen(flags), session_folder()
    summary = find_session(folder, start)
    newest = await asyncio.to_thread(_newest_turn, folder, summary.id)
    if flags["watch"]:
        service = make_service(folder, flags, "repl")
        try:
            async with await service.open(summary.id) as session:
                return await _watch(session, newest, screen)
        finally:
            await service.stop(_CLOSING)
    check_installed()
    from bridle.cli.commands.repl import command

    params = _params_of(command, summary.id, flags)
    lines, tell = LineReader(), _Teller(screen)
    approver = TerminalApprover(lines, screen)
    backend = LocalBackend(
        Setup(params), params, face="repl", approver=approver, in_background=True, tell=tell
    )
    tell.repl = ReplSession(backend, screen, approver)
    return await Repl(tell.repl, lines, newest if lines.is_terminal else None).run()


def _params_of(command: Any, session_id: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of that command if it resumes the session, with those given here."""
    params = command.make_context(command.name, ["--resume", session_id]).params
    return {**params, **{key: value for key, value in given.items() if key in params}}


def _newest_turn(folder: SessionFolder, session_id: str) -> int:
    """Return the record before the prompt of its newest turn."""
    begun, turn = 0, 0
    for record in folder.read(session_id):
        event = record.event
        if isinstance(event, PromptReceived) and event.turn != turn:
            begun, turn = record.seq - 1, event.turn
    return begun


# A session of a server


class _Address(NamedTuple):
    """Where a session is, and the token to get there."""

    url: str
    token: str
    session: str
    base: str  # what a person writes to come back


class _Opened(NamedTuple):
    """A session, whether we may only watch it, and who we are there."""

    client: Client
    session: FollowedSession
    is_watched: bool
    me: str


class _ServerBackend(RemoteBackend):
    """A conversation on a server that is connected to when it is entered."""

    def __init__(self, address: _Address) -> None:
        self._address = address
        self._remarks: list[str] = []
        self._leaving = AsyncExitStack()
        self._is_entered = False

    async def enter(self) -> None:
        """Connect, and open the session. Raise `AgentError`."""
        try:
            connecting = _connected(self._address, self._remarks.append, watch=False)
            opened = await self._leaving.enter_async_context(connecting)
            super().__init__(opened.client, opened.session, again=self._address.base, me=opened.me)
            self._is_entered = True
            await super().enter()
        except BaseException:
            await self._leaving.aclose()
            raise

    async def leave(self) -> None:
        """Close the connection; the session goes on."""
        await self._leaving.aclose()

    def again(self) -> str:
        """The command that comes back; nothing if we never were there."""
        return super().again() if self._is_entered else ""

    def remarks(self) -> tuple[str, ...]:
        """What became of the connection."""
        remarks = tuple(self._remarks)
        self._remarks.clear()
        return remarks


async def _attach_to_server(url: str, session: str, flags: dict[str, Any]) -> int:
    screen = _screen(flags)
    tell = _Teller(screen)
    address = _address(url, session, flags)
    async with _connected(address, tell, watch=flags["watch"]) as opened:
        screen.me = opened.me  # there it is not this machine's name that counts
        if opened.is_watched:
            return await _watch(opened.session, opened.session.began, screen)
        lines = LineReader()
        approver = TerminalApprover(lines, screen)
        backend = RemoteBackend(opened.client, opened.session, again=address.base, me=opened.me)
        tell.repl = ReplSession(backend, screen, approver)
        seen = opened.session.began if lines.is_terminal else opened.session.seq
        return await Repl(tell.repl, lines, seen).run()


@asynccontextmanager
async def _connected(
    address: _Address, tell: Callable[[str], None], *, watch: bool
) -> AsyncIterator[_Opened]:
    """Open the session as far as we may: somebody who may not drive does not resume it."""
    async with Client(address.url, address.token, tell=tell) as client:
        me = await client.me()
        may_drive = me.role not in ("watch", "answer")
        found = (await find_remote(client, address.session)).id if address.session else ""
        if not found and (watch or not may_drive):
            raise UsageError(
                "no session is named, and this token cannot start one",
                hint="Name a session: bridle attach URL ID",
            )
        if watch or not may_drive:
            is_watched = watch or me.role == "watch"
            yield _Opened(client, await client.open(found), is_watched, me.name)
        else:
            yield _Opened(client, await client.session(found or None), False, me.name)


def _address(url: str, session: str, flags: dict[str, Any]) -> _Address:
    """Return the address with the token that was given, or our own if the server is ours.

    Raise `ConfigError` if there is none to send: ours goes to no port that anybody may have.
    """
    parts = urlsplit(url)
    fragment = parts.fragment
    named = fragment.removeprefix("/s/").partition("@")[0] if "/s/" in fragment else ""
    session = session or unquote(named)
    base = f"{parts.scheme}://{parts.netloc}"
    if flags["token"]:
        return _Address(url, str(flags["token"]), session, base)
    if flags["token_file"]:
        return _Address(url, _first_line(Path(flags["token_file"])), session, base)
    if given := os.environ.get(VARIABLE):
        return _Address(url, given, session, base)
    if "code" in parse_qs(fragment) or parts.scheme not in ("http", "https"):
        return _Address(url, "", session, base)
    if address := own_address(server_folder(), url):
        return _Address(address, _first_line(server_folder() / "token"), session, base)
    raise ConfigError(
        f"none of your servers listens at {base}, so your token was not sent there",
        hint=f"Start `bridle serve`, use the address that it prints, or set {VARIABLE} to a token.",
    )


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not text"
        raise ConfigError(f"the token cannot be read from {path}: {why}") from problem
    return lines[0].strip() if lines else ""


# The plain terminal


async def _watch(session: FollowedSession, after: int, screen: Printer) -> int:
    """Show the newest turn and what comes, until the person has seen enough."""
    title = flat(session.title or session.id)
    line = f"{title} · {session.model} · watching; Ctrl-C quits, the session keeps running"
    screen.line(screen.paint.dim(flat(line)))
    showing = asyncio.ensure_future(_show_records(session, after, screen))
    is_ended = False

    def end() -> None:
        nonlocal is_ended
        is_ended = True
        showing.cancel()

    def quit_watching() -> None:
        showing.cancel()

    with on_signals(quit_watching, signal.SIGINT), on_signals(end, *END_SIGNALS):
        await asyncio.wait([showing])
    if not showing.cancelled():
        showing.result()
    screen.break_line()
    return INTERRUPTED if is_ended else DONE


async def _show_records(session: FollowedSession, after: int, screen: Printer) -> None:
    async with aclosing(session.subscribe(after)) as records:
        async for record in records:
            show_record(screen, record)
            if isinstance(record.event, ApprovalAsked):
                words = f"    {flat(record.event.call.name)} needs approval"
                screen.line(screen.paint.dim(words))


def _screen(flags: dict[str, Any]) -> Printer:
    return Printer(sys.stdout, sys.stderr, quiet=flags["quiet"], thinking=flags["thinking"])


class _Teller:
    """Prints what becomes of the connection, and the prompt again that it took away."""

    def __init__(self, screen: Printer) -> None:
        self._screen = screen
        self.repl: ReplSession | None = None

    def __call__(self, text: str) -> None:
        screen, was_prompting = self._screen, self._screen.is_prompting
        screen.line(screen.paint.dim(f"· {flat(text)}"))
        if was_prompting and self.repl is not None and self.repl.on_end is not None:
            self.repl.on_end()
