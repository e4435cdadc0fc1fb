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
_MOST = 32_000  # characters of what was said
_LONGEST = 100  # characters of a name
_ACP = "acp:"
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Tracer:
    """Where the spans of all sessions go, and which tasks are under way."""

    def __init__(self, provider: "TracerProvider", *, content: bool = False) -> None:
        self.start = provider.get_tracer("bridle", __version__).start_span
        self.content = content
        self.tasks: dict[str, Sent] = {}  # by child session, whose spans go below


class Sending:
    """The open spans of one session."""

    def __init__(self, tracer: Tracer, session_id: str) -> None:
        self._tracer = tracer
        self._session_id = session_id
        self._open: dict[int, Sent] = {}
        self.muted = False

    def tell(self, span: Span) -> None:
        """A span has begun, or is over."""
        if self.muted:
            return
        if span.kind == "mark":
            self._mark(span)
        elif span.over:
            self._end(span)
        else:
            self._begin(span)

    def _begin(self, span: Span) -> None:
        above = self._above(span)
        sent = self._open[id(span)] = self._tracer.start(
            _name(span),
            context=None if above is None else trace.set_span_in_context(above),
            kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
            attributes={CONVERSATION: self._session_id, **_identity(span), **_turn(span)},
            start_time=span.start * 1_000_000,
        )
        if span.kind == "task":
            self._tracer.tasks[span.child] = sent

    def _above(self, span: Span) -> "Sent | None":
        """The span that it lies in; of a session its task, or whatever the caller is in."""
        above = span.parent
        while above is not None:
            if (found := self._open.get(id(above))) is not None:
                return found
            above = above.parent  # it began in another process
        return self._tracer.tasks.get(self._session_id)

    def _end(self, span: Span) -> None:
        sent = self._open.pop(id(span), None)
        if span.kind == "task":
            self._tracer.tasks.pop(span.child, None)
        if sent is None:
            return  # it began in another process
        if span.kind == "turn":
            sent.update_name(_name(span))  # who carries it is said after it has begun
        sent.set_attributes(_outcome(span))
        if self._tracer.content:
            sent.set_attributes(_content(span))
        if span.status in _WRONG:
            sent.set_status(Status(StatusCode.ERROR))
        sent.end(span.end * 1_000_000)

    def _mark(self, span: Span) -> None:
        """A moment and no time: an event of the span around it."""
        above = self._above(span)
        if span.over and above is not None:
            above.add_event(f"bridle.{span.name}", timestamp=span.end * 1_000_000)


def _name(span: Span) -> str:
    """A name of few: what differs from one to the next is an attribute."""
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
    """`anthropic/claude-…` as provider and model; another agent's label is no model's name."""
    if label.startswith(_ACP):
        return _agent(label), ""
    provider, slash, model = label.partition("/")
    return (_short(provider), _short(model)) if slash else ("", _short(label))


def _agent(name: str) -> str:
    """Who carries a turn. Of a command line only the program: the rest may say anything."""
    if name.startswith(_ACP):
        program = name.removeprefix(_ACP).split()
        return _ACP + _short(PurePath(program[0]).name if program else "")
    return _short(name) or "bridle"


def _short(name: str) -> str:
    """A name that somebody else has chosen, such as a model that asks for a tool there is not."""
    return one_line(name, _LONGEST)


def _identity(span: Span) -> dict[str, Any]:
    """What is known of a span when it begins."""
    found: dict[str, Any] = {"bridle.kind": span.kind}
    if span.kind == "model":
        provider, model = _model(span.model)
        found |= {OPERATION: "chat", REQUEST_MODEL: model, PROVIDER: provider}
        found["bridle.purpose"] = span.detail
    elif span.kind == "turn":
        found[OPERATION] = "invoke_agent"
    elif span.kind == "step":
        found["bridle.step"] = span.number
    elif span.kind == "tool":
        found |= {OPERATION: "execute_tool", TOOL: _short(span.name), CALL: _short(span.call_id)}
    elif span.kind == "wait" and isinstance(span.request, ToolCall):
        found |= {TOOL: _short(span.request.name), CALL: _short(span.call_id)}
    elif span.kind == "task":
        found |= {"bridle.task.session": span.child, AGENT: _agent(span.detail)}
        found[CALL] = _short(span.call_id)
    return {key: value for key, value in found.items() if value}


def _turn(span: Span) -> dict[str, int]:
    """The turn that it belongs to."""
    one: Span | None = span
    while one is not None and one.kind != "turn" and not (one.kind == "wait" and one.number):
        one = one.parent
    return {} if one is None else {"bridle.turn": one.number}


def _outcome(span: Span) -> dict[str, Any]:
    """What is known when it is over."""
    found: dict[str, Any] = {"bridle.status": span.status, **_use(span.used)}
    found[ERROR] = span.error or (span.status if span.status in _WRONG else "")
    found["bridle.retries"] = span.retries
    if span.kind == "turn":
        found[AGENT] = _agent(span.detail)
    if span.kind == "model":
        found |= {RESPONSE_MODEL: _model(span.model)[1], RESPONSE_ID: span.request_id}
        found[FINISH] = (span.stop_reason,) if span.stop_reason else ()
        if span.first:
            found[FIRST] = max(0, span.first - span.start) / 1000
    return {key: value for key, value in found.items() if value or key == FIRST}


def _use(used: ExecutionMetrics) -> dict[str, Any]:
    """Tokens and dollars. An unknown price is left out and counted, never zero."""
    if not used.invocations:
        return {}
    found: dict[str, Any] = {
        INPUT: used.tokens - used.total_output_tokens,
        OUTPUT: used.total_output_tokens,
        CACHE_READ: used.cache_read_tokens,
        CACHE_WRITE: used.cache_write_tokens,
        "bridle.unpriced": used.unpriced,
    }
    if used.unpriced < used.invocations:
        found["bridle.cost.usd"] = used.cost or 0.0
    return found


def _content(span: Span) -> dict[str, str]:
    """What was said, for those who have asked for it."""
    found: dict[str, str] = {}
    if isinstance(span.request, str):
        found[SAID] = _written([{"role": "user", "parts": [_text(span.request)]}])
    if span.kind == "tool" and isinstance(span.request, ToolCall):
        found[ARGUMENTS] = _written(span.request.arguments)
    if isinstance(span.response, ToolOutput):
        found[RESULT] = shorten(span.response.text, _MOST)
    if isinstance(span.response, Message):
        calls = [
            {"type": "tool_call", "id": one.id, "name": one.name, "arguments": one.arguments}
            for one in span.response.tool_calls
        ]
        text = [_text(span.response.content)] if span.response.content else []
        reason = {"finish_reason": span.stop_reason}
        found[REPLIED] = _written([{"role": "assistant", "parts": text + calls, **reason}])
    return found


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": shorten(content, _MOST)}


def _written(value: Any) -> str:
    return shorten(_encode(value).decode(), 2 * _MOST)


log = logging.getLogger(__name__)


class TracedStore:
    """Where sessions are kept, and their spans told."""

    def __init__(self, store: Store, provider: "TracerProvider", *, content: bool = False) -> None:
        self._store = store
        self._tracer = Tracer(provider, content=content)

    def create(self, session_id: str) -> "TracedLog":
        """A new log."""
        return TracedLog(self._store.create(session_id), _Watch(self._tracer, session_id))

    async def resume(self, session_id: str, apply: Callable[[Record], None]) -> "TracedLog":
        """Take a log up; what stands in it was another process's, and is told by nobody."""
        watch = _Watch(self._tracer, session_id)

        def both(record: Record) -> None:
            apply(record)
            watch.take(record)

        watch.mute()
        inner = await self._store.resume(session_id, both)
        watch.unmute()
        return TracedLog(inner, watch)

    def read(self, session_id: str, after: int = 0) -> Iterator[Record]:
        """The records that have been written."""
        return self._store.read(session_id, after)

    def sessions(self) -> list[SessionSummary]:
        """All sessions, the newest first."""
        return self._store.sessions()

    def send_message(self, session_id: str, message: InboxMessage) -> None:
        """Put a message into a session's inbox."""
        self._store.send_message(session_id, message)

    def delete(self, session_id: str) -> None:
        """Remove a session that nobody holds."""
        self._store.delete(session_id)

    def listen(self, on_message: Callable[[], None] | None) -> None:
        """Call `on_message` when there may be new messages."""
        self._store.listen(on_message)

    def close(self) -> None:
        """Let go of threads and clocks."""
        self._store.close()

    def __getattr__(self, name: str) -> Any:
        """What a store has beyond its promise, such as its folder."""
        return getattr(self._store, name)


class TracedLog:
    """A log whose records are told as spans."""

    def __init__(self, inner: Log, watch: "_Watch") -> None:
        self._log = inner
        self._watch = watch
        self.settled = inner.settled
        self.on_written: Callable[[Callable[[Sequence[Record]], None] | None], None]
        self.on_written = inner.on_written
        self.label = inner.label
        self.inbox_messages = inner.inbox_messages
        self.discard = inner.discard

    @property
    def session_id(self) -> str:
        """Whose log it is."""
        return self._log.session_id

    @property
    def seq(self) -> int:
        """The number of the newest record."""
        return self._log.seq

    @property
    def durable(self) -> int:
        """The number up to which everything would survive."""
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
        """Number it, hand it on, look at it."""
        record = self._log.append(event, data)
        self._watch.take(record)
        return record

    async def close(self) -> None:
        """Settle and let go; what is open is over."""
        try:
            await self._log.close()
        finally:
            self._watch.close()

    def __getattr__(self, name: str) -> Any:
        """What a log has beyond its promise, such as its path."""
        return getattr(self._log, name)


class _Watch:
    """The fold of one log and where its spans go. It never raises."""

    def __init__(self, tracer: Tracer, session_id: str) -> None:
        self._sending = Sending(tracer, session_id)
        self._tracing: SpanBuilder | None = SpanBuilder(self._sending.tell)

    def mute(self) -> None:
        """Tell nothing of what comes."""
        self._sending.muted = True

    def unmute(self) -> None:
        """Tell of what comes now, under a session span of its own."""
        self._sending.muted = False
        if self._tracing is not None:
            self._tracing.restart()

    def take(self, record: Record) -> None:
        """One more record."""
        if self._tracing is not None:
            self._guarded(self._tracing.apply, record)

    def close(self) -> None:
        """There will be no more."""
        if self._tracing is not None:
            self._guarded(self._tracing.close)
            self._tracing = None

    def _guarded(self, work: Callable[..., None], *given: Record) -> None:
        try:
            work(*given)
        except Exception:  # somebody's exporter: a session does not end for that
            log.warning("the spans of a session are lost from here on", exc_info=True)
            self._tracing = None
