"""The list of sessions: search, preview, rename, delete, and what each is doing.

When the backend reports a change the list is read again, and the highlight stays on its session.
Choosing a session only returns its id; the caller opens it.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import ClassVar, NamedTuple

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from bridle.errors import AgentError
from bridle.presentation.amounts import age
from bridle.protocols.session_values import SessionInfo
from bridle.tui.dialogs import ConfirmDialog, Dialog, TextField, TextInputDialog, TextView
from bridle.tui.render.safe_text import clean_line
from bridle.tui.session_backend import SessionList, display_state
from bridle.tui.timers import call_later
from bridle.usage import format_cost
from bridle.workspace.text import one_line

_SOON = 0.1  # seconds without another key
_WIDE = 90  # columns from which on there is room for a preview beside
_SIGNS = {"running": "●", "asks": "?", "parked": "?", "done": "✓", "failed": "✗"}
_TONES = {"running": "$accent", "asks": "$warning", "parked": "$warning", "failed": "$error"}
_STATES = {
    "running": "running",
    "asks": "needs an answer",
    "parked": "parked: needs an answer",
    "done": "done",
    "stopped": "stopped",
    "failed": "failed",
    "idle": "",
}


class SessionPicker(Dialog[str | None]):
    """A dialog that lists sessions; the id of the chosen one."""

    DEFAULT_CSS = """
    SessionPicker > Vertical { width: 96%; max-width: 140; height: 90%; }
    SessionPicker #halves { height: 1fr; margin: 1 0 0 0; }
    SessionPicker OptionList {
        width: 1fr; height: 1fr; border: none; padding: 0; background: transparent;
        scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    SessionPicker #preview { width: 1fr; height: 1fr; margin: 0 0 0 2; display: none; }
    SessionPicker #preview Static { height: auto; margin: 0 0 1 0; }
    SessionPicker #preview TextView { height: 1fr; }
    SessionPicker.-wide #preview, SessionPicker.-looking #preview { display: block; }
    SessionPicker.-looking OptionList { display: none; }
    SessionPicker.-looking.-wide OptionList { display: block; }
    SessionPicker.-looking #preview { margin: 0; }
    SessionPicker.-wide #preview { margin: 0 0 0 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        Binding("ctrl+r", "rename", show=False, priority=True),
        Binding("ctrl+d,delete", "delete", show=False, priority=True),
        Binding("tab", "look", show=False, priority=True),
    ]

    def __init__(
        self,
        sessions: SessionList,
        query: str = "",
        *,
        current: str = "",
        workspace: str = "",
        escape: str = "close",
    ) -> None:
        """`current` is the open session, `workspace` the folder that need not be named.

        `escape` is what Escape does, as a verb.
        """
        self._escape = escape
        super().__init__("Sessions", self._key_words(_WIDE))
        self._sessions = sessions
        self._query = query
        self._current = current
        self._workspace = workspace
        self._found: tuple[SessionInfo, ...] = ()
        self._list = OptionList(markup=False, compact=True)
        self._list.can_focus = False
        self._about = Static(markup=False)
        self._sheet = TextView(())
        self._sheet.can_focus = False
        self._previewed: SessionInfo | None = None
        self._looking_at = ""  # the session whose end is being fetched

    def compose(self) -> ComposeResult:
        with self._dress(Vertical()):
            yield TextField(self._query, placeholder="search titles", select_on_focus=False)
            with Horizontal(id="halves"):
                yield self._list
                yield Vertical(self._about, self._sheet, id="preview")

    def on_mount(self) -> None:
        self._refresh()
        self.run_worker(self._listen(), group="news")

    def on_resize(self, event: events.Resize) -> None:
        """Show a preview beside the list if there is room."""
        self.set_class(event.size.width >= _WIDE, "-wide")
        self.query_one(Vertical).border_subtitle = Content(self._key_words(event.size.width))
        self._previewed = None
        self._look_soon()

    async def _listen(self) -> None:
        try:
            async with aclosing(self._sessions.news()) as news:
                async for _ in news:
                    self._refresh()
        except AgentError:
            return  # the list stays as it is; it is asked for anew when it is opened again

    @work(group="asking", exclusive=True)
    async def _refresh(self) -> None:
        try:
            found = await self._sessions.sessions(self._query)
        except AgentError as error:
            self.app.notify(clean_line(error.message), severity="error", markup=False)
            return
        self._show(found)

    def _show(self, found: tuple[SessionInfo, ...]) -> None:
        kept = one.id if (one := self.highlighted) is not None else self._current
        self._found = found
        now = datetime.now(UTC)
        here = self._workspace
        rows = [self._row(one, now, here) for one in found]
        empty = "No session matches." if self._query else "There are no sessions yet."
        self._list.set_options(rows or [Option(Content(empty), disabled=True)])
        places = {one.id: at for at, one in enumerate(found)}
        self._list.highlighted = places.get(kept, 0) if found else None
        self._look_soon()

    def _row(self, one: SessionInfo, now: datetime, here: str) -> Option:
        line = session_row(one, now, here)
        mine = one.id == self._current
        rest = f"current · {line.rest}" if mine else line.rest
        return Option(
            Content.assemble(
                (f"{line.sign} ", line.tone), line.title, (f"  {rest}", "$foreground 60%")
            )
        )

    @property
    def highlighted(self) -> SessionInfo | None:
        """The session under the highlight."""
        at = self._list.highlighted
        return None if at is None or at >= len(self._found) else self._found[at]

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self._query:
            self._query = event.value
            call_later(_SOON, self, self._refresh)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._look_soon()

    def _look_soon(self) -> None:
        """Show the end of the highlighted session, unless it is shown or being fetched already.

        Sessions that stream change several times a second: a preview that started again each
        time would never be finished.
        """
        one = self.highlighted
        name = one.id if one is not None else ""
        seen = self.has_class("-wide") or self.has_class("-looking")
        if seen and one != self._previewed and (not name or name != self._looking_at):
            self._looking_at = name
            self._look(one)

    @work(group="looking", exclusive=True)
    async def _look(self, one: SessionInfo | None) -> None:
        try:
            await asyncio.sleep(_SOON)  # until the highlight rests
            lines = [] if one is None else await self._end_of(one)
        finally:
            if one is None or self._looking_at == one.id:
                self._looking_at = ""
        if one is None:
            self._about.update("")
        else:
            title = clean_line(one.title) or "(no title)"
            rows = "\n".join(row for row, _ in session_facts(one, datetime.now(UTC)))
            self._about.update(Content.assemble((title, "bold"), "\n", (rows, "$secondary")))
        self._sheet.show([(line, "") for line in lines], at_end=True)
        self._previewed = one

    async def _end_of(self, one: SessionInfo) -> list[str]:
        try:
            return (await self._sessions.preview(one.id)).split("\n")
        except AgentError as error:
            return [error.message]

    def action_look(self) -> None:
        """Show the preview instead of the list, if there is no room for both."""
        self.toggle_class("-looking")
        self._look_soon()

    def action_move(self, by: int) -> None:
        """Move the highlight up or down."""
        if self._found:
            at = (self._list.highlighted or 0) + by
            last = len(self._found) - 1
            self._list.highlighted = at % (last + 1) if abs(by) == 1 else min(max(at, 0), last)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the highlighted session."""
        event.stop()
        if (one := self.highlighted) is not None:
            self.dismiss(one.id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the session that was clicked."""
        event.stop()
        if event.option_index < len(self._found):
            self.dismiss(self._found[event.option_index].id)

    def _key_words(self, width: int) -> str:
        if width < _WIDE:
            return f"Enter open · ^R rename · ^D delete · Tab preview · Esc {self._escape}"
        return f"Enter to open · Ctrl+R to rename · Ctrl+D to delete · Esc to {self._escape}"

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_rename(self) -> None:
        """Ask for another title."""
        if (one := self.highlighted) is not None:
            self.run_worker(self._rename(one), group="verbs")

    async def _rename(self, one: SessionInfo) -> None:
        title = await self.app.push_screen_wait(TextInputDialog("Rename session", one.title))
        if title and title.strip() and title != one.title:
            try:
                await self._sessions.rename(one.id, title.strip())
            except AgentError as error:
                self._complain(error)
            self._refresh()

    def action_delete(self) -> None:
        """Delete the highlighted session, after asking."""
        if (one := self.highlighted) is not None:
            self.run_worker(self._delete(one), group="verbs")

    async def _delete(self, one: SessionInfo) -> None:
        title = clean_line(one.title, 80) or one.id
        said = f"“{title}” and everything in it will be deleted permanently."
        if await self.app.push_screen_wait(ConfirmDialog("Delete session?", said, danger=True)):
            try:
                await self._sessions.delete(one.id)
            except AgentError as error:
                self._complain(error)
            self._refresh()

    def _complain(self, error: AgentError) -> None:
        said = clean_line(f"{error.message}. {error.hint}".rstrip(" ."), 300)
        self.app.notify(said, severity="error", markup=False)


class SessionRow(NamedTuple):
    """A session as a line: a sign, its colour, the title, the rest."""

    sign: str
    tone: str
    title: str
    rest: str


def session_row(one: SessionInfo, now: datetime, here: str = "") -> SessionRow:
    """Return a session as a line; `here` is the current folder, which is not named."""
    state = display_state(one)
    state = state if state in _STATES else "idle"
    pieces = [_state(one, state), age(one.updated_at, now)]
    if one.workspace and one.workspace != here:
        pieces.append(one_line(one.workspace.rstrip("/").rpartition("/")[2], 24))
    if one.holder and one.holder != "here":
        pieces.append(f"in {one_line(one.holder, 30)}")
    title = one_line(one.title, 120) or "(no title)"
    rest = " · ".join(piece for piece in pieces if piece)
    return SessionRow(_SIGNS.get(state, "·"), _TONES.get(state, "$foreground 60%"), title, rest)


def _state(one: SessionInfo, state: str) -> str:
    if state == "asks" and one.waiting > 1:
        return f"needs {one.waiting} answers"
    return _STATES[state]


def session_facts(one: SessionInfo, now: datetime) -> list[tuple[str, str]]:
    """Return the head of the preview: what the line has no room for."""
    rows = [
        ("id", one.id),
        ("folder", one.workspace),
        ("model", one.model),
        ("agent", one.agent if one.agent != "loop" else ""),
        ("cost", format_cost(one.cost, unpriced=one.unpriced).removeprefix("cost ")),
        ("changed", age(one.updated_at, now)),
        ("open in", one.holder if one.holder != "here" else "this window"),
        ("part of", one.parent),
    ]
    return [(f"{name:8} {one_line(said, 200)}", "muted") for name, said in rows if said]
