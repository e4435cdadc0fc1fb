"""What a slash command needs of the interface that it is typed in. Imports no Textual.

The full screen (`screen.py`) and the REPL implement it, and so the commands are the same in both.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from bridle.presentation.commands import Command
from bridle.tui.session_backend import SessionBackend

T = TypeVar("T")
Severity = Literal["information", "warning", "error"]
# A text and what kind of line it is: head, muted, warning, added, removed, place; empty: plain.
Lines = Sequence[tuple[str, str]]


class Item(Struct, frozen=True):
    """One of several to choose from. `why_not`: it cannot be chosen."""

    key: str
    label: str
    about: str = ""
    chosen: bool = False
    why_not: str = ""


Items = Callable[[], Awaitable[Sequence[Item]]]


class Interaction(Protocol):
    """An interface, as far as commands know it.

    Texts may contain anything: the interface makes them harmless.
    """

    is_screen: (
        bool  # the full screen: it shows the whole conversation, and asks for what is missing
    )

    @property
    def backend(self) -> SessionBackend:
        """Where the sessions are. Raise `SessionError` if it is not open yet."""
        ...

    def user_commands(self) -> Sequence[Command]:
        """Return the user's own commands."""
        ...

    def keys(self) -> Lines:
        """Return the keys of this interface, for help."""
        ...

    def show(self, text: str, severity: Severity = "information") -> None:
        """Show one notice."""
        ...

    def show_progress(self, text: str) -> None:
        """Show a text that disappears again."""
        ...

    async def show_lines(self, title: str, lines: Lines) -> None:
        """Show a page."""
        ...

    async def choose(
        self, title: str, items: Items, *, now: str = "", empty: str = ""
    ) -> str | None:
        """Let one of several be chosen, and return its key.

        An interface that cannot ask lists them. `now` is the current one, `empty` is shown if there
        are none.
        """
        ...

    async def choose_session(self, query: str) -> str | None:
        """Let one of the sessions that match be chosen, and return its id."""
        ...

    async def ask_text(self, title: str, value: str = "") -> str | None:
        """Ask for a line of text."""
        ...

    async def confirm(
        self, title: str, question: str, lines: Lines = (), *, danger: bool = False
    ) -> bool:
        """Ask a question that is answered yes or no; silence is no."""
        ...

    async def switch(self, change: Awaitable[T]) -> T:
        """Await what may lead to another session, then show the session that it led to."""
        ...

    def update(self) -> None:
        """Show the model, the agent and the mode, which may be others now."""
        ...

    async def send(self, text: str) -> None:
        """Send a prompt."""
        ...

    async def resume(self) -> None:
        """Resume what was left behind in this session."""
        ...

    def restore_input(self, text: str) -> None:
        """Put a text back where it can be edited, if the interface has such a place."""
        ...

    def prompt_of_turn(self, turns: int) -> str:
        """Return the prompt that began the turn so many turns ago; empty if it is not shown."""
        ...

    def go_to(self, seq: int, kind: str) -> None:
        """Scroll to where a record is shown, if the interface scrolls."""
        ...

    def set_theme(self, name: str) -> None:
        """Use other colours: auto, dark, light or plain."""
        ...

    async def answer_approvals(self) -> None:
        """Let the approvals of all sessions be answered."""
        ...

    def leave(self) -> None:
        """End the interface; the session is kept."""
        ...


Handler = Callable[[Interaction, str], Awaitable[None]]
