"""The application: themes, the one screen at its bottom, and its end. Knows no session.

It ends in one of three ways: the person leaves, a signal sends it away, or it breaks. Whatever the
way, the terminal is as it was before, and whoever ran it says how to go on.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual._callback import invoke
from textual.app import App
from textual.binding import BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.theme import Theme

from bridle.tui.render.palette import DARK, LIGHT, Palette, palette_of
from bridle.tui.screens.main import MainScreen
from bridle.tui.splash import as_usual
from bridle.tui.theme import first_theme, theme_name

if TYPE_CHECKING:
    from bridle.tui.house import House

LEFT, BROKEN, SENT_AWAY = 0, 1, 130


class BridleApp(App[int], inherit_bindings=False, inherit_css=False):
    """The screen on a house that is opened once the first picture stands."""

    # Instead of Textual's own, whose other rules are for widgets that are not here, and which
    # would be read before the first picture.
    DEFAULT_CSS = """
    BridleApp { background: $background; color: $foreground; }
    BridleApp:ansi { background: ansi_default; color: ansi_default; }
    """

    TITLE = "bridle"
    ENABLE_COMMAND_PALETTE = False
    _styled = ""  # the theme of the first picture
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    MainScreen { background: $background; color: $foreground; }
    Toast { background: $panel; padding: 0 1; }
    """

    def __init__(self, opening: "Callable[[], House]", *, theme: str = "") -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self._is_lent = False  # the terminal, to an editor
        self._early: (
            list[events.Key | events.Paste] | None
        ) = []  # typed before there was anything to type into
        for palette in (DARK, LIGHT):
            self.register_theme(theme_of(palette))
        self.theme = theme_name(first_theme(theme, os.environ), os.environ)
        self.main = MainScreen(opening, self.palette)
        if self.no_color:  # Textual leaves greys, and takes an empty variable for a wish
            from bridle.tui.render.no_color import Colourless, coloured

            self.no_color = bool(os.environ.get("NO_COLOR"))
            bare = Colourless(lambda: self.palette)
            self._filters = [bare] if self.no_color else coloured(self._filters)

    def get_driver_class(self) -> type[Driver]:
        """Ours, where terminals are as it knows them."""
        if sys.platform == "win32":
            return super().get_driver_class()
        from bridle.tui.driver import ScreenDriver

        return ScreenDriver

    @property
    def palette(self) -> Palette:
        """The colours of the theme that is chosen."""
        theme = self.available_themes.get(self.theme)
        return palette_of(self.theme, dark=theme is None or theme.dark)

    @property
    def house(self) -> "House | None":
        """Where the sessions live; None as long as it is not open."""
        return self.main.house

    def get_default_screen(self) -> Screen[None]:
        """The one screen."""
        return self.main

    def get_css_variables(self) -> dict[str, str]:
        """The colours; there is nothing to colour before a theme was chosen."""
        return super().get_css_variables() if self._styled else {}

    def on_load(self) -> None:
        """The first picture is styled once, in the colours that were chosen by now."""
        self._styled = self.theme
        self.stylesheet.set_variables(self.get_css_variables())
        # A picture is one whole from the first on. Textual waits for the terminal to say that it
        # knows such marks, which comes too late; one that does not know them leaves them out.
        self._sync_available = os.environ.get("TERM_PROGRAM") != "Apple_Terminal"

    async def on_event(self, event: events.Event) -> None:
        """Keys that come before the composer is there wait for it; the others are applied."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._early is not None:
            self._early.append(event)
        else:
            await self._apply(event)

    async def _apply(self, event: events.Key | events.Paste) -> None:
        """Do everything that a key or a paste means before the next one is looked at.

        Textual puts a key into the queue of the widget that has the focus, and from there into the
        queue of each parent; bindings run at the end of that way. Letters are inserted at its
        beginning, so they would overtake a Backspace that was pressed before them.
        """
        self.main.draw_key()
        self.app_focus = True
        if isinstance(event, events.Key) and await self._check_bindings(event.key, priority=True):
            return
        event._set_forwarded()
        for node in (self.focused or self.screen).ancestors_with_self:
            with node._context():
                for _, handler in node._get_dispatch_methods(event.handler_name, event):
                    await invoke(handler, event)
            if event._stop_propagation:
                break
            event.prevent_default(False)  # it held for that widget alone

    async def take_keys(self) -> None:
        """There is something to type into: what was typed so far goes there, in its order."""
        while self._early:
            await self._apply(self._early.pop(0))
        self._early = None
        if self.theme != self._styled:
            self.refresh_css(animate=False)

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew; before the first picture nothing has an old style.

        Textual does so once at every start, for a theme that it was told about too late.
        """
        if self._early is None:
            super().refresh_css(animate)

    def watch_theme(self, theme: str) -> None:
        """Other colours for what draws its own."""
        if self.is_running and hasattr(self, "main"):
            self.main.repaint(self.palette)

    def fail(self, error: BaseException) -> None:
        """Nothing can be done here: end, and say why outside."""
        self.failure = error
        self.exit(BROKEN)

    def send_away(self) -> None:
        """A signal: end at once, as if the person had left."""
        self._keep_typed()
        self.exit(SENT_AWAY)

    def interrupt(self) -> None:
        """Ctrl-C from outside; while the terminal is lent to an editor it is the editor's."""
        if not self._is_lent:
            self.send_away()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to another program; the screen comes back whatever happens meanwhile.

        Textual resumes the screen only if nothing is raised.
        """
        self._is_lent = True
        failure: BaseException | None = None
        try:
            with super().suspend():
                as_usual()
                try:
                    yield
                except BaseException as error:
                    failure = error
        finally:
            self._is_lent = False
        if failure is not None:
            raise failure

    def _keep_typed(self) -> None:
        with suppress(Exception):  # it may be what broke
            self.main.keep_typed()

    def _handle_exception(self, error: Exception) -> None:
        """Something broke: no traceback on the terminal; whoever ran us says what to do."""
        self.failure = (
            self.failure or getattr(error, "error", None) or error
        )  # of a worker: its own
        self._return_code = BROKEN
        self._keep_typed()
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


def theme_of(palette: Palette) -> Theme:
    """The palette as a theme for the widgets that are not ours."""
    return Theme(
        name=palette.name,
        dark=palette.dark,
        primary=palette.accent,
        secondary=palette.dim,
        accent=palette.accent,
        foreground=palette.text,
        background=palette.background,
        surface=palette.surface,
        panel=palette.panel,
        success=palette.good,
        warning=palette.warn,
        error=palette.bad,
        variables={"border": palette.accent, "border-blurred": palette.panel},
    )
