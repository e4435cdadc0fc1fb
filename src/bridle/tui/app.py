"""The Textual application: themes, the main screen, keys in their order, and its end.

It ends because the person quits, because of a signal, or because it failed. In all cases the
terminal is restored, and the caller says how to continue the session.
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
from bridle.tui.splash import restore_keys
from bridle.tui.theme import initial_theme, theme_name

if TYPE_CHECKING:
    from bridle.tui.session_backend import SessionBackend

OK, FAILED, TERMINATED = 0, 1, 130


class BridleApp(App[int], inherit_bindings=False, inherit_css=False):
    """The terminal interface; the session is opened after the first frame."""

    # Instead of Textual's own rules, most of which are for widgets that are not used here and all
    # of which would be parsed before the first frame.
    DEFAULT_CSS = """
    BridleApp { background: $background; color: $foreground; }
    BridleApp:ansi { background: ansi_default; color: ansi_default; }
    """

    TITLE = "bridle"
    ENABLE_COMMAND_PALETTE = False
    _styled = ""  # the theme of the first frame
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    MainScreen { background: $background; color: $foreground; }
    Toast { background: $panel; padding: 0 1; }
    """

    def __init__(self, opening: "Callable[[], SessionBackend]", *, theme: str = "") -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self._is_suspended = False  # an editor has the terminal
        self._early: (
            list[events.Key | events.Paste] | None
        ) = []  # typed before there was anything to type into
        for palette in (DARK, LIGHT):
            self.register_theme(theme_of(palette))
        self.theme = theme_name(initial_theme(theme, os.environ), os.environ)
        self.main = MainScreen(opening, self.palette)
        if self.no_color:  # Textual leaves grays, and obeys an empty variable
            from bridle.tui.render.no_color import NoColorFilter, without_color_filters

            self.no_color = bool(os.environ.get("NO_COLOR"))
            bare = NoColorFilter(lambda: self.palette)
            self._filters = [bare] if self.no_color else without_color_filters(self._filters)

    def get_driver_class(self) -> type[Driver]:
        if sys.platform == "win32":
            return super().get_driver_class()
        from bridle.tui.driver import ScreenDriver

        return ScreenDriver

    @property
    def palette(self) -> Palette:
        """The colors of the current theme."""
        theme = self.available_themes.get(self.theme)
        return palette_of(self.theme, dark=theme is None or theme.dark)

    @property
    def backend(self) -> "SessionBackend | None":
        """The backend of the sessions; None until it is open."""
        return self.main.backend

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def get_css_variables(self) -> dict[str, str]:
        """Return no colors until a theme was chosen: nothing is styled before."""
        return super().get_css_variables() if self._styled else {}

    def on_load(self) -> None:
        """Style the first frame once, in the colors that were chosen by now."""
        self._styled = self.theme
        self.stylesheet.set_variables(self.get_css_variables())
        # Synchronize output from the first frame on. Textual waits until the terminal says that it
        # supports this, which is too late; a terminal that does not ignores it.
        self._sync_available = os.environ.get("TERM_PROGRAM") != "Apple_Terminal"

    async def on_event(self, event: events.Event) -> None:
        """Keep keys until there is a composer; then apply each at once."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif self._early is not None:
            self._early.append(event)
        else:
            await self._apply(event)

    async def _apply(self, event: events.Key | events.Paste) -> None:
        """Do everything that a key or a paste means before the next one is looked at.

        Textual puts a key into the queue of the focused widget, and from there into that of each
        parent; bindings run at the end of that way. Letters are inserted at its beginning, so they
        would overtake a Backspace that was pressed before them.
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
            event.prevent_default(False)  # it was meant for that widget alone

    async def release_keys(self) -> None:
        """Apply the keys that were typed before there was a composer, in their order."""
        while self._early:
            await self._apply(self._early.pop(0))
        self._early = None
        if self.theme != self._styled:
            self.refresh_css(animate=False)

    def refresh_css(self, animate: bool = True) -> None:
        """Style everything anew, except before the first frame.

        Textual does so at every start, because it learns of the theme too late.
        """
        if self._early is None:
            super().refresh_css(animate)

    def watch_theme(self, theme: str) -> None:
        """Repaint what draws its own colors."""
        if self.is_running and hasattr(self, "main"):
            self.main.repaint(self.palette)

    def fail(self, error: BaseException) -> None:
        """End with this error; the caller reports it."""
        self.failure = error
        self.exit(FAILED)

    def terminate(self) -> None:
        """End at once because of a signal, as if the person had quit."""
        self._keep_typed()
        self.exit(TERMINATED)

    def interrupt(self) -> None:
        """Handle SIGINT from outside; while an editor runs it is the editor's."""
        if not self._is_suspended:
            self.terminate()

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal to another program, and take it back whatever happens.

        Textual resumes the screen only if nothing is raised.
        """
        self._is_suspended = True
        failure: BaseException | None = None
        try:
            with super().suspend():
                restore_keys()
                try:
                    yield
                except BaseException as error:
                    failure = error
        finally:
            self._is_suspended = False
        if failure is not None:
            raise failure

    def _keep_typed(self) -> None:
        with suppress(Exception):  # this may be what failed
            self.main.keep_typed()

    def _handle_exception(self, error: Exception) -> None:
        """End without a traceback on the terminal; the caller says what to do."""
        self.failure = (
            self.failure or getattr(error, "error", None) or error
        )  # a worker's own error
        self._return_code = FAILED
        self._keep_typed()
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


def theme_of(palette: Palette) -> Theme:
    """Return the palette as a Textual theme, for widgets that are not ours."""
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
