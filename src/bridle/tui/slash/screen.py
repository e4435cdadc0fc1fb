"""The slash commands on the full screen: the screen as an `Interaction`, and its own commands."""

import asyncio
import os
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from textual.app import SuspendNotSupported

from bridle.errors import AgentError, SessionError
from bridle.presentation.blocks import Block, Call, Prompt, Reply, Thought
from bridle.presentation.commands import Command
from bridle.tui.clipboard import code_blocks, copy
from bridle.tui.dialogs import ChoiceDialog, ConfirmDialog, TextDialog, TextInputDialog
from bridle.tui.editor import edit_text
from bridle.tui.keys import help_lines
from bridle.tui.screens.sessions import SessionPicker
from bridle.tui.session_backend import SessionBackend
from bridle.tui.slash.commands import run_command
from bridle.tui.slash.interaction import Handler, Interaction, Item, Items, Lines, Severity
from bridle.tui.theme import theme_name
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.tui.screens.main import MainScreen
    from bridle.tui.screens.session import SessionController

T = TypeVar("T")

_SOON = 5.0  # seconds
_HEARD = 0.001  # ... in which a loop hears of every signal that has come
_TONES = {"information": ("dim", "·"), "warning": ("warn", "!"), "error": ("bad", "!")}


async def run_screen_command(ui: "ScreenInteraction", line: str) -> None:
    """Run a command. One that fails is shown as one notice, and its line can be corrected."""
    try:
        await run_command(ui, line, ui.screen_commands)
    except AgentError as error:
        ui.restore_input(line)
        ui.show(error_text(error), "error")


def error_text(error: AgentError) -> str:
    """Return what happened, and what to do next."""
    message = error.message.rstrip(".")
    return f"{message}. {error.hint}" if error.hint else message


class ScreenInteraction:
    """The main screen, as commands know it."""

    is_screen = True

    def __init__(self, screen: "MainScreen") -> None:
        self._screen = screen
        self.screen_commands: Mapping[str, Handler] = {
            "copy": self._copy,
            "editor": self._editor,
            "find": self._find,
        }

    @property
    def _session(self) -> "SessionController":
        session = self._screen.session
        if session is None:
            raise SessionError("the session is not open yet", hint="Try again in a moment.")
        return session

    @property
    def backend(self) -> SessionBackend:
        """Where the sessions are, once it is open."""
        backend = self._screen.backend
        if backend is None:
            raise SessionError("the session is not open yet", hint="Try again in a moment.")
        return backend

    def user_commands(self) -> Sequence[Command]:
        """Return the user's own commands."""
        return self._screen.own()

    def keys(self) -> Lines:
        """Return the keys of the main screen."""
        return [(f"  {key:20} {meaning}", "") if key else ("", "") for key, meaning in help_lines()]

    def show(self, text: str, severity: Severity = "information") -> None:
        """Show a line in the conversation."""
        tone, mark = _TONES[severity]
        self._session.tell(text, tone, mark)

    def show_progress(self, text: str) -> None:
        """Show a text at the end of the status bar."""
        self._screen.bar.show_message(text)

    async def show_lines(self, title: str, lines: Lines) -> None:
        """Show a page over the screen."""
        await self._screen.app.push_screen_wait(TextDialog(title, lines))

    async def choose(
        self, title: str, items: Items, *, now: str = "", empty: str = "There is none."
    ) -> str | None:
        """Show a list to choose from."""
        dialog = ChoiceDialog(title, await items(), empty or "There is none.")
        return await self._screen.app.push_screen_wait(dialog)

    async def choose_session(self, query: str) -> str | None:
        """Show the session picker."""
        backend = self.backend
        workspace = backend.place.workspace
        picker = SessionPicker(backend, query, current=backend.session.id, workspace=workspace)
        return await self._screen.app.push_screen_wait(picker)

    async def ask_text(self, title: str, value: str = "") -> str | None:
        """Ask for a line of text."""
        return await self._screen.app.push_screen_wait(TextInputDialog(title, value))

    async def confirm(
        self, title: str, question: str, lines: Lines = (), *, danger: bool = False
    ) -> bool:
        """Ask a question that is answered yes or no."""
        dialog = ConfirmDialog(title, question, lines, danger=danger)
        answer = await self._screen.app.push_screen_wait(dialog)
        return answer is True

    async def switch(self, change: Awaitable[T]) -> T:
        """Await what may lead to another session, and show it from its beginning."""
        result = await change
        await self._session.rejoin()
        if (follower := self._session.follower) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SOON):
                    await follower.came.wait()
        await self._session.read_commands()
        for remark in self.backend.remarks():
            self.show(remark)
        return result

    def update(self) -> None:
        """Update the status bar."""
        self._screen.draw_soon()

    async def send(self, text: str) -> None:
        """Send a prompt, as if it had been typed."""
        is_busy = self.backend.session.is_busy
        await self._session.send(text, "queue" if is_busy else "idle")

    async def resume(self) -> None:
        """Do nothing: the screen resumes a session as it shows it."""

    def restore_input(self, text: str) -> None:
        """Put a text into the composer, unless something is typed there already."""
        if not self._screen.composer.text.strip():
            self._screen.composer.load(text)

    def prompt_of_turn(self, turns: int) -> str:
        """Return the prompt that began that turn, counted from the end."""
        blocks = self._screen.conversation.fold.blocks
        prompts = [one.text for one in blocks if isinstance(one, Prompt) and not one.steers]
        return prompts[-turns] if 0 < turns <= len(prompts) else ""

    def go_to(self, seq: int, kind: str) -> None:
        """Scroll to the block that shows a record, if there is one."""
        conversation = self._screen.conversation
        place = conversation.fold.find_block(seq, kind)
        if place is not None:
            conversation.refresh_blocks()
            conversation.go_to(place)

    def set_theme(self, name: str) -> None:
        """Use other colours."""
        self._screen.app.theme = theme_name(name, os.environ)

    async def answer_approvals(self) -> None:
        """Open the page with the approvals of all sessions."""
        self._screen.approvals.open_approvals()

    def leave(self) -> None:
        """End the screen."""
        self._screen.leave()

    # Commands that need the full screen

    async def _editor(self, ui: Interaction, text: str) -> None:
        await self.edit(text)

    async def _copy(self, ui: Interaction, what: str) -> None:
        if what not in ("", "code"):
            raise SessionError(
                f"/copy does not know {one_line(what, 40)}",
                hint="/copy copies the last reply, /copy code its last code.",
            )
        blocks = self._screen.conversation.fold.blocks
        text = last_code(blocks) if what else last_answer(blocks)
        if not text:
            raise SessionError("there is nothing to copy yet")
        self.show(f"Copied: {await copy(self._screen.app, text)}")

    async def _find(self, ui: Interaction, words: str) -> None:
        conversation = self._screen.conversation
        items = list(_matching_lines(conversation.fold.blocks, words))
        title = f"“{one_line(words, 40)}” in this conversation" if words else "In this conversation"
        chosen = await self._screen.app.push_screen_wait(
            ChoiceDialog(title, items, "Nothing was found.")
        )
        if chosen is not None:
            conversation.go_to(int(chosen.partition(" ")[0]))

    async def edit(self, text: str) -> None:
        """Open the user's editor with what is typed; the session goes on meanwhile."""
        composer = self._screen.composer
        before = text or composer.full_text
        with self._suspended():
            try:
                after = await asyncio.to_thread(edit_text, before, dict(os.environ))
            finally:  # a Ctrl-C that was the editor's is heard before the terminal is ours again
                await asyncio.sleep(_HEARD)
        composer.load(after)
        composer.focus()

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """Leave the terminal to another program; draw nothing."""
        app = self._screen.app
        if app.is_headless:
            yield
            return
        try:
            with app.suspend(), app.batch_update():
                yield
        except SuspendNotSupported as error:
            raise SessionError(
                "this terminal cannot be used by an editor", error, hint="Write the prompt here."
            ) from error
        finally:
            app.refresh()


def last_answer(blocks: Sequence[Block]) -> str:
    """Return what the model said last."""
    return next(
        (
            one.text
            for one in reversed(blocks)
            if isinstance(one, Reply) and one.text and not one.discarded
        ),
        "",
    )


def last_code(blocks: Sequence[Block]) -> str:
    """Return the last block of code that the model wrote."""
    for one in reversed(blocks):
        if isinstance(one, Reply) and not one.discarded and (found := code_blocks(one.text)):
            return found[-1][1]
    return ""


def _matching_lines(blocks: Sequence[Block], words: str) -> Iterator[Item]:
    """Yield the lines that contain the words, the newest first; at most 500."""
    wanted, count = words.casefold(), 0
    for at in range(len(blocks) - 1, -1, -1):
        for number, line in enumerate(_text(blocks[at]).split("\n")):
            if line.strip() and wanted in line.casefold():
                yield Item(f"{at} {number}", line.strip(), _kind(blocks[at]))
                count += 1
                if count == 500:
                    return


def _text(block: Block) -> str:
    if isinstance(block, Prompt | Reply | Thought):
        return block.text
    return f"{block.subject}\n{block.result}" if isinstance(block, Call) else ""


def _kind(block: Block) -> str:
    return block.name if isinstance(block, Call) else type(block).__name__.lower()
