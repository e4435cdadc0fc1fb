"""OpenAI's Chat Completions API, as a provider: also Ollama, vLLM, llama.cpp, LM Studio,
OpenRouter and whoever else speaks it, by base URL.

Puts three parts together: what is written (`chat_script`, `ledger`), how it gets there (`wire`),
and what comes back (`chat_reader`, with `text_calls` for models that write calls as text).
"""

from collections.abc import AsyncGenerator
from functools import partial
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

from bridle.events import ModelEvent
from bridle.messages import Transcript
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.chat_encoder import API, ChatScript, head
from bridle.providers.chat_reader import ChatReader
from bridle.providers.encoding_cache import RequestHead, cache_of
from bridle.providers.openai_responses import BASE_URL, bearer_wire
from bridle.providers.wire import Timeouts, Transport, exchange


class Way(TypedDict, total=False):
    """How to get there: a transport, or the timeouts of our own."""

    transport: Transport | None
    timeouts: Timeouts | None


class OpenAIChat:
    """Any server that speaks Chat Completions.

    `calls_in_text` reads calls that the model wrote into its text; it is on for local servers.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        base_url: str = BASE_URL,
        info: ProviderInfo | None = None,
        calls_in_text: bool | None = None,
        **way: Unpack[Way],
    ) -> None:
        self.info = info or ProviderInfo(API, model, native_schema=True)
        self.calls_in_text = self.info.local if calls_in_text is None else calls_in_text
        self._model = model
        wire = way.get("transport") or bearer_wire(base_url, api_key, way.get("timeouts"))
        self._transport: Transport = wire
        self._script = ChatScript(model)
        self._head = RequestHead(partial(head, model, self.info, _ceiling(base_url)))

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r})"

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask, and yield what comes."""
        named = request.tools if self.calls_in_text else ()
        reader = ChatReader(self._model, frozenset(tool.name for tool in named))
        encode = partial(self.encode, request)
        return exchange(self._transport, "/chat/completions", encode, reader)

    def encode(self, request: Request) -> bytes:
        """The request's body; only messages that are new since the last one are encoded."""
        messages = Transcript.of(request.messages)
        return cache_of(messages, self._script).join(messages, self._head.of(request), b"]}")

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()


def _ceiling(base_url: str) -> str:
    """OpenAI renamed `max_tokens`; the servers that copied it mostly have not."""
    host = urlsplit(base_url).hostname or ""
    ours = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return "max_completion_tokens" if ours else "max_tokens"
