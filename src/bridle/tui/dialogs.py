"""Dialogs over the screen: yes or no, one of several, a line of text, a text to read.

Keys that decide count only after the dialog was drawn and no key was pressed for a while, so that a
key that was meant for something else decides nothing. Everything shown or typed is made neutral.
"""

import re
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import ClassVar, TypeVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from bridle.tui.model.fuzzy import best_matches
from bridle.tui.model.key_guard import KeyGuard
from bridle.tui.render.safe_text import clean, clean_line
from bridle.tui.slash.interaction import Item
from bridle.workspace.text import neutral

T = TypeVar("T")

_SHARE = 0.9  # of the window's height


class TextField(Input):
    """One line of text, always neutral."""

    DEFAULT_CSS = """
    TextField { border: none; height: 1; padding: 0; background: transparent; }
    TextField:focus { border: none; background-tint: $foreground 0%; }
    """

    def validate_value(self, value: str) -> str:
        return neutral(value, keep="")


class Dialog(ModalScreen[T]):
    """A box in the middle; Escape or Ctrl+C leaves it.

    `_deciding` are the keys that the guard delays. Leaving decides nothing and is always possible.
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
    Dialog TextView { margin: 0 0 1 0; }
    Dialog #said { height: auto; margin: 0 0 1 0; }
    Dialog.-danger > Vertical { border: round $error; }
    """
    _deciding: ClassVar[tuple[str, ...]] = ("enter",)

    def __init__(self, title: str, keys: str) -> None:
        super().__init__()
        self._title = clean_line(title, 90)
        self._keys = keys
        self.guard = KeyGuard()

    def _dress(self, box: Vertical) -> Vertical:
        box.border_title = Content(self._title)
        box.border_subtitle = Content(self._keys)
        return box

    def on_screen_resume(self) -> None:
        """Count the time from the next drawing on."""
        self.guard.hide()
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._fit()
        self.call_after_refresh(lambda: self.guard.set_drawn(monotonic()))

    def on_resize(self, event: events.Resize) -> None:
        """Fit the long part into the new height."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Give the long part the room that the rest leaves."""
        box = self.query_one(Vertical)
        long = next((one for one in box.children if isinstance(one, TextView | OptionList)), None)
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
        """Drop a deciding key that comes too early."""
        if event.key not in self._deciding:
            if event.is_printable and event.key != "space":
                self.guard.reject(event.time)  # somebody is typing something else
        elif not self.guard.accepts(event.time):
            event.stop()
            event.prevent_default()


class ConfirmDialog(Dialog[bool | None]):
    """Yes or no; None if it was left without an answer.

    With `read`, yes counts only after the end of the lines was on the screen.
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
        self._sheet = TextView(tuple(lines))
        self._read = read
        self.set_class(danger, "-danger")

    def compose(self) -> ComposeResult:
        with self._dress(Vertical()):
            if self._sheet.has_lines:
                yield self._sheet
            yield Static(Content(self._said), id="said")

    def action_yes(self) -> None:
        """Answer yes, if everything was read."""
        if self._read and self._sheet.has_lines and not self._sheet.was_read:
            self._sheet.scroll_page_down(animate=False)
            box = self.query_one(Vertical)
            box.border_subtitle = Content("PgDn to read on, then y yes · n no")
        else:
            self.dismiss(True)

    def action_no(self) -> None:
        """Answer no."""
        self.dismiss(False)

    def action_leave(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)


class TextDialog(Dialog[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("space", "page", show=False),
    ]

    def __init__(self, title: str, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__(title, "↑↓ PgUp PgDn · Esc to close")
        self.sheet = TextView(tuple(lines) or (("There is nothing to show.", "muted"),))

    def compose(self) -> ComposeResult:
        with self._dress(Vertical()):
            yield self.sheet

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Scroll a line up or down."""
        self.sheet.scroll_relative(y=by, animate=False)

    def action_page(self) -> None:
        """Scroll a page down."""
        self.sheet.scroll_page_down(animate=False)


class ChoiceDialog(Dialog[str | None]):
    """One of several, filtered by what is typed; its key, or None."""

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
        empty: str = "Nothing to choose from.",
        said: str = "",
        *,
        escape: str = "close",
    ) -> None:
        """`escape` is what Escape does, as a verb."""
        super().__init__(title, f"Enter to select · Esc to {escape}")
        self._said = clean(said)
        self._items = {item.key: item for item in items}
        self._empty = empty
        self._list = OptionList(markup=False, compact=True)
        self._list.can_focus = False

    def compose(self) -> ComposeResult:
        with self._dress(Vertical()):
            if self._said:
                yield Static(Content(self._said), id="said")
            yield TextField(placeholder="type to filter")
            yield self._list

    def on_mount(self) -> None:
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    def _show(self, query: str) -> None:
        named = {f"{one.label} {one.about} {one.key}": one.key for one in self._items.values()}
        found = best_matches(query, named, 500)
        keys = [named[name] for name in found]
        self._list.set_options(_option(self._items[key], at) for at, key in enumerate(keys))
        if not keys:
            empty = "Nothing matches." if self._items else clean_line(self._empty)
            self._list.add_option(Option(Content(empty), disabled=True))
        marked = [at for at, key in enumerate(keys) if self._items[key].chosen and not query]
        self._list.highlighted = (marked or [0])[0] if keys else None
        self._keys_shown = keys

    def action_move(self, by: int) -> None:
        """Move the highlight up or down."""
        if self._keys_shown:
            at = (self._list.highlighted or 0) + by
            last = len(self._keys_shown) - 1
            at = at % (last + 1) if abs(by) == 1 else min(max(at, 0), last)
            self._list.highlighted = at

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted item."""
        event.stop()
        if self._list.highlighted is not None:
            self._take(self._list.highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the item that was clicked."""
        event.stop()
        self._take(event.option_index)

    def _take(self, at: int) -> None:
        item = self._items[self._keys_shown[at]]
        if item.why_not:
            self.app.notify(clean_line(item.why_not), severity="warning", markup=False)
        else:
            self.dismiss(item.key)

    def action_leave(self) -> None:
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


class TextInputDialog(Dialog[str | None]):
    """A line of text; None if it was left without one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(title, "Enter to confirm · Esc to close")
        self._value = neutral(value, keep="")

    def compose(self) -> ComposeResult:
        with self._dress(Vertical()):
            yield TextField(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)


_COLUMN = re.compile(r" *(?:\S+ ){1,4}? +(?=\S)")  # the start of a table's second column
_BAR = "│ "
_SIGNS = {"+": "text-view--added", "-": "text-view--removed", "@": "text-view--place"}
_KINDS = ("text-view--head", "text-view--muted", "text-view--warning", *_SIGNS.values())


class TextView(ScrollView, can_focus=True):
    """A long text, wrapped to the width and drawn only where it is visible.

    A line is its text and its kind (`head`, `added` …). Everything is made neutral.
    """

    COMPONENT_CLASSES = set(_KINDS)
    DEFAULT_CSS = """
    TextView {
        height: auto; max-height: 100%; background: transparent; scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & .text-view--head { text-style: bold; }
        & .text-view--muted { color: $secondary; }
        & .text-view--warning { color: $text-warning; }
        & .text-view--added { color: $text-success; }
        & .text-view--removed { color: $text-error; }
        & .text-view--place { color: $text-accent; }
    }
    """

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        super().__init__()
        self._take(lines)

    def _take(self, lines: Iterable[tuple[str, str]]) -> None:
        self._given = [(line, kind) for text, kind in lines for line in clean(text).split("\n")]
        self._wrapped: list[tuple[str, str]] = []
        self._width = 0
        self.was_read = False  # the end was on the screen

    def show(self, lines: Iterable[tuple[str, str]], *, at_end: bool = False) -> None:
        """Show another text, from its beginning or at its end."""
        self._take(lines)
        self._wrap(self.scrollable_content_region.width)
        if at_end:
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)
        self.refresh(layout=True)
        self.call_after_refresh(self._see)

    @property
    def has_lines(self) -> bool:
        """Is there anything to read?"""
        return bool(self._given)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._wrap(width - 1)  # the scrollbar may appear
        return len(self._wrapped)

    def on_resize(self) -> None:
        """Wrap the lines again."""
        width = self.scrollable_content_region.width
        if not self._width or width < self._width:
            self._wrap(width)
        self.call_after_refresh(self._see)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._see()

    def _see(self) -> None:
        """Note whether the last line is visible now, not cut off by the box."""
        if not self._wrapped or not self.size.height or not isinstance(self.parent, Widget):
            return
        whole = self.region.bottom <= self.parent.content_region.bottom
        if whole and self.scroll_offset.y >= self.max_scroll_y:
            self.was_read = True

    def _wrap(self, width: int) -> None:
        if width <= 0 or width == self._width:
            return
        self._width = width
        self._wrapped = [piece for line in self._given for piece in _pieces(*line, width)]
        self.virtual_size = Size(width, len(self._wrapped))

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        style = self.rich_style
        if at >= len(self._wrapped):
            return Strip.blank(self.size.width, style)
        text, kind = self._wrapped[at]
        style += self._style(kind)
        return Strip([Segment(text, style)], cell_len(text)).adjust_cell_length(
            self.size.width, self.rich_style
        )

    def _style(self, kind: str) -> Style:
        name = f"text-view--{kind}"
        return self.get_component_rich_style(name, partial=True) if kind else Style()


def _pieces(text: str, kind: str, width: int) -> Iterable[tuple[str, str]]:
    """Wrap a line at the ends of words; continuation lines are indented to its column."""
    if len(text) <= width and text.isascii():
        return ((text, kind),)
    column = _COLUMN.match(text)
    indent = " " * (column.end() if column and column.end() <= width // 2 else 0)
    if text.startswith(_BAR) and width > 8:  # so that quoted text cannot pretend to be ours
        indent = _BAR
    found: list[tuple[str, str]] = []
    at, room = 0, width
    while len(text) - at > room or cell_len(text[at:]) > room:
        first = chop_cells(text[at : at + room], room)[:1]
        piece = "".join(first) or text[at]  # wider than the room
        space = piece.rfind(" ", len(piece) * 2 // 3)
        piece = piece[: space + 1] if space > 0 else piece
        found.append((indent * bool(found) + piece, kind))
        at, room = at + len(piece), width - len(indent)
    return [*found, (indent * bool(found) + text[at:], kind)]
