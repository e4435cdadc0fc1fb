"""Keeps a conversation within the model's context window.

If the conversation does not fit before a request, it is shortened: old outputs are cut, then old
steps are replaced by a summary, which a model writes if there is one. A `Compacted` event records
what the conversation is from here on; the original stays in the log. This happens at most once a
step, and only if it helps.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.budget import Budget, Reservation, UsageMeter, estimate, metered, with_cost
from bridle.engine.engine_config import EngineConfig
from bridle.errors import AgentError, BudgetReached, ContextTooLong
from bridle.events import Compacted, Event, TraceEvent
from bridle.messages import File, Image, Message, Part, Text, ToolCall, ToolOutput, Transcript, user
from bridle.protocols.provider import (
    Provider,
    ProviderInfo,
    Request,
    RequestConfig,
    drain,
    known_limit,
)
from bridle.protocols.tool import Tool
from bridle.usage import Usage
from bridle.workspace.text import one_line, shorten

_MIN_SCALE, _MAX_SCALE = 0.25, 2.0  # of the vendors' tokens to our estimate


class TokenCounter:
    """Counts the tokens of one growing conversation.

    It adds an estimate of what is new to the vendor's last count. Each message is estimated once;
    only a conversation that was replaced is estimated from its beginning.
    """

    __slots__ = (
        "_counted",
        "_guess",
        "_history_identity",
        "_known",
        "_read",
        "_sent",
        "is_confirmed",
        "scale",
    )

    def __init__(self, read: int = 0) -> None:
        self.scale = 1.0  # the vendor's tokens for each one that we estimate
        self.is_confirmed = False  # has a vendor confirmed the scale?
        self._read = read  # the vendor's own count of the newest request
        self._sent = 0  # our estimate of that request
        self._guess = 0  # our estimate of everything so far
        self._known = 0  # messages in that estimate
        self._counted = False  # is `_read` about this conversation?
        self._history_identity: object = None

    def measure(self, history: Transcript, overhead: int) -> int:
        """Return an estimate of the tokens of a request with this conversation."""
        if history.encoding_caches is not self._history_identity or len(history) < self._known:
            self._start(history, overhead)
        self._guess += sum(estimate(message) for message in history[self._known :])
        self._known = len(history)
        if self._counted:
            return self._read + self._guess - self._sent
        return int(self._guess * self.scale)

    def count(self, read: int) -> None:
        """Take the vendor's count of the conversation that was measured last."""
        if read <= 0 or not self._guess:
            return
        self._read, self._sent, self._counted = read, self._guess, True
        self.is_confirmed = True
        self.scale = min(_MAX_SCALE, max(_MIN_SCALE, read / self._guess))

    def _start(self, history: Transcript, overhead: int) -> None:
        self._guess, self._known, self._counted = overhead, 0, False
        if self._history_identity is None and self._read:
            self._recall(history, overhead)
        self._history_identity = history.encoding_caches

    def _recall(self, history: Transcript, overhead: int) -> None:
        """In a resumed session, use the count in its log: what the newest reply has read."""
        newest = len(history)
        while newest > 0 and history[newest - 1].role != "assistant":
            newest -= 1
        if newest:
            before = sum(estimate(message) for message in history[: newest - 1])
            self._guess, self._known = overhead + before, newest - 1
            self.count(self._read)


WRITTEN, NOTED = "s", "n"  # how the id of a summary, and of a note, ends
_FRESH = 2  # newest steps that are cut last
_OLD_OUTPUT = 1_500  # characters that stay of an old output
_LEAST_OUTPUT = 300
_QUOTED_PROMPTS = 5  # in a note
_BYTES = 3  # of a token, as `estimate` has it


class Plan(Struct, frozen=True):
    """The messages that stay (`kept`) and those that go (`old`).

    `shortened` counts the parts that were cut. The summary of the old part may have `spare` tokens.
    """

    kept: tuple[Message, ...]
    old: tuple[Message, ...]
    shortened: int
    spare: int

    @property
    def tokens(self) -> int:
        """An estimate of the tokens that are left, with the summary of the old part."""
        return sum(map(estimate, self.kept)) + (self.spare if self.old else 0)


def plan(history: Transcript, target: int, spare: int) -> Plan:
    """Plan how to come down to `target` tokens, with `spare` of them for a summary.

    First cut old outputs; if that is not enough, drop old steps; if the newest step alone is too
    long, cut its outputs, too. The result may still be too long: prompts are never cut.
    """
    messages = tuple(history)
    prompts, starts = _prompts(history), _step_starts(messages)
    fresh = starts[-_FRESH:][0] if starts else len(messages)
    slim = tuple(
        message if index >= fresh or index in prompts else shorten_old_message(message)
        for index, message in enumerate(messages)
    )
    if sum(map(estimate, slim)) <= target:
        return Plan(slim, (), _count_changed(slim, messages), spare)
    at, kept_prompts = _cut(slim, prompts, _newest_step(slim, starts, target), target - spare)
    gone = tuple(messages[index] for index in range(at) if index not in kept_prompts)
    kept = (*(slim[index] for index in kept_prompts if index < at), *slim[at:])
    kept = _cut_outputs(kept, target - spare if gone else target)
    return Plan(kept, gone, _count_changed(kept, messages), spare)


def _count_changed(kept: Sequence[Message], messages: Sequence[Message]) -> int:
    """Count the parts that were changed."""
    known = {id(part) for message in messages for part in message.parts}
    return sum(id(part) not in known for message in kept for part in message.parts)


def _step_starts(messages: Sequence[Message]) -> list[int]:
    """Return where the steps begin: at each reply."""
    return [index for index, message in enumerate(messages) if message.role == "assistant"]


def _prompts(history: Transcript) -> list[int]:
    """Return where the prompts of the running turn are, with those sent into it."""
    first = history.turn
    while first > 0 and history[first - 1].role == "user" and not is_stand_in(history[first - 1]):
        first -= 1
    return [
        index
        for index in range(first, len(history))
        if history[index].role == "user" and not is_stand_in(history[index])
    ]


def _cut(
    messages: Sequence[Message], prompts: list[int], newest: int, target: int
) -> tuple[int, list[int]]:
    """Return where the kept part begins, and which prompts are kept, also before that."""
    sizes = [estimate(message) for message in messages]
    left = target - sum(sizes[newest:])
    kept: list[int] = []
    for index in reversed(prompts):
        if index < newest:
            if kept and sizes[index] > left // 2:
                break  # a long one before the newest must not take all that is left
            left -= sizes[index]
        kept.append(index)
    at = newest
    for index in range(newest - 1, -1, -1):
        left -= 0 if index in kept else sizes[index]
        if left < 0:
            break
        if messages[index].role != "tool":
            at = index
    return at, sorted(kept)


def _newest_step(messages: Sequence[Message], starts: list[int], target: int) -> int:
    """Return where the newest step begins.

    A step after which the person spoke is old if it made no calls, or calls so long that nothing
    else has room: otherwise no prompt could ever make such a session work again.
    """
    if not starts:
        return len(messages)
    last = starts[-1]
    end = last + (2 if messages[last].tool_calls else 1)
    if end >= len(messages):
        return last
    return last if end == last + 2 and estimate(messages[last]) <= target // 2 else end


def shorten_old_message(message: Message) -> Message:
    """Return an old message with long outputs cut, and a note for each picture and file."""
    if message.role == "assistant":
        return message
    parts = tuple(_shorten_old_part(part) for part in message.parts)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else replace(message, parts=parts)


def _shorten_old_part(part: Part) -> Part:
    if isinstance(part, Image | File):
        return Text(_omission_note(part))
    if isinstance(part, ToolOutput) and (part.media or len(part.text) > _OLD_OUTPUT):
        notes = [_omission_note(media) for media in part.media]
        text = "\n".join([shorten(part.text, _OLD_OUTPUT), *notes])
        return replace(part, text=text, media=(), data=None)
    return part


def _omission_note(part: Image | File) -> str:
    kind = "A picture" if isinstance(part, Image) else "A file"
    name = getattr(part, "name", "") or part.media_type
    return f"[{kind} was left out here to save space: {one_line(name, 100) or 'unnamed'}]"


def _cut_outputs(messages: tuple[Message, ...], target: int) -> tuple[Message, ...]:
    """Cut outputs to an equal share of the target, if all together are too long."""
    over = sum(map(estimate, messages)) - target
    outputs = [part for message in messages for part in message.tool_results]
    if over <= 0 or not outputs:
        return messages
    taken = sum(map(estimate, messages)) - sum(map(_output_tokens, outputs))
    share = _share([_output_tokens(output) for output in outputs], target - taken)
    return tuple(
        replace(message, parts=tuple(_cut_output(part, share) for part in message.parts))
        if any(_output_tokens(output) > share for output in message.tool_results)
        else message
        for message in messages
    )


def _output_tokens(output: ToolOutput) -> int:
    return estimate(Message("tool", (output,)))


def _share(weights: list[int], room: int) -> int:
    """Return the most tokens that each may have so that all fit; small ones leave the rest."""
    left, count = room, len(weights)
    for weight in sorted(weights):
        if weight * count > left:
            break
        left -= weight
        count -= 1
    return max(_LEAST_OUTPUT // _BYTES, left // count) if count else max(weights)


def _cut_output(part: Part, share: int) -> Part:
    if not isinstance(part, ToolOutput) or _output_tokens(part) <= share:
        return part
    notes = [_omission_note(media) for media in part.media]
    wide = max(1, len(part.text.encode()) // max(1, len(part.text)))  # bytes of a character
    text = shorten(part.text, max(_LEAST_OUTPUT, share * _BYTES // wide - 100))
    return replace(part, text="\n".join([text, *notes]), media=(), data=None)


def is_stand_in(message: Message) -> bool:
    """Is this the summary, or the note, of a part that was dropped?"""
    return message.role == "user" and message.id.endswith((WRITTEN, NOTED))


def stand_in(old: Sequence[Message], text: str, *, written: bool) -> Message:
    """Return the message that stands for the old part, with the id and date of its last message."""
    last = old[-1]
    name = f"{last.id.rstrip(WRITTEN + NOTED)}{WRITTEN if written else NOTED}"
    return Message("user", (Text(text),), name, last.created_at)


def note(old: Sequence[Message], limit: int) -> str:
    """Describe the old part in at most `limit` characters, if no model can write a summary."""
    called = Counter(call.name for message in old for call in message.tool_calls)
    count = len(old)
    lines = [f"[The beginning of this conversation was left out to save space: {count} messages."]
    if called:
        names = ", ".join(f"{name} ({count})" for name, count in called.most_common(8))
        lines.append(f"Tools that were called in it: {one_line(names, 400)}.")
    prompts = [message for message in old if message.role == "user" and message.content.strip()]
    quotes = [one_line(prompt.content, 200) for prompt in prompts if not is_stand_in(prompt)]
    if quotes:
        lines.append("The latest prompts in it:")
        lines += [f"- {quote}" for quote in quotes[-_QUOTED_PROMPTS:]]
    lines[-1] += "]"
    earlier = [prompt.content for prompt in prompts if prompt.id.endswith(WRITTEN)]
    return shorten("\n\n".join([*earlier, "\n".join(lines)]), limit)


MOST_TOKENS = 2_000  # of the summary; some models think before they write, within the same limit
_NO_MODELS = frozenset({"offline", "scripted"})  # providers without a model
_UNKNOWN_WINDOW = 16_000
_LONGEST_OUTPUT = 1_500  # characters of one output that are read
_LONGEST_TEXT = 8_000
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Summary:
    """A summary, or the reason why there is none, and its usage."""

    __slots__ = ("meter", "problem", "text")

    def __init__(self) -> None:
        self.text = ""
        self.meter = UsageMeter()
        self.problem = ""


def can_write(provider: Provider) -> bool:
    """Return whether the provider has a model, which can write a summary."""
    return provider.info.name not in _NO_MODELS


def summary_request(old: Sequence[Message], info: ProviderInfo) -> Request:
    """Return the request for a summary: the old part as data between two marks."""
    most = min(2 * MOST_TOKENS, info.max_output or 2 * MOST_TOKENS)
    window = info.context_window or _UNKNOWN_WINDOW
    room = max(1_000, (window - most) * 2 - len(_prompt()))  # characters
    record = shorten("\n\n".join(filter(None, map(_as_text, old))), room)
    record = record.replace("</record", "<\\/record")  # so that only our own mark ends it
    quoted = f"<record>\n{record}\n</record>"
    config = RequestConfig(max_tokens=most)
    return Request((user(quoted),), config=config, system=_prompt())


async def write_summary(provider: Provider, request: Request, summary: Summary) -> None:
    """Have the model write a summary. Fill in `summary`, also if interrupted."""
    try:
        reply = await drain(metered(provider.stream(request), summary.meter))
    except AgentError as error:
        summary.problem = error.message
    except Exception as error:  # the provider is somebody else's code
        summary.problem = repr(error)
    else:
        if reply.stop_reason in ("refusal", "error", "interrupted") or not reply.content.strip():
            summary.problem = f"the reply ended with {reply.stop_reason} and has no text"
        else:
            summary.text = reply.content.strip()


@cache
def _prompt() -> str:
    return Path(__file__).with_name("summary.md").read_text(encoding="utf-8").strip()


def _as_text(message: Message) -> str:
    """Return a message as text, without thinking, whose outcome is in the other parts."""
    text = "\n".join(filter(None, map(_part_text, message.parts)))
    speakers = {"user": "The person:", "assistant": "The assistant:", "system": "The system:"}
    return "\n".join(filter(None, [speakers.get(message.role, ""), text])) if text else ""


def _part_text(part: Part) -> str:
    if isinstance(part, Text):
        return shorten(part.text, _LONGEST_TEXT)
    if isinstance(part, ToolCall):
        arguments = _encode(part.arguments).decode()
        return f"It calls {part.name} with {shorten(arguments, _LONGEST_OUTPUT)}"
    if isinstance(part, ToolOutput):
        status = "failed" if part.is_error else "returned"
        return f"{part.name or 'The tool'} {status}: {shorten(part.text, _LONGEST_OUTPUT)}"
    if isinstance(part, Image | File):
        return f"[{'a picture' if isinstance(part, Image) else f'a file: {part.name}'}]"
    return ""


FULL = 0.8  # of the room: a longer conversation is shortened
_ROOMY = 0.5  # ... to this much of it
_TIGHT = 0.3  # ... or to this much, when the provider has refused it
_WORTH = 0.9  # what is left has to be below this much of what was
_DOUBT, _SURE = 1.5, 1.1  # estimates err: up to this much of the room, ask the vendor
_LEAST = 150  # tokens for a summary
_REPLY = 8192  # tokens that a reply is expected to need, if neither limit nor model is known
HINT = "Start a new session, rewind this one, or use a model with a larger context window."


class NoRoom(Exception):
    """The conversation is too long, and shortening it does not help or did not help enough."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = HINT


class ContextWindow:
    """Keeps one session's conversation within its model's window."""

    def __init__(
        self,
        config: EngineConfig,
        emit: Callable[[Event], None],
        conversation: Callable[[], Transcript],
        settled: Callable[[], Awaitable[None]],
        read: int = 0,
    ) -> None:
        self.config = config  # of the running turn: the model may change between two turns
        self._emit = emit
        self._conversation = conversation
        self._settled = settled
        self._counter = TokenCounter(read)
        self._overhead_of: tuple[object, object, int] = ("", (), 0)  # system prompt, tools, tokens
        self._was_shortened = False  # in this step
        self.offered: tuple[Tool, ...] = ()  # with the tools of sources, if there are any
        self.size = 0  # of the newest request, in tokens; 0: not measured

    @property
    def room(self) -> int | None:
        """The tokens that a request may have; None if the window is unknown."""
        info = self.config.provider.info
        if not info.context_window:
            return None
        output = known_limit(self.config.config, info) or _REPLY
        return max(info.context_window - output, info.context_window // 2)

    def count(self, usage: Usage) -> None:
        """Take the vendor's count of the newest request."""
        if self.size:
            self._counter.count(usage.context_tokens)

    async def fit(self, budget: Budget) -> Transcript:
        """Return the conversation, shortened if needed. Raise `NoRoom` or `ContextTooLong`."""
        self._was_shortened = False
        room = self.room
        if room is None and not budget.limits.counts:
            self.size = 0  # nothing depends on it
            return self._conversation()
        history = self._measure_history()
        if room is None or self.size <= room * FULL:
            return history
        shortened = self._plan(history, room * _ROOMY)
        left = self.size if shortened is None else self._size(shortened.tokens)
        if left > room * (_SURE if self._counter.is_confirmed else _DOUBT):
            raise self._too_long(history, room)
        if shortened is None:  # nothing to gain: it may fit all the same
            return history
        await self._shorten(shortened, budget)
        return self._measure_history()

    async def shrink_after_rejection(self, budget: Budget, refused: ContextTooLong) -> Transcript:
        """Return a shorter conversation after the provider refused it. Raise as `fit` does."""
        if self._was_shortened:
            raise NoRoom(f"the conversation was shortened and is still too long: {refused.message}")
        history = self._measure_history()
        room = self.room or self.size
        shortened = self._plan(history, min(room * _TIGHT, self.size * _ROOMY))
        if shortened is None:
            raise self._too_long(history, room, refused)
        await self._shorten(shortened, budget)
        return self._measure_history()

    async def shorten(self, budget: Budget) -> bool:
        """Shorten the conversation on request. Return whether anything was gained."""
        history = self._measure_history()
        target = min((self.room or self.size) * _TIGHT, self.size * _TIGHT)
        shortened = self._plan(history, target)
        if shortened is not None:
            await self._shorten(shortened, budget)
            self._measure_history()
        return shortened is not None

    def _measure_history(self) -> Transcript:
        history = self._conversation()
        self.size = self._counter.measure(history, self._overhead())
        return history

    def _overhead(self) -> int:
        """Return an estimate of the tokens of system prompt and tools, counted once."""
        system, tools = self.config.system, self.offered or self.config.offered
        if self._overhead_of[0] is not system or self._overhead_of[1] is not tools:
            described = sum(len(tool.description) + len(str(tool.parameters)) for tool in tools)
            self._overhead_of = (system, tools, (len(system.encode()) + described) // _BYTES)
        return self._overhead_of[2]

    def _plan(self, history: Transcript, target: float) -> Plan | None:
        """Return a plan to come near the target; None if it would gain too little."""
        goal = int(target / self._counter.scale) - self._overhead()
        shortened = plan(history, goal, max(_LEAST, min(MOST_TOKENS, goal // 4)))
        return shortened if self._size(shortened.tokens) < self.size * _WORTH else None

    def _size(self, tokens: int) -> int:
        """Return the tokens of a request whose messages have `tokens` by our estimate."""
        return int((tokens + self._overhead()) * self._counter.scale)

    async def _shorten(self, shortened: Plan, budget: Budget) -> None:
        """Write the summary, and record what the conversation is from here on."""
        self._was_shortened = True
        before = self.size
        messages, written = shortened.kept, False
        if shortened.old:
            room = shortened.spare * _BYTES
            self._emit(TraceEvent("shortening", {"tokens": before, "messages": len(shortened.old)}))
            summary = await self._summary(shortened.old, budget)
            written = bool(summary)
            text = (
                f"{_OPENING}\n\n{shorten(summary, room)}" if written else note(shortened.old, room)
            )
            messages = (stand_in(shortened.old, text, written=written), *messages)
        after = self._size(sum(map(estimate, messages)))
        dropped = len(shortened.old)
        self._emit(Compacted(messages, dropped, shortened.shortened, written, before, after))

    def _too_long(
        self, history: Transcript, room: int, refused: ContextTooLong | None = None
    ) -> Exception:
        """Return the error that says why it cannot be shortened."""
        prompts = [message for message in history[history.turn :] if message.role == "user"]
        prompt = int(max(map(estimate, prompts), default=0) * self._counter.scale)
        if prompt * 2 > self.size:
            message = f"the prompt alone takes about {prompt:,} tokens, which does not fit"
            window = f" into a window with room for {room:,}" if self.room else ""
            hint = "Send less at once, for example a file's path instead of what is in it."
            return ContextTooLong(message + window, refused, hint=hint)
        return NoRoom(
            f"the conversation takes about {self.size:,} tokens, which is too long, and what is "
            "needed to continue it cannot be shortened enough"
        )

    async def _summary(self, old: tuple[Message, ...], budget: Budget) -> str:
        writer = self.config.small or self.config.provider
        if not can_write(writer):
            return ""
        request = summary_request(old, writer.info)
        own = budget.beside(writer.info, "summary")
        tokens = sum(map(estimate, request.messages))
        try:
            async with Reservation(own, request.config, tokens, self._settled) as config:
                return await self._write_summary(writer, replace(request, config=config), own)
        except BudgetReached as limit:
            self._emit(TraceEvent("summary", {"message": limit.message}))
            return ""

    async def _write_summary(self, writer: Provider, request: Request, budget: Budget) -> str:
        summary = Summary()
        try:
            await write_summary(writer, request, summary)
        finally:  # also if interrupted: it has cost something
            self._record_usage(writer, request, summary, budget)
        if summary.problem:
            self._emit(TraceEvent("summary", {"message": summary.problem}))
        return summary.text

    def _record_usage(
        self, writer: Provider, request: Request, summary: Summary, budget: Budget
    ) -> None:
        report = summary.meter.report()
        if report is None:
            return
        read = sum(map(estimate, request.messages)) + len(request.system) // _BYTES
        report = with_cost(report, writer.info, Usage(read, summary.meter.output_tokens))
        budget.spend(report.usage, report.cost, report.model)
        self._emit(replace(report, purpose="summary"))


_OPENING = (
    "[The beginning of this conversation was replaced by this summary to save space. It was "
    "written from the record of the conversation; everything after it is verbatim.]"
)
