"""The panel of questions, in the flow between the conversation and the composer.

Shows one question at a time, whole and scrolling; walks through several; hands answers on as
`Answered`. A key counts only for what was drawn, after a moment of quiet, and a yes only once the
end of what is asked was on the screen. What others answered first is taken away, with a word on it.
Knows no session and no house: what stands open is given to it, and answers leave as messages.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from textual import events, work
from textual.message import Message
from textual.widgets import Input

from bridle.errors import AgentError
from bridle.policy import Mode
from bridle.protocols.session import Answer
from bridle.tui.guarding import QUIET, Guard
from bridle.tui.house import Asked
from bridle.tui.question_frame import QuestionFrame
from bridle.tui.question_pile import Key, Pile
from bridle.tui.question_views import (
    Given,
    Held,
    Outcome,
    Preview,
    Redrawn,
    RuleView,
    Turn,
    View,
    Write,
)
from bridle.workspace.text import one_line

Previewed = Callable[[Asked], Awaitable[Sequence[str]]]
_SCROLL = ("pageup", "pagedown", "home", "end", "up", "down")
_WALK = {"tab": 1, "right": 1, "shift+tab": -1, "left": -1}


class QuestionPanel(QuestionFrame, can_focus=True):
    """What waits for an answer. `show` says what stands open; nothing open, and it is gone."""

    class Answered(Message):
        """An answer to one question; `mode` is what the session is to change to after it."""

        def __init__(
            self, session_id: str, asked: Asked, answer: Answer, mode: Mode | None
        ) -> None:
            super().__init__()
            self.session_id = session_id
            self.asked = asked.asked
            self.answer = answer
            self.mode = mode

    class Strayed(Message):
        """Letters that came while a question appeared, and were meant for the composer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Moved(Message):
        """Something else is looked at."""

    class Emptied(Message):
        """Nothing is open any more: who had the keyboard may have it back."""

    def __init__(
        self,
        preview: Previewed,
        held: Held,
        *,
        is_writing: Callable[[], bool] = lambda: False,
        quiet: float = QUIET,
    ) -> None:
        super().__init__(Pile(held), Guard(quiet))
        self._preview = preview
        self._is_writing = is_writing

    def show(
        self, standing: Sequence[Asked], gone: Mapping[str, str] | None = None, here: str = ""
    ) -> None:
        """These stand open now. `gone` says of others, by what was shown, why they do not."""
        was_open, view = self.is_open, self._pile.view
        self._pile.here = here or self._pile.here
        for one in self._pile.stand(standing):
            name = one_line(one.asked.call.name, 60)
            why = (gone or {}).get(one.asked.shown, "it is not open any more")
            self.app.notify(f"{name}: {why}", timeout=6, markup=False)
        self._follow(view)
        if not was_open:
            self.take_keys()

    def forget(self) -> None:
        """Another session is on the screen: what stood here is none of its business."""
        view = self._pile.view
        self._pile.stand(())
        self._follow(view)

    def go_to(self, key: Key) -> None:
        """Look at that one."""
        view = self._pile.view
        self._pile.go_to(key)
        self._follow(view)

    def take_back(self, session_id: str, shown: str, why: str) -> None:
        """An answer was not taken: the question is open as it was."""
        view = self._pile.view
        self._pile.take_back((session_id, shown))
        self._said = why
        self._follow(view)
        self.take_keys()

    def take_keys(self) -> None:
        """Have the keyboard, unless somebody is writing."""
        if self.is_open and not self._is_writing():
            self.focus()

    def _follow(self, before: View | None) -> None:
        """Show what is looked at now, if it is something else than before."""
        view = self._pile.view
        self.set_class(view is not None, "-open")
        if view is None:
            self._close_words()
            self._guard.hide()
            if before is not None:
                self.post_message(self.Emptied())
        elif view is not before:
            self._close_words()
            self.sheet.write(view.lines)
            self.draw()
            self.post_message(self.Moved())
        else:
            self._foot()

    def on_focus(self) -> None:
        """What was pressed before was for somebody else."""
        if self.is_open and not self.words.is_open:
            self.draw()

    def on_blur(self) -> None:
        """Say how to come back."""
        self._foot()

    def on_key(self, event: events.Key) -> None:
        """A key, for whatever is on the screen."""
        if not self.is_open or self.words.is_open:
            if event.key == "escape" and self.words.is_open:
                event.stop()
                self._close_words()
                self.focus()
            return
        view = self._pile.view
        known = {offer.key for offer in view.offers} if view else set()
        if event.key == "escape" and "escape" not in known:
            return  # the screen's: it stops the turn
        letter = event.character if event.is_printable and event.character else ""
        if not (letter or event.key in known or event.key in (*_SCROLL, *_WALK, "enter")):
            return
        event.stop()
        event.prevent_default()
        self._pressed(event.key, event.time, letter)

    def _pressed(self, key: str, at: float, letter: str) -> None:
        if not self._guard.lets(at, letter):
            self._say("That was quick: press it again" if letter and self._guard.is_drawn else "")
        elif (outcome := self._outcome(key)) is not None:
            self._do(outcome)
        elif not self._move(key):
            self._guard.slipped(at, letter)
        if text := self._guard.strayed():
            self._say("")
            self.post_message(self.Strayed(text))

    def _outcome(self, key: str) -> Outcome | None:
        """What the view makes of it; a yes has to wait until all of it was seen."""
        view = self._pile.view
        if view is None:
            return None
        offer = next((one for one in view.offers if one.key == key), None)
        if offer is not None and offer.whole and not self.sheet.seen:
            self._say("There is more below: press End, then the key again")
            return Redrawn(-1)
        return view.press(key)

    def _do(self, outcome: Outcome) -> None:
        view = self._pile.view
        match outcome:
            case Given():
                self._give(outcome)
            case Write(label, given):
                self.words.open(label, given)
                self._said = ""
                self._fit()
            case Preview(of):
                self._preview_rule(of)
            case Turn(to):
                self._pile.turn(to)
                self._said = ""
                self._follow(view)
            case Redrawn(line) if line >= 0:
                self.sheet.rewrite()
                self.sheet.reveal(line)
                self.call_after_refresh(self._look)

    def _give(self, given: Given) -> None:
        """Hand the answers on; each question has one."""
        view, self._said = self._pile.view, ""
        self._pile.put_aside(one for one, _answer in given.answers)
        for one, answer in given.answers:
            self.post_message(self.Answered(one.session_id, one, answer, given.mode))
        self._follow(view)

    @work(exclusive=True, group="preview")
    async def _preview_rule(self, of: Asked) -> None:
        view = self._pile.view
        self._say("looking at what the rule would have covered …")
        found: Sequence[str] = ()
        wrong = ""
        try:
            found = await self._preview(of)
        except AgentError as error:
            wrong = one_line(f"{error.message}. {error.hint}", 300)
        if not self.display:
            return  # its page was left meanwhile
        if wrong:
            self._say(wrong)
            return
        if view is None or self._pile.view is not view:
            return  # something else is looked at by now
        self._said = ""
        self._pile.turn(RuleView(of, found))
        self._follow(view)

    def _move(self, key: str) -> bool:
        """Scroll, or go to another question."""
        if key in _SCROLL:
            self.sheet.move(key)
            self._said = ""
            self.call_after_refresh(self._look)
            return True
        if key in _WALK:
            view, self._said = self._pile.view, ""
            self._pile.walk(_WALK[key])
            self._follow(view)
            return True
        return False

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Words, for the question that they were written for."""
        event.stop()
        given = self.words.given
        if given is None:
            return
        if not event.value.strip():
            self._say("Type a reason first; Esc goes back")
            return
        self.words.close()
        self.focus()
        self._give(given(event.value.strip()))

    def _close_words(self) -> None:
        if not self.words.is_open:
            return
        had = self.words.has_focus
        if said := self.words.close().strip():
            text = one_line(said, 300)
            self.app.notify(f"not sent: {text}", timeout=15, markup=False)
        if had and self.is_open:
            self.focus()
