"""The first frame, drawn before anything heavy is imported: the prompt line and the status bar.

It uses plain escape sequences and small parts of the standard library only. From here on the
terminal keeps what is typed, without echo, for the screen that follows. Whatever happens, `close`
leaves the terminal as it was.
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
except ImportError:  # not a POSIX terminal
    termios = None  # type: ignore[assignment]

SIGN = "›"
HINT = "Describe a task, or / for commands, @ for files"
_ENTER = "\x1b[?1049h\x1b[?2004h"  # the alternate screen, bracketed pastes
_LEAVE = "\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h"
_PALETTES = {"dark": DARK, "light": LIGHT}


_ENDING = (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
)  # the signals that end the program, with their default handlers
_keys_before: list[Any] = [None]  # the terminal's settings before the splash


class Splash:
    """Show the first frame inside a `with` block, and restore the terminal at its end."""

    def __init__(self, theme: str = "dark", *, colored: bool = True) -> None:
        palette = _PALETTES.get(theme) if colored else None  # plain: the terminal's own colors
        self._colours = colours_of(palette) if palette is not None else None
        self._before: list[Any] | None = None
        self._is_open = False

    def __enter__(self) -> "Splash":
        for number, usual in _ENDING:
            if signal.getsignal(number) == usual:  # leave it to `nohup` or another handler
                signal.signal(number, self._leave)
        self._is_open = True
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def _open(self) -> None:
        if termios is not None:
            try:
                self._before = _keys_before[0] = termios.tcgetattr(0)
                termios.tcsetattr(0, termios.TCSANOW, _without_echo(self._before))
            except (termios.error, OSError):
                self._before = None
        self._write(_ENTER + frame(*_size(), self._colours))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Restore the terminal; only the first call does so, so that later output stays."""
        if not self._is_open:
            return
        self._is_open = False
        self._write(_LEAVE)
        if termios is not None and self._before is not None:
            try:
                termios.tcsetattr(0, termios.TCSANOW, self._before)
            except (termios.error, OSError):
                return  # the terminal was closed

    def _leave(self, number: int, frame: object) -> None:
        """End the process on Ctrl+C or a signal: nothing was started yet.

        An exception might be swallowed in the middle of an import.
        """
        for one, _ in _ENDING:
            signal.signal(one, signal.SIG_IGN)
        self.close()
        os._exit(INTERRUPTED)

    def _write(self, text: str) -> None:
        """Write to the terminal; one that was closed is not an error."""
        with suppress(OSError, ValueError, RuntimeError):  # a signal during a write
            sys.stdout.flush()
        with suppress(OSError):
            os.write(1, text.encode())


def restore_keys() -> None:
    """Restore the terminal's key settings, for another program that runs in it meanwhile."""
    if termios is not None and (before := _keys_before[0]) is not None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, before)


def _without_echo(before: list[Any]) -> list[Any]:
    """Return settings without echo and line editing, in which Enter is not translated."""
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
    """Return background, text, dim, surface and accent as in escape sequences: `20;22;26`."""
    colours = (palette.background, palette.text, palette.dim, palette.surface, palette.accent)
    return tuple(";".join(map(str, bytes.fromhex(one.removeprefix("#")))) for one in colours)


def frame(width: int, height: int, colours: tuple[str, ...] | None) -> str:
    """Return the prompt line, the status bar, and the cursor where it will be."""
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
