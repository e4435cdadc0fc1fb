"""Completion in the composer: what could be completed at the cursor, and the list of choices.

`/` at the very beginning starts a command, and some commands complete their argument; `@` at the
beginning of a word starts a file of the workspace. An exact name comes first.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bridle.errors import AgentError
from bridle.policy import MODES
from bridle.presentation.commands import TABLE, Command, command_of, matching
from bridle.tui.model.fuzzy import best_matches, matches
from bridle.tui.timers import call_later
from bridle.workspace.text import neutral, one_line

Kind = Literal["command", "argument", "file"]

_DELAY = 0.06  # seconds without another key before the backend is asked
_COMMAND = re.compile(r"/([\w-]*)\Z")
_ARGUMENT = re.compile(r"/([\w-]+) +([^\s]*)\Z")
_FILE = re.compile(r"(?:\A|(?<=[\s(\[\"'`]))@([^\s@]*)\Z")
_FIXED = {
    "mode": tuple(MODES),
    "theme": ("auto", "dark", "light", "plain"),
    "copy": ("code",),
    "help": tuple(one.name for one in TABLE),
}
_FROM_BACKEND = ("model", "agent")  # commands whose arguments the backend knows


class Target(Struct, frozen=True):
    """A word that could be completed: what was typed of it, and where it begins in its line."""

    kind: Kind
    word: str
    start: int
    command: str = ""


class Choice(Struct, frozen=True):
    """What a word could become, and what that is."""

    text: str
    about: str = ""


def completion_target(line: str, row: int, column: int) -> Target | None:
    """Return what could be completed before the cursor, if anything."""
    before = line[:column]
    if row == 0 and (match := _COMMAND.match(before)):
        return Target("command", match[1], 0)
    if row == 0 and (match := _ARGUMENT.match(before)):
        command = command_of(match[1])
        if command is not None and (command.name in _FIXED or command.name in _FROM_BACKEND):
            return Target("argument", match[2], match.start(2), command.name)
    if match := _FILE.search(before):
        return Target("file", match[1], match.start())
    return None


def command_choices(word: str, own: Iterable[Command] = ()) -> tuple[Choice, ...]:
    """Return the commands that begin with the word, or else those that match it."""
    own = tuple(own)
    commands = matching(word, own)
    if not commands:
        by_name = {one.name: one for one in (*TABLE, *own)}
        commands = tuple(by_name[name] for name in best_matches(word, by_name, 8))
    return tuple(Choice(f"/{one.name}", _about(one)) for one in commands)


def _about(command: Command) -> str:
    meaning = f"{command.argument}  {command.meaning}" if command.argument else command.meaning
    return one_line(meaning, 200)


def argument_choices(target: Target, known: Sequence[tuple[str, str]] = ()) -> tuple[Choice, ...]:
    """Return the matching arguments: of a fixed list, or of those that the backend knows."""
    is_fixed = target.command not in _FROM_BACKEND
    about = dict.fromkeys(_FIXED[target.command], "") if is_fixed else dict(known)
    names = best_matches(target.word, about, 50)
    return tuple(Choice(neutral(name, keep=""), one_line(about[name])) for name in names)


def file_choices(names: Iterable[str]) -> tuple[Choice, ...]:
    """Return files as they stand in a prompt, without names that look like something else."""
    sound = (name for name in names if name == neutral(name, keep="") and "\n" not in name)
    return tuple(Choice(f'@"{name}"' if " " in name else f"@{name}") for name in sound)


def is_complete(target: Target, text: str, own: Iterable[Command] = ()) -> bool:
    """Is the word complete as it stands, so that Enter sends it?"""
    if target.kind == "command":
        return command_of(target.word, own) is not None
    return text in (target.word, f"@{target.word}")


class CompletionList(OptionList, can_focus=False):
    """What the word at the cursor could become, one of it highlighted. Hidden without choices."""

    DEFAULT_CSS = """
    CompletionList {
        display: none; height: auto; max-height: 8; border: none; background: $surface;
        scrollbar-size-vertical: 1; scrollbar-background: $surface; scrollbar-color: $panel;
        scrollbar-background-hover: $surface; scrollbar-color-hover: $accent;
        text-wrap: nowrap; text-overflow: ellipsis;
        &.-textual-compact { padding: 0 1 0 3; }
    }
    CompletionList.-open { display: block; }
    """

    class Clicked(Message):
        """A choice was clicked."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(
        self,
        files: Callable[[str], Awaitable[Sequence[str]]],
        arguments: Callable[[str], Awaitable[Sequence[tuple[str, str]]]],
        own: Callable[[], Sequence[Command]],
    ) -> None:
        super().__init__(markup=False, compact=True)
        self.choices: tuple[Choice, ...] = ()
        self.target: Target | None = None
        self._dismissed: Target | None = None  # closed with Escape, until the word changes
        self._files, self._arguments, self._own = files, arguments, own
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Are there choices to see?"""
        return bool(self.choices)

    def complete(self, line: str, row: int, column: int, *, is_plain: bool) -> None:
        """Show what the word before the cursor could become.

        With `is_plain` false, something is selected and nothing is completed.
        """
        target = completion_target(line, row, column)
        if target == self.target:
            return
        before, self.target = self.target, target
        if before is None or target is None or before.kind != target.kind:
            self.offer(())
        if self._timer is not None:
            self._timer.cancel()
        if target is None or not is_plain or target == self._dismissed:
            self.offer(())
        elif target.kind == "command":
            self.offer(command_choices(target.word, self._own()))
        elif target.kind == "argument" and target.command not in _FROM_BACKEND:
            self.offer(argument_choices(target))
        else:
            self.offer([one for one in self.choices if matches(target.word, one.text)])
            self._timer = call_later(_DELAY, self, lambda: self._fetch_soon(target))

    def _fetch_soon(self, target: Target) -> None:
        self.run_worker(self._fetch(target), group="completing", exclusive=True)

    async def _fetch(self, target: Target) -> None:
        try:
            if target.kind == "file":
                choices = file_choices(await self._files(target.word))
            else:
                choices = argument_choices(target, await self._arguments(target.command))
        except AgentError:
            choices = ()  # the person can do without
        if target == self.target:
            self.offer(choices)

    def press(self, key: str) -> tuple[bool, Choice | None]:
        """Handle a key of the open list; return whether it did, and the choice that was made."""
        if key in ("up", "ctrl+p", "down", "ctrl+n"):
            by = -1 if key in ("up", "ctrl+p") else 1
            self.highlighted = ((self.highlighted or 0) + by) % len(self.choices)
        elif key == "escape":
            self._dismissed = self.target
            self.offer(())
        else:
            at = self.highlighted
            choice = None if at is None or at >= len(self.choices) else self.choices[at]
            if choice is None or self.target is None:
                return True, None
            if key == "enter" and is_complete(self.target, choice.text, self._own()):
                return False, None
            return True, choice
        return True, None

    def offer(self, choices: Sequence[Choice]) -> None:
        """Show these choices; an empty sequence closes the list."""
        if tuple(choices) == self.choices:
            return
        self.choices = tuple(choices)
        width = min(max((len(one.text) for one in choices if one.about), default=0), 24)
        self.set_options(_option(one, width) for one in self.choices)
        self.highlighted = 0 if self.choices else None
        self.set_class(self.is_open, "-open")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Clicked(self.choices[event.option_index]))


def _option(choice: Choice, width: int) -> Option:
    text = choice.text.ljust(width)
    gap = "  " if choice.about else ""
    return Option(Content.assemble(text, gap, (choice.about, "$foreground 60%")))
