"""A span: something that took time in a session, and what it used. And spans as a tree.

Spans are made by `tracing.py`, which reads records; a reader keeps what it wants of them. This
knows neither records nor where spans are shown or sent.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct, field

from bridle.usage import ExecutionMetrics

Kind = Literal["session", "turn", "step", "model", "tool", "task", "wait", "mark"]
Status = Literal[
    "open",  # it has not ended, or nobody knows that it has
    "ok",
    "failed",
    "refused",  # it was not let through: by a rule, by a person, by what it is
    "interrupted",
    "unknown",  # it had begun, and nothing says whether it ended
    "not_run",
    "parked",
    "timeout",
    "budget",
    "stuck",
    "max_tokens",
]


NOTHING = ExecutionMetrics()


class Span(Struct, eq=False):
    """From `start` to `end`, in milliseconds since 1970. It grows until it is `over`.

    `seq` is the record that showed it. `number` is the turn's or the step's. `used` is what it and
    everything below it used. `asked` and `answer` are what was said, for readers that may show it:
    a turn's prompt; a call and its output; a model's reply. `child` is a task's session. `detail`
    is what kind of error it was, what a model was asked for besides the turn, who carries a turn,
    what a mark says. `first` is when the first of a reply was there. `retries` were tries that
    failed before it.
    """

    kind: Kind
    name: str
    parent: "Span | None" = None
    seq: int = 0
    start: int = 0
    end: int = 0
    over: bool = False
    status: Status = "open"
    number: int = 0
    used: ExecutionMetrics = NOTHING
    model: str = ""
    stop_reason: str = ""
    request_id: str = ""
    error: str = ""
    call_id: str = ""
    child: str = ""
    detail: str = ""
    first: int = 0
    retries: int = 0
    asked: Any = None
    answer: Any = None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1000

    @property
    def id(self) -> str:
        """Its name in its session: one record can show several spans, of one kind each or call."""
        return f"{self.kind}-{self.seq}" + (f"-{self.call_id}" if self.call_id else "")


Tell = Callable[[Span], None]


def summed(one: ExecutionMetrics, other: ExecutionMetrics) -> ExecutionMetrics:
    """Both together; `context_tokens` is the newer one's."""
    return ExecutionMetrics(
        one.total_input_tokens + other.total_input_tokens,
        one.total_output_tokens + other.total_output_tokens,
        one.invocations + other.invocations,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        other.context_tokens,
        one.tool_calls + other.tool_calls,
        one.cost + other.cost,
        one.unpriced + other.unpriced,
        one.tokens + other.tokens,
    )


def spend(used: ExecutionMetrics, *spans: Span | None) -> None:
    """Count it for each of them."""
    if used is not NOTHING:
        for span in spans:
            if span is not None:
                span.used = summed(span.used, used)


class Node(Struct, eq=False):
    """A span and what is below it, in the order in which it began."""

    span: Span
    below: "list[Node]" = field(default_factory=list)

    def walk(self) -> "Iterator[Node]":
        """This one and all below, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.below)


class Growing:
    """Puts spans into a tree as they begin. It keeps all of them: for logs that are not huge."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: dict[int, Node] = {}

    def tell(self, span: Span) -> None:
        """A span has begun, or is over."""
        if span.over:
            self._open.pop(id(span), None)
            return
        node = self._open[id(span)] = Node(span)
        above = self._open.get(id(span.parent))
        if above is not None:
            above.below.append(node)
        else:
            self.root = node
