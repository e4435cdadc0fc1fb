"""The REPL: reads lines and runs commands or sends prompts.

No cursor tricks, so it works anywhere.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from bridle import __version__
from bridle.cli.approval_prompt import TerminalApprover
from bridle.cli.exit_codes import DONE, INTERRUPTED, complain, explain
from bridle.cli.line_reader import LineReader
from bridle.cli.local_backend import LocalBackend
from bridle.cli.printer import Printer
from bridle.cli.repl.interaction import ReplInteraction
from bridle.cli.repl.session import ReplSession
from bridle.cli.setup import Setup
from bridle.cli.signals import END_SIGNALS, on_signals, run_async
from bridle.cli.user_input import check_text
from bridle.errors import AgentError
from bridle.presentation.commands import command_line

_FENCE = '"""'
_PROMPT = "❯ "
_INTERVAL = 0.02  # seconds between two looks whether the logs are complete


def open_repl(flags: dict[str, Any], seen: int | None = None) -> "Repl":
    """Return a REPL whose sessions run in this process, as the flags say."""
    setup, lines = Setup(flags), LineReader()
    printer = Printer(
        sys.stdout,
        sys.stderr,
        quiet=flags["quiet"],
        thinking=flags["thinking"],
        paint=setup.paint,
    )
    approver = TerminalApprover(lines, printer)
    backend = LocalBackend(setup, flags, face="repl", approver=approver)
    return Repl(ReplSession(backend, printer, approver), lines, seen)


def run_repl(flags: dict[str, Any]) -> int:
    """Run a conversation line by line, and return the exit code."""
    return run_async(open_repl(flags).run())


class Repl:
    """Reads lines: commands are run, prompts are sent."""

    def __init__(self, repl: ReplSession, lines: LineReader, seen: int | None = None) -> None:
        self._seen = seen  # what comes after that record is shown; None: what is new
        self._lines = lines
        self._reading: asyncio.Future[str | None] | None = None
        self._ahead: asyncio.Future[str | None] | None = None  # a line typed while a turn runs
        self._is_ended = asyncio.Event()
        self._printer = repl.printer
        self._repl = repl
        self._repl.on_end = self._prompt_again
        self._interaction = ReplInteraction(repl)

    async def run(self) -> int:
        """Run until there are no more lines; return the exit code."""
        repl = self._repl
        with on_signals(self._drop_line, signal.SIGINT), on_signals(self._end, *END_SIGNALS):
            await repl.enter(self._seen)
            try:
                self._welcome()
                if await self._resume():
                    while (text := await self._entry()) is not None:
                        if text.strip() and not await self._take(text):
                            break
                    else:
                        if self._lines.is_terminal:
                            self._printer.ask("\n")  # Ctrl-D leaves the cursor behind the prompt
            finally:
                await self._close()
            return INTERRUPTED if self._is_ended.is_set() else DONE

    def _prompt_again(self) -> None:
        """Ask for the line again after a turn that another process asked for."""
        if self._reading is not None and self._lines.is_terminal:
            self._printer.prompt(self._printer.paint.cyan(_PROMPT))

    def _drop_line(self) -> None:
        """Drop the line that is typed: Ctrl-C while no turn runs."""
        if self._reading is not None:
            self._reading.cancel()

    def _end(self) -> None:
        """Read no more lines.

        The watch interrupts a turn of this process; one that runs elsewhere goes on.
        """
        self._is_ended.set()
        self._repl.leave_turn()
        self._drop_line()

    async def _close(self) -> None:
        """Close the session. On a signal meanwhile, end the program once all logs are complete."""
        closing, is_signalled = asyncio.ensure_future(self._repl.close()), asyncio.Event()
        with on_signals(is_signalled.set, signal.SIGINT, *END_SIGNALS):
            waiting = asyncio.ensure_future(is_signalled.wait())
            await asyncio.wait([closing, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not closing.done():
                while not (self._repl.backend.is_settled or closing.done()):
                    await asyncio.wait([closing], timeout=_INTERVAL)
                with suppress(OSError):  # the terminal may be gone
                    self._printer.break_line()
                    sys.stdout.flush()
                os._exit(INTERRUPTED)
        await closing

    async def _resume(self) -> bool:
        """Resume what was left behind in the session.

        Return False if the input ended while a turn runs elsewhere: there is nothing to wait for.
        """
        repl = self._repl
        resuming = asyncio.ensure_future(repl.resume())
        try:
            if repl.is_elsewhere and not repl.session.history.pending:
                self._ahead = asyncio.ensure_future(self._lines.next())
                await asyncio.wait([resuming, self._ahead], return_when=asyncio.FIRST_COMPLETED)
                if self._ahead.done() and self._ahead.result() is None and not resuming.done():
                    repl.leave_turn()
                    self._printer.break_line()
                    self._printer.line(self._printer.paint.dim("quit; the turn keeps running"))
                    await resuming
                    return False
            await resuming
        except AgentError as error:
            self._printer.break_line()
            complain(*explain(error)[:2])
        finally:
            resuming.cancel()
        return True

    async def _take(self, text: str) -> bool:
        """Run a command or send a prompt; return False to leave. Errors are shown."""
        repl = self._repl
        try:
            if line := command_line(text, repl.backend.commands()):
                stays = await self._interaction.run(line)
                await repl.wait_for_output()
                return stays
            await repl.send(check_text(text, "the line"))
            if self._lines.is_terminal:
                await repl.show_waiting()
        except AgentError as error:
            self._printer.break_line()
            complain(*explain(error)[:2])
        return True

    def _welcome(self) -> None:
        if self._lines.is_terminal:
            paint = self._printer.paint
            self._printer.line(f"{paint.bold('bridle')} {__version__} · {self._repl.summary}")
            self._printer.line(paint.dim('/help · """ for several lines · Ctrl-D to quit'))

    async def _entry(self) -> str | None:
        """Return a line, or the lines between triple quotes; None at the end of the input."""
        line = await self._line(_PROMPT)
        if line is None or not line.lstrip().startswith(_FENCE):
            return line
        parts = [line.lstrip().removeprefix(_FENCE)]
        while not parts[-1].rstrip().endswith(_FENCE):
            more = await self._line("… ")
            if more is None:
                break
            parts.append(more)
        return "\n".join(parts).rstrip().removesuffix(_FENCE).strip("\n")

    async def _line(self, prompt: str) -> str | None:
        while not self._is_ended.is_set():
            ahead, self._ahead = self._ahead, None  # a line that came while a turn was under way
            self._reading = ahead or asyncio.ensure_future(self._lines.next())
            if self._lines.is_terminal:
                self._printer.prompt(self._printer.paint.cyan(prompt))
            try:
                return await self._reading
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise  # it was not the line that was cancelled
                if self._is_ended.is_set():
                    break
                self._printer.end_prompt()
                self._printer.ask("\n")
                self._printer.line(self._printer.paint.dim("Ctrl-D or /quit to quit"))
            finally:
                self._reading = None
                self._printer.end_prompt()
        return None
