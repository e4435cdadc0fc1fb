"""What can be done with a session besides talking to it: names, settings, grants, going back.

The larger half of a session's verbs, but for the three that everything is about. Each is a record,
no more; how records are written and who is told is the session's own.
"""

import asyncio
from collections.abc import Iterable

from msgspec.structs import asdict

from bridle.engine.history import History, as_of
from bridle.engine.limits import Limits
from bridle.engine.parts import Parts
from bridle.engine.turns import Turns
from bridle.errors import SessionError
from bridle.events import (
    Event,
    Grant,
    GrantRevoked,
    ModeChanged,
    PromptWithdrawn,
    Rewound,
    TagsChanged,
    TitleChanged,
    TraceEvent,
)
from bridle.messages import ToolCall
from bridle.policy import MODES, Mode, read_rule
from bridle.promises.provider import Provider, RequestConfig
from bridle.promises.session import Answer
from bridle.promises.store import Log
from bridle.promises.tool import Tool


class Upkeep:
    """The verbs of a session that are not about its turns."""

    id: str
    _parts: Parts
    _log: Log
    _history: History
    _turns: Turns
    _opening: tuple[Event, ...]
    _named: bool  # did somebody give it a title?

    @property
    def model(self) -> str:
        """Provider and model, as people write them."""
        return self._parts.provider.info.label

    @property
    def agent(self) -> str:
        """Who carries its turns; empty: our own loop."""
        agent = self._parts.agent
        found = getattr(agent, "name", "") if agent is not None else ""
        return (
            found if isinstance(found, str) and (found or agent is None) else type(agent).__name__
        )

    @property
    def workspace(self) -> str:
        """The folder that it works in."""
        return self._parts.workspace.root

    @property
    def window(self) -> int | None:
        """How many tokens the model can read at a time; None where that is not known."""
        return self._parts.provider.info.context_window

    @property
    def limits(self) -> Limits:
        """How far its turns may go."""
        return self._parts.limits

    async def begin(self) -> None:
        """Record that it began, or was taken up, and come back when that is on disk.

        Otherwise that is said with the first prompt.
        """
        self._check_open()
        self._open()
        await self._log.settled()

    @property
    def mode(self) -> Mode:
        """What may run without asking: the session's own mode, or else its engine's.

        A child session's is never wider than that of the session which began it.
        """
        mode, parent = self._history.mode or self._parts.mode, self._parts.parent
        return mode if parent is None else parent.narrowed(mode)

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._change_mode(mode, "me", "")

    async def set_mode(self, mode: Mode, *, by: str = "me", reason: str = "") -> None:
        """Have this mode from the next call on, and come back when that is on disk.

        It is recorded also where it is the engine's own: another engine may have another one.
        """
        if mode == self.mode and mode != self._history.mode:
            self.preface(ModeChanged(mode, by, reason))
            self._history.mode = mode
        self._change_mode(mode, by, reason)
        if self._log.seq and any(isinstance(one, ModeChanged) for one in self._opening):
            self._open()  # one of which nothing is recorded has nothing to lose
        await self._log.settled()

    def _change_mode(self, mode: Mode, by: str, reason: str) -> None:
        self._check_open()
        if mode not in MODES:
            raise SessionError(f"there is no mode {mode!r}", hint=f"It is {', '.join(MODES)}.")
        if mode == self.mode:
            return
        self.preface(ModeChanged(mode, by, reason))
        self._history.mode = mode  # it holds at once, also where nothing is recorded yet

    def preface(self, event: Event) -> None:
        """Record a fact; in a session of which nothing is recorded yet, with its first prompt."""
        if self._opening:
            self._opening = (*self._opening, event)
        else:
            self.emit(event)

    def grants(self) -> tuple[Grant, ...]:
        """What a person has allowed for the session, and nobody has taken back: the oldest first.

        Those whose time is over are not among them.
        """
        from bridle.engine.grants import is_over, lasting

        found, seconds = self._history.grants.values(), self._parts.ask_grant_seconds
        return tuple(lasting(one, seconds) for one in found if not is_over(one, seconds))

    async def revoke(self, grant: str = "", *, by: str = "me", letter: str = "") -> None:
        """Take one grant back, by its id; without one, all of them."""
        if grant and grant not in self._history.grants:
            raise SessionError(
                f"session {self.id} has no grant {grant}", hint="It may have ended already."
            )
        await self.note(GrantRevoked(grant, by, letter))

    def preview(self, rule: str) -> tuple[ToolCall, ...]:
        """The calls of this conversation that a rule would have covered. Raise `ConfigError`."""
        from bridle.engine.facts import facts_of
        from bridle.engine.proposal import preview

        tools, ground = self._parts.tools, self._parts.ground
        calls = [call for one in self._history.transcript for call in one.tool_calls]
        past = [(call, tools[call.name]) for call in calls if call.name in tools]
        judged = ((call, facts_of(call, tool, ground)) for call, tool in past)
        return preview(read_rule(rule), judged)

    def check_rule(self, shown: str, answer: Answer) -> None:
        """Raise `SessionError` where the rule of a yes does not allow what is asked about."""
        from bridle.engine.approvals import is_sound
        from bridle.engine.facts import facts_of
        from bridle.engine.proposal import preview

        asked, rule = self._history.pending.get(shown), answer.rule
        if not (rule and answer.allowed and is_sound(answer)) or asked is None or asked.lasting:
            return
        if rule == asked.proposal:
            return
        call, tool = asked.call, self._parts.tools.get(asked.call.name)
        if tool is not None:
            facts = facts_of(call, tool, self._parts.ground, cwd=asked.cwd)
            if preview(read_rule(rule), [(call, facts)]):
                return
        raise SessionError(
            f"the rule {rule!r} would not allow what is asked about",
            hint="Take the rule that is proposed, or one that covers this call; or allow it once.",
        )

    async def withdraw(self, prompt: int, *, by: str = "me") -> None:
        """Take back a prompt that waits, by the number of its record: it gets no turn."""
        if (waits := self._history.waiting.get(prompt)) is None:
            raise SessionError(
                f"session {self.id} has no prompt {prompt} that waits",
                hint="It has had its turn, or was taken back.",
            )
        try:
            await self.note(PromptWithdrawn(prompt, waits.turn, by))
        finally:
            self._turns.withdraw(waits.turn)

    async def rewind(self, to: int, *, by: str = "me") -> None:
        """Make the conversation again what it was at record `to`; 0 is empty. A record, no more.

        What was done stays done: files and commands are not undone by it.
        """
        self.check_idle()
        if not 0 <= to <= self._log.seq:
            raise SessionError(
                f"session {self.id} has no record {to}", hint=f"Its newest is {self._log.seq}."
            )
        await self._log.settled()
        then = await asyncio.to_thread(as_of, self._parts.store.read(self.id), to)
        self.check_idle()  # somebody may have sent a prompt meanwhile
        await self.note(Rewound(to, by, tuple(then.transcript), then.todos))

    async def compact(self, *, by: str = "me") -> bool:
        """Shorten the conversation now, between two turns: was there anything to gain?"""
        self.check_idle()
        self._open()
        self.emit(TraceEvent("compact", {"by": by}))
        shortened = await self._turns.shorten()
        await self._log.settled()
        return shortened

    async def narrow(self, limits: Limits, *, by: str = "me") -> None:
        """Have narrower limits from the next turn on. Raise `SessionError` for wider ones."""
        before = asdict(self.limits)
        wanted = {name: value for name, value in asdict(limits).items() if value != before[name]}
        for name, value in wanted.items():
            if not 0 < value <= (before[name] or value):
                raise SessionError(
                    f"the limit {name} is {before[name]:g}, and can only become narrower",
                    hint="Wider limits are for whoever starts the session: see the settings.",
                )
            if name.startswith("day_") and self._parts.day is None:
                raise SessionError(
                    "nobody keeps the account of a day here", hint="Set it in the settings."
                )
        if wanted:
            await self.note(TraceEvent("limits", {"by": by, "limits": asdict(limits)}))
            self.bound(limits)

    def bound(self, limits: Limits) -> None:
        """Have these limits from the next turn on. Nothing is recorded."""
        self._parts = self._turns.parts = self._parts.changed(limits=limits)

    async def rename(self, title: str) -> None:
        """Give it a title."""
        await self.note(TitleChanged(" ".join(title.split())))

    async def tag(self, tags: Iterable[str]) -> None:
        """Give it these tags, and no others."""
        await self.note(TagsChanged(tuple(dict.fromkeys(tags))))

    async def note(self, event: Event) -> None:
        """Record a fact, and come back when it is on disk."""
        self._check_open()
        self._open()
        self._named |= isinstance(event, TitleChanged)
        self.emit(event)
        await self._log.settled()
        if isinstance(event, TitleChanged | TagsChanged):
            await self._log.label(self._history.title, self._history.tags)

    def use(
        self,
        *,
        provider: Provider | None = None,
        tools: Iterable[Tool] | None = None,
        system: str | None = None,
        config: RequestConfig | None = None,
    ) -> None:
        """Another model, other tools, another system prompt, other settings, from the next turn."""
        self._check_open()
        given = {"provider": provider, "tools": tools, "system": system, "config": config}
        changed = {name: value for name, value in given.items() if value is not None}
        if not changed:
            return
        self._parts = self._turns.parts = self._parts.changed(**changed)
        self._open()
        self.emit(
            TraceEvent(
                "settings", {"changed": sorted(changed), "model": self._parts.provider.info.label}
            )
        )

    async def _name(self, small: Provider, prompt: str) -> None:
        """Have the small model write a title, beside the first turn."""
        from bridle.engine.title import write_title

        if (redactor := self._parts.redactor) is not None:
            prompt = redactor.text(prompt)
        budget = self._turns.beside(small.info, "title")
        try:
            for event in await write_title(small, prompt, budget):
                if not (self._named and isinstance(event, TitleChanged)):  # a person's own stands
                    self.emit(event)
        finally:
            if budget is not None and budget.day is not None:
                await budget.settle(self._log.settled)
        await self._log.label(self._history.title, self._history.tags)

    def check_idle(self) -> None:
        """Raise `SessionBusy` while a turn runs or is parked, `SessionClosed` where none will."""
        raise NotImplementedError

    def emit(self, event: Event) -> None:
        """Record, then tell."""
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError

    def _open(self) -> None:
        raise NotImplementedError
