"""The protocol of adapters to model APIs, and what goes in and comes out."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from bridle.errors import AgentError, StreamCutShort
from bridle.events import ModelEvent, ResponseCompleted, StopReason, TraceEvent
from bridle.messages import Message, ToolCall
from bridle.usage import Price, Usage


class RequestConfig(Struct, frozen=True, omit_defaults=True):
    """Settings of one request; without a value, the provider's default applies.

    `tool_choice`: "auto", "none", "required", or a tool's name; the last two are for the first step
    of a turn, so that the model can end it. `effort`: how long to think, from
    "none" to "max". `output_schema`: the JSON Schema that the reply has to fit.
    """

    max_tokens: int = 0
    temperature: float | None = None
    effort: str = ""
    tool_choice: str = ""
    stop: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None


class ToolDeclaration(Protocol):
    """As much of a tool as a model gets to know."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...


class Request(Struct, frozen=True):
    """One call of a model: the conversation so far, the tools it may call, the settings."""

    messages: Sequence[Message]
    tools: Sequence[ToolDeclaration] = ()
    config: RequestConfig = RequestConfig()
    system: str = ""


class Response(Struct, frozen=True):
    """A whole reply, without its stream."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop_reason: StopReason = "complete"
    message: Message = Message("assistant")
    model: str = ""
    request_id: str = ""


Thinks = Literal["none", "budget", "adaptive"]


class ProviderInfo(Struct, frozen=True):
    """What is known about a provider and its model. None is unknown.

    `thinks` says how a model takes `effort`: not at all, as a number of tokens, or as it is.
    """

    name: str
    model: str = ""
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    local: bool = False
    native_schema: bool = False
    thinks: Thinks | None = None

    @property
    def label(self) -> str:
        """Provider and model, as a person writes them."""
        return f"{self.name}/{self.model}" if self.model else self.name


_LONGEST_REPLY = 32_000  # tokens, if nobody set a limit


def reply_limit(config: RequestConfig, info: ProviderInfo) -> int:
    """The tokens that a reply may have, thinking included.

    `max_tokens` if it is set; else the smaller of the model's maximum and 32,000.
    """
    return config.max_tokens or min(info.max_output or _LONGEST_REPLY, _LONGEST_REPLY)


def known_limit(config: RequestConfig, info: ProviderInfo) -> int:
    """The same for an API that needs no limit: 0 if nobody set one and the model is unknown."""
    return reply_limit(config, info) if config.max_tokens or info.max_output else 0


class Retry(Struct, frozen=True):
    """Another try of a failed request: the event that announces it, and how long to wait."""

    trace: TraceEvent
    seconds: float
    pause: Callable[[float], Awaitable[object]]

    async def wait(self) -> None:
        """Wait until it is time."""
        await self.pause(self.seconds)


class Tries(Protocol):
    """The tries of one request."""

    def after(self, error: AgentError) -> Retry | None:
        """Return the next try after this failure, or None if there are no more."""
        ...


class RetryPolicy(Protocol):
    """How often, and for how long, a failed request is retried."""

    def begin(self) -> Tries: ...


def retry_policy_of(provider: "Provider") -> RetryPolicy | None:
    """Return the provider's retry policy, if any. It also applies to replies that break off."""
    policy: RetryPolicy | None = getattr(provider, "retry_policy", None)
    return policy


class Provider(Protocol):
    """An adapter to a model API. One that retries has a `retry_policy`."""

    @property
    def info(self) -> ProviderInfo: ...

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield events as they come, then exactly one `ResponseCompleted`. Raise `AgentError`.

        `ToolCallReady` comes when a call's arguments are whole and parse. The message of
        `ResponseCompleted` holds the same text, thinking and calls that were streamed.
        Closing the generator ends the request at once.
        """
        ...

    async def close(self) -> None:
        """Close connections. A closed provider may be used again."""
        ...


async def drain(events: AsyncGenerator[ModelEvent, None]) -> Response:
    """Read a stream to its end and return the reply."""
    try:
        async for event in events:
            if isinstance(event, ResponseCompleted):
                return to_response(event)
    finally:
        await events.aclose()
    raise StreamCutShort("the stream ended before the reply did")


def to_response(done: ResponseCompleted) -> Response:
    """Return the end of a stream as a whole reply."""
    message = done.message or Message("assistant")
    return Response(
        content=message.content,
        tool_calls=message.tool_calls,
        usage=done.usage,
        stop_reason=done.stop_reason,
        message=message,
        model=done.model,
        request_id=done.request_id,
    )
