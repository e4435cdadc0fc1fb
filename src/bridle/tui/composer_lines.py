"""The lines of the composer: a text area that holds neutral text only, and folds long pastes.

Every way in (keys, paste, undo of a cut, what is loaded) ends in `edit` or `load_text`, and there
everything that a terminal would obey or a reader would not see is written out.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from bridle.tui.pasting import Pastes, harmless

NEWLINE = ("shift+enter", "ctrl+j", "alt+enter", "ctrl+enter")


class Lines(TextArea, inherit_css=False):
    """Several lines of a prompt. Knows nothing of sessions, commands or history.

    `pressed` hears the keys that the composer decides about: Enter, Tab, Up or Down at an end,
    Escape.
    """

    # Instead of the text area's own, most of which would not hold here and all of which is read
    # before the first picture.
    DEFAULT_CSS = """
    Lines {
        width: 1fr; height: auto; min-height: 1; max-height: 10; overflow: auto auto;
        color: $foreground; background: transparent; pointer: text;
        scrollbar-size: 1 1; scrollbar-color: $scrollbar; scrollbar-color-hover: $scrollbar-hover;
        scrollbar-color-active: $scrollbar-active; scrollbar-background: $scrollbar-background;
        scrollbar-background-hover: $scrollbar-background-hover;
        scrollbar-background-active: $scrollbar-background-active;
        & .text-area--cursor {
            color: $input-cursor-foreground; background: $input-cursor-background;
            text-style: $input-cursor-text-style;
        }
        & .text-area--selection {
            background: $input-selection-background; color: $input-selection-foreground;
        }
        & .text-area--placeholder { color: $secondary; }
        &:light .text-area--cursor { color: $text 90%; background: $foreground 70%; }
        &:ansi .text-area--cursor { text-style: reverse; }
        &:ansi .text-area--placeholder { color: $foreground; text-style: dim; }
        &:ansi .text-area--selection { background: transparent; text-style: reverse; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-area--cursor",
        "text-area--selection",
        "text-area--placeholder",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+left,alt+b", "cursor_word_left", show=False),
        Binding("alt+right,alt+f", "cursor_word_right", show=False),
        Binding("ctrl+w,alt+backspace", "kill('delete_word_left')", show=False),
        Binding("alt+d", "kill('delete_word_right')", show=False),
        Binding("ctrl+u", "kill('delete_to_start_of_line')", show=False),
        Binding("ctrl+k", "kill('delete_to_end_of_line')", show=False),
        Binding("ctrl+y", "yank", show=False),
        Binding("ctrl+underscore", "undo", show=False),
    ]

    def __init__(self, pressed: Callable[[str], None], placeholder: str = "") -> None:
        super().__init__(
            compact=True, highlight_cursor_line=False, placeholder=placeholder, soft_wrap=True
        )
        self._pressed = pressed  # at once: what is typed behind Enter is no part of what is sent
        self.pastes = Pastes()
        self.killed = ""  # what was deleted last, for Ctrl+Y
        self.listing = False  # a list of choices is open: Up, Down, Tab and Escape are for it

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """Of the parts that are shown here; there are no line numbers and no brackets."""
        if self.COMPONENT_CLASSES.issuperset(names):
            return super().get_component_rich_style(*names, partial=partial, default=default)
        return Style()

    def edit(self, edit: Edit) -> EditResult:
        """Every change of the text passes here."""
        edit.text = harmless(edit.text)
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """Another text altogether; the cursor goes to its end."""
        super().load_text(harmless(text))
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key in NEWLINE or (event.key == "enter" and self._drop_backslash()):
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard("\n", *self.selection)
        elif self._is_for_composer(event.key):
            event.stop()
            event.prevent_default()
            self._pressed(event.key)
        else:
            await super()._on_key(event)

    def _is_for_composer(self, key: str) -> bool:
        if key == "enter":
            return True
        if self.listing:
            return key in ("up", "down", "tab", "escape", "ctrl+n", "ctrl+p")
        if key == "up":
            return self.navigator.is_first_wrapped_line(self.cursor_location)
        if key == "down":
            return self.navigator.is_last_wrapped_line(self.cursor_location)
        return False

    def _drop_backslash(self) -> bool:
        """A backslash right before Enter makes a new line; it goes."""
        row, column = self.cursor_location
        if not self.selection.is_empty or self.document[row][:column][-1:] != "\\":
            return False
        self.delete((row, column - 1), (row, column))
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.put(self.pastes.fold(event.text))

    def action_paste(self) -> None:
        """The app's own clipboard."""
        self.put(self.pastes.fold(self.app.clipboard))

    def action_kill(self, action: str) -> None:
        """Delete as that action does, and keep what was deleted."""
        before = self.text
        getattr(self, f"action_{action}")()
        after = self.text
        if len(after) < len(before):
            at = len(self.get_text_range((0, 0), self.selection.end))
            self.killed = before[at : at + len(before) - len(after)]

    def action_yank(self) -> None:
        """Insert what was deleted last."""
        self.put(self.pastes.fold(self.killed))

    def put(self, text: str) -> None:
        """In the place of what is selected, the cursor behind it."""
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)

    def action_delete_left(self) -> None:
        """A marker goes as a whole."""
        row, column = self.cursor_location
        span = self.pastes.marker_at(self.document[row], column)
        if span is not None and self.selection.is_empty:
            self.delete((row, span[0]), (row, span[1]), maintain_selection_offset=False)
        else:
            super().action_delete_left()
