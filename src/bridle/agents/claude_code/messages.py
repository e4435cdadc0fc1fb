"""The SDK's messages as our events. A fold: messages in, events out; no I/O, no waiting.

Text, thoughts and arguments become events as they come. The calls themselves do not: the gate
records what the program is about to run. What a subagent of Claude Code says is not part of the
conversation.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from bridle.agents.claude_code.tool_mapping import Roots, content_text, to_ours
from bridle.events import (
    Event,
    TextDelta,
    ThinkingDelta,
    ToolCallArgsDelta,
    ToolCallStarted,
    TraceEvent,
)
from bridle.messages import ToolCall
from bridle.usage import Usage
from bridle.workspace.text import neutral, shorten

_TOKENS = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    "thinking_tokens",
)
_TRACED = {  # system messages that are recorded as traces, and which fields
    "api_retry": ("attempt", "max_retries", "retry_delay_ms", "error_status", "error"),
    "permission_denied": ("tool_name", "tool_use_id", "message", "decision_reason"),
    "compact_boundary": ("compact_metadata",),
}


class Result(NamedTuple):
    """The result of a call as the model reads it."""

    call_id: str
    text: str
    ok: bool


class MessageReader:
    """Reads one run's messages, and remembers what they have said so far.

    `error` is the kind of a failure of the service, as the program names it. `calls` are the calls
    that the model has written completely, as calls of our tools. `plans` are the plans in them,
    which the program takes out of a call. `has_reply`: has the model said or begun anything?
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._streamed_id = ""
        self._call_ids: dict[int, str] = {}  # of the reply that is streamed, by position
        self._ends_with_text = False  # has text come last, without a call after it?
        self._usages: dict[str, dict[str, Any]] = {}  # the tokens of each reply, by its id
        self._counted_id = ""
        self.calls: dict[str, ToolCall] = {}
        self.plans: dict[str, str] = {}
        self.has_reply = False
        self.session_id = ""
        self.model = ""
        self.error = ""

    def read(self, message: Any) -> list[Event]:
        """Return the events of one message."""
        kind = type(message).__name__
        if kind == "StreamEvent":
            self._count(message.event)
            return [] if message.parent_tool_use_id else self._stream(message.event)
        if kind == "AssistantMessage":
            return [] if message.parent_tool_use_id else self._assistant(message)
        if kind == "SystemMessage":
            return self._system(message.subtype, message.data)
        return []

    def _stream(self, event: dict[str, Any]) -> list[Event]:
        kind = event.get("type")
        if kind == "message_start":
            self._streamed_id = str(event.get("message", {}).get("id", ""))
            self._call_ids.clear()
            return self._separate_texts()
        if kind == "content_block_start":
            return self._block(int(event.get("index", 0)), event.get("content_block") or {})
        if kind == "content_block_delta":
            return self._delta(int(event.get("index", 0)), event.get("delta") or {})
        return []

    def _separate_texts(self) -> list[Event]:
        """Put a blank line between the texts of two replies without a call between them."""
        had_text, self._ends_with_text = self._ends_with_text, False
        return [TextDelta("\n\n")] if had_text else []

    def _count(self, event: dict[str, Any]) -> None:
        """Note the tokens of a reply, which come when it begins and again when it ends."""
        usage: Any = event.get("usage")
        if event.get("type") == "message_start":
            message = event.get("message") or {}
            self._counted_id, usage = str(message.get("id", "")), message.get("usage")
        if isinstance(usage, dict):
            known = {key: value for key, value in usage.items() if value is not None}
            self._usages[self._counted_id] = {**self._usages.get(self._counted_id, {}), **known}

    @property
    def usage(self) -> Usage:
        """What all replies so far have used."""
        usages = [to_usage(usage) for usage in self._usages.values()]
        return Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in _TOKENS})

    def _block(self, index: int, block: dict[str, Any]) -> list[Event]:
        if block.get("type") != "tool_use":
            return []
        self._call_ids[index] = str(block["id"])
        name = to_ours(str(block["name"]), {}, self._roots).name
        return [ToolCallStarted(self._call_ids[index], name)]

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        if text := delta.get("text"):
            self._ends_with_text = True
            return [TextDelta(text)]
        if thought := delta.get("thinking"):
            return [ThinkingDelta(thought)]
        if (fragment := delta.get("partial_json")) and index in self._call_ids:
            return [ToolCallArgsDelta(self._call_ids[index], fragment)]
        return []

    def _assistant(self, message: Any) -> list[Event]:
        if message.error:  # the program speaks, not the model
            self.error = str(message.error)
            return []
        self.model = message.model
        self.has_reply = True
        events: list[Event] = []
        for block in message.content:
            if type(block).__name__ == "ToolUseBlock":
                self._note(block)
            elif message.message_id != self._streamed_id:
                events += _block_events(block)
        return events

    def _note(self, block: Any) -> None:
        self._ends_with_text = False
        ours = to_ours(block.name, block.input, self._roots)
        self.calls[block.id] = ToolCall(block.id, ours.name, ours.arguments)
        if block.name == "ExitPlanMode":
            self.plans[block.id] = str(block.input.get("plan") or "")

    def _system(self, subtype: str, data: dict[str, Any]) -> list[Event]:
        if subtype == "init":
            self.session_id = str(data.get("session_id", ""))
            self.model = str(data.get("model", ""))
        if (fields := _TRACED.get(subtype)) is None:
            return []
        return [TraceEvent(f"claude_{subtype}", {key: data[key] for key in fields if key in data})]


def _block_events(block: Any) -> list[Event]:
    """Return the events of a block of a reply that was not streamed."""
    if type(block).__name__ == "TextBlock" and block.text:
        return [TextDelta(block.text)]
    if type(block).__name__ == "ThinkingBlock" and block.thinking:
        return [ThinkingDelta(block.thinking)]
    return []


def tool_results(message: Any) -> Iterator[Result]:
    """Yield the results that a message hands to the model."""
    if type(message).__name__ == "UserMessage" and isinstance(message.content, list):
        for block in message.content:
            if type(block).__name__ == "ToolResultBlock":
                yield Result(block.tool_use_id, content_text(block.content), not block.is_error)


def to_usage(figures: dict[str, Any]) -> Usage:
    """Return the tokens that the program reports."""
    details = figures.get("output_tokens_details") or {}
    return Usage(
        input_tokens=int(figures.get("input_tokens") or 0),
        output_tokens=int(figures.get("output_tokens") or 0),
        cache_read_tokens=int(figures.get("cache_read_input_tokens") or 0),
        cache_write_tokens=int(figures.get("cache_creation_input_tokens") or 0),
        thinking_tokens=int(details.get("thinking_tokens") or 0),
    )


# How a run of Claude Code ended, by what the SDK reports and never by words in a text. Pure.
#
# done       the model has answered
# stopped    somebody has interrupted it
# stale      the conversation that was to be resumed no longer exists: nothing has run
# transient  the service failed in a way that may have passed at the next attempt
# limit      a limit of turns or money was reached
# failed     anything else: the content says what, and what to do

Kind = Literal["done", "stopped", "stale", "transient", "limit", "failed"]
UNAVAILABLE = "The AI service is temporarily unavailable. Please try again in a moment."
_SIGN_IN = (
    "Set ANTHROPIC_API_KEY to a valid key, or start `claude` once and sign in; "
    "what was done until then is in the log."
)
_CHANGE_REQUEST = (
    "The same would be refused again: try another model, a shorter prompt or a new session; "
    "what was done until then is in the log."
)
_TRANSIENT = ("server_error", "overloaded", "rate_limit")  # as the program names them
_REFUSED = ("authentication_failed", "billing_error", "oauth_org_not_allowed")
_LIMITS = {
    "error_max_turns": "It stopped at the limit of turns",
    "error_max_budget_usd": "It stopped at the limit of money",
}
_SHOWN = 1000  # characters of what the program says


class Outcome(Struct, frozen=True):
    """The outcome of one run. `total_cost`: of the whole conversation, if the program said so."""

    kind: Kind
    content: str = ""
    session_id: str = ""
    total_cost: float | None = None
    usage: dict[str, Any] = {}
    duration_ms: int = 0
    num_turns: int = 0


def outcome_of(result: Any, error: str, *, resumed: bool) -> Outcome:
    """Return the outcome of a run with a result. `error`: the error that the last message named."""
    kind, content = _kind(result, error, resumed=resumed)
    return Outcome(
        kind=kind,
        content=content,
        session_id=result.session_id or "",
        total_cost=result.total_cost_usd,
        usage=result.usage or {},
        duration_ms=result.duration_ms or 0,
        num_turns=result.num_turns or 0,
    )


def _kind(result: Any, error: str, *, resumed: bool) -> tuple[Kind, str]:
    text = shorten(neutral(result.result or "; ".join(result.errors or [])), _SHOWN)
    if not result.is_error and (result.num_turns or not resumed):
        return "done", result.result or ""
    if str(result.terminal_reason or "").startswith("aborted"):
        return "stopped", "It was stopped."
    if resumed and not (result.num_turns or result.api_error_status or error):
        return "stale", text  # a service that refused the first request is another matter
    if result.subtype in _LIMITS:
        return "limit", f"{_LIMITS[result.subtype]} ({text}). What was done until then is kept."
    if is_transient(result.api_error_status, error):
        return "transient", UNAVAILABLE
    if result.api_error_status in (401, 403) or error in _REFUSED:
        return "failed", f"Claude Code was refused by the service: {_sentence(text)} {_SIGN_IN}"
    if result.api_error_status in (400, 413, 422):
        return "failed", f"The service refused the request: {_sentence(text)} {_CHANGE_REQUEST}"
    return "failed", f"Claude Code reported an error: {text or result.subtype}"


def _sentence(text: str) -> str:
    text = text.rstrip() or "it did not say why"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def is_transient(status: int | None, error: str) -> bool:
    """May another attempt work? An error in the middle of a stream has a name, but no status."""
    if status is not None:
        return status == 429 or status >= 500
    return error in _TRANSIENT


def is_stale(report: Mapping[str, Any]) -> bool:
    """Is this the report of a program that could not resume, and ended before its first turn?"""
    return (
        bool(report.get("is_error"))
        and not report.get("num_turns")
        and report.get("api_error_status") is None
    )
