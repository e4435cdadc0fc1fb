"""The loop: ask the model, run the tools it calls, and repeat until it calls none.

Its states are those of the figure in docs/concepts.md: send → tool execution → send … → complete,
or error, or timeout. Everything it needs is in the `TurnContext`.
"""

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.compaction import NoRoom
from bridle.engine.model_call import ask_model
from bridle.engine.structured_output import AnswerSchema
from bridle.engine.tool_calls import ToolCalls
from bridle.engine.turn_context import Parked, TurnContext, refresh_tools
from bridle.errors import (
    AgentError,
    BadReply,
    BudgetReached,
    ConfigError,
    ModelRefused,
    TimedOut,
)
from bridle.events import MessageAdded, Reason, ResponseCompleted
from bridle.messages import Message, Text, ToolCall
from bridle.protocols.provider import RequestConfig, known_limit

MAX_CALLS = 256  # of one reply: a model that makes more does not know what it does
_UNFORCED = ("", "auto", "none")  # tool choices with which the model can end the turn
_RAISE_MAX_TOKENS = "Allow longer replies (--max-tokens, max_tokens), or ask for smaller parts."
_LOOK = "Look at that call, then say how to continue."
_CONTINUE = (
    "[Your reply was cut off at its token limit. Continue exactly where it stopped: "
    "repeat nothing, and do not mention the cut.]"
)


class Ending(Struct, frozen=True):
    """How a turn ended: the reason, what happened, and what the user can do."""

    reason: Reason
    detail: str = ""
    hint: str = ""


PARKED = Ending("parked", "the turn waits for approval")


async def run_turn(turn: TurnContext) -> Ending:
    """Run a turn to its end. Raise what the provider raises; a limit is an ending, not an error."""
    assert turn.tool_calls is not None
    tool_calls, calls = turn.tool_calls, turn.open_calls  # a parked turn is resumed with these
    was_corrected = False
    cut_replies = 0  # in a row that were cut off, with no whole call in them
    try:
        if turn.sources:
            refresh_tools(turn)  # an open call may be for one of their tools
        schema = _prepare_answer_schema(turn)
        _check_tool_choice(turn)
        while True:
            if calls:
                await tool_calls.run(calls)
                if tool_calls.stuck:
                    return Ending("stuck", tool_calls.stuck, _LOOK)
            history = await turn.window.fit(turn.budget)
            turn.budget.restart_estimate()  # the window has measured the whole conversation
            reply, config = await ask_model(turn, history)
            if turn.config.tool_choice not in _UNFORCED:  # it is for the first step only
                turn.config = replace(turn.config, tool_choice="")
            calls = reply.message.tool_calls if reply.message is not None else ()
            if reply.stop_reason == "max_tokens":
                calls = _refuse_cut_call(turn, tool_calls, reply, config)
                cut_replies = 0 if calls else cut_replies + 1
                if not calls and _continues_cut_reply(turn, reply, cut_replies):
                    continue
            elif calls:
                cut_replies, turn.cut_text = 0, ""
            if reply.stop_reason in ("refusal", "error"):
                tool_calls.refuse(calls, "not run: the reply with this call broke off")
                return _ending_of(reply)
            if len(calls) > MAX_CALLS:
                calls = _refuse_surplus(tool_calls, calls)
            if calls:
                continue
            ending = _ending_of(reply)
            if ending.reason == "done" and turn.has_steering():
                turn.cut_text = ""
                continue  # a prompt was sent into what would have been the last step
            if schema is None or reply.stop_reason != "complete":
                return ending
            answer = reply.message.content if reply.message is not None else ""
            try:
                schema.fit(turn.cut_text + answer)
                return ending
            except BadReply as problem:
                if was_corrected:
                    raise
                was_corrected, turn.cut_text = True, ""
                turn.emit(MessageAdded(schema.correction(problem), by="bridle"))
    except Parked:
        return PARKED
    except BudgetReached as limit:
        return Ending("budget", limit.message, limit.hint)
    except NoRoom as full:
        return Ending("stuck", full.message, full.hint)


def _check_tool_choice(turn: TurnContext) -> None:
    """Raise `ConfigError` if the turn has to begin with a tool that does not exist."""
    choice = turn.config.tool_choice
    if choice in _UNFORCED or choice == "required" or choice in turn.tools:
        return
    known = ", ".join(sorted(turn.tools)) or "none"
    raise ConfigError(
        f"tool_choice names {choice!r}, which is not one of the tools: {known}",
        hint="Name a tool that the engine has, or write auto, none or required.",
    )


def _prepare_answer_schema(turn: TurnContext) -> AnswerSchema | None:
    """Return the schema that the answer has to fit. Tell the model, unless its API has a mode."""
    if turn.config.output_schema is None:
        return None
    schema = AnswerSchema(turn.config.output_schema)
    if not schema.is_native_to(turn.provider.info):
        turn.system = f"{turn.system}\n\n{schema.rule}" if turn.system else schema.rule
    return schema


def _refuse_cut_call(
    turn: TurnContext, tool_calls: ToolCalls, reply: ResponseCompleted, config: RequestConfig
) -> tuple[ToolCall, ...]:
    """Return the whole calls of a cut reply. Refuse the one that it was cut off in."""
    parts = reply.message.parts if reply.message is not None else ()
    calls = tuple(part for part in parts if type(part) is ToolCall)
    if not (calls and parts[-1] is calls[-1] and calls[-1].broken):
        return calls
    tokens = reply.usage.output_tokens or known_limit(config, turn.provider.info)
    place = f" at {tokens:,} tokens" if tokens else ""
    why = f"your reply was cut off in the middle of this call{place}"
    tool_calls.refuse(calls[-1:], f"Not run: {why}. Send it again in smaller parts.")
    return calls[:-1]


def _continues_cut_reply(turn: TurnContext, reply: ResponseCompleted, cut_replies: int) -> bool:
    """Return whether to ask the model again after a cut reply without a whole call.

    A cut text is continued once. A cut call was refused, and may be tried as often as any call may
    fail.
    """
    if reply.message is not None and reply.message.tool_calls:
        turn.cut_text = ""
        repeats = turn.budget.limits.repeats
        return cut_replies < repeats or not repeats
    if cut_replies > 1:
        return False
    turn.cut_text += reply.message.content if reply.message is not None else ""
    turn.emit(MessageAdded(Message("user", (Text(_CONTINUE),)), by="bridle"))
    return True


def _refuse_surplus(tool_calls: ToolCalls, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Return the calls of a reply that may run, and refuse those beyond."""
    why = f"not run: a reply may have {MAX_CALLS} calls, and this one has more"
    tool_calls.refuse(calls[MAX_CALLS:], f"{why}. Send the rest again.", "calls_per_reply")
    return calls[:MAX_CALLS]


def _ending_of(reply: ResponseCompleted) -> Ending:
    """Return how a reply without calls ends the turn. Raise `ModelRefused`."""
    if reply.stop_reason == "error":
        return Ending("failed", reply.stop_detail or "the model's side reported an error")
    if reply.stop_reason == "max_tokens":
        return Ending("max_tokens", "the reply was cut off at its token limit", _RAISE_MAX_TOKENS)
    if reply.stop_reason == "refusal":
        why = f": {reply.stop_detail}" if reply.stop_detail not in ("", "refusal") else ""
        raise ModelRefused(f"the model declined to answer{why}")
    return Ending("done")


def outcome(raised: BaseException) -> tuple[Ending, AgentError | None]:
    """Return how a turn ended that raised, and the error if it was one."""
    if isinstance(raised, asyncio.CancelledError):
        return Ending("interrupted", "the turn was interrupted"), None
    if isinstance(raised, TimedOut):
        return Ending("timeout", raised.message, raised.hint), raised
    if not isinstance(raised, AgentError):
        raised = AgentError("agent", f"something broke inside bridle: {raised!r}", raised)
    return Ending("failed", raised.message, raised.hint), raised
