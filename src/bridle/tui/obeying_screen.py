"""The main screen as commands know it: keeps the promise `Stage`."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar, cast

from textual.app import SuspendNotSupported

from bridle.errors import SessionError
from bridle.presentation.blocks import Block, Call, Prompt, Reply, Thought
from bridle.presentation.commands import Command
from bridle.tui.clipboard import code_blocks, copy
from bridle.tui.dialogs import Choose, Dialog, Item
from bridle.tui.editor import edited
from bridle.tui.house import House
from bridle.tui.obeying_stage import Severity
from bridle.tui.theme import theme_name
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.tui.chat import ChatScreen
    from bridle.tui.composer_screen import Commanding

T = TypeVar("T")

_SOON = 5.0  # seconds
_HEARD = 0.001  # ... in which a loop hears of every signal that has come
_TONES = {"information": ("dim", "·"), "warning": ("warn", "!"), "error": ("bad", "!")}


class ScreenStage:
    """One screen."""

    def __init__(self, screen: "Commanding") -> None:
        self._screen = cast("ChatScreen", screen)

    @property
    def lodging(self) -> House:
        """The house, once it is open."""
        house = self._screen.house
        if house is None:
            raise SessionError("the session is not open yet", hint="Try again in a moment.")
        return house

    def own(self) -> Sequence[Command]:
        """The user's own commands."""
        return self._screen.own()

    def tell(self, said: str, severity: Severity = "information") -> None:
        """A line in the conversation."""
        tone, mark = _TONES[severity]
        self._screen.tell(said, tone, mark)

    def hint(self, said: str) -> None:
        """At the end of the bar."""
        self._screen.bar.say(said)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Show a dialog and wait for what it is left with."""
        return await self._screen.app.push_screen_wait(dialog)

    async def moved(self) -> None:
        """Watch the session that the house is in now."""
        await self._screen.rejoin()
        if (following := self._screen.following) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SOON):
                    await following.came.wait()
        await self._screen.look_for_commands()
        for remark in self.lodging.remarks():
            self.tell(remark)

    def changed(self) -> None:
        """The bar says what holds."""
        self._screen.draw_soon()

    async def say(self, text: str) -> None:
        """A prompt, as if it had been typed."""
        busy = self.lodging.session.is_busy
        await self._screen.send(text, "queue" if busy else "idle")

    def give_back(self, line: str) -> None:
        """Into the composer, unless something is typed there already."""
        if not self._screen.composer.text.strip():
            self._screen.composer.load(line)

    def paint(self, theme: str) -> None:
        """Other colours."""
        self._screen.app.theme = theme_name(theme, os.environ)

    async def edit(self, text: str) -> None:
        """The person's editor on what is typed; the screen waits behind it, the session goes on."""
        composer = self._screen.composer
        before = text or composer.whole
        with self._aside():
            try:
                after = await asyncio.to_thread(edited, before, dict(os.environ))
            finally:  # a Ctrl-C that was the editor's is heard before the terminal is ours again
                await asyncio.sleep(_HEARD)
        composer.load(after)
        composer.focus()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """The terminal is somebody else's meanwhile; nothing is drawn."""
        app = self._screen.app
        if app.is_headless:
            yield
            return
        try:
            with app.suspend(), app.batch_update():
                yield
        except SuspendNotSupported as error:
            said = "this terminal cannot be lent to an editor"
            raise SessionError(said, error, hint="Write the prompt here.") from error
        finally:
            app.refresh()

    def open_questions(self) -> None:
        """The page of all questions."""
        self._screen.questions.open_tray()

    async def copy(self, what: str) -> None:
        """The last answer, or its last block of code, neutral."""
        if what not in ("", "code"):
            said = f"/copy does not know {one_line(what, 40)}"
            raise SessionError(said, hint="/copy takes the answer, /copy code its last code.")
        blocks = self._screen.conversation.fold.blocks
        text = last_code(blocks) if what else last_answer(blocks)
        if not text:
            raise SessionError("there is nothing to copy yet")
        self.tell(f"Copied: {await copy(self._screen.app, text)}")

    def asked(self, turns: int) -> str:
        """The prompt that began that turn, counted from the end."""
        blocks = self._screen.conversation.fold.blocks
        begun = [one.text for one in blocks if isinstance(one, Prompt) and not one.steers]
        return begun[-turns] if 0 < turns <= len(begun) else ""

    def go_to(self, seq: int, kind: str) -> None:
        """To the block that shows it, where there is one."""
        conversation = self._screen.conversation
        place = conversation.fold.find_block(seq, kind)
        if place is not None:
            conversation.refresh_blocks()
            conversation.go_to(place)

    async def find(self, words: str) -> None:
        """Where the words stand in this conversation; to choose one goes there."""
        conversation = self._screen.conversation
        items = list(_places(conversation.fold.blocks, words))
        title = f"Where “{one_line(words, 40)}” stands" if words else "In this conversation"
        chosen = await self.ask(Choose(title, items, "It stands nowhere here."))
        if chosen is not None:
            conversation.go_to(int(chosen.partition(" ")[0]))

    def leave(self) -> None:
        """End the screen."""
        self._screen.leave()


def last_answer(blocks: Sequence[Block]) -> str:
    """What the model said last."""
    return next(
        (
            one.text
            for one in reversed(blocks)
            if isinstance(one, Reply) and one.text and not one.discarded
        ),
        "",
    )


def last_code(blocks: Sequence[Block]) -> str:
    """The last block of code that the model wrote, in whichever answer."""
    for one in reversed(blocks):
        if isinstance(one, Reply) and not one.discarded and (found := code_blocks(one.text)):
            return found[-1][1]
    return ""


def _places(blocks: Sequence[Block], words: str) -> Iterator[Item]:
    """Every line that holds the words, the newest first; at most 500."""
    wanted, count = words.casefold(), 0
    for at in range(len(blocks) - 1, -1, -1):
        for number, line in enumerate(_text(blocks[at]).split("\n")):
            if line.strip() and wanted in line.casefold():
                yield Item(f"{at} {number}", line.strip(), _whose(blocks[at]))
                count += 1
                if count == 500:
                    return


def _text(block: Block) -> str:
    if isinstance(block, Prompt | Reply | Thought):
        return block.text
    return f"{block.subject}\n{block.result}" if isinstance(block, Call) else ""


def _whose(block: Block) -> str:
    return block.name if isinstance(block, Call) else type(block).__name__.lower()
