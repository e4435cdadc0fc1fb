"""The first picture, before anything heavy is imported: where the prompt goes, and the bar.

Plain escapes, nothing but the standard library's small parts. From here on the terminal keeps what
is typed, unseen, for the screen that follows: nothing is lost, and Enter stays Enter. Whatever
happens behind it, `lift` gives the terminal back as it was.
"""

import os
import signal
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any

from bridle.startup import INTERRUPTED
from bridle.tui.render.palette import DARK, LIGHT, Palette

try:
    import termios
except ImportError:  # no terminal of that kind here: there is no curtain
    termios = None  # type: ignore[assignment]

SIGN = "›"
HINT = "Ask, or / for commands, @ for files"
_ENTER = "\x1b[?1049h\x1b[?2004h"  # another screen, marked pastes
_LEAVE = "\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h"
_PALETTES = {"dark": DARK, "light": LIGHT}


_ENDING = (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
)  # what ends the program, and what it does as a rule
_usual: list[Any] = [None]  # how the terminal took keys before there was a curtain


class Curtain:
    """Down from `__enter__` on; lifted at the end, whatever the end is."""

    def __init__(self, theme: str = "dark", *, coloured: bool = True) -> None:
        palette = _PALETTES.get(theme) if coloured else None  # plain: the terminal's own colours
        self._colours = colours_of(palette) if palette is not None else None
        self._before: list[Any] | None = None
        self._is_down = False

    def __enter__(self) -> "Curtain":
        for number, usual in _ENDING:
            if signal.getsignal(number) == usual:  # `nohup`, and whoever hears it, are respected
                signal.signal(number, self._leave)
        self._is_down = True
        try:
            self._fall()
        except BaseException:
            self.lift()
            raise
        return self

    def _fall(self) -> None:
        if termios is not None:
            try:
                self._before = _usual[0] = termios.tcgetattr(0)
                termios.tcsetattr(0, termios.TCSANOW, _quiet(self._before))
            except (termios.error, OSError):
                self._before = None
        self._write(_ENTER + picture(*_size(), self._colours))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.lift()

    def lift(self) -> None:
        """The terminal as it was; once, so that what is said after it stays."""
        if not self._is_down:
            return
        self._is_down = False
        self._write(_LEAVE)
        if termios is not None and self._before is not None:
            try:
                termios.tcsetattr(0, termios.TCSANOW, self._before)
            except (termios.error, OSError):
                return  # the terminal is gone

    def _leave(self, number: int, frame: object) -> None:
        """Ctrl-C, or an end that somebody asked for: nothing was begun yet.

        An exception could be lost in the middle of an import.
        """
        for one, _ in _ENDING:
            signal.signal(one, signal.SIG_IGN)
        self.lift()
        os._exit(INTERRUPTED)

    def _write(self, text: str) -> None:
        """A terminal that is gone, or does not take it, is no reason to fail."""
        with suppress(OSError, ValueError, RuntimeError):  # a signal, while it is written to
            sys.stdout.flush()
        with suppress(OSError):
            os.write(1, text.encode())


def as_usual() -> None:
    """The terminal's keys as they were before the curtain: for a program that has it meanwhile."""
    if termios is not None and (before := _usual[0]) is not None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, before)


def _quiet(before: list[Any]) -> list[Any]:
    """No echo, no lines, Enter as it is typed; Ctrl-C still ends."""
    after = [*before[:6], list(before[6])]
    after[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
    after[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    after[6][termios.VMIN], after[6][termios.VTIME] = 1, 0
    return after


def _size() -> tuple[int, int]:
    try:
        width, height = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return width or 80, height or 24


def colours_of(palette: Palette) -> tuple[str, ...]:
    """Ground, text, dim, surface and accent, as escape sequences name them: `20;22;26`."""
    colours = (palette.background, palette.text, palette.dim, palette.surface, palette.accent)
    return tuple(";".join(map(str, bytes.fromhex(one.removeprefix("#")))) for one in colours)


def picture(width: int, height: int, colours: tuple[str, ...] | None) -> str:
    """The prompt line, the bar, and the cursor where it will be."""
    if colours is None:
        ground = text = dim = bar = accent = "\x1b[0m"
    else:
        back, fore, faint, surface, signs = colours
        ground = f"\x1b[48;2;{back}m\x1b[38;2;{fore}m"
        text, dim = f"\x1b[38;2;{fore}m", f"\x1b[38;2;{faint}m"
        bar, accent = f"\x1b[48;2;{surface}m{dim}", f"\x1b[38;2;{signs}m"
    parts = [ground, "\x1b[2J"]
    if height < 7 or width < 24:
        return "".join([*parts, "\x1b[H"])
    if height > 9:
        middle = max(1, (height - 7) // 2)
        parts.append(f"\x1b[{middle};{max(1, width // 2 - 3)}H{text}bridle")
    parts.append(f"\x1b[{height - 2};1H{accent}{'─' * width}")
    parts.append(f"\x1b[{height - 1};2H{accent}{SIGN} {dim}{HINT[: max(0, width - 4)]}")
    parts.append(f"\x1b[{height};1H{bar}{' opening …'.ljust(width)[:width]}{ground}")
    parts.append(f"\x1b[{height - 1};4H")
    return "".join(parts)
