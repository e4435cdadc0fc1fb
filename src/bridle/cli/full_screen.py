"""Runs the screen: opens it, hears the signals, settles the house; how it ended is told after.

The house is made in a thread, after the first picture; it is left when the screen is gone, so that
what runs is settled also where the terminal was closed.
"""

import asyncio
import gc
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bridle.cli.signals import END_SIGNALS, on_signals
from bridle.tui.app import BridleApp

if TYPE_CHECKING:
    from bridle.tui.house import House
    from bridle.tui.model.onboarding import Preface

DONE, INTERRUPTED = 0, 130  # as `failure.py` has them, without its imports


class Outcome:
    """How the screen ended: the exit code, what broke, the command that goes on with it."""

    def __init__(self, code: int, failure: BaseException | None, session: str) -> None:
        self._code = code
        self._failure = failure
        self._session = session

    def or_back(self, flags: dict[str, Any]) -> "Outcome":
        """Left before the session was open: the way back is the one that was asked for."""
        if not self._session and self._failure is None and flags.get("resume"):
            from shlex import quote

            self._session = f"bridle --resume {quote(flags['resume'])}"
        return self

    def told(self) -> int:
        """Say it on the terminal, which is ours no more; the exit code."""
        import click

        from bridle.cli.exit_codes import report

        code = self._code
        try:
            if self._failure is not None:
                code = report(self._failure)
            if self._session:
                click.echo(f"To continue: {self._session}", err=True)
        except OSError:
            return code  # the terminal is gone, and nobody is there to be told
        return code


def talk(flags: dict[str, Any]) -> Outcome:
    """A screen on sessions that live in this process."""
    outcome = run_screen(lambda: _house(flags), flags.get("theme") or "", lambda: _preface(flags))
    return outcome.or_back(flags)


def run_screen(
    opening: "Callable[[], House]",
    theme: str = "",
    preface: "Callable[[], Preface] | None" = None,
) -> Outcome:
    """The whole of it, on any house; `preface` finds out what is to be asked before.

    Until the first picture stands nothing is collected: there is no garbage, and looking for it
    would be a tenth of the time.
    """
    gc.disable()
    app = BridleApp(lambda: _collected(opening), theme=theme)
    app.main.preface = preface
    try:
        return asyncio.run(_run(app))
    except KeyboardInterrupt:
        return Outcome(INTERRUPTED, None, _session_of(app))
    finally:
        gc.enable()


def _collected(opening: "Callable[[], House]") -> "House":
    """Open it; from here on memory is looked after, but for what was imported, which stays."""
    gc.freeze()
    gc.enable()
    return opening()


async def _run(app: BridleApp) -> Outcome:
    """To the end. A terminal that is closed may say so twice; the session is settled once."""
    with on_signals(_leaving, *END_SIGNALS):
        return await _shown(app)


def _leaving() -> None:
    """We do already."""


async def _shown(app: BridleApp) -> Outcome:
    code = DONE
    failure: BaseException | None = None
    try:
        interrupts = on_signals(app.interrupt, signal.SIGINT)
        with interrupts, on_signals(app.terminate, *END_SIGNALS):
            code = await app.run_async() or DONE
    except Exception as error:
        failure = error
    failure = app.failure or failure
    session = _session_of(app)
    if app.house is not None:
        try:
            await app.house.leave()
        except Exception as error:
            failure = failure or error
    return Outcome(code, failure, session)


def _session_of(app: BridleApp) -> str:
    """The command that goes on with the session; empty where nothing was written."""
    return app.house.again() if app.house is not None else ""


def _preface(flags: dict[str, Any]) -> "Preface":
    from bridle.cli.start_checks import StartChecks

    return StartChecks(flags)


def _house(flags: dict[str, Any]) -> "House":
    from bridle.cli.local_backend import local_backend

    return local_backend(flags)
