"""What the SDK's messages say, as our events. A fold: messages in, events out; no I/O, no waiting.

Text, thoughts and arguments are told as they come. The calls themselves are not told here: what
the program is about to run is known to the gate alone, and it records them. What a helper of Claude
Code's own says (a subagent) is not the conversation's.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bridle.agents.claude_results import text_of
from bridle.agents.claude_tools import Roots, to_ours
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

_FIGURES = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    "thinking_tokens",
)
_TOLD = {  # the program's own notes that are worth a trace, and what of them
    "api_retry": ("attempt", "max_retries", "retry_delay_ms", "error_status", "error"),
    "permission_denied": ("tool_name", "tool_use_id", "message", "decision_reason"),
    "compact_boundary": ("compact_metadata",),
}


class Answered(NamedTuple):
    """A result as the model reads it."""

    call_id: str
    text: str
    ok: bool


class Talk:
    """One run's messages, and what they have said so far.

    `error` is the kind of a failure of the service, as the program names it. `called` are the calls
    that the model has written whole, in our words, and `plans` those plans that it wrote into one:
    the program takes them out. `said`: has the model said or begun anything?
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._streamed = ""
        self._calls: dict[int, str] = {}
        self._is_open = False  # does text stand last, with no call behind it?
        self._figures: dict[str, dict[str, Any]] = {}  # what each reply has used, by its id
        self._counted = ""
        self.called: dict[str, ToolCall] = {}
        self.plans: dict[str, str] = {}
        self.said = False
        self.session_id = ""
        self.model = ""
        self.error = ""

    def take(self, message: Any) -> list[Event]:
        """The events of one message."""
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
            self._streamed = str(event.get("message", {}).get("id", ""))
            self._calls.clear()
            return self._apart()
        if kind == "content_block_start":
            return self._block(int(event.get("index", 0)), event.get("content_block") or {})
        if kind == "content_block_delta":
            return self._delta(int(event.get("index", 0)), event.get("delta") or {})
        return []

    def _apart(self) -> list[Event]:
        """The texts of two replies do not run together where no call stands between them."""
        was_open, self._is_open = self._is_open, False
        return [TextDelta("\n\n")] if was_open else []

    def _count(self, event: dict[str, Any]) -> None:
        """What a reply uses is said when it begins, and again, for good, when it ends."""
        found: Any = event.get("usage")
        if event.get("type") == "message_start":
            message = event.get("message") or {}
            self._counted, found = str(message.get("id", "")), message.get("usage")
        if isinstance(found, dict):
            given = {key: value for key, value in found.items() if value is not None}
            self._figures[self._counted] = {**self._figures.get(self._counted, {}), **given}

    @property
    def used(self) -> Usage:
        """What all replies together have used, as far as they came."""
        each = [usage_of(one) for one in self._figures.values()]
        return Usage(*(sum(getattr(one, name) for one in each) for name in _FIGURES))

    def _block(self, index: int, block: dict[str, Any]) -> list[Event]:
        if block.get("type") != "tool_use":
            return []
        self._calls[index] = str(block["id"])
        name = to_ours(str(block["name"]), {}, self._roots).name
        return [ToolCallStarted(self._calls[index], name)]

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Event]:
        if text := delta.get("text"):
            self._is_open = True
            return [TextDelta(text)]
        if thought := delta.get("thinking"):
            return [ThinkingDelta(thought)]
        if (fragment := delta.get("partial_json")) and index in self._calls:
            return [ToolCallArgsDelta(self._calls[index], fragment)]
        return []

    def _assistant(self, message: Any) -> list[Event]:
        if message.error:  # the program speaks, not the model
            self.error = str(message.error)
            return []
        self.model = message.model
        self.said = True
        events: list[Event] = []
        for block in message.content:
            if type(block).__name__ == "ToolUseBlock":
                self._note(block)
            elif message.message_id != self._streamed:
                events += _whole(block)
        return events

    def _note(self, block: Any) -> None:
        self._is_open = False
        ours = to_ours(block.name, block.input, self._roots)
        self.called[block.id] = ToolCall(block.id, ours.name, ours.arguments)
        if block.name == "ExitPlanMode":
            self.plans[block.id] = str(block.input.get("plan") or "")

    def _system(self, subtype: str, data: dict[str, Any]) -> list[Event]:
        if subtype == "init":
            self.session_id = str(data.get("session_id", ""))
            self.model = str(data.get("model", ""))
        if (wanted := _TOLD.get(subtype)) is None:
            return []
        return [TraceEvent(f"claude_{subtype}", {key: data[key] for key in wanted if key in data})]


def _whole(block: Any) -> list[Event]:
    """A block of a reply that was not streamed."""
    if type(block).__name__ == "TextBlock" and block.text:
        return [TextDelta(block.text)]
    if type(block).__name__ == "ThinkingBlock" and block.thinking:
        return [ThinkingDelta(block.thinking)]
    return []


def answers_in(message: Any) -> Iterator[Answered]:
    """The results that a message hands to the model."""
    if type(message).__name__ == "UserMessage" and isinstance(message.content, list):
        for block in message.content:
            if type(block).__name__ == "ToolResultBlock":
                yield Answered(block.tool_use_id, text_of(block.content), not block.is_error)


def usage_of(found: dict[str, Any]) -> Usage:
    """The program's own figures for one run."""
    details = found.get("output_tokens_details") or {}
    return Usage(
        int(found.get("input_tokens") or 0),
        int(found.get("output_tokens") or 0),
        int(found.get("cache_read_input_tokens") or 0),
        int(found.get("cache_creation_input_tokens") or 0),
        int(details.get("thinking_tokens") or 0),
    )
