"""What the composer could complete where the cursor stands, and what it becomes. Pure.

`/` at the very beginning is a command, what follows its name is an argument where there is a list
of those; `@` at the beginning of a word is a file of the workspace. The exact name comes first.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bridle.policy import MODES
from bridle.presentation.commands import TABLE, Command, command_of, matching
from bridle.tui.model.fuzzy import fitting
from bridle.workspace.text import neutral, one_line

Kind = Literal["command", "argument", "file"]

_COMMAND = re.compile(r"/([\w-]*)\Z")
_ARGUMENT = re.compile(r"/([\w-]+) +([^\s]*)\Z")
_FILE = re.compile(r"(?:\A|(?<=[\s(\[\"'`]))@([^\s@]*)\Z")
_FIXED = {
    "mode": tuple(MODES),
    "theme": ("auto", "dark", "light", "plain"),
    "copy": ("code",),
    "help": tuple(one.name for one in TABLE),
}
ASKED = ("model", "agent")  # commands whose arguments the house knows


class Wanted(Struct, frozen=True):
    """A word that could be completed: where it begins in its line, and what was typed of it."""

    kind: Kind
    word: str
    start: int
    command: str = ""


class Choice(Struct, frozen=True):
    """What a word could become: its text, and a word on it."""

    text: str
    about: str = ""


def wanted(line: str, row: int, column: int) -> Wanted | None:
    """What could be completed in this line before the cursor, if anything."""
    before = line[:column]
    if row == 0 and (found := _COMMAND.match(before)):
        return Wanted("command", found[1], 0)
    if row == 0 and (found := _ARGUMENT.match(before)):
        command = command_of(found[1])
        if command is not None and (command.name in _FIXED or command.name in ASKED):
            return Wanted("argument", found[2], found.start(2), command.name)
    if found := _FILE.search(before):
        return Wanted("file", found[1], found.start())
    return None


def command_choices(word: str, own: Iterable[Command] = ()) -> tuple[Choice, ...]:
    """The commands that begin so, else those that fit; the exact one first."""
    own = tuple(own)
    found = matching(word, own)
    if not found:
        named = {one.name: one for one in (*TABLE, *own)}
        found = tuple(named[name] for name in fitting(word, named, 8))
    return tuple(Choice(f"/{one.name}", _about(one)) for one in found)


def _about(one: Command) -> str:
    said = f"{one.argument}  {one.meaning}" if one.argument else one.meaning
    return one_line(said, 200)


def argument_choices(want: Wanted, asked: Sequence[tuple[str, str]] = ()) -> tuple[Choice, ...]:
    """The arguments that fit: of a fixed list, or of what the house was asked for."""
    about = dict(asked) if want.command in ASKED else dict.fromkeys(_FIXED[want.command], "")
    names = fitting(want.word, about, 50)
    return tuple(Choice(neutral(name, keep=""), one_line(about[name])) for name in names)


def file_choices(found: Iterable[str]) -> tuple[Choice, ...]:
    """Files as they stand in a prompt; a name that is not what it looks like is left out."""
    sound = (name for name in found if name == neutral(name, keep="") and "\n" not in name)
    return tuple(Choice(f'@"{name}"' if " " in name else f"@{name}") for name in sound)


def is_whole(want: Wanted, text: str, own: Iterable[Command] = ()) -> bool:
    """Is the word complete as it stands, so that Enter sends it?"""
    if want.kind == "command":
        return command_of(want.word, own) is not None
    return text in (want.word, f"@{want.word}")


class CompletionList(OptionList, can_focus=False):
    """Choices, one of them highlighted. Hidden while there are none."""

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

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self.choices: tuple[Choice, ...] = ()

    @property
    def is_open(self) -> bool:
        """Are there choices to see?"""
        return bool(self.choices)

    @property
    def chosen(self) -> Choice | None:
        """The highlighted one."""
        at = self.highlighted
        return None if at is None or at >= len(self.choices) else self.choices[at]

    def offer(self, choices: Sequence[Choice]) -> None:
        """Show these; none closes the list. The same again changes nothing."""
        if tuple(choices) == self.choices:
            return
        self.choices = tuple(choices)
        self.set_options(map(_option, _widened(self.choices)))
        self.highlighted = 0 if self.choices else None
        self.set_class(self.is_open, "-open")

    def move(self, by: int) -> None:
        """The highlight up or down, round the ends."""
        if self.choices:
            self.highlighted = ((self.highlighted or 0) + by) % len(self.choices)

    def choose(self, at: int) -> Choice:
        """The one in that place."""
        return self.choices[at]


def _widened(choices: Sequence[Choice]) -> list[tuple[str, str]]:
    width = max((len(one.text) for one in choices if one.about), default=0)
    return [(one.text.ljust(min(width, 24)), one.about) for one in choices]


def _option(row: tuple[str, str]) -> Option:
    text, about = row
    said = Content.assemble(text, "  " if about else "", (about, "$foreground 60%"))
    return Option(said)
