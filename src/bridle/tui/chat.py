"""The main screen: conversation, questions, composer, side panel, bar; and the keys between them.

The house is opened after the first picture; a prompt that is sent before waits for it. What is
shown comes from records: nothing stands there as done before its record came.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets._toast import ToastRack
from textual.worker import Worker

from bridle.errors import AgentError
from bridle.tui.composer_screen import Commanding
from bridle.tui.keys import KEYS
from bridle.tui.model.status_bar import Facts
from bridle.tui.render.palette import Palette
from bridle.tui.screen_frames import Frames
from bridle.tui.timers import after
from bridle.tui.widgets.composer import Composer, Sent
from bridle.tui.widgets.conversation import Conversation
from bridle.tui.widgets.status import Bar, Side, Working

if TYPE_CHECKING:
    from bridle.events import Event
    from bridle.presentation.blocks import Notice
    from bridle.presentation.fold import Fold
    from bridle.tui.house import House
    from bridle.tui.model.onboarding import Preface
    from bridle.tui.model.prompt_queue import Carrying
    from bridle.tui.screen_following import Following

_SIDE = 100  # columns from which on the side panel is shown
_LATER = 0.2  # seconds
_LEAST = (24, 7)  # columns and rows that something can be shown in


class ChatScreen(Commanding, Screen[None]):
    """One conversation at a time."""

    DEFAULT_CSS = """
    ChatScreen { layout: vertical; }
    ChatScreen #middle { height: 1fr; }
    ChatScreen #left { width: 1fr; height: 1fr; }
    ChatScreen #small { display: none; width: 1fr; height: 1fr; padding: 0 1; }
    ChatScreen Side { display: none; }
    ChatScreen.-wide Side, ChatScreen.-side Side { display: block; }
    ChatScreen.-no-side Side { display: none; }
    ChatScreen.-small #middle, ChatScreen.-small Bar { display: none; }
    ChatScreen.-small #small { display: block; }
    """
    AUTO_FOCUS = "Lines"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(one.key, one.action, one.meaning, show=False, priority=one.first) for one in KEYS
    ]

    def __init__(self, opening: "Callable[[], House]", palette: Palette) -> None:
        super().__init__()
        self.house: House | None = None
        self.carrying: Carrying | None = None
        self.following: Following | None = None
        self.preface: Callable[[], Preface] | None = None  # what is asked before that
        self._opening = opening
        self._open = asyncio.Event()
        self._order = asyncio.Lock()
        self._frames = Frames()
        self._hurried = False
        self._told_early: list[Notice] = []  # before the session was on the screen
        self._drawing: asyncio.TimerHandle | None = None
        self._watch: Worker[None] | None = None
        self._parts(palette)

    def _parts(self, palette: Palette) -> None:
        self.conversation = Conversation(palette)
        self.working = Working(palette)
        self.side = Side(palette)
        self.bar = Bar(palette)
        self.composer = self.make_composer()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield self.conversation
                yield self.composer
            if self.app.size.width >= _SIDE:
                yield self.side
        yield self.bar

    def hurry(self) -> None:
        """A key was pressed: what it changes is drawn at once, and not with the next frame."""
        self._hurried = True

    async def _on_idle(self, event: events.Idle) -> None:
        if self._hurried and self.focused in self._dirty_widgets and self.is_current:
            self._hurried = False
            self._on_timer_update()

    def _extend_compose(self, widgets: list[Widget]) -> None:
        """What Textual puts on every screen comes later, see `_painted`."""

    def on_mount(self) -> None:
        """The composer can be typed into at once; the rest follows."""
        self.composer.focus()
        self.call_after_refresh(self._painted)

    def on_resize(self, event: events.Resize) -> None:
        """What there is room for."""
        width, height = event.size
        self.set_class(width >= _SIDE, "-wide")
        self.call_after_refresh(self.draw_soon)  # the side panel may be there from now on
        was_small = self.has_class("-small")
        is_small = width < _LEAST[0] or height < _LEAST[1]
        self.set_class(is_small, "-small")
        if is_small and not self.query("#small"):
            words = "This window is too small for bridle: make it larger."
            self.mount(Static(words, id="small"))
        if was_small and not self.has_class("-small"):
            self.call_after_refresh(self._come_back)

    def _come_back(self) -> None:
        """What was hidden can be typed into again."""
        if self.app.focused is None:
            self.composer.focus()

    def repaint(self, palette: Palette) -> None:
        """In other colours."""
        for part in (self.working, self.side, self.bar):
            part.palette = palette
            part.refresh()
        self.conversation.repaint(palette)

    @property
    def is_ready(self) -> bool:
        """Is the house open, and what was written before on the screen?"""
        return self._open.is_set() and self.following is not None and self.following.is_live

    async def _painted(self) -> None:
        """The first picture stands: what it did not need comes, keys are taken, the house opens."""
        from bridle.tui.widgets.approval_area import ApprovalArea

        self.approvals = ApprovalArea(lambda: bool(self.composer.text), self._write_on)
        left = self.query_one("#left")
        with self.app.batch_update():
            left.mount(self.working, before=self.composer)
            await left.mount(self.approvals, before=self.composer)
            if not self.side.is_attached:
                self.query_one("#middle").mount(self.side)
            await self.mount(ToastRack(id="textual-toastrack"), before=0)
        self.is_whole = True
        await self.app.take_keys()  # type: ignore[attr-defined]
        self.run_worker(self._enter(), group="house")

    async def _enter(self) -> None:
        """Open the house; what is typed meanwhile stays."""
        try:
            if self.preface is not None and not await self.introduce(self.preface()):
                self.app.exit(0)
                return
            house = await asyncio.to_thread(self._opening)
            await house.enter()
        except AgentError as error:
            self.app.fail(error)  # type: ignore[attr-defined]
            return
        self.house = house
        await self.rejoin()
        self._open.set()
        with suppress(Exception):  # a help, and its absence no news
            await asyncio.to_thread(self.conversation.warm)
        await self.settle_in()

    async def rejoin(self) -> None:
        """Watch the session that the house is in now: it was opened, or changed."""
        from bridle.tui.model.prompt_queue import Carrying
        from bridle.tui.screen_following import Following

        house = self.house
        if house is None:
            return
        if self._watch is not None:
            self._watch.cancel()
        self.give_back_held()
        self.carrying = Carrying(house.session)
        is_typed = bool(self.composer.whole) and not self._open.is_set()
        self.composer.enter_session(house.session.id, keep_text=is_typed)
        self.following = Following(
            house.session, house.began, self._shown, self.draw_soon, self.heard
        )
        self.following.fold.state.me = house.me
        self._watch = self.run_worker(self._follow(self.following), group="watch")
        self.approvals.begin(house)
        if house.session.is_parked:
            self.run_worker(self._go_on(), group="verbs")
        self.draw_soon()

    async def _follow(self, following: "Following") -> None:
        """Until the session is left; one that cannot be followed any more is told."""
        try:
            await following.run()
        except AgentError as error:
            self.complain(error)

    async def _go_on(self) -> None:
        """A turn that was left waiting for answers goes on: its questions come up."""
        try:
            if self.house is not None:
                await self.house.session.resume()
        except AgentError as error:
            self.complain(error)

    def _shown(self, fold: "Fold") -> None:
        """What was there before is folded."""
        for notice in self._told_early:
            fold.add_notice(notice)
        self._told_early.clear()
        self.conversation.show(fold)
        self.draw_soon()

    def heard(self, event: "Event") -> None:
        """A record came while we watch."""
        from bridle.events import PromptReceived, TurnEnded

        self.approvals.apply(event)
        if isinstance(event, TurnEnded | PromptReceived):
            self.look_at_files()

    def on_app_focus(self) -> None:
        """Somebody comes back, perhaps from another window in which they committed."""
        self.look_at_files()

    def look_at_files(self) -> None:
        """The side panel lists files as long as there is something to look at in them."""
        house = self.house
        if house is not None and not house.place.server and self.conversation.fold.state.files:
            self.run_worker(self._look_at_files(house.place.workspace), group="files")

    async def _look_at_files(self, workspace: str) -> None:
        await asyncio.to_thread(self.conversation.fold.state.forget_files, workspace)
        self.draw_soon()

    def draw_soon(self) -> None:
        """Something changed: it is drawn with the next frame."""
        if self._drawing is None and self.is_attached:
            self._drawing = after(self._frames.wait(), self, self._draw)

    def _draw(self) -> None:
        began = perf_counter()
        self._drawing = None
        self.conversation.refresh_blocks()
        self._tell_around()
        self._frames.drawn(began)

    def _tell_around(self) -> None:
        """Bar, panel, composer and the line above it."""
        house, carrying = self.house, self.carrying
        if house is None or carrying is None:
            return
        state = self.conversation.fold.state
        busy = house.session.is_busy
        if busy and not state.busy:
            after(_LATER, self, self.draw_soon)  # its end was told before it was over
        self.composer.is_busy = busy
        waiting = state.waiting.values()
        self.working.tell(
            self._word(busy, carrying),
            steering=tuple(one.content for one in waiting if one.when == "next_step"),
            queued=tuple(one.content for one in waiting if one.when != "next_step"),
            held=tuple(carrying.held),
        )
        self.approvals.set_title(self._word(busy, carrying), house.session.title)
        if self.side.display:
            self.side.tell(state, house.window)
        place = house.place
        self.bar.tell(
            Facts(
                mode=house.mode,
                then=self.approvals.next_mode or "",
                model=house.model,
                agent=house.agent,
                workspace=place.workspace,
                branch=place.branch,
                sandbox=place.sandbox,
                server=place.server,
            )
        )

    def _word(self, busy: bool, carrying: "Carrying") -> str:
        state = self.conversation.fold.state
        if carrying.stopping:
            return "stopping"
        if state.asked:
            return "waiting for your answer"
        return "working" if busy else ""

    def tell(self, text: str, tone: str = "dim", mark: str = "·") -> None:
        """A line to the person, in the conversation."""
        from bridle.presentation.blocks import Notice

        notice = Notice(text, mark, tone)  # type: ignore[arg-type]
        if self.following is None or not self.following.is_live:
            self._told_early.append(notice)
        self.conversation.fold.add_notice(notice)
        self.draw_soon()

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """A prompt: it is sent once the house is open."""
        event.stop()
        self.conversation.action_last()
        self.run_worker(self._take(event.text, event.when), group="sending")
        self.call_after_refresh(self.approvals.panel.take_keys)

    def on_key(self, event: events.Key) -> None:
        """A letter that nobody took is meant for the composer."""
        if event.is_printable and event.character:
            event.stop()
            self._write_on(event.character)

    def on_approval_panel_emptied(self) -> None:
        """Nothing is asked any more: on with the writing."""
        self.composer.focus()

    def _write_on(self, letters: str) -> None:
        """Letters that were meant for the composer when a question came up."""
        self.composer.insert(letters)
        self.composer.focus()

    def on_unmount(self) -> None:
        """The window has its own title again."""
        if self.is_whole:
            self.approvals.restore_title()

    async def _take(self, text: str, when: Sent) -> None:
        """In the order in which it was typed: a prompt behind `/new` or `/mode` is for what holds
        once that was done."""
        from bridle.presentation.commands import command_line, is_loose

        line = command_line(text, self.own())
        if line and is_loose(line):
            await self._open.wait()
            await self.obey(line)
            return
        async with self._order:  # first: whoever has waited longer comes first
            await self._open.wait()
            line = command_line(text, self.own())  # one's own commands are known from now on
            if line:
                await self.obey(line)
            else:
                await self.send(text, when)

    async def send(self, text: str, when: Sent) -> None:
        """A prompt; what cannot be sent goes back into the composer."""
        if self.carrying is None:
            return
        try:
            await self.carrying.send(text, when)
        except AgentError as error:
            self.composer.give_back(text)
            self.complain(error)
        self.draw_soon()
