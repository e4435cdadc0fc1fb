"""Our spans as OpenTelemetry's, live: each is started when it begins and ended when it is over.

Names of attributes follow the conventions for generative AI (`gen_ai.*`), which have left the
common package for a repository of their own and are still changing, so they are kept here: as of
semantic conventions 1.44. What they have no name for is `bridle.*`.

Without `content` no span carries what anybody said: no prompt, no reply, no argument, no output, no
path. With it they carry what the log has, from which secrets are taken out already.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from bridle import __version__
from bridle.engine.trace import Span, SpanBuilder
from bridle.events import Event
from bridle.messages import Message, ToolCall, ToolOutput
from bridle.protocols.store import InboxMessage, Log, Record, SessionSummary, Store
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import one_line, shorten

if TYPE_CHECKING:
    from opentelemetry.trace import Span as Sent
    from opentelemetry.trace import TracerProvider

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH = "gen_ai.response.finish_reasons"
FIRST = "gen_ai.response.time_to_first_chunk"
INPUT = "gen_ai.usage.input_tokens"
OUTPUT = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
TOOL = "gen_ai.tool.name"
CALL = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
SAID = "gen_ai.input.messages"
REPLIED = "gen_ai.output.messages"
ERROR = "error.type"

_WRONG = ("failed", "timeout", "stuck", "max_tokens", "unknown")
_MAX_TEXT = 32_000  # characters of what was said
_MAX_NAME = 100  # characters of a name
_ACP = "acp:"
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Tracer:
    """The tracer for the spans of all sessions, and the tasks that are running."""

    def __init__(self, provider: "TracerProvider", *, content: bool = False) -> None:
        self.start = provider.get_tracer("bridle", __version__).start_span
        self.content = content
        self.tasks: dict[str, Sent] = {}  # by child session, whose spans are below it


class SessionSpans:
    """The open spans of one session."""

    def __init__(self, tracer: Tracer, session_id: str) -> None:
        self._tracer = tracer
        self._session_id = session_id
        self._open: dict[int, Sent] = {}
        self.muted = False

    def send(self, span: Span) -> None:
        """Start or end OpenTelemetry's span for this one."""
        if self.muted:
            return
        if span.kind == "mark":
            self._mark(span)
        elif span.over:
            self._end(span)
        else:
            self._begin(span)

    def _begin(self, span: Span) -> None:
        parent = self._parent(span)
        sent = self._open[id(span)] = self._tracer.start(
            _name(span),
            context=None if parent is None else trace.set_span_in_context(parent),
            kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
            attributes={CONVERSATION: self._session_id, **_identity(span), **_turn(span)},
            start_time=span.start * 1_000_000,
        )
        if span.kind == "task":
            self._tracer.tasks[span.child] = sent

    def _parent(self, span: Span) -> "Sent | None":
        """Return the span around it; for a session, its task or the caller's current span."""
        above = span.parent
        while above is not None:
            if (sent := self._open.get(id(above))) is not None:
                return sent
            above = above.parent  # it began in another process
        return self._tracer.tasks.get(self._session_id)

    def _end(self, span: Span) -> None:
        sent = self._open.pop(id(span), None)
        if span.kind == "task":
            self._tracer.tasks.pop(span.child, None)
        if sent is None:
            return  # it began in another process
        if span.kind == "turn":
            sent.update_name(_name(span))  # the agent's name is recorded after the start
        sent.set_attributes(_outcome(span))
        if self._tracer.content:
            sent.set_attributes(_content(span))
        if span.status in _WRONG:
            sent.set_status(Status(StatusCode.ERROR))
        sent.end(span.end * 1_000_000)

    def _mark(self, span: Span) -> None:
        """Add a mark, which has no duration, as an event to the span around it."""
        parent = self._parent(span)
        if span.over and parent is not None:
            parent.add_event(f"bridle.{span.name}", timestamp=span.end * 1_000_000)


def _name(span: Span) -> str:
    """Return one of few names: what differs between spans is in their attributes."""
    if span.kind == "model":
        return f"chat {_model(span.model)[1]}".rstrip()
    if span.kind == "tool":
        return f"execute_tool {_short(span.name)}"
    if span.kind == "turn":
        return f"invoke_agent {_agent(span.detail)}"
    if span.kind == "wait":
        return "wait for approval" if span.call_id else "turn parked"
    return span.kind


def _model(label: str) -> tuple[str, str]:
    """Split `anthropic/claude-…` into provider and model; an agent's label names no model."""
    if label.startswith(_ACP):
        return _agent(label), ""
    provider, slash, model = label.partition("/")
    return (_short(provider), _short(model)) if slash else ("", _short(label))


def _agent(name: str) -> str:
    """Return the agent's name; of a command line only the program, as the rest may be private."""
    if name.startswith(_ACP):
        program = name.removeprefix(_ACP).split()
        return _ACP + _short(PurePath(program[0]).name if program else "")
    return _short(name) or "bridle"


def _short(name: str) -> str:
    """Shorten a name that somebody else has chosen, such as that of an unknown tool."""
    return one_line(name, _MAX_NAME)


def _identity(span: Span) -> dict[str, Any]:
    """Return the attributes that are known at the start."""
    attributes: dict[str, Any] = {"bridle.kind": span.kind}
    if span.kind == "model":
        provider, model = _model(span.model)
        attributes |= {OPERATION: "chat", REQUEST_MODEL: model, PROVIDER: provider}
        attributes["bridle.purpose"] = span.detail
    elif span.kind == "turn":
        attributes[OPERATION] = "invoke_agent"
    elif span.kind == "step":
        attributes["bridle.step"] = span.number
    elif span.kind == "tool":
        attributes |= {
            OPERATION: "execute_tool",
            TOOL: _short(span.name),
            CALL: _short(span.call_id),
        }
    elif span.kind == "wait" and isinstance(span.request, ToolCall):
        attributes |= {TOOL: _short(span.request.name), CALL: _short(span.call_id)}
    elif span.kind == "task":
        attributes |= {"bridle.task.session": span.child, AGENT: _agent(span.detail)}
        attributes[CALL] = _short(span.call_id)
    return {key: value for key, value in attributes.items() if value}


def _turn(span: Span) -> dict[str, int]:
    """Return the number of the turn that it belongs to, as an attribute."""
    turn: Span | None = span
    while turn is not None and turn.kind != "turn" and not (turn.kind == "wait" and turn.number):
        turn = turn.parent
    return {} if turn is None else {"bridle.turn": turn.number}


def _outcome(span: Span) -> dict[str, Any]:
    """Return the attributes that are known at the end."""
    attributes: dict[str, Any] = {"bridle.status": span.status, **_usage(span.used)}
    attributes[ERROR] = span.error or (span.status if span.status in _WRONG else "")
    attributes["bridle.retries"] = span.retries
    if span.kind == "turn":
        attributes[AGENT] = _agent(span.detail)
    if span.kind == "model":
        attributes |= {RESPONSE_MODEL: _model(span.model)[1], RESPONSE_ID: span.request_id}
        attributes[FINISH] = (span.stop_reason,) if span.stop_reason else ()
        if span.first:
            attributes[FIRST] = max(0, span.first - span.start) / 1000
    return {key: value for key, value in attributes.items() if value or key == FIRST}


def _usage(used: ExecutionMetrics) -> dict[str, Any]:
    """Return tokens and dollars. An unknown price is left out and counted, never zero."""
    if not used.invocations:
        return {}
    attributes: dict[str, Any] = {
        INPUT: used.tokens - used.total_output_tokens,
        OUTPUT: used.total_output_tokens,
        CACHE_READ: used.cache_read_tokens,
        CACHE_WRITE: used.cache_write_tokens,
        "bridle.unpriced": used.unpriced,
    }
    if used.unpriced < used.invocations:
        attributes["bridle.cost.usd"] = used.cost or 0.0
    return attributes


def _content(span: Span) -> dict[str, str]:
    """Return prompts, arguments, results and replies, which are sent only with `content`."""
    attributes: dict[str, str] = {}
    if isinstance(span.request, str):
        attributes[SAID] = _as_json([{"role": "user", "parts": [_text(span.request)]}])
    if span.kind == "tool" and isinstance(span.request, ToolCall):
        attributes[ARGUMENTS] = _as_json(span.request.arguments)
    if isinstance(span.response, ToolOutput):
        attributes[RESULT] = shorten(span.response.text, _MAX_TEXT)
    if isinstance(span.response, Message):
        calls = [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
            for call in span.response.tool_calls
        ]
        text = [_text(span.response.content)] if span.response.content else []
        reason = {"finish_reason": span.stop_reason}
        attributes[REPLIED] = _as_json([{"role": "assistant", "parts": text + calls, **reason}])
    return attributes


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": shorten(content, _MAX_TEXT)}


def _as_json(value: Any) -> str:
    return shorten(_encode(value).decode(), 2 * _MAX_TEXT)


log = logging.getLogger(__name__)


class TracedStore:
    """A store that also sends spans of what its logs record."""

    def __init__(self, store: Store, provider: "TracerProvider", *, content: bool = False) -> None:
        self._store = store
        self._tracer = Tracer(provider, content=content)

    def create(self, session_id: str) -> "TracedLog":
        """Create a log."""
        return TracedLog(self._store.create(session_id), _SpanWriter(self._tracer, session_id))

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> "TracedLog":
        """Resume a log. No spans are sent for its earlier records: another process did."""
        writer = _SpanWriter(self._tracer, session_id)

        def apply_and_add(record: Record) -> None:
            apply(record)
            writer.add(record)

        writer.mute()
        inner = await self._store.resume(session_id, apply_and_add)
        writer.unmute()
        return TracedLog(inner, writer)

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """Yield the records that have been written."""
        return self._store.read(session_id, after)

    def sessions(self) -> list[SessionSummary]:
        """Return all sessions, the newest first."""
        return self._store.sessions()

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox."""
        self._store.send_message(session_id, message)

    def delete(self, session_id: str) -> None:
        """Remove a session that no process owns."""
        self._store.delete(session_id)

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` when there may be new messages."""
        self._store.listen(on_message)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __getattr__(self, name: str) -> Any:
        """Return what a store has besides its protocol, such as its folder."""
        return getattr(self._store, name)


class TracedLog:
    """A log whose records are also sent as spans."""

    def __init__(self, inner: Log, writer: "_SpanWriter") -> None:
        self._log = inner
        self._writer = writer
        self.settled = inner.settled
        self.on_written: Callable[[Callable[[Sequence[Record]], None] | None], None]
        self.on_written = inner.on_written
        self.label = inner.label
        self.inbox_messages = inner.inbox_messages
        self.discard = inner.discard

    @property
    def session_id(self) -> str:
        """The id of its session."""
        return self._log.session_id

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self._log.seq

    @property
    def durable(self) -> int:
        """The number of the newest record that would survive a crash."""
        return self._log.durable

    @property
    def head(self) -> str:
        """The hash of the newest record."""
        return self._log.head

    @property
    def size(self) -> int:
        """Bytes since the newest checkpoint."""
        return self._log.size

    @property
    def weight(self) -> int:
        """Bytes of the newest checkpoint."""
        return self._log.weight

    def append(self, event: Event, data: bytes | None = None) -> Record:
        """Append it to the log, and send spans for it."""
        record = self._log.append(event, data)
        self._writer.add(record)
        return record

    async def close(self) -> None:
        """Close the log, and end the spans that are open."""
        try:
            await self._log.close()
        finally:
            self._writer.close()

    def __getattr__(self, name: str) -> Any:
        """Return what a log has besides its protocol, such as its path."""
        return getattr(self._log, name)


class _SpanWriter:
    """Builds and sends the spans of one log. Never raises."""

    def __init__(self, tracer: Tracer, session_id: str) -> None:
        self._spans = SessionSpans(tracer, session_id)
        self._builder: SpanBuilder | None = SpanBuilder(self._spans.send)

    def mute(self) -> None:
        """Send no spans for the records that follow."""
        self._spans.muted = True

    def unmute(self) -> None:
        """Send spans from now on, below a session span of their own."""
        self._spans.muted = False
        if self._builder is not None:
            self._builder.restart()

    def add(self, record: Record) -> None:
        """Send spans for one more record."""
        if self._builder is not None:
            self._try(self._builder.apply, record)

    def close(self) -> None:
        """End the spans that are open."""
        if self._builder is not None:
            self._try(self._builder.close)
            self._builder = None

    def _try(self, work: Callable[..., None], *given: Record) -> None:
        try:
            work(*given)
        except Exception:  # an exporter's failure must not end a session
            log.warning("the spans of a session are lost from here on", exc_info=True)
            self._builder = None
