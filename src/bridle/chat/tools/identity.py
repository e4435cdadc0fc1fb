"""For whom, where and when a tool call runs: bound by the runner, out of the model's reach.

It travels in the `_meta` of the MCP request, never among the arguments. Within one process it is
trusted as it is. Over any transport it is signed together with the call it belongs to: without the
secret nobody can name a user, or use a signature for another call.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from bridle.errors import AgentError

BINDING_KEY = "bridle/binding"  # in the request's `_meta`
SIGNATURE_SECONDS = 120.0  # seconds for which a signature holds, before and after
_LONGEST = 200  # characters of a user, a conversation, an operation


class BindingRefused(AgentError):
    """A tool call whose binding is unsigned, forged, too old, or was used before."""

    hint = "Only the chat server can call these tools; both sides need the same secret."

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__("invalid", message, cause)


@dataclass(frozen=True, slots=True)
class Binding:
    """For whom a tool call runs. An `operation` is applied once, and then gives the same result.

    `now` is the user's time if a test or a replay sets it; otherwise it is read when needed.
    """

    user_id: str
    conversation_id: str = ""
    operation: str = ""
    timezone: str = "UTC"
    language: str = "en"
    now: datetime | None = None

    def __post_init__(self) -> None:
        if not self.user_id:
            raise BindingRefused("a tool call is not bound to a user")
        for name in ("user_id", "conversation_id", "operation", "timezone", "language"):
            value = getattr(self, name)
            if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
                raise BindingRefused(f"the binding's {name} cannot be read")
        if self.now is not None and self.now.tzinfo is None:
            raise BindingRefused("the binding's time has no zone")

    def __repr__(self) -> str:
        """Leave out the user, for logs."""
        return f"Binding(user_id=…, operation={self.operation!r}, timezone={self.timezone!r})"

    @property
    def moment(self) -> datetime:
        """Now, in the user's time zone; in UTC if it is unknown."""
        return (self.now or datetime.now(UTC)).astimezone(self.zone)

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone; UTC if it is unknown."""
        try:
            return ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            return ZoneInfo("UTC")

    def to_wire(self) -> dict[str, Any]:
        """Return the binding for `_meta`."""
        found: dict[str, Any] = {"user_id": self.user_id, "conversation_id": self.conversation_id}
        found |= {"operation": self.operation, "timezone": self.timezone}
        found["language"] = self.language
        if self.now is not None:
            found["now"] = self.now.isoformat()
        return found


def parse_binding(wire: object) -> Binding:
    """Parse a binding from `_meta`. Raise `BindingRefused`."""
    if not isinstance(wire, dict):
        raise BindingRefused("the call is not bound to a user")
    fields = ("user_id", "conversation_id", "operation", "timezone", "language")
    known = {name: wire[name] for name in fields if name in wire}
    try:
        now = datetime.fromisoformat(wire["now"]) if wire.get("now") is not None else None
        return Binding(now=now, **known)
    except (TypeError, ValueError) as error:
        raise BindingRefused("the binding of the call cannot be read", error) from error


class Signer:
    """Signs and checks bindings: with one secret, for one call, once, for a short time."""

    def __init__(self, secret: str | bytes, *, window: float = SIGNATURE_SECONDS) -> None:
        self._secret = secret.encode() if isinstance(secret, str) else secret
        if len(self._secret) < 16:
            raise BindingRefused("the secret that signs bindings has fewer than 16 characters")
        self._window = window
        self._seen: dict[str, float] = {}

    @property
    def token(self) -> str:
        """The token for an HTTP server with the same secret. It cannot sign anything."""
        return hmac.new(self._secret, b"bridle chat-tools: the door", hashlib.sha256).hexdigest()

    def sign(
        self, binding: Binding, tool: str, arguments: dict[str, Any], *, at: datetime | None = None
    ) -> dict[str, Any]:
        """Return the binding for `_meta`, signed."""
        wire = binding.to_wire()
        wire["issued"] = int((at or datetime.now(UTC)).timestamp() * 1000)
        wire["nonce"] = secrets.token_urlsafe(12)
        wire["signature"] = self._mark(wire, tool, arguments)
        return wire

    def check(
        self, wire: object, tool: str, arguments: dict[str, Any], *, at: datetime | None = None
    ) -> Binding:
        """Return the binding if it is signed for exactly this call. Raise `BindingRefused`."""
        binding = parse_binding(wire)
        assert isinstance(wire, dict)
        said = wire.get("signature")
        rest = {name: value for name, value in wire.items() if name != "signature"}
        if not isinstance(said, str) or not said.isascii():
            raise BindingRefused("the binding of the call is not signed")
        if not hmac.compare_digest(said, self._mark(rest, tool, arguments)):
            raise BindingRefused("the signature of the call's binding is wrong")
        self._fresh(rest, (at or datetime.now(UTC)).timestamp())
        return binding

    def _fresh(self, wire: dict[str, Any], now: float) -> None:
        issued, nonce = wire.get("issued"), wire.get("nonce")
        if not isinstance(issued, int) or not isinstance(nonce, str):
            raise BindingRefused("the binding of the call has no time")
        if abs(now - issued / 1000) > self._window:
            raise BindingRefused("the binding of the call is too old, or the clocks differ")
        if nonce in self._seen:
            raise BindingRefused("the binding of the call was used before")
        self._seen[nonce] = now
        while self._seen and next(iter(self._seen.values())) < now - 2 * self._window:
            del self._seen[next(iter(self._seen))]

    def _mark(self, wire: dict[str, Any], tool: str, arguments: dict[str, Any]) -> str:
        try:
            signed = json.dumps([wire, tool, arguments], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BindingRefused("the call cannot be signed", error) from error
        return hmac.new(self._secret, signed.encode(), hashlib.sha256).hexdigest()
