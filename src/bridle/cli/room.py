"""Where a REPL's conversation happens: one engine, one session, and the watch on it.

Another model means another engine; the session is taken up again there. Reads no lines.
"""

from types import TracebackType
from typing import Any

from bridle.cli.asking import Asker
from bridle.cli.ending import tell_ending, tell_unasked, tell_use
from bridle.cli.find import find_session
from bridle.cli.render import one_line
from bridle.cli.screen import Screen
from bridle.cli.setup import Setup
from bridle.cli.turn import Watch
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.policy import Mode
from bridle.promises.provider import Provider


class Room:
    """A conversation that can change its session and its model."""

    engine: Engine
    session: Session
    _watch: Watch

    def __init__(self, setup: Setup, flags: dict[str, Any], screen: Screen, asker: Asker) -> None:
        self.setup = setup
        self.screen = screen
        self.mode: Mode = setup.settings.mode
        self._flags = flags
        self._asker = asker

    async def __aenter__(self) -> "Room":
        await self._settle(self.setup, self.setup.choose().provider())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.engine.close()

    @property
    def model(self) -> str:
        """The model's name, with its provider's."""
        info = self.engine.provider.info
        return f"{info.name}/{info.model}" if info.model else info.name

    @property
    def summary(self) -> str:
        """Model, mode and folder."""
        return one_line(f"{self.model} · mode {self.mode} · {self.setup.workspace}")

    async def play(self, text: str) -> None:
        """One turn."""
        result = await self._watch.play(text)
        tell_ending(result, self._watch, self.screen, "Say how to go on.")
        tell_unasked(result, self.mode)
        tell_use(result, self.screen)

    async def renew(self) -> None:
        """A new session."""
        await self._move(await self.engine.session())

    async def resume(self, start: str) -> None:
        """Another session, by the beginning of its id."""
        found = find_session(self.setup.folder, start)
        await self._move(await self.engine.session(found.id))

    async def change_model(self, name: str) -> None:
        """Another model for the same session. When it cannot be had, nothing changes."""
        started = any(one.id == self.session.id for one in self.setup.folder.sessions())
        again = {"go_on": False, "resume": self.session.id if started else None}
        setup = Setup({**self._flags, "provider": None, "model": name, **again})
        provider = setup.choose().provider()
        await self.engine.close()
        await self._settle(setup, provider)

    def change_mode(self, mode: Mode) -> None:
        """What may run without asking, from now on."""
        self.mode = self.session.mode = mode

    async def _settle(self, setup: Setup, provider: Provider) -> None:
        self.setup = setup
        self.engine = setup.engine(provider, self._asker, "repl")
        try:
            self._enter(await setup.session(self.engine))
        except BaseException:
            await self.engine.close()
            raise

    async def _move(self, session: Session) -> None:
        """On to another session; the one before is let go, so that others can take it up."""
        before = self.session
        self._enter(session)
        if before is not session:
            await before.close()

    def _enter(self, session: Session) -> None:
        session.mode = self.mode
        self.session = session
        self._watch = Watch(session, self.screen.feed, session.seq)
