"""The conversation: draws blocks line by line, follows their end, unfolds them, selects text.

Nothing is mounted per block, so that a session of any length costs the same. Whoever feeds the fold
calls `refresh_blocks`. What draws blocks is imported when the first fold is shown.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from bridle.tui.render.palette import DARK, Palette
from bridle.tui.render.pen import Pen
from bridle.tui.render.welcome import EDGE, STEP, welcome

if TYPE_CHECKING:
    from bridle.presentation.fold import Fold
    from bridle.tui.render.window import Window


class Conversation(ScrollView, can_focus=False):
    """A view of the blocks of a fold; stays at the end as long as nobody scrolls up.

    It never has the focus, so that a click on it leaves the keyboard to the composer. Its keys are
    bound on the screen.
    """

    DEFAULT_CSS = """
    Conversation {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-color: $panel;
        scrollbar-color-hover: $accent;
        scrollbar-color-active: $accent;
    }
    """
    ALLOW_SELECT = True

    def __init__(self, palette: Palette = DARK) -> None:
        super().__init__(id="conversation")
        self._palette = palette
        self._pen = Pen(palette)
        self._window: Window | None = None
        self.follows = True
        self._pressed: tuple[int, int] | None = None

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def fold(self) -> "Fold":
        """The session that is shown, folded into blocks."""
        return self.window.fold

    @property
    def window(self) -> "Window":
        """The drawn blocks; made, with an empty fold, when it is first used."""
        if self._window is None:
            self._window = self._open(None)
        return self._window

    def _open(self, fold: "Fold | None") -> "Window":
        from bridle.tui.render.window import open_window

        return open_window(fold, self._palette, self._width)

    def show(self, fold: "Fold") -> None:
        """Show another session, at its end."""
        self._window = self._open(fold)
        fold.take_changes()
        self._window.fill(3 * max(24, self.size.height))
        self.follows = True
        self._resized()
        self.refresh()

    def refresh_blocks(self) -> None:
        """Draw what has changed in the fold since the last time."""
        window = self._window
        if window is None or not (changed := window.fold.take_changes()):
            return
        before = window.height
        if not before:
            self.refresh()  # the welcome text goes
        if self.follows and window.behind > 2 * STEP:
            window.restart(3 * max(24, self.size.height))
            lowest = 0
        else:
            lowest = window.update(changed)
        if self.follows and window.shrink():
            self.refresh()  # every line has a new number
        self._resized()
        changed_lines = max(before, window.height) - lowest
        if changed_lines > 0:  # not those below: each costs on a slow connection
            self.refresh_lines(lowest, changed_lines)

    def repaint(self, palette: Palette) -> None:
        """Draw everything in other colors."""
        self._palette, self._pen = palette, Pen(palette)
        self._redraw()

    def warm(self) -> None:
        """Do, in a thread, what the first answer would have to wait for.

        Touches nothing of the widget: the event loop shows a session meanwhile.
        """
        from bridle.tui.render.markdown import warm

        warm(self._palette)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap everything again if the width has changed."""
        if self._window is None:
            return
        if self._window.painter.width != self._width:
            self._redraw()
        self._window.fill(2 * self.size.height)
        self._resized()

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self._pen.base
        line = y + self.scroll_offset.y
        if self._window is None or not self._window.blocks:
            found = welcome(y, self.size, self._pen)
        else:
            found = self.window.line(line)
        if found is None:
            return Strip.blank(width, base)
        if found.cell_length != width:
            found = found.apply_style(base).crop_extend(0, width, base)
        if (selection := self.text_selection) is not None:
            found = self._marked(found, line, selection)
        return found.apply_offsets(0, line)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text, without the margin and the breaks of the view."""
        return self.window.copied_text(selection.get_span), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end again if it is reached; draw older blocks if needed."""
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) >= self.max_scroll_y:
            self.follows = True
        elif round(new_value) < round(old_value):
            self.follows = False
        if new_value < self.size.height and self.window.first:
            self.call_next(self._look_back)

    def action_choose(self, step: int) -> None:
        """Choose the next block above or below that can be unfolded."""
        if (place := self.window.next_foldable(step)) >= 0:
            self._choose(place if place < len(self.window.blocks) else None)

    def action_unfold(self) -> None:
        """Unfold or fold the chosen block, or else the newest call."""
        place = self.window.chosen
        if place is None:
            place = self.window.newest_call()
        if place is not None:
            self.toggle(place)

    async def go_to_beginning(self, progress: Callable[[int], None]) -> None:
        """Draw everything before what is drawn, some blocks at a time, and go to the first line.

        `progress` is told how many blocks are still to be drawn.
        """
        self.follows = False
        while self.window.first and not self.follows:  # the user may go to the end meanwhile
            self._grow(STEP)
            progress(self.window.first)
            await asyncio.sleep(0)
        if not self.follows:
            self.scroll_home(animate=False, force=True)

    def action_last(self) -> None:
        """Go to the end and stay there."""
        self.follows = True
        self._choose(None)
        self.scroll_end(animate=False, immediate=True, force=True)

    def toggle(self, place: int) -> None:
        """Unfold a block, or fold it."""
        window = self.window
        if not window.is_foldable(place):
            return
        window.unfolded ^= {place}
        self._draw_again({place})
        if place in window.unfolded and window.is_failed_call(place):
            end = window.span(place)[1]  # what went wrong is at the end of an output
            self.scroll_to(y=max(0, end - self.size.height), animate=False, force=True)
        elif place == window.chosen:
            self._show_block(place)

    def unfold_thoughts(self, *, unfolded: bool) -> None:
        """Unfold all thoughts, or fold them."""
        window = self.window
        places = window.thoughts()
        window.unfolded = window.unfolded | places if unfolded else window.unfolded - places
        self._draw_again(places)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.x, event.y

    def on_click(self, event: events.Click) -> None:
        """Unfold a block whose first line was clicked; selecting text is not a click."""
        if self._pressed != (event.x, event.y) or self.text_selection is not None:
            return
        line = event.y + self.scroll_offset.y
        place = self.window.place_at(line)
        if place is not None and line <= self.window.span(place)[0]:
            self.toggle(place)

    def go_to(self, place: int) -> None:
        """Choose a block and show it."""
        self._choose(place)

    def _choose(self, place: int | None) -> None:
        window = self.window
        changed = {one for one in (window.chosen, place) if one is not None}
        if place is not None and place < window.first:
            self._grow(window.first - place)
        window.chosen = place
        self._draw_again(changed)
        if place is not None:
            self._show_block(place)

    def _show_block(self, place: int) -> None:
        top, end = self.window.span(place)
        height, at = self.size.height, self.scroll_offset.y
        if top < at:
            self.scroll_to(y=top, animate=False, force=True)
        elif end > at + height:
            self.scroll_to(y=min(top, end - height), animate=False, force=True)

    def _draw_again(self, places: set[int]) -> None:
        self.window.update(places)
        self._resized()
        self.refresh()

    def _look_back(self) -> None:
        """Draw older blocks above; what is visible stays where it is."""
        if self.scroll_offset.y < self.size.height and self.window.first:
            self._grow(STEP)

    def _grow(self, count: int) -> None:
        at = self.scroll_offset.y
        more = self.window.grow(count)
        follows, self.follows = self.follows, False
        self._resized()
        self.scroll_to(y=at + more, animate=False, force=True)
        self.follows = follows and at + more >= self.max_scroll_y
        self.refresh()

    @property
    def _width(self) -> int:
        return max(4, (self.size.width or 80) - 2 * EDGE)

    def _redraw(self) -> None:
        if self._window is not None:
            self._window.redraw(self._palette, self._width)
            self._resized()
        self.refresh()

    def _resized(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), self.window.height)
        if self.follows:
            self.scroll_end(animate=False, immediate=True, force=True)

    def _marked(self, strip: Strip, line: int, selection: Selection) -> Strip:
        span = selection.get_span(line)
        if span is None:
            return strip
        text = strip.text
        start = cell_len(text[: span[0]])
        end = cell_len(text.rstrip()) if span[1] == -1 else cell_len(text[: span[1]])
        if end <= start:
            return strip
        left, inner, right = strip.divide([start, end, strip.cell_length])
        ground = self._pen.marked
        shown = [Segment(one.text, (one.style or Style()) + ground) for one in inner]
        return Strip.join([left, Strip(shown), right])
