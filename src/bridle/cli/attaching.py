"""Attach to a session elsewhere, line by line: talk to it, or watch it."""

import asyncio
import os
import signal
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from bridle.cli.approver import TerminalApprover
from bridle.cli.commands.serve import server_folder
from bridle.cli.exit_codes import DONE, INTERRUPTED
from bridle.cli.find import find_session, session_folder
from bridle.cli.lines import Lines
from bridle.cli.repl_loop import Repl
from bridle.cli.repl_session import ReplSession, show_record
from bridle.cli.screen import Screen
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.user_input import user_name
from bridle.cli.whereabouts import own_address
from bridle.client import Client, FollowedSession
from bridle.errors import ConfigError, UsageError
from bridle.events import ApprovalAsked
from bridle.protocols.session import Conversation
from bridle.server import check_installed
from bridle.tui.remote_backend import RemoteBackend
from bridle.tui.remote_backend import find_session as find_remote
from bridle.workspace.text import flat

VARIABLE = "BRIDLE_TOKEN"


def attach_to(target: str, session: str, flags: dict[str, Any], *, full_screen: bool) -> int:
    """Attach to a session of a server or of this machine, and return the exit code."""
    if full_screen:
        from bridle.cli.visiting import on_screen

        return on_screen(target, session, flags)
    if "://" in target:
        return run_async(attach(target, session, flags))
    return run_async(attach_here(target, flags))


async def attach(url: str, session: str, flags: dict[str, Any]) -> int:
    """Talk to a session of the server at that address; without an id, to a new one."""
    parts = urlsplit(url)
    named = parts.fragment.removeprefix("/s/").partition("@")[0] if "/s/" in parts.fragment else ""
    screen = _screen(flags)
    teller = Teller(screen)
    url, token = known(url, flags)
    async with Client(url, token, tell=teller) as client:
        found = await opened(client, session or unquote(named), watch=flags["watch"])
        screen.me = found.name  # there it is not this machine's name that counts
        if found.is_watched:
            return await watch(looked(found.session), screen)
        return await _talk(client, found, TerminalApprover(Lines(), screen), teller)


async def attach_here(start: str, flags: dict[str, Any]) -> int:
    """Talk to a session of this machine: where it is held, or else in the background."""
    from bridle.cli.attaching_held import entered, held_elsewhere, talk_to_held
    from bridle.cli.supervising import supervised

    screen = _screen(flags)
    if session_id := held_elsewhere(start):
        if not flags["watch"]:
            return await talk_to_held(session_id, flags)
        async with entered(session_id) as (house, began):
            return await watch(Looked(house.session, house.model, began), screen)
    check_installed()
    found = find_session(session_folder(), start)
    teller = Teller(screen)
    async with supervised(found.id, tell=teller) as client:
        held = await opened(client, found.id, watch=flags["watch"])
        if held.is_watched:
            return await watch(looked(held.session), screen)
        mine = held._replace(name=user_name())  # here it is known by that name
        return await _talk(client, mine, TerminalApprover(Lines(), screen), teller)


class Looked(NamedTuple):
    """A session that is looked at: with which model, and from which record on."""

    session: Conversation
    model: str
    began: int


def looked(session: FollowedSession) -> Looked:
    """One of a server."""
    return Looked(session, session.model, session.began)


class Opened(NamedTuple):
    """A session, whether it is only looked at, and who we are there."""

    session: FollowedSession
    is_watched: bool
    name: str


async def opened(client: Client, session: str, *, watch: bool) -> Opened:
    """The session, as much as we may: one who may not drive does not take it up."""
    me = await client.me()
    role = me.role
    found = (await find_remote(client, session)).id if session else ""
    if not found and (watch or role in ("watch", "answer")):
        raise UsageError(
            "no session is named, and this token cannot start one",
            hint="Name a session: bridle attach URL ID",
        )
    if watch or role in ("watch", "answer"):
        return Opened(await client.open(found), watch or role == "watch", me.name)
    return Opened(await client.session(found or None), False, me.name)


async def _talk(client: Client, found: Opened, approver: TerminalApprover, teller: "Teller") -> int:
    session = found.session
    house = RemoteBackend(client, session, me=found.name)
    teller.repl = ReplSession(house, approver.screen, approver)
    seen = session.began if approver.lines.is_terminal else session.seq
    return await Repl(teller.repl, approver.lines, seen).run()


async def watch(one: Looked, screen: Screen) -> int:
    """Show the newest turn and what comes, until somebody has seen enough."""
    title = flat(one.session.title or one.session.id)
    said = f"{title} · {one.model} · watching; Ctrl-C quits, the session keeps running"
    screen.line(screen.paint.dim(flat(said)))
    seeing = asyncio.ensure_future(_see(one, screen))
    gone = False

    def leave() -> None:
        nonlocal gone
        gone = True
        seeing.cancel()

    def enough() -> None:
        seeing.cancel()

    with on_signals(enough, signal.SIGINT), on_signals(leave, *END_SIGNALS):
        await asyncio.wait([seeing])
    if not seeing.cancelled():
        seeing.result()
    screen.break_line()
    return INTERRUPTED if gone else DONE


async def _see(one: Looked, screen: Screen) -> None:
    async with aclosing(one.session.subscribe(one.began)) as records:
        async for record in records:
            show_record(screen, record)
            if isinstance(record.event, ApprovalAsked):
                words = f"    {flat(record.event.call.name)} needs approval"
                screen.line(screen.paint.dim(words))


def known(url: str, flags: dict[str, Any]) -> tuple[str, str]:
    """The address, and the token that was given, or our own where the server is ours.

    Raise `ConfigError` where there is none to send: ours goes to no port that anybody may have.
    """
    if flags["token"]:
        return url, str(flags["token"])
    if flags["token_file"]:
        return url, _first_line(Path(flags["token_file"]))
    if given := os.environ.get(VARIABLE):
        return url, given
    parts = urlsplit(url)
    if "code" in parse_qs(parts.fragment) or parts.scheme not in ("http", "https"):
        return url, ""
    if address := own_address(server_folder(), url):
        return address, _first_line(server_folder() / "token")
    raise ConfigError(
        f"none of your servers listens at {parts.scheme}://{parts.netloc}, "
        "so your token was not sent there",
        hint=f"Start `bridle serve`, use the address that it prints, or set {VARIABLE} to a token.",
    )


def _first_line(path: Path) -> str:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not text"
        raise ConfigError(f"the token cannot be read from {path}: {why}") from problem
    return lines[0].strip() if lines else ""


def _screen(flags: dict[str, Any]) -> Screen:
    return Screen(sys.stdout, sys.stderr, quiet=flags["quiet"], thinking=flags["thinking"])


class Teller:
    """Says what becomes of the connection, and asks for the line again that it took away."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.repl: ReplSession | None = None

    def __call__(self, text: str) -> None:
        screen, asked = self._screen, self._screen.is_prompting
        screen.line(screen.paint.dim(f"· {flat(text)}"))
        if asked and self.repl is not None and self.repl.on_end is not None:
            self.repl.on_end()
