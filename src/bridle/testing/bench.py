"""What a conformance case works with: a provider pointed at a server that plays a script.

Knows how to set the scene and how to listen. What has to be true, the cases know.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, NamedTuple

from bridle.errors import AgentError
from bridle.events import ModelEvent, ResponseCompleted, TextDelta
from bridle.messages import Message, user
from bridle.protocols.provider import Provider, Request
from bridle.testing.script import WireScriptable
from bridle.testing.server import FakeServer

KEY = "sk-conformance-0123456789abcdef"
ASK = Request([user("go")])
PATIENCE = 10.0  # seconds; everything here is on one machine


@asynccontextmanager
async def patience(otherwise: str) -> AsyncIterator[None]:
    """Wait, but not for ever; then say in a sentence what did not happen."""
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError:
        raise AssertionError(otherwise) from None


class Stage(NamedTuple):
    """A provider, and the server that it talks to (None for a provider without one)."""

    provider: Provider
    server: FakeServer | None

    async def disconnected(self) -> None:
        """Return once the server has seen its client leave in the middle of a reply."""
        if self.server is not None:
            async with patience("the connection stays open after the stream was closed"):
                await self.server.disconnected()

    async def asked(self) -> None:
        """Return once the request has reached the server."""
        if self.server is not None:
            async with patience("no request reached the server"):
                await self.server.asked()


Setting = Callable[..., AbstractAsyncContextManager[Stage]]


class Listing(NamedTuple):
    """All that a stream said, and the error that ended it, if one did."""

    events: list[ModelEvent]
    error: AgentError | None

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def done(self) -> ResponseCompleted:
        """The end of a stream that ended well."""
        expect(self.error is None, f"the stream failed: {self.error!r}")
        ends = self.of(ResponseCompleted)
        expect(len(ends) == 1, f"{len(ends)} events ResponseCompleted instead of one")
        expect(self.events[-1] is ends[0], "something came after ResponseCompleted")
        expect(ends[0].message is not None, "a reply that ended well has no message")
        end: ResponseCompleted = ends[0]
        return end

    @property
    def message(self) -> Message:
        """The message of a stream that ended well."""
        return self.done.message or Message("assistant")

    @property
    def failure(self) -> AgentError:
        """The error of a stream that had to fail."""
        expect(not self.of(ResponseCompleted), "a failed stream has a ResponseCompleted")
        if self.error is None:
            raise AssertionError("the stream ended without an error and without a reply")
        return self.error


def serve(fake: type[FakeServer], provider_for: Callable[[FakeServer], Provider]) -> Setting:
    """A setting with a fake server: what `provider_for` makes of it is put to the test."""

    @asynccontextmanager
    async def setting(*script: WireScriptable) -> AsyncIterator[Stage]:
        async with fake(script) as server:
            provider = provider_for(server)
            try:
                yield Stage(provider, server)
            finally:
                await provider.close()

    return setting


async def listen(provider: Provider, request: Request = ASK) -> Listing:
    """Everything that a stream says, until it ends or fails."""
    events: list[ModelEvent] = []
    try:
        async with (
            patience("the stream neither ended nor failed"),
            aclosing(provider.stream(request)) as stream,
        ):
            async for event in stream:
                events.append(event)
    except AgentError as error:
        return Listing(events, error)
    return Listing(events, None)


async def first_words(stage: Stage) -> None:
    """Listen until some text comes, then close the stream."""
    async with (
        patience("no text came while the reply was under way"),
        aclosing(stage.provider.stream(ASK)) as stream,
    ):
        async for event in stream:
            if isinstance(event, TextDelta):
                return
    raise AssertionError("the stream ended without any text")


async def heard(setting: Setting, *script: WireScriptable) -> Listing:
    """What one request says against this script."""
    async with setting(*script) as stage:
        return await listen(stage.provider)


def expect(condition: bool, otherwise: str) -> None:
    """Say in a sentence what is wrong."""
    if not condition:
        raise AssertionError(otherwise)


def same(what: str, got: object, wanted: object) -> None:
    """Two values that have to be equal."""
    expect(got == wanted, f"{what}:\n  got    {got!r}\n  wanted {wanted!r}")


def joined(events: Sequence[Any]) -> str:
    """The text of deltas, in one piece."""
    return "".join(event.text for event in events)
