"""The official SDKs as a second transport into the same readers (extra `sdk`).

For Bedrock, Vertex, Azure and special ways to log in: hand in the vendor's own async client. The
request is ours, the SDK signs and sends it, and its bytes go to our reader as they come. The SDKs
are imported here, when one is asked for, and nowhere else. Their own retries are switched off.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any

import msgspec

from bridle.distribution import install_hint
from bridle.errors import (
    AgentError,
    ConfigError,
    MissingExtra,
    Origin,
    StreamCutShort,
    StreamStalled,
    Unreachable,
)
from bridle.providers.anthropic import without_version
from bridle.providers.http_errors import error_from_status, remove_key, request_id_in
from bridle.providers.wire import Headers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_SDKS = {"anthropic": "anthropic"}  # everybody else speaks OpenAI's APIs


def sdk_transport(
    vendor: str, client: Any = None, *, api_key: str = "", base_url: str = ""
) -> "SdkTransport":
    """The vendor's SDK as a transport: with this client, or with one made from key and URL."""
    sdk = _SDKS.get(vendor, "openai")
    if client is not None:
        _check_client(sdk, client)
    _import(sdk)
    return SdkTransport(sdk, client, api_key=api_key, base_url=base_url)


def _check_client(sdk: str, client: Any) -> None:
    """Refuse what is not an async client of that SDK. Raise `ConfigError`."""
    kind = type(client)
    if not any(base.__module__.partition(".")[0] == sdk for base in kind.__mro__):
        raise ConfigError(
            f"sdk= takes True or a client of the SDK {sdk!r}, not {kind.__name__}",
            hint="anthropic/… takes clients of `anthropic`, every other name those of `openai`.",
        )
    if not hasattr(client, "__aenter__"):
        raise ConfigError(
            f"sdk= takes an async client, and {kind.__name__} is not one",
            hint=f"Use the same client with Async before its name: Async{kind.__name__}.",
        )


class SdkTransport:
    """Sends requests through an official SDK. A client that was handed in stays its owner's."""

    def __init__(self, sdk: str, client: Any = None, *, api_key: str, base_url: str) -> None:
        self._sdk = sdk
        self._api_key = api_key
        self._base_url = without_version(base_url) if sdk == "anthropic" else base_url
        self._given = None if client is None else client.with_options(max_retries=0)
        self._made: dict[AbstractEventLoop, Any] = {}

    def __repr__(self) -> str:
        return f"SdkTransport({self._sdk!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, and what a client that was handed in signs in with."""
        return (self._api_key, *client_secrets(self._given))

    async def post(self, path: str, body: bytes) -> "SdkReply":
        """Send the body; the reply when its headers are there."""
        sdk, client = _import(self._sdk), self._client()
        resource = _resource(client, path)
        known = signature(resource.create).parameters
        fields = msgspec.json.decode(body)
        # What the SDK has no parameter for travels beside the rest.
        extra = {key: fields.pop(key) for key in list(fields) if key not in known}
        manager = resource.with_streaming_response.create(**fields, extra_body=extra or None)
        try:
            response = await manager.__aenter__()
        except sdk.APIError as problem:
            raise self._to_error(problem, str(client.base_url.host)) from None
        except ImportError as problem:
            package = (problem.name or "").partition(".")[0]
            wanted = f"{self._sdk}[bedrock]" if package in ("boto3", "botocore") else package
            raise MissingExtra(
                f"{type(client).__name__} needs a package that is not installed: {problem}",
                problem,
                hint=f"Install it with: pip install '{wanted or self._sdk}'",
            ) from problem
        return SdkReply(response, str(client.base_url.host), await _events(response))

    def _client(self) -> Any:
        from asyncio import get_running_loop

        if self._given is not None:
            return self._given
        here = get_running_loop()
        if here not in self._made:
            sdk = _import(self._sdk)
            make = sdk.AsyncAnthropic if self._sdk == "anthropic" else sdk.AsyncOpenAI
            url = {"base_url": self._base_url} if self._base_url else {}
            self._made[here] = make(api_key=self._api_key or "none", max_retries=0, **url)
        return self._made[here]

    def _to_error(self, problem: Any, host: str) -> AgentError:
        """Return the SDK's error as ours, without its cause, since it contains the headers."""
        sdk = _import(self._sdk)
        if isinstance(problem, sdk.APIStatusError):
            body = problem.response.content
            for secret in self.secrets:
                body = remove_key(body, secret)
            return error_from_status(problem.status_code, body, problem.response.headers, host)
        if isinstance(problem, sdk.APITimeoutError):
            return StreamStalled(f"{host} did not answer in time")
        return Unreachable(f"{host} could not be reached")

    async def close(self) -> None:
        """Close the client that was made here."""
        from asyncio import get_running_loop

        if (client := self._made.pop(get_running_loop(), None)) is not None:
            await client.close()


def client_secrets(client: Any) -> Iterator[str]:
    """What an SDK's client signs in with: errors and logs must not show it."""
    for name in ("api_key", "auth_token", "access_token", "aws_secret_key", "aws_session_token"):
        if isinstance(value := getattr(client, name, None), str):
            yield value


class SdkReply:
    """A reply that comes through an SDK."""

    def __init__(self, response: Any, host: str, events: AsyncGenerator[bytes, None]) -> None:
        self.headers: Headers = response.headers
        self._response = response
        self._host = host
        self._events = events

    async def read(self) -> bytes:
        """Some more of the body; empty when it is over."""
        import httpx2

        try:
            return await anext(self._events, b"")
        except httpx2.TimeoutException:
            said = f"{self._host} sent nothing for too long"
            raise StreamStalled(said, origin=self._origin()) from None
        except httpx2.TransportError:
            said = f"{self._host} cut the stream before the reply was over"
            raise StreamCutShort(said, origin=self._origin()) from None

    def _origin(self) -> Origin:
        return Origin(request_id=request_id_in(self.headers))

    async def close(self, *, whole: bool = False) -> None:
        """Let go of the connection. The SDK's pool keeps it only if its end was read already."""
        await self._events.aclose()
        await self._response.close()


async def _events(response: Any) -> AsyncGenerator[bytes, None]:
    """Return the stream as server-sent events, also if the cloud frames it differently."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return _without_empty_chunks(response.iter_bytes())
    return _as_server_sent_events(await response.parse())


async def _without_empty_chunks(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        if chunk:  # an empty one would be taken for the end
            yield chunk


async def _as_server_sent_events(stream: Any) -> AsyncGenerator[bytes, None]:
    """Frame events again that the SDK took out of another framing, such as Bedrock's."""
    async for event in stream:
        yield b"data: %b\n\n" % event.model_dump_json(exclude_unset=True).encode()


def _resource(client: Any, path: str) -> Any:
    if path == "/v1/messages":
        return client.messages
    return client.responses if path == "/responses" else client.chat.completions


def _import(sdk: str) -> Any:
    from importlib import import_module

    try:
        return import_module(sdk)
    except ImportError as problem:
        raise MissingExtra(
            f"the official SDK of {sdk} is not installed",
            problem,
            hint=install_hint("sdk"),
        ) from problem
