"""Questions and pages over the screen: yes or no, one of several, a word, a text to look at.

A key that was pressed for something else decides nothing here: what decides counts only once the
dialog has been drawn and no key was pressed for a while. Everything shown or typed is neutral.
"""

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import ClassVar, TypeVar

from msgspec import Struct
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from bridle.tui.clean import clean, clean_line
from bridle.tui.dialogs_sheet import Sheet
from bridle.tui.finding import fitting
from bridle.tui.guarding import Guard
from bridle.workspace.text import neutral

T = TypeVar("T")

_SHARE = 0.9  # of the window's height


class Field(Input):
    """One line of text, neutral however it came in."""

    DEFAULT_CSS = """
    Field { border: none; height: 1; padding: 0; background: transparent; }
    Field:focus { border: none; background-tint: $foreground 0%; }
    """

    def validate_value(self, value: str) -> str:
        """Every value passes here."""
        return neutral(value, keep="")


class Dialog(ModalScreen[T]):
    """A box in the middle; Escape or Ctrl-C leaves it.

    `_deciding` are the keys that the guard stands before. To leave decides nothing and is
    always possible.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "copy_or_leave", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 60%; }
    Dialog > Vertical {
        width: 90%; max-width: 100; min-width: 40; height: auto; max-height: 90%;
        background: $surface; border: round $border; padding: 0 1;
        border-title-color: $text; border-title-style: bold; border-subtitle-color: $foreground 60%;
    }
    Dialog Sheet { margin: 0 0 1 0; }
    Dialog #said { height: auto; margin: 0 0 1 0; }
    Dialog.-danger > Vertical { border: round $error; }
    """
    _deciding: ClassVar[tuple[str, ...]] = ("enter",)

    def __init__(self, title: str, keys: str) -> None:
        super().__init__()
        self._title = clean_line(title, 90)
        self._keys = keys
        self.guard = Guard()

    def _dress(self, box: Vertical) -> Vertical:
        box.border_title = Content(self._title)
        box.border_subtitle = Content(self._keys)
        return box

    def on_screen_resume(self) -> None:
        """It is seen from the next drawing on."""
        self.guard.hide()
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._fit()
        self.call_after_refresh(lambda: self.guard.drawn(monotonic()))

    def on_resize(self, event: events.Resize) -> None:
        """Another window: what is around the long part stays on the screen."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """What is long gets the room that the rest leaves."""
        box = self.query_one(Vertical)
        long = next((one for one in box.children if isinstance(one, Sheet | OptionList)), None)
        if long is None:
            return
        rest = sum(one.outer_size.height + one.styles.margin.height for one in box.children)
        rest -= long.outer_size.height
        long.styles.max_height = max(2, int(self.size.height * _SHARE) - 2 - rest)

    def action_copy_or_leave(self) -> None:
        """Copy marked text if there is any; otherwise do what Escape does."""
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.app.simulate_key("escape")

    def on_key(self, event: events.Key) -> None:
        """Before any key of this dialog does something."""
        if event.key not in self._deciding:
            if event.is_printable and event.key != "space":
                self.guard.slipped(event.time)  # somebody writes, and means something else
        elif not self.guard.lets(event.time):
            event.stop()
            event.prevent_default()


class Confirm(Dialog[bool | None]):
    """Yes or no; None if it was left without an answer, which does nothing.

    With `read`, yes counts only once the end of the lines was on the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", show=False),
        Binding("n", "no", show=False),
        Binding("escape", "leave", show=False),
    ]
    _deciding = ("y", "n")

    def __init__(
        self,
        title: str,
        said: str,
        lines: Iterable[tuple[str, str]] = (),
        *,
        read: bool = False,
        danger: bool = False,
    ) -> None:
        super().__init__(title, "y yes · n no")
        self._said = clean(said)
        self._sheet = Sheet(tuple(lines))
        self._read = read
        self.set_class(danger, "-danger")

    def compose(self) -> ComposeResult:
        """What is asked, and what it is about."""
        with self._dress(Vertical()):
            if self._sheet.has_lines:
                yield self._sheet
            yield Static(Content(self._said), id="said")

    def action_yes(self) -> None:
        """Yes, if it could be read."""
        if self._read and self._sheet.has_lines and not self._sheet.was_read:
            self._sheet.scroll_page_down(animate=False)
            box = self.query_one(Vertical)
            box.border_subtitle = Content("read on with PgDn, then y yes · n no")
        else:
            self.dismiss(True)

    def action_no(self) -> None:
        """No; nothing happens."""
        self.dismiss(False)

    def action_leave(self) -> None:
        """Neither yes nor no."""
        self.dismiss(None)


class TextPage(Dialog[None]):
    """A text to look at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("space", "page", show=False),
    ]

    def __init__(self, title: str, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__(title, "↑↓ PgUp PgDn · Esc closes")
        self.sheet = Sheet(tuple(lines) or (("There is nothing to show.", "muted"),))

    def compose(self) -> ComposeResult:
        """The text, as high as it needs to be."""
        with self._dress(Vertical()):
            yield self.sheet

    def action_leave(self) -> None:
        """Back to where it was."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """A line up or down."""
        self.sheet.scroll_relative(y=by, animate=False)

    def action_page(self) -> None:
        """A page down."""
        self.sheet.scroll_page_down(animate=False)


class Item(Struct, frozen=True):
    """One of several: what is given back, what is shown, a word on it, why it cannot be had."""

    key: str
    label: str
    about: str = ""
    chosen: bool = False
    why_not: str = ""


class Choose(Dialog[str | None]):
    """One of several, narrowed by what is typed."""

    DEFAULT_CSS = """
    Choose OptionList {
        height: auto; border: none; padding: 0; background: transparent;
        margin: 1 0; scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        items: Sequence[Item],
        empty: str = "There is none.",
        said: str = "",
        *,
        escape: str = "closes",
    ) -> None:
        """`escape` says what Escape does."""
        super().__init__(title, f"Enter selects · Esc {escape}")
        self._said = clean(said)
        self._items = {item.key: item for item in items}
        self._empty = empty
        self._list = OptionList(markup=False, compact=True)
        self._list.can_focus = False

    def compose(self) -> ComposeResult:
        """The filter, and what is left by it."""
        with self._dress(Vertical()):
            if self._said:
                yield Static(Content(self._said), id="said")
            yield Field(placeholder="type to filter")
            yield self._list

    def on_mount(self) -> None:
        """All of them at first, the chosen one marked."""
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Fewer or more of them."""
        event.stop()
        self._show(event.value)

    def _show(self, query: str) -> None:
        named = {f"{one.label} {one.about} {one.key}": one.key for one in self._items.values()}
        found = fitting(query, named, 500)
        keys = [named[name] for name in found]
        self._list.set_options(_option(self._items[key], at) for at, key in enumerate(keys))
        if not keys:
            empty = "Nothing matches." if self._items else clean_line(self._empty)
            self._list.add_option(Option(Content(empty), disabled=True))
        marked = [at for at, key in enumerate(keys) if self._items[key].chosen and not query]
        self._list.highlighted = (marked or [0])[0] if keys else None
        self._keys_shown = keys

    def action_move(self, by: int) -> None:
        """The highlight up or down."""
        if self._keys_shown:
            at = (self._list.highlighted or 0) + by
            last = len(self._keys_shown) - 1
            at = at % (last + 1) if abs(by) == 1 else min(max(at, 0), last)
            self._list.highlighted = at

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The highlighted one is taken."""
        event.stop()
        if self._list.highlighted is not None:
            self._take(self._list.highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click on one."""
        event.stop()
        self._take(event.option_index)

    def _take(self, at: int) -> None:
        item = self._items[self._keys_shown[at]]
        if item.why_not:
            self.app.notify(clean_line(item.why_not), severity="warning", markup=False)
        else:
            self.dismiss(item.key)

    def action_leave(self) -> None:
        """None of them."""
        self.dismiss(None)


def _option(item: Item, at: int) -> Option:
    sign = "• " if item.chosen else "  "
    about = item.why_not or item.about
    said = Content.assemble(
        (sign, "$accent"),
        (clean_line(item.label, 70), "$foreground 60%" if item.why_not else ""),
        (f"  {clean_line(about, 100)}" if about else "", "$foreground 60%"),
    )
    return Option(said)


class AskText(Dialog[str | None]):
    """A line of text; None: left without one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(title, "Enter confirms · Esc closes")
        self._value = neutral(value, keep="")

    def compose(self) -> ComposeResult:
        """The line."""
        with self._dress(Vertical()):
            yield Field(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What it says now."""
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Nothing."""
        self.dismiss(None)
