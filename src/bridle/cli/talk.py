"""The REPL: prompts by line, over the session's verbs. No cursor tricks, so it works anywhere.

What a line means is decided here; turns, questions and rendering are other modules' business.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import click

from bridle import __version__
from bridle.cli.approver import TerminalApprover
from bridle.cli.event_loop import END_SIGNALS, on_signals
from bridle.cli.failure import DONE, INTERRUPTED, complain, explain
from bridle.cli.house_here import OwnHouse
from bridle.cli.lines import Lines
from bridle.cli.room import Room
from bridle.cli.screen import Screen
from bridle.cli.setup import Setup
from bridle.cli.slash import obey
from bridle.cli.user_input import check_text
from bridle.errors import AgentError
from bridle.tui.commands import command_line

_FENCE = '"""'
_PROMPT = "❯ "
_LOOK = 0.02  # seconds between two looks whether the logs are complete


def own_repl(flags: dict[str, Any], seen: int | None = None) -> "Repl":
    """One whose sessions live in this process, as the flags say; `seen` as a REPL takes it."""
    setup, lines = Setup(flags), Lines()
    screen = Screen(
        sys.stdout,
        sys.stderr,
        quiet=flags["quiet"],
        thinking=flags["thinking"],
        paint=setup.paint,
    )
    approver = TerminalApprover(lines, screen)
    house = OwnHouse(setup, flags, face="repl", approver=approver)
    return Repl(Room(house, screen, approver), lines, seen)


class Repl:
    """Reads lines, and sends each where it belongs."""

    def __init__(self, room: Room, lines: Lines, seen: int | None = None) -> None:
        self._seen = seen  # what comes after that record is shown; None: what is new
        self._lines = lines
        self._reading: asyncio.Future[str | None] | None = None
        self._ahead: asyncio.Future[str | None] | None = None
        self._leaving = asyncio.Event()
        self._screen = room.screen
        self._room = room
        self._room.on_end = self._turn_over

    async def talk(self) -> int:
        """Until there are no more lines."""
        with on_signals(self._pulled, signal.SIGINT), on_signals(self._sent_away, *END_SIGNALS):
            return await self._talk()

    def _turn_over(self) -> None:
        """A turn that another process asked for came between: ask for the line again."""
        if self._reading is not None and self._lines.is_terminal:
            self._screen.prompt(self._screen.paint.cyan(_PROMPT))

    def _pulled(self) -> None:
        """Ctrl-C while no turn runs drops the line."""
        if self._reading is not None:
            self._reading.cancel()

    def _sent_away(self) -> None:
        """No line is read any more. A turn of this process is interrupted by whoever watches it;
        one that runs elsewhere goes on."""
        self._leaving.set()
        self._room.leave_turn()
        self._pulled()

    async def _talk(self) -> int:
        room = self._room
        await room.enter(self._seen)
        try:
            self._welcome()
            if await self._begin(room):
                while (text := await self._entry()) is not None:
                    if text.strip() and not await self._take(room, text):
                        break
                else:
                    self._leave()
        finally:
            await self._close(room)
        return INTERRUPTED if self._leaving.is_set() else DONE

    async def _close(self, room: Room) -> None:
        """Leave the room. On a signal meanwhile, end the program once all logs are complete."""
        closing, hurry = asyncio.ensure_future(room.leave()), asyncio.Event()
        with on_signals(hurry.set, signal.SIGINT, *END_SIGNALS):
            waiting = asyncio.ensure_future(hurry.wait())
            await asyncio.wait([closing, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not closing.done():
                while not (room.house.is_settled or closing.done()):
                    await asyncio.wait([closing], timeout=_LOOK)
                with suppress(OSError):  # the terminal may be gone
                    self._screen.break_line()
                    sys.stdout.flush()
                os._exit(INTERRUPTED)
        await closing

    async def _begin(self, room: Room) -> bool:
        """A session that was taken up again may have something to go on with.

        False if the input ended while a turn runs elsewhere: then there is nothing to wait for.
        """
        going = asyncio.ensure_future(room.carry_on())
        try:
            if room.is_elsewhere and not room.session.history.pending:
                self._ahead = asyncio.ensure_future(self._lines.next())
                await asyncio.wait([going, self._ahead], return_when=asyncio.FIRST_COMPLETED)
                if self._ahead.done() and self._ahead.result() is None and not going.done():
                    room.leave_turn()
                    self._screen.break_line()
                    self._screen.line(self._screen.paint.dim("left; the turn goes on"))
                    await going
                    return False
            await going
        except AgentError as error:
            self._screen.break_line()
            complain(*explain(error)[:2])
        finally:
            going.cancel()
        return True

    def _leave(self) -> None:
        """Ctrl-D leaves the cursor behind the prompt."""
        if self._lines.is_terminal:
            self._screen.ask("\n")

    async def _take(self, room: Room, text: str) -> bool:
        """One entry; False when it was the last. What goes wrong is said, and we go on."""
        try:
            if line := command_line(text, room.house.commands()):
                stay = await obey(room, line)
                await room.settle()
                return stay
            await room.play(check_text(text, "the line"))
            if self._lines.is_terminal:
                await room.tell_waiting()
        except (AgentError, click.ClickException) as error:
            self._screen.break_line()
            complain(*explain(error)[:2])
        return True

    def _welcome(self) -> None:
        if self._lines.is_terminal:
            paint = self._screen.paint
            self._screen.line(f"{paint.bold('bridle')} {__version__} · {self._room.summary}")
            self._screen.line(paint.dim('/help · """ for several lines · Ctrl-D leaves'))

    async def _entry(self) -> str | None:
        """A line, or the lines between triple quotes; None at the end."""
        line = await self._line(_PROMPT)
        if line is None or not line.lstrip().startswith(_FENCE):
            return line
        gathered = [line.lstrip().removeprefix(_FENCE)]
        while not gathered[-1].rstrip().endswith(_FENCE):
            more = await self._line("… ")
            if more is None:
                break
            gathered.append(more)
        return "\n".join(gathered).rstrip().removesuffix(_FENCE).strip("\n")

    async def _line(self, prompt: str) -> str | None:
        while not self._leaving.is_set():
            ahead, self._ahead = self._ahead, None  # a line that came while a turn was under way
            self._reading = ahead or asyncio.ensure_future(self._lines.next())
            if self._lines.is_terminal:
                self._screen.prompt(self._screen.paint.cyan(prompt))
            try:
                return await self._reading
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise  # it was not the line that was cancelled
                if self._leaving.is_set():
                    break
                self._screen.end_prompt()
                self._screen.ask("\n")
                self._screen.line(self._screen.paint.dim("Ctrl-D or /quit leaves"))
            finally:
                self._reading = None
                self._screen.end_prompt()
        return None
