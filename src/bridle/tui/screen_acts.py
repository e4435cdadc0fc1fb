"""What the keys of the main screen do: the session's verbs, and moves of the view."""

from time import monotonic
from typing import TYPE_CHECKING

from textual import events

from bridle.errors import AgentError
from bridle.tui.keys import help_lines
from bridle.tui.render.safe_text import clean

if TYPE_CHECKING:
    from textual.screen import Screen

    from bridle.policy import Mode
    from bridle.tui.house import House
    from bridle.tui.model.prompt_queue import Carrying
    from bridle.tui.widgets.approval_area import ApprovalArea
    from bridle.tui.widgets.composer import Composer
    from bridle.tui.widgets.conversation import Conversation
    from bridle.tui.widgets.status import Bar, Side

    _Base = Screen[None]
else:
    _Base = object  # the screen itself is one: Textual takes its time over each class of its own

AGAIN = 2.0  # seconds within which a second Ctrl-C leaves
_NEXT: "dict[str, Mode]" = {"ask": "edits", "edits": "plan", "plan": "ask", "auto": "ask"}


class Acts(_Base):
    """The actions; what they act on is made by the screen."""

    house: "House | None"
    carrying: "Carrying | None"
    conversation: "Conversation"
    composer: "Composer"
    approvals: "ApprovalArea"  # there once the screen is whole
    side: "Side"
    bar: "Bar"
    _asked_to_leave = float("-inf")
    _is_stopping = False  # it was asked for, and is not over
    _thoughts_open = False
    is_whole = False  # is there also what the first picture does not show?

    def tell(self, text: str, tone: str = "dim", mark: str = "·") -> None:
        """A line to the person, in the conversation."""
        raise NotImplementedError

    def draw_soon(self) -> None:
        """Something changed."""
        raise NotImplementedError

    def complain(self, error: AgentError) -> None:
        """What went wrong, and what can be done."""
        hint = f" → {error.hint}" if error.hint else ""
        self.tell(f"{error.message}{hint}", "bad", "!")

    def action_stop(self) -> None:
        """Stop the running turn."""
        if self.carrying is None or self._is_stopping:
            return
        session = self.carrying.session
        if session.is_busy or session.is_parked:
            self._is_stopping = True
            self.run_worker(self._stop(self.carrying), group="verbs")
            self.draw_soon()

    async def _stop(self, carrying: "Carrying") -> None:
        try:
            await carrying.stop()
        except AgentError as error:
            self.complain(error)
        finally:
            self._is_stopping = False
        self.draw_soon()

    def action_leave(self) -> None:
        """Copy what is marked, else stop the turn, else clear what is typed, else leave.

        Words that are being written to a question are given up first. To leave it has to be
        pressed twice, so that a habit of pressing it ends no work.
        """
        if self._copy_marked():
            return
        if self.is_whole and self.approvals.panel.note.is_open:
            self.app.simulate_key("escape")
            return
        is_busy = self.carrying is not None and self.carrying.session.is_busy
        if is_busy and not self._is_stopping:
            self.action_stop()
            return
        if self.composer.text:
            self.composer.clear()
            self.bar.say("Ctrl+Y brings it back")
            return
        if monotonic() - self._asked_to_leave <= AGAIN:
            self.leave()
            return
        self._asked_to_leave = monotonic()
        self.bar.say("Ctrl-C again leaves", AGAIN)

    def action_leave_empty(self) -> None:
        """Ctrl-D leaves where nothing is typed, and deletes a character where something is."""
        if not self.composer.text:
            self.leave()
        elif (lines := self.app.focused) is not None and hasattr(lines, "action_delete_right"):
            lines.action_delete_right()

    def leave(self) -> None:
        """End; what is typed is kept for the next time."""
        self.keep_typed()
        self.app.exit(0)

    def keep_typed(self) -> None:
        """What was written and not sent, for the next time in this session."""
        self.give_back_held()
        self.composer.keep_draft()

    def give_back_held(self) -> None:
        """What was held back goes into the composer, and so into this session's draft."""
        if self.carrying is not None and self.carrying.held:
            self.composer.give_back("\n".join(self.carrying.held))
            self.carrying.held.clear()

    def _copy_marked(self) -> bool:
        marked = self.get_selected_text() or getattr(self.app.focused, "selected_text", "")
        if not marked:
            return False
        self.app.copy_to_clipboard(clean(marked))
        self.clear_selection()
        self.bar.say("copied")
        return True

    def action_repaint(self) -> None:
        """Draw everything anew: another program may have written on the terminal."""
        if (driver := self.app._driver) is not None:
            driver.write("\x1b[2J")
        self.refresh(layout=True)

    def action_suspend(self) -> None:
        """Give the terminal back to the shell, until `fg`."""
        from bridle.tui.terminal import has_shell, stop_job

        if self.app.is_headless or not has_shell():
            self.bar.say("no shell with job control started bridle, so it cannot be suspended")
            return
        with self.app.suspend():
            stop_job()

    def action_keys(self) -> None:
        """All keys."""
        from bridle.tui.dialogs import TextPage

        lines = [(f"{key:<24}{meaning}".rstrip(), "") for key, meaning in help_lines()]
        self.app.push_screen(TextPage("Keys", lines))

    def action_side(self) -> None:
        """Show or hide the side panel. What the width gives by itself is no lasting choice."""
        shown, wide = self.side.display, self.has_class("-wide")
        self.set_class(not shown and not wide, "-side")
        self.set_class(shown and wide, "-no-side")
        self.call_after_refresh(self.draw_soon)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A question that is looked at has these keys for itself."""
        asks = self.is_whole and self.approvals.panel.has_focus
        return not (action in ("page", "mode") and asks)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """What was pressed over there answers nothing here."""
        if self.is_whole:
            self.approvals.panel.draw()
        else:
            event.refresh_styles = False  # everything was styled a moment ago

    def action_tray(self) -> None:
        """The questions of all sessions."""
        self.approvals.open_tray()

    def action_answer(self) -> None:
        """To the question, and back to the composer."""
        self.approvals.switch(self.composer.focus)

    def action_copy(self) -> None:
        """The last answer, or a piece of it."""
        self.run_worker(self._copy_answer(), group="copying", exclusive=True)

    async def _copy_answer(self) -> None:
        from bridle.presentation.blocks import Reply
        from bridle.tui.clipboard import copy_piece

        blocks = self.conversation.fold.blocks
        said = [one.text for one in blocks if isinstance(one, Reply) and not one.discarded]
        if words := await copy_piece(self.app, said[-1] if said else ""):
            self.bar.say(words)

    def action_mode(self) -> None:
        """The next mode. The person presses the key, so that leaving a plan passes the person."""
        if self.house is not None:
            self.run_worker(self._change_mode(_NEXT.get(self.house.mode, "ask")), group="verbs")

    async def _change_mode(self, mode: "Mode") -> None:
        if self.house is None:
            return
        try:
            await self.house.change_mode(mode)
        except AgentError as error:
            self.complain(error)
        self.draw_soon()

    def action_unfold(self) -> None:
        """Unfold the chosen block, or the newest call."""
        self.conversation.action_unfold()

    def action_choose(self, step: int) -> None:
        """Another block."""
        self.conversation.action_choose(step)

    def action_thoughts(self) -> None:
        """All thoughts, whole or as one line each."""
        from bridle.presentation.blocks import Thought

        self._thoughts_open = not self._thoughts_open
        blocks = self.conversation.fold.blocks
        thoughts = {place for place, one in enumerate(blocks) if isinstance(one, Thought)}
        self.conversation.unfold(thoughts, self._thoughts_open)

    def action_page(self, step: int) -> None:
        """Scroll the conversation."""
        height = max(1, self.conversation.size.height - 2)
        self.conversation.scroll_relative(y=step * height, animate=False, force=True)

    def action_first(self) -> None:
        """To the beginning."""
        self.run_worker(self._go_to_beginning(), group="beginning", exclusive=True)

    async def _go_to_beginning(self) -> None:
        await self.conversation.go_to_beginning(
            lambda left: self.bar.say(f"going to the beginning … {left:,}" if left else "")
        )

    def action_last(self) -> None:
        """To the end."""
        self.conversation.action_last()

    def action_take_back(self) -> None:
        """A prompt that waits comes back into the composer."""
        if self.carrying is not None:
            self.run_worker(self._take_back(self.carrying), group="verbs")

    async def _take_back(self, carrying: "Carrying") -> None:
        try:
            if text := await carrying.take_back():
                self.composer.give_back(text)
        except AgentError as error:
            self.complain(error)
        self.draw_soon()

    def action_release(self) -> None:
        """The oldest prompt that was held back is sent."""
        if self.carrying is not None:
            self.run_worker(self._release(self.carrying), group="verbs")

    async def _release(self, carrying: "Carrying") -> None:
        try:
            await carrying.release()
        except AgentError as error:
            self.complain(error)
        self.draw_soon()
