"""The frame around a question: its head, the sheet, the keys, its height, when it was drawn.

Lays out and draws; which question it is, the pile says. Knows no answers and takes no keys.
"""

from collections.abc import Callable
from typing import ClassVar

from textual._time import get_time
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from bridle.tui.guarding import Guard
from bridle.tui.house import Asked
from bridle.tui.question_input import WordInput
from bridle.tui.question_offers import head_line, hint_line, key_line
from bridle.tui.question_pile import Pile
from bridle.tui.question_sheet import QuestionSheet

_SHARE = 0.6  # of the window's height
_TRIES = 8  # refreshes until everything has its size
_FEWEST = 2  # lines of a question that are on the screen however small it is


class QuestionFrame(Vertical):
    """What is looked at, drawn; gone where nothing is open."""

    DEFAULT_CSS = """
    QuestionFrame {
        display: none;
        height: auto;
        border-top: heavy $warning;
        &.-open { display: block; }
        & > #question-head { height: 1; text-style: bold; padding: 0 1; }
        & > #question-foot { height: auto; padding: 0 1; color: $text-muted; }
        & > #question-hint {
            height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none;
            &.-said { display: block; }
        }
    }
    """
    ALLOW_MAXIMIZE: ClassVar[bool] = False

    def __init__(self, pile: Pile, guard: Guard) -> None:
        super().__init__()
        self._pile = pile
        self._guard = guard
        self._said = ""  # what has to be said now
        self._drawing = 0  # which drawing is awaited
        self.beside: Callable[[], int] | None = None  # rows of the rest; None: a conversation

    def compose(self) -> ComposeResult:
        """Head, sheet, words, keys."""
        yield Static(id="question-head", markup=False)
        yield QuestionSheet()
        yield WordInput()
        yield Static(id="question-foot", markup=False)
        yield Static(id="question-hint", markup=False)

    @property
    def sheet(self) -> QuestionSheet:
        """The paper."""
        return self.query_one(QuestionSheet)

    @property
    def words(self) -> WordInput:
        """Where words are written."""
        return self.query_one(WordInput)

    @property
    def is_open(self) -> bool:
        """Does anything wait for an answer here?"""
        return bool(self._pile.open)

    @property
    def waiting(self) -> list[Asked]:
        """What can be answered."""
        return self._pile.open

    @property
    def current(self) -> Asked | None:
        """What is looked at."""
        return self._pile.current

    @property
    def is_armed(self) -> bool:
        """Has what is asked been drawn?"""
        return self._guard.is_drawn

    def draw(self) -> None:
        """Nothing counts before it has been drawn."""
        if not self.is_open:
            return
        self._guard.hide()
        self._drawing += 1
        self._fit()
        self.call_after_refresh(self._drawn, self._drawing)

    def _drawn(self, drawing: int, left: int = _TRIES) -> None:
        if drawing != self._drawing or not self.is_open or not self.is_attached:
            return
        if self.app.screen is not self.screen:
            return  # something else covers it; once that is gone it is drawn anew
        if self._fit() or not self.sheet.size.height:
            if left:  # where there is no room at all, the next size of the window draws it anew
                self.call_after_refresh(self._drawn, drawing, left - 1)
            return
        self._look()
        self._guard.drawn(get_time())

    def _look(self) -> None:
        self.sheet.look()
        self._foot()

    def _fit(self) -> bool:
        """As high as it has to be, and no higher than leaves room for the conversation."""
        self._foot()
        foot = self._keys().plain.count("\n") + 2 + self.words.is_open
        whole = self.screen.size.height
        rows = round(whole * _SHARE) if self.beside is None else whole - self.beside()
        room = max(_FEWEST, rows - foot - 2)
        height = max(1, min(self.sheet.count, room))
        changed = self.sheet.styles.height is None or self.sheet.styles.height.value != height
        if changed:
            self.sheet.styles.height = height
        return changed

    def _keys(self) -> Content:
        view = self._pile.view
        if self.words.is_open:
            return key_line(self.words.offers, max(10, self.size.width - 2))
        width, high = max(10, self.size.width - 2), self.screen.size.height
        return key_line(view.offers if view else (), width, short=width < 50 or high < 16)

    def _foot(self) -> None:
        if (view := self._pile.view) is None:
            return
        current = self._pile.current
        other = current is not None and current.session_id != self._pile.here
        head = head_line(view.head, self._pile.position, current.title if other and current else "")
        self.query_one("#question-head", Static).update(head)
        unseen = not self.sheet.seen and any(offer.whole for offer in view.offers)
        hint = self._said or hint_line(
            below=self.sheet.below,
            unseen=unseen,
            focused=self.has_focus or self.words.has_focus,
            count=self._pile.position[1],
            width=self.size.width - 2,
        )
        self.query_one("#question-foot", Static).update(self._keys())
        line = self.query_one("#question-hint", Static)
        line.update(hint)
        line.set_class(bool(hint), "-said")

    def on_resize(self) -> None:
        """Fold anew, and see how high it may be."""
        if self.is_open:
            self.sheet.rewrite()
            self._fit()
            self.call_after_refresh(self._look)
            if not self._guard.is_drawn:
                self.draw()

    def on_question_sheet_laid(self) -> None:
        """What was true of its size before is no longer."""
        if self.is_open and self._guard.is_drawn:
            self.call_after_refresh(self._look)

    def _say(self, words: str) -> None:
        self._said = words
        self._foot()
