"""The composer: the prompt that is being written, its completion, its history and its draft.

Enter sends; Shift+Enter, Ctrl+J or a backslash before Enter start a new line. The composer sends
nothing itself: it posts `Submitted`, and `load` puts back a text that could not be sent.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Edit, EditResult

from bridle.tui.splash import HINT, SIGN
from bridle.tui.widgets.history import Drafts, PromptHistory
from bridle.workspace.text import neutral, quantity

if TYPE_CHECKING:
    from bridle.presentation.commands import Command
    from bridle.tui.widgets.completion import Choice, CompletionList

SendMode = Literal["idle", "queue", "next_step"]
Files = Callable[[str], Awaitable[Sequence[str]]]
Arguments = Callable[[str], Awaitable[Sequence[tuple[str, str]]]]

NEWLINE = ("shift+enter", "ctrl+j", "alt+enter", "ctrl+enter")
MOST_LINES = 20  # of a paste that is shown whole
MOST_CHARACTERS = 2_000  # likewise
_LOADED = 20  # times as much of a text that was loaded, not pasted
_MARKER = re.compile(r"\[pasted [0-9,]+ (?:lines?|characters)(?: #\d+)?\]")


class Composer(Vertical):
    """The prompt, the list of completions above it, history and drafts.

    `is_busy` says whether a turn runs: then Enter queues, and Ctrl+S sends to the running turn.
    """

    DEFAULT_CSS = """
    Composer { height: auto; background: $background; }
    Composer > Horizontal { height: auto; border-top: solid $border-blurred; padding: 0 1; }
    Composer > Horizontal:focus-within { border-top: solid $border; }
    Composer #sign { width: 2; height: 1; color: $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "steer", "Send to the running turn", show=False),
        Binding("ctrl+r", "search", "Earlier prompts", show=False),
        Binding("ctrl+g", "editor", "Editor", show=False),
    ]

    class Submitted(Message):
        """The person pressed Enter: the full text, and when to send it."""

        def __init__(self, text: str, when: SendMode) -> None:
            super().__init__()
            self.text = text
            self.when: SendMode = when

    class EditorRequested(Message):
        """The person wants to write in their editor."""

    class SearchRequested(Message):
        """The person is looking for an earlier prompt."""

    def __init__(
        self,
        files: Files,
        arguments: Arguments,
        own: "Callable[[], Sequence[Command]]" = tuple,
        *,
        prompts: PromptHistory | None = None,
        drafts: Drafts | None = None,
    ) -> None:
        super().__init__(id="composer")
        self.is_busy = False
        self.prompts = prompts or PromptHistory()
        self._drafts = drafts or Drafts()
        self._session = ""
        self._files, self._arguments, self._own = files, arguments, own
        self._completion: CompletionList | None = None
        self._input = PromptInput(self._press, lambda: self.is_listing)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(SIGN, id="sign")
            yield self._input

    def on_mount(self) -> None:
        self.call_after_refresh(self._load_history)  # after the first frame

    def _load_history(self) -> None:
        self.run_worker(asyncio.to_thread(self.prompts.load), group="history")

    @property
    def text(self) -> str:
        """What is shown, with long pastes folded."""
        return self._input.text

    @property
    def full_text(self) -> str:
        """What would be sent."""
        return self._input.pastes.unfold(self._input.text)

    @property
    def is_listing(self) -> bool:
        """Is the list of completions open?"""
        return self._completion is not None and self._completion.is_open

    def focus(self, scroll_visible: bool = True) -> "Composer":
        """Give the keys to the prompt."""
        self._input.focus(scroll_visible)
        return self

    def load(self, text: str) -> None:
        """Replace the prompt with this text."""
        self._input.load_text(self._input.pastes.fold(text, is_paste=False))

    def clear(self) -> None:
        """Delete the prompt; Ctrl+Y restores it."""
        self._input.killed = self.full_text
        self._input.clear()

    def insert(self, text: str) -> None:
        """Insert the text at the cursor, as if it were pasted."""
        self._input.put(self._input.pastes.fold(text))

    def give_back(self, text: str) -> None:
        """Put back a text that was not sent, before what has been typed since."""
        later = self.full_text
        self.load(f"{text}\n{later}" if later.strip() else text)

    def enter_session(self, name: str, *, keep_text: bool = False) -> None:
        """Change to a session's draft, and save that of the one before.

        With `keep_text`, what is typed by now is this session's draft: it stays, and so does the
        cursor.
        """
        if name == self._session:
            return
        self.keep_draft()
        self._session = name
        if not keep_text:
            self.load(self._drafts.of(name))

    def keep_draft(self) -> None:
        """Save what is typed and not sent for the next time in this session."""
        if self._session:
            self._drafts.keep(self._session, self.full_text)

    def action_steer(self) -> None:
        """Send to the running turn; if none runs, send as usual."""
        self._submit("next_step" if self.is_busy else "idle")

    def action_search(self) -> None:
        self.post_message(self.SearchRequested())

    def action_editor(self) -> None:
        self.post_message(self.EditorRequested())

    def _submit(self, when: SendMode) -> None:
        text = self.full_text
        if not text.strip():
            return
        self.prompts.add(text)
        self._input.load_text("")
        if self._completion is not None:
            self._completion.offer(())
        self.post_message(self.Submitted(text, when))

    def _press(self, key: str) -> None:
        """Handle a key that the prompt does not handle itself."""
        self._update_completion()  # for what was typed just before this key
        if self._completion is not None and self._completion.is_open:
            handled, choice = self._completion.press(key)
            if choice is not None:
                self._accept(choice)
            if handled:
                return
        if key == "enter":
            self._submit("queue" if self.is_busy else "idle")
        elif key in ("up", "down"):
            self.prompts.load()  # if it was pressed before the history was loaded
            step = self.prompts.older if key == "up" else self.prompts.newer
            if (text := step(self.full_text)) is not None:
                self.load(text)

    def _accept(self, choice: "Choice") -> None:
        target = self._completion.target if self._completion is not None else None
        if self._completion is None or target is None:
            return
        row, column = self._input.cursor_location
        space = "" if choice.text.endswith("/") else " "
        self._completion.offer(())
        self._input.replace(
            choice.text + space, (row, target.start), (row, column), maintain_selection_offset=False
        )

    def on_completion_list_clicked(self, event: "CompletionList.Clicked") -> None:
        event.stop()
        self._accept(event.choice)
        self._input.focus()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._update_completion()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._update_completion()

    def _update_completion(self) -> None:
        row, column = self._input.cursor_location
        line = self._input.document[row]
        if self._completion is None:
            if not line:
                return  # nothing is typed yet
            from bridle.tui.widgets.completion import CompletionList

            self._completion = CompletionList(self._files, self._arguments, self._own)
            self.mount(self._completion, before=0)
        is_plain = self._input.selection.is_empty
        self._completion.complete(line, row, column, is_plain=is_plain)


class PromptInput(TextArea, inherit_css=False):
    """The text of a prompt: neutral text only, with long pastes folded to markers.

    Keys, pastes and loaded texts all end in `edit` or `load_text`, which write out whatever a
    terminal would obey or a reader could not see. `press` gets the keys that the composer handles:
    Enter, Up and Down at an end, and, while `is_listing`, Tab and Escape.
    """

    # Instead of the text area's own rules, most of which do not apply here and all of which would
    # be parsed before the first frame.
    DEFAULT_CSS = """
    PromptInput {
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

    def __init__(self, press: Callable[[str], None], is_listing: Callable[[], bool]) -> None:
        super().__init__(
            compact=True, highlight_cursor_line=False, placeholder=HINT, soft_wrap=True
        )
        self._press = press  # called at once, so that what is typed after Enter is not sent with it
        self._is_listing = is_listing
        self.pastes = Pastes()
        self.killed = ""  # what was deleted last, for Ctrl+Y

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """Return no style for parts that are never shown here, such as line numbers."""
        if self.COMPONENT_CLASSES.issuperset(names):
            return super().get_component_rich_style(*names, partial=partial, default=default)
        return Style()

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; every change passes here."""
        edit.text = neutral_lines(edit.text)
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        super().load_text(neutral_lines(text))
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key in NEWLINE or (event.key == "enter" and self._drop_backslash()):
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard("\n", *self.selection)
        elif self._is_composer_key(event.key):
            event.stop()
            event.prevent_default()
            self._press(event.key)
        else:
            await super()._on_key(event)

    def _is_composer_key(self, key: str) -> bool:
        if key == "enter":
            return True
        if self._is_listing():
            return key in ("up", "down", "tab", "escape", "ctrl+n", "ctrl+p")
        if key == "up":
            return self.navigator.is_first_wrapped_line(self.cursor_location)
        if key == "down":
            return self.navigator.is_last_wrapped_line(self.cursor_location)
        return False

    def _drop_backslash(self) -> bool:
        """Delete a backslash right before the cursor; return whether there was one."""
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
        """Insert what was copied in bridle."""
        self.put(self.pastes.fold(self.app.clipboard))

    def action_kill(self, action: str) -> None:
        """Run an action that deletes, and keep what it deleted."""
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
        """Replace the selection and put the cursor behind the text."""
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)

    def action_delete_left(self) -> None:
        """Delete a character, or a marker as a whole."""
        row, column = self.cursor_location
        span = self.pastes.marker_at(self.document[row], column)
        if span is not None and self.selection.is_empty:
            self.delete((row, span[0]), (row, span[1]), maintain_selection_offset=False)
        else:
            super().action_delete_left()


def neutral_lines(text: str) -> str:
    """Return the text with one kind of line ends, and everything else neutral."""
    return neutral(text.replace("\r\n", "\n").replace("\r", "\n"))


class Pastes:
    """The long texts behind the markers of one composer.

    A marker that the person has changed is no marker any more: its text is not sent.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str, *, is_paste: bool = True) -> str:
        """Return the text, or a marker that stands for it if it is long."""
        room = 1 if is_paste else _LOADED
        text = neutral_lines(text)
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MOST_LINES * room and len(text) <= MOST_CHARACTERS * room:
            return text
        size = quantity(lines, "line") if lines > 1 else quantity(len(text), "character")
        marker, number = f"[pasted {size}]", 2
        while self._texts.get(marker, text) != text:
            marker, number = f"[pasted {size} #{number}]", number + 1
        self._texts[marker] = text
        return marker

    def unfold(self, text: str) -> str:
        """Return the text with each marker replaced by what it stands for."""
        return _MARKER.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def marker_at(self, line: str, column: int) -> tuple[int, int] | None:
        """Return the start and end of the marker that ends at this column, if there is one."""
        for found in _MARKER.finditer(line):
            if found.end() == column and found[0] in self._texts:
                return found.span()
        return None

    def __contains__(self, marker: object) -> bool:
        return marker in self._texts
