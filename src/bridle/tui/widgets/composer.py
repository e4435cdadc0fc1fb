"""Where a prompt is written: lines, what they could be completed to, what was sent before.

Enter sends; Shift+Enter, Ctrl+J or a backslash before Enter make a new line. Nothing is sent from
here: whoever mounts this hears `Submitted`, and puts the text back with `load` where it failed.
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

from bridle.errors import AgentError
from bridle.tui.timers import after
from bridle.tui.widgets.history import Drafts, Prompts
from bridle.workspace.text import neutral, quantity

if TYPE_CHECKING:
    from textual.widgets import OptionList

    from bridle.presentation.commands import Command
    from bridle.tui.widgets.completion import Choice, CompletionList, Wanted

Sent = Literal["idle", "queue", "next_step"]
Files = Callable[[str], Awaitable[Sequence[str]]]
Arguments = Callable[[str], Awaitable[Sequence[tuple[str, str]]]]

_SOON = 0.06  # seconds without another key before the house is asked


class Composer(Vertical):
    """Lines, the list above them, history and drafts.

    `is_busy` says whether a turn runs: then Enter queues, and Ctrl+S sends to the running turn.
    """

    DEFAULT_CSS = """
    Composer { height: auto; background: $background; }
    Composer > Horizontal { height: auto; border-top: solid $border-blurred; padding: 0 1; }
    Composer > Horizontal:focus-within { border-top: solid $border; }
    Composer #sign { width: 2; height: 1; color: $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "steer", "Steer", show=False),
        Binding("ctrl+r", "search", "Earlier prompts", show=False),
        Binding("ctrl+g", "editor", "Editor", show=False),
    ]

    class Submitted(Message):
        """Enter was pressed on something: the whole text, and when it is to be heard."""

        def __init__(self, text: str, when: Sent) -> None:
            super().__init__()
            self.text = text
            self.when: Sent = when

    class EditorWanted(Message):
        """The person would rather write in their editor."""

    class SearchWanted(Message):
        """The person looks for an earlier prompt."""

    def __init__(
        self,
        files: Files,
        arguments: Arguments,
        own: "Callable[[], Sequence[Command]]" = tuple,
        *,
        prompts: Prompts | None = None,
        drafts: Drafts | None = None,
    ) -> None:
        super().__init__(id="composer")
        self.is_busy = False
        self.prompts = prompts or Prompts()
        self._drafts = drafts or Drafts()
        self._session = ""
        self._files, self._arguments, self._own = files, arguments, own
        self._made: CompletionList | None = None
        self._lines = Lines(self._pressed, "Ask, or / for commands, @ for files")
        self._want: Wanted | None = None
        self._shut: Wanted | None = None  # closed with Escape, until the word changes
        self._timer: asyncio.TimerHandle | None = None

    def compose(self) -> ComposeResult:
        """The lines; the list above them comes with the first choices."""
        with Horizontal():
            yield Static("›", id="sign")
            yield self._lines

    def on_mount(self) -> None:
        """Earlier prompts are read beside, once there is a picture."""
        self.call_after_refresh(self._remember)

    def _remember(self) -> None:
        self.run_worker(asyncio.to_thread(self.prompts.load), group="history")

    @property
    def text(self) -> str:
        """What is shown, long pastes folded."""
        return self._lines.text

    @property
    def whole(self) -> str:
        """What would be sent."""
        return self._lines.pastes.unfold(self._lines.text)

    @property
    def is_listing(self) -> bool:
        """Is a list of choices open?"""
        return self._made is not None and self._made.is_open

    @property
    def _list(self) -> "CompletionList":
        if self._made is None:
            from bridle.tui.widgets.completion import CompletionList

            self._made = CompletionList()
        return self._made

    def focus(self, scroll_visible: bool = True) -> "Composer":
        """The keys are for the lines."""
        self._lines.focus(scroll_visible)
        return self

    def load(self, text: str) -> None:
        """Put this in the place of what is there."""
        self._lines.load_text(self._lines.pastes.fold(text, pasted=False))

    def clear(self) -> None:
        """Take everything away; Ctrl+Y brings it back."""
        self._lines.killed = self.whole
        self._lines.clear()

    def insert(self, text: str) -> None:
        """Put this where the cursor is, as if it were pasted."""
        self._lines.put(self._lines.pastes.fold(text))

    def give_back(self, text: str) -> None:
        """A text that was not sent after all, before what has been typed since."""
        later = self.whole
        self.load(f"{text}\n{later}" if later.strip() else text)

    def enter_session(self, name: str, *, keep_text: bool = False) -> None:
        """Change to a session's draft, and keep that of the one before.

        `keep_text`: what is typed by now is this session's draft. It stays, with the cursor where
        it is.
        """
        if name == self._session:
            return
        self.keep_draft()
        self._session = name
        if not keep_text:
            self.load(self._drafts.of(name))

    def keep_draft(self) -> None:
        """What is here and was not sent, for the next time in this session."""
        if self._session:
            self._drafts.keep(self._session, self.whole)

    def action_steer(self) -> None:
        """Send it to the running turn, or as any other prompt where none runs."""
        self._submit("next_step" if self.is_busy else "idle")

    def action_search(self) -> None:
        self.post_message(self.SearchWanted())

    def action_editor(self) -> None:
        self.post_message(self.EditorWanted())

    def _submit(self, when: Sent) -> None:
        text = self.whole
        if not text.strip():
            return
        self.prompts.add(text)
        self._lines.load_text("")
        self._offer(())
        self.post_message(self.Submitted(text, when))

    def _pressed(self, key: str) -> None:
        """A key that is not simply text."""
        self._look()  # what was typed right before it counts, too
        if self.is_listing and self._press_in_list(key):
            return
        if key == "enter":
            self._submit("queue" if self.is_busy else "idle")
        elif key in ("up", "down"):
            self.prompts.load()  # pressed so early that nobody has
            current = self.whole
            step = self.prompts.older if key == "up" else self.prompts.newer
            if (found := step(current)) is not None:
                self.load(found)

    def _press_in_list(self, key: str) -> bool:
        """What the key does to the open list; False: it is not for the list."""
        from bridle.tui.widgets.completion import is_whole

        if key in ("up", "ctrl+p", "down", "ctrl+n"):
            self._list.move(-1 if key in ("up", "ctrl+p") else 1)
        elif key == "escape":
            self._shut = self._want
            self._offer(())
        elif (chosen := self._list.chosen) is not None and self._want is not None:
            if key == "enter" and is_whole(self._want, chosen.text, self._own()):
                return False
            self._accept(chosen)
        return True

    def _accept(self, choice: "Choice") -> None:
        want = self._want
        if want is None:
            return
        row, column = self._lines.cursor_location
        space = "" if choice.text.endswith("/") else " "
        self._offer(())
        self._lines.replace(
            choice.text + space, (row, want.start), (row, column), maintain_selection_offset=False
        )

    def on_option_list_option_selected(self, event: "OptionList.OptionSelected") -> None:
        """A click on a choice."""
        event.stop()
        self._accept(self._list.choose(event.option_index))
        self._lines.focus()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Another text: other choices."""
        event.stop()
        self._look()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """Another place: other choices."""
        event.stop()
        self._look()

    def _look(self) -> None:
        row, column = self._lines.cursor_location
        line = self._lines.document[row]
        if not line and self._want is None:
            return  # as at the beginning, when nothing of all this is imported
        from bridle.tui.widgets.completion import wanted

        if (want := wanted(line, row, column)) != self._want:
            self._turn_to(want)

    def _turn_to(self, want: "Wanted | None") -> None:
        """Another word: what it could become."""
        from bridle.tui.model.fuzzy import fits
        from bridle.tui.widgets.completion import ASKED, argument_choices, command_choices

        before, self._want = self._want, want
        if before is None or want is None or before.kind != want.kind:
            self._offer(())
        if self._timer is not None:
            self._timer.cancel()
        if want is None or not self._lines.selection.is_empty or want == self._shut:
            self._offer(())
        elif want.kind == "command":
            self._offer(command_choices(want.word, self._own()))
        elif want.kind == "argument" and want.command not in ASKED:
            self._offer(argument_choices(want))
        else:
            self._offer([one for one in self._list.choices if fits(want.word, one.text)])
            self._timer = after(_SOON, self, lambda: self._ask(want))

    def _ask(self, want: "Wanted") -> None:
        self.run_worker(self._fetch(want), group="completing", exclusive=True)

    async def _fetch(self, want: "Wanted") -> None:
        """Ask the house; what comes too late is dropped."""
        from bridle.tui.widgets.completion import argument_choices, file_choices

        try:
            if want.kind == "file":
                found = file_choices(await self._files(want.word))
            else:
                found = argument_choices(want, await self._arguments(want.command))
        except AgentError:
            found = ()  # completion is a help, and its absence no news
        if want == self._want:
            self._offer(found)

    def _offer(self, choices: "Sequence[Choice]") -> None:
        if self._made is None and not choices:
            return
        if choices and not self._list.is_attached:
            self.mount(self._list, before=0)
        self._list.offer(choices)
        self._lines.listing = self._list.is_open


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


MOST_LINES = 20
MOST_CHARACTERS = 2_000
_GENEROUS = 20  # times as much, for what was written and not pasted

_MARKER = re.compile(r"\[pasted [0-9,]+ (?:lines?|characters)(?: #\d+)?\]")


def harmless(text: str) -> str:
    """The text as a composer may hold it: line ends are one kind, the rest is neutral."""
    return neutral(text.replace("\r\n", "\n").replace("\r", "\n"))


class Pastes:
    """The long texts behind the markers of one composer."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str, *, pasted: bool = True) -> str:
        """What to put into the composer for this text: itself, or a marker of its own."""
        room = 1 if pasted else _GENEROUS
        text = harmless(text)
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
        """The whole text, with every marker's own in its place."""
        return _MARKER.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def marker_at(self, line: str, column: int) -> tuple[int, int] | None:
        """Where the marker that ends at this column begins and ends, if there is one of ours."""
        for found in _MARKER.finditer(line):
            if found.end() == column and found[0] in self._texts:
                return found.span()
        return None

    def __contains__(self, marker: object) -> bool:
        return marker in self._texts
