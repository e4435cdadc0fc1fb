"""OpenAI's Responses API, as a provider.

Puts three parts together: what is written (`openai_script`, `ledger`), how it gets there
(`wire`), and what comes back (`openai_reader`).
"""

from collections.abc import AsyncGenerator
from functools import partial

from bridle.events import ModelEvent
from bridle.messages import Transcript
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.encoding_cache import RequestHead, cache_of
from bridle.providers.openai_encoder import API, ResponsesScript, head
from bridle.providers.openai_reader import ResponsesReader
from bridle.providers.reply_reader import setting_left_out
from bridle.providers.wire import Timeouts, Transport, Wire, exchange

_NO_STOP = "the Responses API has no stop sequences; Chat Completions (openai-chat/…) has"
BASE_URL = "https://api.openai.com/v1"


class OpenAIResponses:
    """OpenAI's models, over their own API. It has no `stop`: a trace says that it was left out."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = BASE_URL,
        info: ProviderInfo | None = None,
        transport: Transport | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self._model = model
        self._transport = transport or bearer_wire(base_url, api_key, timeouts)
        self._script = ResponsesScript(model)
        self._head = RequestHead(partial(head, model, self.info))

    def __repr__(self) -> str:
        return f"OpenAIResponses({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        encode = partial(self.encode, request)
        remarks = [setting_left_out("stop", _NO_STOP)] if request.config.stop else []
        return exchange(
            self._transport, "/responses", encode, ResponsesReader(self._model, remarks)
        )

    def encode(self, request: Request) -> bytes:
        """The request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def bearer_wire(base_url: str, api_key: str, timeouts: Timeouts | None) -> Wire:
    """The wire to a server that takes its key, if any, as a bearer token."""
    headers = {"content-type": "application/json", "user-agent": "bridle"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    return Wire(base_url, headers, secret=api_key, timeouts=timeouts)
