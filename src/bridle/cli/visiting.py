"""A house on a server for the screen, which is opened once the screen stands. See `attach`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any
from urllib.parse import unquote, urlsplit

from bridle.cli.attaching import known, opened
from bridle.cli.exit_codes import DONE
from bridle.cli.find import find_session, session_folder
from bridle.cli.user_input import user_name
from bridle.client import Client
from bridle.tui.remote_backend import RemoteBackend

Tell = Callable[[str], None]
Reach = Callable[[Tell], AbstractAsyncContextManager[Client]]


class Visit(RemoteBackend):
    """A conversation on a server that is not connected to before it is entered."""

    def __init__(self, reach: Reach, session: str, back: str, me: str = "") -> None:
        self._reach = reach
        self._wanted = session
        self._back = back
        self._mine = me  # our name there; empty: the server says it
        self._told: list[str] = []
        self._leaving = AsyncExitStack()

    async def enter(self) -> None:
        """Connect, and open the session. Raise `AgentError`."""
        try:
            client = await self._leaving.enter_async_context(self._reach(self._told.append))
            found = await opened(client, self._wanted, watch=False)
            me = self._mine or found.name
            super().__init__(client, found.session, again=self._back, me=me)
            await super().enter()
        except BaseException:
            await self._leaving.aclose()
            raise

    async def leave(self) -> None:
        """Let the connection go; the session goes on."""
        await self._leaving.aclose()

    def again(self) -> str:
        """The command that comes back; nothing where we never were."""
        return super().again() if hasattr(self, "session") else ""

    def remarks(self) -> tuple[str, ...]:
        """What became of the connection."""
        found = tuple(self._told)
        self._told.clear()
        return found


def visit(url: str, session: str, flags: dict[str, Any]) -> Visit:
    """A session of the server at that address; without an id, a new one."""
    parts = urlsplit(url)
    named = parts.fragment.removeprefix("/s/").partition("@")[0] if "/s/" in parts.fragment else ""
    address, token = known(url, flags)
    back = f"{parts.scheme}://{parts.netloc}"
    return Visit(lambda tell: Client(address, token, tell=tell), session or unquote(named), back)


def visit_here(start: str) -> Visit:
    """A session of this machine, which goes on in the background."""
    from bridle.cli.supervising import supervised
    from bridle.server import check_installed

    check_installed()
    found = find_session(session_folder(), start)
    return Visit(lambda tell: supervised(found.id, tell), found.id, "", user_name())


def on_screen(target: str, session: str, flags: dict[str, Any]) -> int:
    """The screen on a session elsewhere; the exit code."""
    from bridle.cli.attaching_held import flags_for, held_elsewhere
    from bridle.cli.commands.chat import command, curtain_for

    held = "" if "://" in target else held_elsewhere(target)
    house = None
    if not held:
        house = visit(target, session, flags) if "://" in target else visit_here(target)
    with curtain_for(None) as curtain:
        from bridle.cli.full_screen import run_screen, talk

        outcome = talk(flags_for(command, held, {})) if house is None else run_screen(lambda: house)
        curtain.lift()
        return outcome.told() or DONE
