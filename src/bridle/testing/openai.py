"""A fake of OpenAI's server: Responses and Chat Completions beside each other.

Holds what the two share: how they refuse a key, their error body, their usage. Each API's events
are in a file of its own, the order they insist on in `openai_rules`.
"""

from typing import Any

from bridle.testing.openai_chat import Speaking as ChatSpeaking
from bridle.testing.openai_responses import Speaking as ResponsesSpeaking
from bridle.testing.openai_rules import ChatRules, ResponsesRules
from bridle.testing.script import Names, WireFault, WireReply
from bridle.testing.server import Api, FakeServer, Received

_STATUSES = {"rate_limit": 429, "invalid": 400, "tool": 400}
_CODES = {
    401: "invalid_api_key",
    403: "insufficient_permissions",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}


class FakeOpenAI(FakeServer):
    """`POST /v1/responses` and `POST /v1/chat/completions` on loopback, streamed."""

    prefix = "/v1"

    def apis(self) -> tuple[Api, ...]:
        """Two APIs with one script."""
        return (Responses(), Chat())


class FakeLocal(FakeServer):
    """A local server as llama.cpp is one: Chat Completions, no key, its name on its models."""

    prefix = "/v1"
    owner = "llamacpp"

    def apis(self) -> tuple[Api, ...]:
        """One API."""
        return (Chat(keyless=True),)


def _refusal(received: Received, problem: str) -> WireFault | None:
    if not received.headers.get("authorization", "").startswith("Bearer "):
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        return WireFault("invalid", message, status=401)
    return WireFault("invalid", problem, status=400) if problem else None


def _failure(fault: WireFault, request_id: str) -> tuple[int, dict[str, Any]]:
    status = fault.status or _STATUSES.get(fault.kind, 500)
    kind = "server_error" if status >= 500 else "invalid_request_error"
    error = {
        "message": fault.message,
        "type": fault.type or ("requests" if status == 429 else kind),
        "param": None,
        "code": fault.code or _CODES.get(status),
    }
    return status, {"error": error}


class Responses:
    """`/v1/responses`, and what it remembers of the reasoning that it has issued."""

    path = "/responses"
    request_id_header = "x-request-id"
    failure = staticmethod(_failure)

    def __init__(self) -> None:
        self._rules = ResponsesRules()

    def refuse(self, received: Received) -> WireFault | None:
        """The error that a request which breaks a rule gets."""
        return _refusal(received, self._rules.broken_by(received.body))

    def speaker(self, reply: WireReply, body: dict[str, Any], names: Names) -> ResponsesSpeaking:
        """One stream."""
        return ResponsesSpeaking(reply, body, names, self._rules)


class Chat:
    """`/v1/chat/completions`, as local servers speak it too."""

    path = "/chat/completions"
    request_id_header = "x-request-id"
    failure = staticmethod(_failure)

    def __init__(self, *, keyless: bool = False) -> None:
        self._keyless = keyless

    def refuse(self, received: Received) -> WireFault | None:
        """The error that a request which breaks a rule gets."""
        problem = ChatRules().broken_by(received.body)
        if self._keyless:
            return WireFault("invalid", problem, status=400) if problem else None
        return _refusal(received, problem)

    def speaker(self, reply: WireReply, body: dict[str, Any], names: Names) -> ChatSpeaking:
        """One stream."""
        return ChatSpeaking(reply, body, names)
