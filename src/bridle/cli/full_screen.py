"""Run the full screen: open it, handle signals, close the session, and report how it ended.

The session is opened in a thread, after the first frame. It is closed once the screen is gone, so
that everything is stored even if the terminal was closed.
"""

import asyncio
import gc
import signal
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.exit_codes import DONE, INTERRUPTED, report
from bridle.cli.signals import END_SIGNALS, on_signals
from bridle.tui.app import BridleApp

if TYPE_CHECKING:
    from bridle.tui.model.onboarding import StartupChecks
    from bridle.tui.session_backend import SessionBackend


class Outcome:
    """How the screen ended: the exit code, an error, and the command that continues the session."""

    def __init__(self, code: int, failure: BaseException | None, again: str) -> None:
        self._code = code
        self._failure = failure
        self._again = again

    def or_resume(self, flags: dict[str, Any]) -> "Outcome":
        """If no session was opened, continue with the one that the flags name."""
        if not self._again and self._failure is None and flags.get("resume"):
            self._again = f"bridle --resume {quote(flags['resume'])}"
        return self

    def report(self) -> int:
        """Print the outcome on the terminal, which is ours no longer; return the exit code."""
        code = self._code
        try:
            if self._failure is not None:
                code = report(self._failure)
            if self._again:
                click.echo(f"To continue: {self._again}", err=True)
        except OSError:  # the terminal is gone
            return code
        return code


def chat(flags: dict[str, Any]) -> Outcome:
    """Show the full screen with a session of this process."""
    outcome = run_screen(lambda: _backend(flags), flags.get("theme") or "", lambda: _checks(flags))
    return outcome.or_resume(flags)


def run_screen(
    open_backend: "Callable[[], SessionBackend]",
    theme: str = "",
    checks: "Callable[[], StartupChecks] | None" = None,
) -> Outcome:
    """Run the full screen until it is closed; `checks` finds out what to ask before.

    Garbage is not collected until the first frame is drawn: there is none yet, and looking for it
    would take a tenth of the time.
    """
    gc.disable()
    app = BridleApp(lambda: _open_collected(open_backend), theme=theme)
    app.main.checks = checks
    try:
        return asyncio.run(_run(app))
    except KeyboardInterrupt:
        return Outcome(INTERRUPTED, None, _again(app))
    finally:
        gc.enable()


def _open_collected(open_backend: "Callable[[], SessionBackend]") -> "SessionBackend":
    """Collect garbage from here on, without what was imported, which stays."""
    gc.freeze()
    gc.enable()
    return open_backend()


async def _run(app: BridleApp) -> Outcome:
    """Run to the end. A closed terminal may send two signals, but the session is closed once."""
    with on_signals(lambda: None, *END_SIGNALS):
        return await _show(app)


async def _show(app: BridleApp) -> Outcome:
    code = DONE
    failure: BaseException | None = None
    try:
        interrupts = on_signals(app.interrupt, signal.SIGINT)
        with interrupts, on_signals(app.terminate, *END_SIGNALS):
            code = await app.run_async() or DONE
    except Exception as error:
        failure = error
    failure = app.failure or failure
    again = _again(app)
    if app.backend is not None:
        try:
            await app.backend.leave()
        except Exception as error:
            failure = failure or error
    return Outcome(code, failure, again)


def _again(app: BridleApp) -> str:
    """Return the command that continues the session; empty if nothing was written."""
    return app.backend.again() if app.backend is not None else ""


def _checks(flags: dict[str, Any]) -> "StartupChecks":
    from bridle.cli.start_checks import StartChecks

    return StartChecks(flags)


def _backend(flags: dict[str, Any]) -> "SessionBackend":
    from bridle.cli.local_backend import local_backend

    return local_backend(flags)
