"""What a `/` command needs of the screen that it is typed on. A promise, and no widget."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeVar

from bridle.presentation.commands import Command
from bridle.tui.dialogs import Dialog
from bridle.tui.house import House

T = TypeVar("T")
Severity = Literal["information", "warning", "error"]


class Stage(Protocol):
    """The screen, as far as commands know it."""

    @property
    def lodging(self) -> House:
        """The house, once it is open."""
        ...

    def own(self) -> Sequence[Command]:
        """The user's own commands."""
        ...

    def tell(self, said: str, severity: Severity = "information") -> None:
        """One notice, neutral and in plain text."""
        ...

    def hint(self, said: str) -> None:
        """A word that is gone after a while."""
        ...

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Show a dialog and wait for what it is left with."""
        ...

    async def moved(self) -> None:
        """The house is in another session, or the same one is told anew: watch it."""
        ...

    def changed(self) -> None:
        """Model, agent or mode may be another: show it."""
        ...

    async def say(self, text: str) -> None:
        """A prompt, as if it had been typed."""
        ...

    def give_back(self, line: str) -> None:
        """A line that could not be obeyed, into the composer."""
        ...

    def paint(self, theme: str) -> None:
        """Other colours: auto, dark, light or plain."""
        ...

    async def edit(self, text: str) -> None:
        """The person's editor on the prompt, on this text where there is one."""
        ...

    def open_questions(self) -> None:
        """The questions of all sessions, to be answered."""
        ...

    async def copy(self, what: str) -> None:
        """Copy the last answer, or with `code` its last block of code."""
        ...

    def asked(self, turns: int) -> str:
        """The prompt that began the turn so many turns ago; empty where it is not shown."""
        ...

    def go_to(self, seq: int, kind: str) -> None:
        """To where that record is shown."""
        ...

    async def find(self, words: str) -> None:
        """Look for words in the conversation."""
        ...

    def leave(self) -> None:
        """End the screen; the session is kept."""
        ...


Act = Callable[[Stage, str], Awaitable[None]]
