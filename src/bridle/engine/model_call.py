"""One model call of a turn: stream the reply, record it, count what it used.

A reply that breaks off is asked for again as the provider's retry policy says; a conversation that
the provider finds too long is shortened and sent once more. Every event of the stream is emitted as
it arrives.
"""

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from bridle.engine.budget import Reservation, UsageMeter, estimate, with_cost
from bridle.engine.turn_context import TurnContext, refresh_tools
from bridle.errors import AgentError, ContextTooLong, ProviderError, StreamCutShort
from bridle.events import (
    ReplyDiscarded,
    ResponseCompleted,
    Streamed,
    TextDelta,
    TraceEvent,
    UsageReported,
)
from bridle.messages import Message, Part, Text, ToolCall, Transcript
from bridle.protocols.codec import escape_event
from bridle.protocols.provider import (
    Request,
    RequestConfig,
    Tries,
    reply_limit,
    retry_policy_of,
)
from bridle.usage import Usage

_encode = msgspec.json.Encoder(enc_hook=str).encode
_NO_USAGE = Usage()


async def ask_model(
    turn: TurnContext, history: Transcript
) -> tuple[ResponseCompleted, RequestConfig]:
    """Return a whole reply, and the settings of its request. Raise `BudgetReached`."""
    policy = retry_policy_of(turn.provider)
    tries = None if policy is None else policy.begin()
    is_repeated = False
    while True:
        reservation = Reservation(
            turn.budget, turn.config, turn.window.size, turn.settled, is_repeated=is_repeated
        )
        async with reservation as config:
            if config is not turn.config:
                _report_reply_limit(turn, config)
            if turn.sources:
                refresh_tools(turn)
            system = turn.system
            if turn.mode() == "plan":
                system = f"{system}\n\n{PLAN_INSTRUCTIONS}" if system else PLAN_INSTRUCTIONS
            request = Request(history, turn.offered, config, system)
            try:
                reply = await _send_request(turn, request, tries)
            except ContextTooLong as error:
                history = await turn.window.shrink_after_rejection(turn.budget, error)
            else:
                if reply is not None:
                    return reply, config
        is_repeated = True


async def _send_request(
    turn: TurnContext, request: Request, tries: Tries | None
) -> ResponseCompleted | None:
    """Send one request and record its reply.

    Return None if the reply broke off and was discarded, once it is time for the next try.
    """
    received = _Received()
    try:
        reply = await _receive(turn, request, received)
    except asyncio.CancelledError:
        _record_usage(turn, received.report(), _estimate_partial(turn, request, received))
        if (text := "".join(received.texts)).strip():  # vendors refuse text that is only space
            turn.emit(ResponseCompleted("interrupted", Message("assistant", (Text(text),))))
        raise
    except AgentError as error:
        usage, guess = received.report(), _estimate_partial(turn, request, received)
        if not received.has_begun or tries is None or (retry := tries.after(error)) is None:
            _record_failure(turn, error, usage, guess)
            raise
        _record_usage(turn, usage, guess)
        turn.emit(ReplyDiscarded(error.message))
        turn.emit(retry.trace)
        await retry.wait()
        return None
    except Exception as error:  # the provider is somebody else's code
        wrapped = ProviderError(f"the provider failed: {error!r}", error)
        guess = _estimate_partial(turn, request, received)
        _record_failure(turn, wrapped, received.report(), guess)
        raise wrapped from error
    _record_usage(turn, received.usage, _estimate_reply(turn, reply))
    reply = _with_unique_ids(_without_surrogates(reply))
    if (redactor := turn.redactor) is not None:  # what runs is what is recorded
        reply = redactor.value(reply)
    turn.emit(reply)
    return reply


async def _receive(turn: TurnContext, request: Request, received: "_Received") -> ResponseCompleted:
    emit, keep = turn.emit, received.texts.append
    async with aclosing(turn.provider.stream(request)) as events:
        event: Any
        async for event in events:
            kind = type(event)
            if kind is TextDelta:
                keep(event.text)
                emit(event)
            elif kind is ResponseCompleted:
                reply: ResponseCompleted = event
                received.note(reply)
                return reply
            elif kind is UsageReported:
                received.usage = event
            elif isinstance(event, Streamed):
                received.note(event)
                emit(event)
            else:  # a provider may only emit the events of a stream
                emit(TraceEvent("unknown_event", _quote(turn, event)))
    raise StreamCutShort("the stream ended before the reply did")


class _Received(UsageMeter):
    """What has arrived of a reply so far, with its text."""

    __slots__ = ("_is_counted", "texts")

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_counted = False

    def report(self) -> UsageReported | None:
        """Return what the reply has used. Its text is counted now, not delta by delta."""
        if self.texts and not self._is_counted:
            self._is_counted = True
            self.note_text("".join(self.texts))
        return super().report()


def _report_reply_limit(turn: TurnContext, config: RequestConfig) -> None:
    """Record, once a turn, that the limits do not leave enough for a reply of full length."""
    if not turn.reported_reply_limit:
        turn.reported_reply_limit = True
        wanted = reply_limit(turn.config, turn.provider.info)
        limit = f"replies are limited to {config.max_tokens:,} tokens instead of {wanted:,}"
        message = f"{limit}, so that this turn stays within its limits"
        detail = {"max_tokens": config.max_tokens, "wanted": wanted, "message": message}
        turn.emit(TraceEvent("reply_limit", detail))


def _estimate_partial(turn: TurnContext, request: Request, received: _Received) -> Usage:
    """Estimate the usage of a reply that broke off."""
    if received.report() is None:
        return _NO_USAGE
    read = turn.window.size or sum(map(estimate, request.messages)) + len(request.system) // 3
    return Usage(read, received.output_tokens)


def _estimate_reply(turn: TurnContext, reply: ResponseCompleted) -> Usage:
    """Estimate the usage of a whole reply, if its server did not count and a limit needs it."""
    if not turn.budget.limits.counts or reply.usage.total_tokens or reply.message is None:
        return _NO_USAGE
    return Usage(turn.window.size, estimate(reply.message))


def _without_surrogates(reply: ResponseCompleted) -> ResponseCompleted:
    """Return the reply as it can be recorded, so that what is approved is what runs."""
    try:
        _encode(reply.message.tool_calls if reply.message is not None else ())
    except UnicodeEncodeError:  # half a surrogate pair
        cleaned = escape_event(reply)
        assert isinstance(cleaned, ResponseCompleted)
        return cleaned
    return reply


def _with_unique_ids(reply: ResponseCompleted) -> ResponseCompleted:
    """Give each call an id of its own: some servers give two calls the same id, or none."""
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


def _quote(turn: TurnContext, event: object) -> str:
    """Return the beginning of an unknown event. Redact before cutting, which could hide half."""
    text, redactor = repr(event), turn.redactor
    return (text if redactor is None else redactor.text(text))[:2000]


def _record_failure(
    turn: TurnContext, error: AgentError, report: UsageReported | None, guess: Usage
) -> None:
    """Record the vendor's error message, and that the reply is over."""
    _record_usage(turn, report, guess)
    detail = {"kind": error.kind, "message": error.message, **error.origin._asdict()}
    turn.emit(TraceEvent("error", {key: value for key, value in detail.items() if value}))
    turn.emit(ResponseCompleted("error"))


def _record_usage(turn: TurnContext, report: UsageReported | None, guess: Usage) -> None:
    """Count the usage, and record it with its cost."""
    if report is None:
        return
    turn.window.count(report.usage)
    report = with_cost(report, turn.provider.info, guess)
    turn.budget.spend(report.usage, report.cost, report.model)
    turn.emit(report)


# What the model is told while plan mode lasts. The gate enforces it.

PLAN_INSTRUCTIONS = """\
# Plan mode

You are in plan mode. Explore and think; change nothing. Whatever would write a file, run a command
that changes something, or reach out of the workspace is refused as long as this lasts, so do not
try to find a way around it.

Read what you need to understand the task. Ask the person where their answer decides how to go on.
Then write a plan that somebody could follow: what is to change, in which files, in which order, how
it will be checked, and what you are unsure about. When the plan is ready, call `exit_plan_mode`
with it; the person decides whether you may begin. If there is no such tool, say the plan and stop.
"""
