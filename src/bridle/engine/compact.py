"""The model's window, and what is done when the conversation outgrows it.

Before each request: does it still fit? If not, the conversation is shortened (`shortening` says
how), with a summary of what goes where a model can write one (`summary`), and a `Compacted` event
says what it is from here on. The original stays in the log. Once a step, and never in vain.
"""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from bridle.engine.budget import Budget, estimate
from bridle.engine.gauge import Gauge
from bridle.engine.parts import Parts
from bridle.engine.pricing import priced
from bridle.engine.shortening import Plan, note, plan, stand_in
from bridle.engine.summary import MOST_TOKENS, Written, asking_for, can_write, write_summary
from bridle.errors import BudgetReached, ContextTooLong
from bridle.events import Compacted, Event, TraceEvent
from bridle.messages import Message, Transcript
from bridle.promises.provider import Provider, Request, known_limit
from bridle.promises.tool import Tool
from bridle.usage import Usage
from bridle.workspace.text import shorten

FULL = 0.8  # of the room: above it, the conversation is shortened
_ROOMY = 0.5  # ... to this much of it
_TIGHT = 0.3  # ... or to this much, when the provider has refused it
_WORTH = 0.9  # what is left has to be below this much of what was
_DOUBT, _SURE = 1.5, 1.1  # estimates err: up to this much of the room, the vendor is asked
_LEAST = 150  # tokens for what stands for the old part
_REPLY = 8192  # tokens that a reply is expected to need, if neither limit nor model is known
_BYTES = 3  # of a token, as `estimate` has it
HINT = "Start a new session, rewind this one, or use a model with a larger context window."


class NoRoom(Exception):
    """There is no going on: shortening did not help, or was needed twice in one step."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = HINT


class Window:
    """Keeps one session's conversation within the window of its model."""

    def __init__(
        self,
        parts: Parts,
        emit: Callable[[Event], None],
        conversation: Callable[[], Transcript],
        settled: Callable[[], Awaitable[None]],
        read: int = 0,
    ) -> None:
        self.parts = parts  # of the turn that runs: a session may change its model between two
        self._emit = emit
        self._conversation = conversation
        self._settled = settled
        self._gauge = Gauge(read)
        self._told: tuple[object, object, int] = ("", (), 0)  # what else a request holds
        self._tried = False  # was it shortened in this step?
        self.offered: tuple[Tool, ...] = ()  # with the tools of sources, where there are any
        self.size = 0  # of the newest request, in tokens; 0: it was not measured

    @property
    def room(self) -> int | None:
        """The tokens that a request may take; None where the window is unknown."""
        info = self.parts.provider.info
        if not info.context_window:
            return None
        output = known_limit(self.parts.config, info) or _REPLY
        return max(info.context_window - output, info.context_window // 2)

    def count(self, usage: Usage) -> None:
        """What the vendor counted for the newest request."""
        if self.size:
            self._gauge.count(usage.context_tokens)

    async def fit(self, budget: Budget) -> Transcript:
        """The conversation as it can be sent now. Raise `NoRoom`, or `ContextTooLong`."""
        self._tried = False
        room = self.room
        if room is None and not budget.limits.counts:
            self.size = 0  # nobody needs to know
            return self._conversation()
        history = self._measured()
        if room is None or self.size <= room * FULL:
            return history
        found = self._plan(history, room * _ROOMY)
        left = self.size if found is None else self._size(found.tokens)
        if left > room * (_SURE if self._gauge.sure else _DOUBT):
            raise self._too_long(history, room)
        if found is None:  # nothing to gain: it may fit all the same
            return history
        await self._shorten(found, budget)
        return self._measured()

    async def give_way(self, budget: Budget, refused: ContextTooLong) -> Transcript:
        """Less of it, because the provider refused it. Raise `NoRoom`, or `ContextTooLong`."""
        if self._tried:
            raise NoRoom(f"the conversation was shortened and is still too long: {refused.message}")
        history = self._measured()
        room = self.room or self.size
        found = self._plan(history, min(room * _TIGHT, self.size * _ROOMY))
        if found is None:
            raise self._too_long(history, room, refused)
        await self._shorten(found, budget)
        return self._measured()

    async def shorten(self, budget: Budget) -> bool:
        """Because a person asks for it, between two turns: was there anything to gain?"""
        history = self._measured()
        found = self._plan(history, min((self.room or self.size) * _TIGHT, self.size * _TIGHT))
        if found is not None:
            await self._shorten(found, budget)
            self._measured()
        return found is not None

    def _measured(self) -> Transcript:
        history = self._conversation()
        self.size = self._gauge.measure(history, self._overhead())
        return history

    def _overhead(self) -> int:
        """About what the system prompt and the tools' descriptions take; looked at once."""
        system, tools = self.parts.system, self.offered or self.parts.offered
        if self._told[0] is not system or self._told[1] is not tools:
            said = sum(len(tool.description) + len(str(tool.parameters)) for tool in tools)
            self._told = (system, tools, (len(system.encode()) + said) // _BYTES)
        return self._told[2]

    def _plan(self, history: Transcript, target: float) -> Plan | None:
        """A way down to the target, or as near as there is; None where it is not worth it."""
        goal = int(target / self._gauge.scale) - self._overhead()
        found = plan(history, goal, max(_LEAST, min(MOST_TOKENS, goal // 4)))
        return found if self._size(found.tokens) < self.size * _WORTH else None

    def _size(self, tokens: int) -> int:
        """What a request takes whose messages take so many tokens by our estimate."""
        return int((tokens + self._overhead()) * self._gauge.scale)

    async def _shorten(self, found: Plan, budget: Budget) -> None:
        """Have it summarised, and say what the conversation is from here on."""
        self._tried = True
        before = self.size
        messages, written = found.kept, False
        if found.old:
            room = found.spare * _BYTES
            self._emit(TraceEvent("shortening", {"tokens": before, "messages": len(found.old)}))
            summary = await self._summary(found.old, budget)
            written = bool(summary)
            text = f"{_OPENING}\n\n{shorten(summary, room)}" if written else note(found.old, room)
            messages = (stand_in(found.old, text, written=written), *messages)
        after = self._size(sum(map(estimate, messages)))
        dropped = len(found.old)
        self._emit(Compacted(messages, dropped, found.shortened, written, before, after))

    def _too_long(
        self, history: Transcript, room: int, refused: ContextTooLong | None = None
    ) -> Exception:
        """Why there is nothing to be done."""
        prompts = [one for one in history[history.turn :] if one.role == "user"]
        prompt = int(max(map(estimate, prompts), default=0) * self._gauge.scale)
        if prompt * 2 > self.size:
            said = f"the prompt alone takes about {prompt:,} tokens, which does not fit"
            where = f" into a window with room for {room:,}" if self.room else ""
            hint = "Send less at once, for example a file's path instead of what is in it."
            return ContextTooLong(said + where, refused, hint=hint)
        return NoRoom(
            f"the conversation takes about {self.size:,} tokens, which is too long, and what is "
            "needed to go on in it cannot be shortened enough"
        )

    async def _summary(self, old: tuple[Message, ...], budget: Budget) -> str:
        writer = self.parts.small or self.parts.provider
        if not can_write(writer):
            return ""
        request = asking_for(old, writer.info)
        beside = budget.beside(writer.info, "summary")
        try:
            config = await beside.reserve(request.config, sum(map(estimate, request.messages)))
        except BudgetReached as limit:
            beside.let_go()
            self._emit(TraceEvent("summary", {"message": limit.message}))
            return ""
        return await self._written(writer, replace(request, config=config), beside)

    async def _written(self, writer: Provider, request: Request, budget: Budget) -> str:
        written = Written()
        try:
            await write_summary(writer, request, written)
        finally:  # an interrupted one has cost something, too
            self._pay(writer, request, written, budget)
            if budget.day is not None:
                await budget.settle(self._settled)
        if written.trouble:
            self._emit(TraceEvent("summary", {"message": written.trouble}))
        return written.text

    def _pay(self, writer: Provider, request: Request, written: Written, budget: Budget) -> None:
        report = written.heard.so_far()
        if report is None:
            budget.let_go()
            return
        read = sum(map(estimate, request.messages)) + len(request.system) // _BYTES
        said = priced(report, writer.info, Usage(read, written.heard.written))
        budget.spend(said.usage, said.cost, said.model)
        self._emit(replace(said, purpose="summary"))


_OPENING = (
    "[The beginning of this conversation was replaced by this summary to save room. It was written "
    "from the record of the conversation; what comes after it is word for word.]"
)
