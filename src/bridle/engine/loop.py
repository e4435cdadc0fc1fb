"""The loop: ask the model, run what it asks for, until it asks for nothing.

Its states are those of the figure in docs/concepts.md: send → tool execution → send … → complete,
or error, or timeout. It knows what is handed in: history, a provider, tools, a gate, a budget, and
where to say what happened. It knows nothing of sessions, stores, screens or sockets.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.budget import estimate
from bridle.engine.compact import NoRoom
from bridle.engine.pricing import Heard, priced
from bridle.engine.sources import renew
from bridle.engine.turn import Parked, Turn
from bridle.errors import (
    AgentError,
    BadReply,
    BudgetReached,
    ConfigError,
    ContextTooLong,
    ModelRefused,
    ProviderError,
    StreamCutShort,
    TimedOut,
)
from bridle.events import (
    MessageAdded,
    Reason,
    ReplyDiscarded,
    ResponseCompleted,
    Streamed,
    TextDelta,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message, Part, Text, ToolCall, Transcript
from bridle.promises.codec import scrubbed
from bridle.promises.provider import (
    Request,
    RequestConfig,
    Tries,
    known_limit,
    reply_limit,
    retry_policy_of,
)
from bridle.usage import Usage

if TYPE_CHECKING:
    from bridle.engine.answer_schema import AnswerSchema
    from bridle.engine.calls import Caller

_encode = msgspec.json.Encoder(enc_hook=str).encode
_NOTHING = Usage()


class Ending(Struct, frozen=True):
    """How a turn ended, in the loop's own words."""

    reason: Reason
    detail: str = ""
    hint: str = ""


_FREE = ("", "auto", "none")  # a choice that leaves the model free to end the turn
MOST_CALLS = 256  # of one reply that run: a model that asks for more has lost its way
_LONGER = "Allow longer replies (--max-tokens, max_tokens), or ask for smaller parts."
_GO_ON = (
    "[Your reply was cut off at its token limit. Go on exactly where it stopped: "
    "repeat nothing, and say nothing about the cut.]"
)
PARKED = Ending("parked", "the turn waits for a person's answer")


async def run_turn(turn: Turn) -> Ending:
    """Run to the end. Raise what the provider raises; a limit is an ending, not an error."""
    try:
        if turn.sources:
            renew(turn)  # what was left open may be for one of theirs
        return await _steps(turn, turn.left)
    except Parked:
        return PARKED
    except NoRoom as full:
        return Ending("stuck", full.message, full.hint)


async def _steps(turn: Turn, calls: tuple[ToolCall, ...]) -> Ending:
    wanted = _answer_schema(turn)
    _check_choice(turn)
    asked_again = False
    cuts = 0  # replies in a row that were cut off, with nothing in them to run
    while True:
        if calls:
            await _caller(turn).answer_all(calls)
            if (ending := _obeyed(_caller(turn))) is not None:
                return ending
        history = await turn.window.fit(turn.budget)
        turn.budget.go_on()  # what is measured is all of it, not only what is new
        try:
            reply, config = await _answer(turn, history)
        except BudgetReached as limit:
            return Ending("budget", limit.message, limit.hint)
        if turn.config.tool_choice not in _FREE:  # it was for the first step: else no turn ends
            turn.config = replace(turn.config, tool_choice="")
        calls = reply.message.tool_calls if reply.message is not None else ()
        if reply.stop_reason == "max_tokens":
            calls = _without_cut(turn, reply, config)
            cuts = 0 if calls else cuts + 1
            if not calls and _goes_on(turn, reply, cuts):
                continue
        elif calls:
            cuts, turn.said = 0, ""
        if len(calls) > MOST_CALLS and reply.stop_reason in ("tool_use", "max_tokens", "complete"):
            words = f"not run: a reply may ask for {MOST_CALLS} calls, and this one asked for more"
            rest = calls[MOST_CALLS:]
            _caller(turn).refuse_all(rest, f"{words}. Send the rest again.", "calls_per_reply")
            calls = calls[:MOST_CALLS]
        if (ending := _over(turn, reply, calls)) is None:
            continue
        if ending.reason == "done" and turn.is_steered():
            turn.said = ""
            continue  # somebody has sent a prompt into what would have been the last step
        if wanted is None or reply.stop_reason != "complete":
            return ending
        try:
            wanted.fit(turn.said + (reply.message.content if reply.message is not None else ""))
            return ending
        except BadReply as problem:
            if asked_again:
                raise
            asked_again, turn.said = True, ""
            turn.emit(MessageAdded(wanted.correction(problem), by="bridle"))


def _check_choice(turn: Turn) -> None:
    """Raise `ConfigError` if the turn is to begin with a tool that is not there."""
    choice = turn.config.tool_choice
    if choice in _FREE or choice == "required" or choice in turn.tools:
        return
    known = ", ".join(sorted(turn.tools)) or "none"
    raise ConfigError(
        f"tool_choice names {choice!r}, which is not one of the tools: {known}",
        hint="Name a tool that the engine has, or write auto, none or required.",
    )


def _answer_schema(turn: Turn) -> "AnswerSchema | None":
    """The schema that the turn's answer has to fit. The model is told, unless its API is."""
    if turn.config.output_schema is None:
        return None
    from bridle.engine.answer_schema import AnswerSchema

    wanted = AnswerSchema(turn.config.output_schema)
    if not wanted.is_native_to(turn.provider.info):
        turn.system = f"{turn.system}\n\n{wanted.rule}" if turn.system else wanted.rule
    return wanted


def _request(turn: Turn, history: Transcript, config: RequestConfig) -> Request:
    """What the provider is asked: with the tools as they are now, where some come and go."""
    if turn.sources:
        renew(turn)
    return Request(history, turn.offered, config, _system(turn))


def _system(turn: Turn) -> str:
    """The system prompt; in plan mode with what that means."""
    if turn.mode() != "plan":
        return turn.system
    from bridle.engine.plan import instructed

    return instructed(turn.system, "plan")


def _caller(turn: Turn) -> "Caller":
    """Who runs the turn's calls. Made, and loaded, with the first: many a turn has none."""
    if turn.caller is None:
        from bridle.engine.calls import Caller

        turn.caller = Caller(turn)
    return turn.caller


def _obeyed(caller: "Caller") -> Ending | None:
    """The calls of a step were run; an ending where there is no going on after them."""
    task = asyncio.current_task()
    if caller.is_over or (task is not None and task.cancelling()):  # an interrupt, swallowed
        raise asyncio.CancelledError
    if caller.stuck:
        return Ending("stuck", caller.stuck, "Look at that call, then say how to go on.")
    return None


def _over(turn: Turn, reply: ResponseCompleted, calls: tuple[ToolCall, ...]) -> Ending | None:
    """An ending, unless there are calls to run. Nothing is run of what half a reply asks for.

    Raise `ModelRefused`.
    """
    if reply.stop_reason in ("refusal", "error"):
        if calls:
            _caller(turn).refuse_all(calls, "not run: the reply that asked for it broke off")
        return _ending(reply)
    return None if calls else _ending(reply)


def _ending(reply: ResponseCompleted) -> Ending:
    if reply.stop_reason == "error":
        return Ending("failed", reply.stop_detail or "the model's side reported an error")
    if reply.stop_reason == "max_tokens":
        return Ending("max_tokens", "the reply was cut off at its token limit", _LONGER)
    if reply.stop_reason == "refusal":
        why = f": {reply.stop_detail}" if reply.stop_detail not in ("", "refusal") else ""
        raise ModelRefused(f"the model declined to answer{why}")
    return Ending("done")


def _without_cut(
    turn: Turn, reply: ResponseCompleted, config: RequestConfig
) -> tuple[ToolCall, ...]:
    """The calls that came whole. One that the reply was cut off in is answered: it does not run."""
    parts = reply.message.parts if reply.message is not None else ()
    calls = tuple(part for part in parts if type(part) is ToolCall)
    if calls and parts[-1] is calls[-1] and calls[-1].broken:
        words = f"your reply was cut off in the middle of this call{_at(turn, reply, config)}"
        _caller(turn).refuse_all(calls[-1:], f"Not run: {words}. Send it again in smaller parts.")
        return calls[:-1]
    return calls


def _at(turn: Turn, reply: ResponseCompleted, config: RequestConfig) -> str:
    """Where a reply was cut off, if that is known."""
    tokens = reply.usage.output_tokens or known_limit(config, turn.provider.info)
    return f" at {tokens:,} tokens" if tokens else ""


def _goes_on(turn: Turn, reply: ResponseCompleted, cuts: int) -> bool:
    """A reply was cut off with nothing to run in it: is the model asked to go on?

    It is if the reply was text, once; in the middle of a call it has been told so, and may try
    as often as any call may fail.
    """
    if reply.message is not None and reply.message.tool_calls:
        turn.said = ""
        return cuts < turn.budget.limits.repeats or not turn.budget.limits.repeats
    if cuts > 1:
        return False
    turn.said += reply.message.content if reply.message is not None else ""
    turn.emit(MessageAdded(Message("user", (Text(_GO_ON),)), by="bridle"))
    return True


async def _answer(turn: Turn, history: Transcript) -> tuple[ResponseCompleted, RequestConfig]:
    """A reply, and the settings that it was asked for with. Raise `BudgetReached`.

    A provider that finds the conversation too long is asked again with less of it; one whose reply
    breaks off is asked again as its policy says.
    """
    policy = retry_policy_of(turn.provider)
    tries = None if policy is None else policy.begin()
    again = False
    while True:
        config = await turn.budget.reserve(turn.config, turn.window.size, again=again)
        try:
            if config is not turn.config:
                _say_shorter(turn, config)
            reply = await _ask(turn, _request(turn, history, config), tries)
        except ContextTooLong as refused:
            history = await turn.window.give_way(turn.budget, refused)
        else:
            if reply is not None:
                return reply, config
        finally:
            if turn.budget.limits.counts:
                turn.budget.let_go()
            if turn.budget.day is not None:
                await turn.budget.settle(turn.settled)
        again = True


def _say_shorter(turn: Turn, config: RequestConfig) -> None:
    """What is left of a limit does not pay for a whole reply: say so, once a turn."""
    if not turn.is_short:
        turn.is_short = True
        wanted = reply_limit(turn.config, turn.provider.info)
        said = f"a reply may have {config.max_tokens:,} tokens and not {wanted:,}"
        detail = {"max_tokens": config.max_tokens, "wanted": wanted}
        message = f"{said}: that is what is left of the limits"
        turn.emit(TraceEvent("reply_limit", {**detail, "message": message}))


async def _ask(turn: Turn, request: Request, tries: Tries | None) -> ResponseCompleted | None:
    """One request. Every event is said aloud as it comes; the reply is returned.

    None: the reply broke off, was discarded, and it is time to ask again.
    """
    heard = _Heard()
    try:
        reply = await _listen(turn, request, heard)
    except asyncio.CancelledError:
        _report(turn, heard.so_far(), _cut(turn, request, heard))
        if (text := "".join(heard.texts)).strip():  # vendors refuse text that is only space
            turn.emit(ResponseCompleted("interrupted", Message("assistant", (Text(text),))))
        raise
    except AgentError as error:
        used, guess = heard.so_far(), _cut(turn, request, heard)
        if not heard.began or tries is None or (retry := tries.after(error)) is None:
            _failed(turn, error, used, guess)
            raise
        _report(turn, used, guess)
        turn.emit(ReplyDiscarded(error.message))
        turn.emit(retry.trace)
        await retry.wait()
        return None
    except Exception as broken:  # somebody's provider raised what it should not
        typed = ProviderError(f"the provider broke: {broken!r}", broken)
        _failed(turn, typed, heard.so_far(), _cut(turn, request, heard))
        raise typed from broken
    _report(turn, heard.usage, _uncounted(turn, reply))
    reply = _distinct(_sayable(reply))
    if (redactor := turn.redactor) is not None:  # what runs is what the log says was asked for
        reply = redactor.value(reply)
    turn.emit(reply)
    return reply


def _cut(turn: Turn, request: Request, heard: "_Heard") -> Usage:
    """About what a reply used that was cut off."""
    if heard.so_far() is None:
        return _NOTHING
    read = turn.window.size or sum(map(estimate, request.messages)) + len(request.system) // 3
    return Usage(read, heard.written)


def _uncounted(turn: Turn, reply: ResponseCompleted) -> Usage:
    """About what a whole reply used, should its server not say so; asked where a limit needs it."""
    if not turn.budget.limits.counts or reply.usage.total_tokens or reply.message is None:
        return _NOTHING
    return Usage(turn.window.size, estimate(reply.message))


def _sayable(reply: ResponseCompleted) -> ResponseCompleted:
    """Calls as the log can hold them, so that what is asked about and what runs is the same."""
    try:
        _encode(reply.message.tool_calls if reply.message is not None else ())
    except UnicodeEncodeError:  # half a surrogate pair
        cleaned = scrubbed(reply)
        assert isinstance(cleaned, ResponseCompleted)
        return cleaned
    return reply


def _distinct(reply: ResponseCompleted) -> ResponseCompleted:
    """Each call with an id of its own: some servers give two calls the same one, or none."""
    calls = reply.message.tool_calls if reply.message is not None else ()
    if reply.message is None or not calls or (len(calls) == 1 and calls[0].id):
        return reply
    ids = {call.id for call in calls}
    if len(ids) == len(calls) and "" not in ids:
        return reply
    parts: list[Part] = []
    taken: set[str] = set()
    for part in reply.message.parts:
        if isinstance(part, ToolCall):
            number = len(parts)
            while not part.id or part.id in taken:
                part = replace(part, id=f"{part.id or 'call'}-{number}")
            taken.add(part.id)
        parts.append(part)
    return replace(reply, message=replace(reply.message, parts=tuple(parts)))


class _Heard(Heard):
    """What has come of a reply so far, with its text."""

    __slots__ = ("_counted", "texts")

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._counted = False

    def so_far(self) -> UsageReported | None:
        """What the reply has used; its text is looked at now and not piece by piece."""
        if self.texts and not self._counted:
            self._counted = True
            self.note_text("".join(self.texts))
        return super().so_far()


async def _listen(turn: Turn, request: Request, heard: _Heard) -> ResponseCompleted:
    emit, keep = turn.emit, heard.texts.append
    async with aclosing(turn.provider.stream(request)) as events:
        event: Any
        async for event in events:
            kind = type(event)
            if kind is TextDelta:
                keep(event.text)
                emit(event)
            elif kind is ResponseCompleted:
                reply: ResponseCompleted = event
                heard.note(reply)
                return reply
            elif kind is UsageReported:
                heard.usage = event
            elif isinstance(event, Streamed):
                heard.note(event)
                emit(event)
            else:  # a provider streams; it does not write facts into the log
                emit(TraceEvent("unknown_event", _quoted(turn, event)))
    raise StreamCutShort("the stream ended before the reply did")


def _quoted(turn: Turn, event: object) -> str:
    """The beginning of what nobody knows; without secrets before it is cut, which hides half."""
    said, redactor = repr(event), turn.redactor
    return (said if redactor is None else redactor.text(said))[:2000]


def _failed(turn: Turn, error: AgentError, report: UsageReported | None, guess: Usage) -> None:
    """The vendor's own words, as a trace; then the reply is over."""
    _report(turn, report, guess)
    detail = {"kind": error.kind, "message": error.message, **error.origin._asdict()}
    turn.emit(TraceEvent("error", {key: value for key, value in detail.items() if value}))
    turn.emit(ResponseCompleted("error"))


def _report(turn: Turn, report: UsageReported | None, guess: Usage) -> None:
    """Count the use, and say it with its cost."""
    if report is None:
        return
    turn.window.count(report.usage)
    said = priced(report, turn.provider.info, guess)
    turn.budget.spend(said.usage, said.cost, said.model)
    turn.emit(said)


def outcome(raised: BaseException) -> tuple[Ending, AgentError | None]:
    """How a turn ended that did not come to its end, and the error if there was one."""
    if isinstance(raised, asyncio.CancelledError):
        return Ending("interrupted", "the turn was interrupted"), None
    if isinstance(raised, TimedOut):
        return Ending("timeout", raised.message, raised.hint), raised
    if not isinstance(raised, AgentError):
        raised = AgentError("agent", f"something broke inside bridle: {raised!r}", raised)
    return Ending("failed", raised.message, raised.hint), raised
