"""The list above the composer: what the word at the cursor could become. Takes no focus."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from bridle.tui.completing import Choice


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
