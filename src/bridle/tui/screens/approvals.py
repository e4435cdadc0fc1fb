"""The approvals of other sessions: a line that says so anywhere, and a page of all.

The page lists every request that needs an answer, in any session; each can be answered there.
"""

from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bridle.errors import AgentError
from bridle.presentation.calls import call_subject
from bridle.tui.model.approval_queue import key_of
from bridle.tui.session_backend import Asked, SessionBackend
from bridle.tui.widgets.approval_panel import ApprovalPanel
from bridle.workspace.text import one_line, quantity

_ROWS = 5  # approvals that the list shows at once


def pending_text(others: Sequence[Asked], width: int) -> str:
    """Return one line on the approvals of other sessions; empty if there are none."""
    if not others:
        return ""
    count = len(others)
    head = f"{quantity(count, 'approval')} needed"
    names = dict.fromkeys(one_line(one.title or one.session_id, 30) for one in others)
    line = f"{head} in other sessions (F3): {', '.join(names)}"
    return one_line(line, max(10, width))


def approval_row(one: Asked) -> str:
    """Return an approval as a row: session, tool and subject of the call."""
    call = one.asked.call
    who = one_line(one.title or one.session_id, 30)
    return f"{who} · {one_line(call.name, 30)} · {one_line(call_subject(call), 120)}"


class PendingApprovals(Static):
    """The line on approvals of other sessions; hidden if there are none."""

    DEFAULT_CSS = """
    PendingApprovals { display: none; height: 1; padding: 0 1; color: $text-warning; }
    PendingApprovals.-some { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.others: tuple[Asked, ...] = ()

    def tell(self, others: Sequence[Asked]) -> None:
        """Show these."""
        self.others = tuple(others)
        self.set_class(bool(others), "-some")
        self._fit()

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        width = (self.size.width or self.app.size.width) - 2
        self.update(pending_text(self.others, width))


class ApprovalsScreen(ModalScreen[None]):
    """A list of all pending approvals, and the panel to answer them."""

    DEFAULT_CSS = """
    ApprovalsScreen { align: left top; background: $background; }
    ApprovalsScreen > #approvals-list { height: auto; max-height: 8; padding: 0 1; }
    ApprovalsScreen > #no-approvals { height: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f3", "leave", "back", show=False),
        Binding("ctrl+c", "copy_or_leave", show=False, priority=True),
    ]

    def __init__(self, backend: SessionBackend) -> None:
        super().__init__()
        self._backend = backend
        self._all: tuple[Asked, ...] = ()
        self.panel = ApprovalPanel(
            lambda one: backend.preview_rule(one.session_id, one.asked),
            lambda one: backend.current(one.asked),
        )
        self.panel.beside = lambda: 2 + min(_ROWS, len(self.panel.waiting))

    def compose(self) -> ComposeResult:
        yield Static(id="approvals-list", markup=False)
        yield Static(id="no-approvals", markup=False)
        yield self.panel

    def on_mount(self) -> None:
        self._refresh()
        self._watch()

    @work(exclusive=True, group="approvals-watch")
    async def _watch(self) -> None:
        try:
            async for _ in self._backend.news():
                self._refresh()
        except AgentError:
            return  # what is shown stays, and F3 looks again

    @work(exclusive=True, group="approvals-look")
    async def _refresh(self) -> None:
        said = ""
        try:
            self._all = await self._backend.pending()
        except AgentError as error:
            said = one_line(error.message, 300)
        if not self.display:
            return  # it was left meanwhile
        if said:
            self.query_one("#no-approvals", Static).update(said)
            return
        self.panel.show(self._all)
        self._list()

    def _list(self) -> None:
        waiting, current = self.panel.waiting, self.panel.current
        at = next((at for at, one in enumerate(waiting) if one is current), 0)
        first = max(0, min(at - _ROWS // 2, len(waiting) - _ROWS))
        rows = [Content.styled("Needs your approval · Tab next · Esc back", "bold")]
        width = max(10, self.app.size.width - 4)
        for one in waiting[first : first + _ROWS]:
            here = current is not None and key_of(one) == key_of(current)
            text = one_line(approval_row(one), width)
            rows.append(Content.styled(f"{'›' if here else ' '} {text}", "bold" if here else ""))
        self.query_one("#approvals-list", Static).update(Content("\n").join(rows))
        nothing = "" if waiting else "No session needs approval."
        self.query_one("#no-approvals", Static).update(nothing)

    def on_approval_panel_moved(self) -> None:
        self._list()

    def on_approval_panel_emptied(self) -> None:
        self._list()

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        event.stop()
        self._answer(event)

    @work
    async def _answer(self, event: ApprovalPanel.Answered) -> None:
        await send_answer(self._backend, self.panel, event)
        self._refresh()

    def action_copy_or_leave(self) -> None:
        """Copy marked text if there is any; otherwise do what Escape does."""
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.app.simulate_key("escape")

    def action_leave(self) -> None:
        self.dismiss()


async def send_answer(
    backend: SessionBackend, panel: ApprovalPanel, event: ApprovalPanel.Answered
) -> bool:
    """Send the answer to its session; return False if that failed and it is still needed."""
    try:
        await backend.answer(event.session_id, event.asked, event.answer)
    except AgentError as error:
        words = one_line(f"{error.message}. {error.hint}", 300)
        if error.retryable and panel.children:  # none: its page was left meanwhile
            panel.take_back(event.session_id, event.asked.shown, words)
        else:
            panel.app.notify(words, timeout=8, markup=False, severity="warning")
        return False
    return True
