"""Anthropic's Messages API, as a provider.

Puts three parts together: what is written (`anthropic_script`, `ledger`), how it gets there
(`wire`), and what comes back (`anthropic_reader`).
"""

from collections.abc import AsyncGenerator
from functools import partial

from bridle.events import ModelEvent
from bridle.messages import Transcript
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.anthropic_encoder import API, MessagesScript, head, why_not_thinking
from bridle.providers.anthropic_reader import MessagesReader
from bridle.providers.encoding_cache import RequestHead, cache_of
from bridle.providers.reply_reader import setting_left_out
from bridle.providers.wire import Timeouts, Transport, Wire, exchange

VERSION = "2023-06-01"


class Anthropic:
    """Claude, over Anthropic's own API.

    `effort` is left out, and a trace says so, where the model is known not to think or
    `max_tokens` leaves no room for it.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = "https://api.anthropic.com",
        info: ProviderInfo | None = None,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self._model = model
        self._transport = transport or _wire(base_url, api_key, timeouts)
        self._script = MessagesScript(model)
        self._head = RequestHead(partial(head, model, self.info))

    def __repr__(self) -> str:
        return f"Anthropic({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        encode = partial(self.encode, request)
        remarks: list[ModelEvent] = []
        if why := why_not_thinking(request.config, self.info):
            remarks.append(setting_left_out("effort", why))
        reader = MessagesReader(self._model, remarks)
        return exchange(self._transport, "/v1/messages", encode, reader)

    def encode(self, request: Request) -> bytes:
        """The request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def without_version(base_url: str) -> str:
    """The paths of this API begin with /v1 themselves; many people's base URLs end with it."""
    return base_url.rstrip("/").removesuffix("/v1")


def _wire(base_url: str, api_key: str, timeouts: Timeouts | None) -> Wire:
    headers = {
        "anthropic-version": VERSION,
        "content-type": "application/json",
        "user-agent": "bridle",
    }
    if api_key:
        headers["x-api-key"] = api_key
    return Wire(without_version(base_url), headers, secret=api_key, timeouts=timeouts)
