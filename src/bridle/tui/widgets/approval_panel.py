"""The approval panel, in the flow between the conversation and the composer.

It shows one request at a time, whole and scrolling, and hands answers on as `Answered`. A key
counts only for what was drawn, after a moment of quiet, and an approval only once the end of the
request was on the screen. It is given what is open, and knows neither session nor backend.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar

from textual import events, work
from textual._time import get_time
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from bridle.errors import AgentError
from bridle.policy import Mode
from bridle.presentation.approvals import Choice
from bridle.protocols.session import Answer
from bridle.tui.model.approval_queue import ApprovalQueue, Key
from bridle.tui.model.approval_views import (
    Answers,
    AskForText,
    FileContent,
    Outcome,
    PreviewRule,
    Redraw,
    RuleView,
    SwitchView,
    View,
)
from bridle.tui.model.key_guard import QUIET, KeyGuard
from bridle.tui.session_backend import Asked
from bridle.tui.widgets.approval_sheet import ApprovalSheet
from bridle.workspace.text import neutral, one_line, quantity

RulePreview = Callable[[Asked], Awaitable[Sequence[str]]]
_SCROLL = ("pageup", "pagedown", "home", "end", "up", "down")
_MOVE = {"tab": 1, "right": 1, "shift+tab": -1, "left": -1}
_KEY_NAMES = {"escape": "Esc", "enter": "Enter", "space": "Space"}
_SHARE = 0.6  # of the window's height
_TRIES = 8  # refreshes until everything has its size
_AFTER_ONE = " You can approve after reading it."
_FEWEST = 2  # lines of a request that are on the screen however small it is


class NoteInput(Input):
    """A line of text for one request. What is pasted comes in as one line, made visible."""

    DEFAULT_CSS = """
    NoteInput {
        display: none;
        height: 1;
        border: none;
        padding: 0 1;
        background: $surface;
        &:focus { border: none; }
        &.-open { display: block; }
    }
    """

    def __init__(self) -> None:
        super().__init__(max_length=4000, select_on_focus=False)
        self.to_answers: Callable[[str], Answers] | None = None
        self.choices: tuple[Choice, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether a text is being typed."""
        return self.to_answers is not None

    def open(self, label: str, to_answers: Callable[[str], Answers]) -> None:
        """Let a text be typed of which `to_answers` makes the answers."""
        self.to_answers = to_answers
        self.value = ""
        self.placeholder = f"{label}…"
        self.choices = (Choice("enter", "Send"), Choice("escape", "Back"))
        self.add_class("-open")
        self.focus()

    def close(self) -> str:
        """Close, and return what was typed."""
        self.to_answers = None
        self.remove_class("-open")
        text, self.value = self.value, ""
        return text

    def validate_value(self, value: str) -> str:
        """However it came in: nothing in it is obeyed, and nothing is invisible."""
        return neutral(value, keep="")

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        line = neutral(" ".join(event.text.split()), keep="")
        self.replace(line, *sorted(self.selection))


class ApprovalPanel(Vertical, can_focus=True):
    """The requests that need an answer; hidden if there are none."""

    DEFAULT_CSS = """
    ApprovalPanel {
        display: none;
        height: auto;
        border-top: heavy $warning;
        &.-open { display: block; }
        & > #approval-title { height: 1; text-style: bold; padding: 0 1; }
        & > #approval-keys { height: auto; padding: 0 1; color: $text-muted; }
        & > #approval-hint {
            height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none;
            &.-shown { display: block; }
        }
    }
    """
    ALLOW_MAXIMIZE: ClassVar[bool] = False

    class Answered(Message):
        """An answer to one request; `mode` is what the session is to change to after it."""

        def __init__(
            self, session_id: str, asked: Asked, answer: Answer, mode: Mode | None
        ) -> None:
            super().__init__()
            self.session_id = session_id
            self.asked = asked.asked
            self.answer = answer
            self.mode = mode

    class Strayed(Message):
        """Letters that came while a request appeared, and were meant for the composer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Moved(Message):
        """Another request or view is shown."""

    class Emptied(Message):
        """Nothing is open any more: who had the keyboard may have it back."""

    def __init__(
        self,
        preview: RulePreview,
        content_of: FileContent,
        *,
        is_writing: Callable[[], bool] = lambda: False,
        quiet: float = QUIET,
    ) -> None:
        super().__init__()
        self._queue = ApprovalQueue(content_of)
        self._guard = KeyGuard(quiet)
        self._preview = preview
        self._is_writing = is_writing
        self._message = ""  # shown instead of the hint
        self._drawing = 0  # which drawing is awaited
        self.beside: Callable[[], int] | None = None  # rows of the rest; None: a conversation

    def compose(self) -> ComposeResult:
        """Title, sheet, text, keys, hint."""
        yield Static(id="approval-title", markup=False)
        yield ApprovalSheet()
        yield NoteInput()
        yield Static(id="approval-keys", markup=False)
        yield Static(id="approval-hint", markup=False)

    @property
    def sheet(self) -> ApprovalSheet:
        """Where the request is shown."""
        return self.query_one(ApprovalSheet)

    @property
    def note(self) -> NoteInput:
        """Where a text is typed."""
        return self.query_one(NoteInput)

    @property
    def is_open(self) -> bool:
        """Whether anything needs an answer here."""
        return bool(self._queue.open)

    @property
    def waiting(self) -> list[Asked]:
        """The requests that can be answered."""
        return self._queue.open

    @property
    def current(self) -> Asked | None:
        """The request that is shown."""
        return self._queue.current

    @property
    def is_armed(self) -> bool:
        """Whether the request has been drawn."""
        return self._guard.is_drawn

    # What is open

    def show(
        self, pending: Sequence[Asked], gone: Mapping[str, str] | None = None, here: str = ""
    ) -> None:
        """Show what is open now. `gone` says of others, by what was shown, why they are not."""
        was_open, view = self.is_open, self._queue.view
        self._queue.here = here or self._queue.here
        for asked in self._queue.set_pending(pending):
            name = one_line(asked.asked.call.name, 60)
            why = (gone or {}).get(asked.asked.shown, "no longer needs an answer")
            self.app.notify(f"{name}: {why}", timeout=6, markup=False)
        self._update(view)
        if not was_open:
            self.take_keys()

    def forget(self) -> None:
        """Close everything: another session is on the screen."""
        view = self._queue.view
        self._queue.set_pending(())
        self._update(view)

    def go_to(self, key: Key) -> None:
        """Show that request."""
        view = self._queue.view
        self._queue.go_to(key)
        self._update(view)

    def take_back(self, session_id: str, shown: str, why: str) -> None:
        """Open a request again whose answer was not accepted."""
        view = self._queue.view
        self._queue.take_back((session_id, shown))
        self._message = why
        self._update(view)
        self.take_keys()

    def take_keys(self) -> None:
        """Take the keyboard, unless somebody is writing."""
        if self.is_open and not self._is_writing():
            self.focus()

    def _update(self, before: View | None) -> None:
        """Show the current view if it is another one than before."""
        view = self._queue.view
        self.set_class(view is not None, "-open")
        if view is None:
            self._close_note()
            self._guard.hide()
            if before is not None:
                self.post_message(self.Emptied())
        elif view is not before:
            self._close_note()
            self.sheet.write(view.lines)
            self.draw()
            self.post_message(self.Moved())
        else:
            self._update_text()

    # Drawing

    def draw(self) -> None:
        """Draw the request; no key counts before it is on the screen."""
        if not self.is_open:
            return
        self._guard.hide()
        self._drawing += 1
        self._fit()
        self.call_after_refresh(self._after_drawing, self._drawing)

    def _after_drawing(self, drawing: int, left: int = _TRIES) -> None:
        if drawing != self._drawing or not self.is_open or not self.is_attached:
            return
        if self.app.screen is not self.screen:
            return  # something else covers it; once that is gone it is drawn anew
        if self._fit() or not self.sheet.size.height:
            if left:  # if there is no room at all, the next size of the window draws it anew
                self.call_after_refresh(self._after_drawing, drawing, left - 1)
            return
        self._look()
        self._guard.set_drawn(get_time())

    def _look(self) -> None:
        self.sheet.look()
        self._update_text()

    def _fit(self) -> bool:
        """Set the height: what is needed, but no more than leaves room for the conversation."""
        self._update_text()
        foot = self._keys().plain.count("\n") + 2 + self.note.is_open
        whole = self.screen.size.height
        rows = round(whole * _SHARE) if self.beside is None else whole - self.beside()
        room = max(_FEWEST, rows - foot - 2)
        height = max(1, min(self.sheet.count, room))
        changed = self.sheet.styles.height is None or self.sheet.styles.height.value != height
        if changed:
            self.sheet.styles.height = height
        return changed

    def _keys(self) -> Content:
        view = self._queue.view
        if self.note.is_open:
            return key_line(self.note.choices, max(10, self.size.width - 2))
        width, height = max(10, self.size.width - 2), self.screen.size.height
        is_short = width < 50 or height < 16
        return key_line(view.choices if view else (), width, short=is_short)

    def _update_text(self) -> None:
        """Update title, keys and hint."""
        if (view := self._queue.view) is None:
            return
        current = self._queue.current
        other = current is not None and current.session_id != self._queue.here
        session = current.title if other and current else ""
        title = title_line(view.title, self._queue.position, session)
        self.query_one("#approval-title", Static).update(title)
        unseen = not self.sheet.seen and any(choice.needs_end for choice in view.choices)
        hint = self._message or hint_line(
            below=self.sheet.below,
            unseen=unseen,
            focused=self.has_focus or self.note.has_focus,
            count=self._queue.position[1],
            width=self.size.width - 2,
        )
        self.query_one("#approval-keys", Static).update(self._keys())
        line = self.query_one("#approval-hint", Static)
        line.update(hint)
        line.set_class(bool(hint), "-shown")

    def on_resize(self) -> None:
        """Fold anew, and set the height."""
        if self.is_open:
            self.sheet.rewrite()
            self._fit()
            self.call_after_refresh(self._look)
            if not self._guard.is_drawn:
                self.draw()

    def on_approval_sheet_resized(self) -> None:
        """Look again at how much lies below."""
        if self.is_open and self._guard.is_drawn:
            self.call_after_refresh(self._look)

    def _say(self, message: str) -> None:
        self._message = message
        self._update_text()

    # Keys

    def on_focus(self) -> None:
        """Draw anew: what was pressed before was for somebody else."""
        if self.is_open and not self.note.is_open:
            self.draw()

    def on_blur(self) -> None:
        """Say how to come back."""
        self._update_text()

    def on_key(self, event: events.Key) -> None:
        """Handle a key, for whatever is on the screen."""
        if not self.is_open or self.note.is_open:
            if event.key == "escape" and self.note.is_open:
                event.stop()
                self._close_note()
                self.focus()
            return
        view = self._queue.view
        known = {choice.key for choice in view.choices} if view else set()
        if event.key == "escape" and "escape" not in known:
            return  # the screen's: it stops the turn
        letter = event.character if event.is_printable and event.character else ""
        if not (letter or event.key in known or event.key in (*_SCROLL, *_MOVE, "enter")):
            return
        event.stop()
        event.prevent_default()
        self._pressed(event.key, event.time, letter)

    def _pressed(self, key: str, at: float, letter: str) -> None:
        if not self._guard.accepts(at, letter):
            self._say(
                "That key came too early. Press it again."
                if letter and self._guard.is_drawn
                else ""
            )
        elif (outcome := self._outcome(key)) is not None:
            self._do(outcome)
        elif not self._move(key):
            self._guard.reject(at, letter)
        if text := self._guard.take_stray_text():
            self._say("")
            self.post_message(self.Strayed(text))

    def _outcome(self, key: str) -> Outcome | None:
        """Return what the view makes of a key; an approval has to wait until all was seen."""
        view = self._queue.view
        if view is None:
            return None
        choice = next((choice for choice in view.choices if choice.key == key), None)
        if choice is not None and choice.needs_end and not self.sheet.seen:
            self._say("Scroll to the end (End) before approving.")
            return Redraw(-1)
        return view.press(key)

    def _do(self, outcome: Outcome) -> None:
        view = self._queue.view
        match outcome:
            case Answers():
                self._give(outcome)
            case AskForText(label, to_answers):
                self.note.open(label, to_answers)
                self._message = ""
                self._fit()
            case PreviewRule(asked):
                self._preview_rule(asked)
            case SwitchView(other):
                self._queue.switch_view(other)
                self._message = ""
                self._update(view)
            case Redraw(line) if line >= 0:
                self.sheet.rewrite()
                self.sheet.reveal(line)
                self.call_after_refresh(self._look)

    def _give(self, given: Answers) -> None:
        """Hand the answers on; each request has one."""
        view, self._message = self._queue.view, ""
        self._queue.put_aside(asked for asked, _answer in given.answers)
        for asked, answer in given.answers:
            self.post_message(self.Answered(asked.session_id, asked, answer, given.mode))
        self._update(view)

    @work(exclusive=True, group="preview")
    async def _preview_rule(self, asked: Asked) -> None:
        view = self._queue.view
        self._say("Checking which past calls the rule would have covered…")
        preview: Sequence[str] = ()
        problem = ""
        try:
            preview = await self._preview(asked)
        except AgentError as error:
            problem = one_line(f"{error.message}. {error.hint}", 300)
        if not self.display:
            return  # its page was left meanwhile
        if problem:
            self._say(problem)
            return
        if view is None or self._queue.view is not view:
            return  # something else is shown by now
        self._message = ""
        self._queue.switch_view(RuleView(asked, preview))
        self._update(view)

    def _move(self, key: str) -> bool:
        """Scroll, or go to another request."""
        if key in _SCROLL:
            self.sheet.move(key)
            self._message = ""
            self.call_after_refresh(self._look)
            return True
        if key in _MOVE:
            view, self._message = self._queue.view, ""
            self._queue.move(_MOVE[key])
            self._update(view)
            return True
        return False

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send the text, for the request that it was typed for."""
        event.stop()
        to_answers = self.note.to_answers
        if to_answers is None:
            return
        if not event.value.strip():
            self._say("Type a message first, or press Esc to go back.")
            return
        self.note.close()
        self.focus()
        self._give(to_answers(event.value.strip()))

    def _close_note(self) -> None:
        if not self.note.is_open:
            return
        had_focus = self.note.has_focus
        if text := self.note.close().strip():
            self.app.notify(f"Not sent: {one_line(text, 300)}", timeout=15, markup=False)
        if had_focus and self.is_open:
            self.focus()


def title_line(title: str, position: tuple[int, int], session: str) -> Content:
    """Return what is asked; which of several; of which session, if it is another one."""
    at, count = position
    parts: list[Content | str | tuple[str, str]] = [("? ", "bold $text-warning"), (title, "bold")]
    if count > 1:
        parts.append((f"  {at} of {count}", "$text-muted"))
    if session:
        parts.append((f"  {one_line(session, 60)}", "$text-accent"))
    return Content.assemble(*parts)


def key_line(choices: Sequence[Choice], width: int, *, short: bool = False) -> Content:
    """Return keys and their meanings; a meaning is never parted from its key."""
    lines: list[list[Content]] = [[]]
    taken, gap = 0, "  " if short else "   "
    for choice in choices:
        name = _KEY_NAMES.get(choice.key, choice.key)
        label = (short and choice.short) or choice.label
        piece = Content.assemble((name, "bold $text-warning"), f" {label}")
        if taken and taken + len(gap) + piece.cell_length > width:
            lines.append([])
            taken = 0
        lines[-1].append(piece)
        taken += piece.cell_length + (len(gap) if taken else 0)
    return Content("\n").join(Content(gap).join(line) for line in lines)


def hint_line(*, below: int, unseen: bool, focused: bool, count: int, width: int) -> str:
    """Return what else is to be known, the most pressing first, as far as there is room."""
    hints: list[str] = []
    if not focused:
        hints.append("F4 to answer")
    if below:
        hint = f"{quantity(below, 'more line')} below (PgDn)."
        after = " You can approve after reading them." if below > 1 else _AFTER_ONE
        hints.append(hint + (after if unseen and len(hint + after) <= width else ""))
    if count > 1:
        hints.append("Tab for the next one")
    while len(hints) > 1 and len(" · ".join(hints)) > width:
        hints.pop()
    return " · ".join(hints)
