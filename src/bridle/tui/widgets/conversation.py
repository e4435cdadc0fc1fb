"""The conversation on the screen: draws blocks line by line, follows their end, unfolds them.

Nothing is mounted per block, so that a session of any length costs the same. Knows the fold it
shows, not where records come from. Whoever feeds the fold calls `refresh_blocks`. Until there is
one, nothing of what draws blocks is imported.
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
    from bridle.tui.render.blocks import Painter
    from bridle.tui.render.window import Window


class Conversation(ScrollView, can_focus=False):
    """A window onto the blocks of a fold; stays at the end as long as nobody scrolls up.

    It never has the focus, so that a click on it leaves the keyboard to the composer. What keys do
    here is bound on the screen.
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
        self._fold: Fold | None = None
        self._made: Window | None = None
        self.follows = True
        self._pressed: tuple[int, int] | None = None

    @property
    def allow_select(self) -> bool:
        """Text can be marked with the mouse."""
        return True

    @property
    def fold(self) -> "Fold":
        """What is shown; there from its first use on."""
        if self._fold is None:
            from bridle.presentation.fold import Fold

            self._fold = Fold()
        return self._fold

    @property
    def window(self) -> "Window":
        """What is drawn."""
        return self._window

    @property
    def _window(self) -> "Window":
        if self._made is None:
            from bridle.tui.render.window import Window

            self._made = Window(self.fold.blocks, self._painter())
        return self._made

    def _painter(self) -> "Painter":
        from bridle.tui.render.blocks import Painter

        return Painter(self._palette, self._width)

    def show(self, fold: "Fold") -> None:
        """Another session, from its end."""
        self._fold, self._made = fold, None
        fold.take_changes()
        self._window.fill(3 * max(24, self.size.height))
        self.follows = True
        self._resized()
        self.refresh()

    def refresh_blocks(self) -> None:
        """Draw what changed in the fold since the last time."""
        if self._fold is None or not (changed := self._fold.take_changes()):
            return
        window = self._window
        before = window.height
        if not before:
            self.refresh()  # the welcome goes
        if self.follows and window.behind > 2 * STEP:
            window.restart(3 * max(24, self.size.height))
            lowest = 0
        else:
            lowest = window.update(changed)
        if self.follows and window.shrink():
            self.refresh()  # every line has another number now
        self._resized()
        changed_lines = max(before, window.height) - lowest
        if changed_lines > 0:  # not those below: over a slow line each of them costs
            self.refresh_lines(lowest, changed_lines)

    def repaint(self, palette: Palette) -> None:
        """In other colours."""
        self._palette, self._pen = palette, Pen(palette)
        self._redraw()

    def warm(self) -> None:
        """In a thread: what the first answer would wait for."""
        from bridle.tui.render.markdown import warm

        warm(self._palette)

    def on_resize(self, event: events.Resize) -> None:
        """Another width: everything is broken anew."""
        if self._made is None:
            return
        if self._window.painter.width != self._width:
            self._redraw()
        self._window.fill(2 * self.size.height)
        self._resized()

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        width, base = self.size.width, self._pen.base
        line = y + self.scroll_offset.y
        if self._made is None or not self._made.blocks:
            found = welcome(y, self.size, self._pen)
        else:
            found = self._window.line(line)
        if found is None:
            return Strip.blank(width, base)
        if found.cell_length != width:
            found = found.apply_style(base).crop_extend(0, width, base)
        if (selection := self.text_selection) is not None:
            found = self._marked(found, line, selection)
        return found.apply_offsets(0, line)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The words that are marked, without the frame around them and the breaks of the view."""
        return self._window.copied(selection.get_span), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Another marking."""
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Somebody scrolled, or we did."""
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) >= self.max_scroll_y:
            self.follows = True
        elif round(new_value) < round(old_value):
            self.follows = False
        if new_value < self.size.height and self._window.first:
            self.call_next(self._look_back)

    def action_choose(self, step: int) -> None:
        """To the next block that can be unfolded, above or below."""
        from bridle.presentation.blocks import is_foldable

        window = self._window
        last = len(window.blocks)
        place = window.chosen if window.chosen is not None else last
        place += step
        while 0 <= place < last and not is_foldable(window.blocks[place]):
            place += step
        if place < 0:
            return
        self._choose(place if place < last else None)

    def action_unfold(self) -> None:
        """Unfold or fold the chosen block, or else the newest call."""
        place = self._window.chosen
        if place is None:
            calls = (at for at in reversed(range(len(self.fold.blocks))) if self._is_call(at))
            place = next(calls, None)
        if place is not None:
            self.toggle(place)

    async def go_to_beginning(self, progress: Callable[[int], None]) -> None:
        """Draw everything before what is drawn, some blocks at a time, and go to the first line.

        `progress` is told how many blocks are still to be drawn.
        """
        self.follows = False
        while self._window.first and not self.follows:  # somebody may go to the end meanwhile
            self._grow(STEP)
            progress(self._window.first)
            await asyncio.sleep(0)
        if not self.follows:
            self.scroll_home(animate=False, force=True)

    def action_last(self) -> None:
        """To the end, and stay there."""
        self.follows = True
        self._choose(None)
        self.scroll_end(animate=False, immediate=True, force=True)

    def toggle(self, place: int) -> None:
        """Unfold a block, or fold it."""
        from bridle.presentation.blocks import Call, is_foldable

        window = self._window
        if not is_foldable(window.blocks[place]):
            return
        window.unfolded ^= {place}
        self._draw_again({place})
        block = window.blocks[place]
        if place in window.unfolded and isinstance(block, Call) and block.state == "failed":
            end = window.span(place)[1]  # what went wrong stands at the end of an output
            self.scroll_to(y=max(0, end - self.size.height), animate=False, force=True)
        elif place == window.chosen:
            self._show_block(place)

    def unfold(self, places: set[int], unfolded: bool) -> None:
        """Unfold all of these, or fold them."""
        window = self._window
        window.unfolded = window.unfolded | places if unfolded else window.unfolded - places
        self._draw_again(places)

    def unfold_thoughts(self, unfolded: bool) -> None:
        """Unfold all thoughts, or fold them."""
        from bridle.presentation.blocks import Thought

        blocks = self.fold.blocks
        self.unfold({at for at, one in enumerate(blocks) if isinstance(one, Thought)}, unfolded)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Where a click begins."""
        self._pressed = event.x, event.y

    def on_click(self, event: events.Click) -> None:
        """A click on the first line of a block unfolds it; marking text is no click."""
        if self._pressed != (event.x, event.y) or self.text_selection is not None:
            return
        line = event.y + self.scroll_offset.y
        place = self._window.place_at(line)
        if place is not None and line <= self._window.span(place)[0]:
            self.toggle(place)

    def _is_call(self, place: int) -> bool:
        from bridle.presentation.blocks import Call, is_foldable

        block = self.fold.blocks[place]
        return isinstance(block, Call) and is_foldable(block)

    def go_to(self, place: int) -> None:
        """Choose a block, and see it."""
        self._choose(place)

    def _choose(self, place: int | None) -> None:
        window = self._window
        changed = {one for one in (window.chosen, place) if one is not None}
        if place is not None and place < window.first:
            self._grow(window.first - place)
        window.chosen = place
        self._draw_again(changed)
        if place is not None:
            self._show_block(place)

    def _show_block(self, place: int) -> None:
        top, end = self._window.span(place)
        height, at = self.size.height, self.scroll_offset.y
        if top < at:
            self.scroll_to(y=top, animate=False, force=True)
        elif end > at + height:
            self.scroll_to(y=min(top, end - height), animate=False, force=True)

    def _draw_again(self, places: set[int]) -> None:
        self._window.update(places)
        self._resized()
        self.refresh()

    def _look_back(self) -> None:
        """Older blocks come in above; what is looked at stays where it is."""
        if self.scroll_offset.y < self.size.height and self._window.first:
            self._grow(STEP)

    def _grow(self, count: int) -> None:
        at = self.scroll_offset.y
        more = self._window.grow(count)
        follows, self.follows = self.follows, False
        self._resized()
        self.scroll_to(y=at + more, animate=False, force=True)
        self.follows = follows and at + more >= self.max_scroll_y
        self.refresh()

    @property
    def _width(self) -> int:
        return max(4, (self.size.width or 80) - 2 * EDGE)

    def _redraw(self) -> None:
        if self._made is not None:
            self._made.redraw(self._painter())
            self._resized()
        self.refresh()

    def _resized(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), self._window.height)
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
