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
from bridle.tui.house import Asked, House
from bridle.tui.model.approval_queue import key_of
from bridle.tui.widgets.approval_panel import ApprovalPanel
from bridle.workspace.text import one_line, quantity

_ROWS = 5  # questions that the list shows at once


def tray_words(others: Sequence[Asked], width: int) -> str:
    """One line on what waits elsewhere; empty where nothing does."""
    if not others:
        return ""
    count = len(others)
    head = f"{quantity(count, 'approval')} needed"
    names = dict.fromkeys(one_line(one.title or one.session_id, 30) for one in others)
    line = f"{head} in other sessions (F3): {', '.join(names)}"
    return one_line(line, max(10, width))


def row_words(one: Asked) -> str:
    """A question as a row: whose it is, the tool, what it is about."""
    call = one.asked.call
    who = one_line(one.title or one.session_id, 30)
    return f"{who} · {one_line(call.name, 30)} · {one_line(call_subject(call), 120)}"


class Tray(Static):
    """The line; gone where nothing waits elsewhere."""

    DEFAULT_CSS = """
    Tray { display: none; height: 1; padding: 0 1; color: $text-warning; }
    Tray.-some { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.others: tuple[Asked, ...] = ()

    def tell(self, others: Sequence[Asked]) -> None:
        """These wait in other sessions."""
        self.others = tuple(others)
        self.set_class(bool(others), "-some")
        self._fit()

    def on_resize(self) -> None:
        """As much as there is room for."""
        self._fit()

    def _fit(self) -> None:
        width = (self.size.width or self.app.size.width) - 2
        self.update(tray_words(self.others, width))


class TrayPage(ModalScreen[None]):
    """Every question that waits, and the panel to answer them in."""

    DEFAULT_CSS = """
    TrayPage { align: left top; background: $background; }
    TrayPage > #tray-list { height: auto; max-height: 8; padding: 0 1; }
    TrayPage > #tray-none { height: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f3", "leave", "back", show=False),
        Binding("ctrl+c", "copy_or_leave", show=False, priority=True),
    ]

    def __init__(self, house: House) -> None:
        super().__init__()
        self._house = house
        self._all: tuple[Asked, ...] = ()
        self.panel = ApprovalPanel(
            lambda one: house.preview_rule(one.session_id, one.asked),
            lambda one: house.current(one.asked),
        )
        self.panel.beside = lambda: 2 + min(_ROWS, len(self.panel.waiting))

    def compose(self) -> ComposeResult:
        """The list, the question."""
        yield Static(id="tray-list", markup=False)
        yield Static(id="tray-none", markup=False)
        yield self.panel

    def on_mount(self) -> None:
        """Look, and go on looking."""
        self._refresh()
        self._watch()

    @work(exclusive=True, group="tray-watch")
    async def _watch(self) -> None:
        try:
            async for _ in self._house.news():
                self._refresh()
        except AgentError:
            return  # what is shown stays, and F3 looks again

    @work(exclusive=True, group="tray-look")
    async def _refresh(self) -> None:
        said = ""
        try:
            self._all = await self._house.pending()
        except AgentError as error:
            said = one_line(error.message, 300)
        if not self.display:
            return  # it was left meanwhile
        if said:
            self.query_one("#tray-none", Static).update(said)
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
            text = one_line(row_words(one), width)
            rows.append(Content.styled(f"{'›' if here else ' '} {text}", "bold" if here else ""))
        self.query_one("#tray-list", Static).update(Content("\n").join(rows))
        nothing = "" if waiting else "No session needs approval."
        self.query_one("#tray-none", Static).update(nothing)

    def on_approval_panel_moved(self) -> None:
        """Another question is looked at."""
        self._list()

    def on_approval_panel_emptied(self) -> None:
        """Everything is answered."""
        self._list()

    def on_approval_panel_answered(self, event: ApprovalPanel.Answered) -> None:
        """Hand it on."""
        event.stop()
        self._answer(event)

    @work
    async def _answer(self, event: ApprovalPanel.Answered) -> None:
        await deliver(self._house, self.panel, event)
        self._refresh()

    def action_copy_or_leave(self) -> None:
        """Copy marked text if there is any; otherwise do what Escape does."""
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.app.simulate_key("escape")

    def action_leave(self) -> None:
        """Back to where one was."""
        self.dismiss()


async def deliver(house: House, panel: ApprovalPanel, event: ApprovalPanel.Answered) -> bool:
    """Give the answer to its session; one that could not be given leaves its question open."""
    try:
        await house.answer(event.session_id, event.asked, event.answer)
    except AgentError as error:
        words = one_line(f"{error.message}. {error.hint}", 300)
        if error.retryable and panel.children:  # none: its page was left meanwhile
            panel.take_back(event.session_id, event.asked.shown, words)
        else:
            panel.app.notify(words, timeout=8, markup=False, severity="warning")
        return False
    return True
