"""Every exception that bridle raises on purpose. One tree; `except AgentError` catches all of it.

AgentError                     kind, message, cause · retryable, retry_after · hint, origin
├── ProviderError              the model's side failed                       (agent)
│   ├── Overloaded             5xx and 529; another try may work             (agent, retryable)
│   ├── RateLimited            429                                           (rate_limit, retryable)
│   ├── Unreachable            no connection                                 (network, retryable)
│   ├── StreamCutShort         the stream ended before the reply did         (network, retryable)
│   ├── StreamStalled          no byte for too long                          (timeout, retryable)
│   ├── BadStream              what came cannot be read                      (agent)
│   ├── BadReply               a reply that does not fit what was asked for  (agent)
│   ├── ModelRefused           the model declined to answer                  (agent)
│   ├── KeyRefused             401 and 403                                   (invalid)
│   └── RequestRefused         the request itself is wrong                   (invalid)
│       ├── UnknownModel
│       └── ContextTooLong
├── ToolError                  a tool failed; the model reads the text       (tool)
│   └── OutsideWorkspace       a path that leads out, or is protected
├── TimedOut                   the deadline passed                           (timeout)
├── BudgetReached              a limit that the person set                   (agent)
├── ConfigError                the settings cannot work                      (invalid)
│   ├── MissingKey             no API key for the provider that was named
│   ├── MissingModel           no model was named, and none was found
│   ├── MissingExtra           an optional dependency is not installed
│   └── UsageError             flags, arguments or input that a command cannot use
├── StoreFailed                the log could not be written or read          (agent)
└── SessionError               the caller asked for the impossible           (invalid)
    ├── EmptyPrompt
    ├── SessionBusy
    ├── SessionClosed
    ├── SessionLocked
    ├── UnknownSession
    ├── UnknownApproval        answered already, expired, or never asked
    └── HookDenied             a hook refused a prompt or a turn

`retryable` is an attribute: never search in the text. `hint` says what to do next.
"""

from typing import ClassVar, Literal, NamedTuple

Kind = Literal["agent", "tool", "timeout", "rate_limit", "network", "invalid"]


class Origin(NamedTuple):
    """What the vendor reported about a failure, unchanged."""

    status: int | None = None
    type: str | None = None
    request_id: str | None = None


class AgentError(Exception):
    """Anything that can be expected to go wrong."""

    kind: Kind
    retryable: bool = False
    hint: str = ""

    def __init__(
        self,
        kind: Kind,
        message: str,
        cause: BaseException | None = None,
        *,
        hint: str = "",
        retry_after: float | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.cause = cause
        self.hint = hint or type(self).hint
        self.retry_after = retry_after
        self.origin = origin or Origin()
        if cause is not None:
            self.__cause__ = cause

    @property
    def status(self) -> int | None:
        """The HTTP status, if there was one."""
        return self.origin.status

    @property
    def request_id(self) -> str | None:
        """The vendor's id of the request, for their support."""
        return self.origin.request_id

    def __reduce__(self) -> tuple[type["AgentError"], tuple[object, ...], dict[str, object]]:
        first = (self.kind,) if type(self) is AgentError else ()
        rest: dict[str, object] = {"hint": self.hint, "retry_after": self.retry_after}
        rest["origin"] = self.origin
        return type(self), (*first, self.message, self.cause), rest


class _ErrorOfKind(AgentError):
    """An error whose class determines its kind."""

    class_kind: ClassVar[Kind] = "agent"

    def __init__(
        self,
        message: str,
        cause: BaseException | None = None,
        *,
        hint: str = "",
        retry_after: float | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(
            self.class_kind, message, cause, hint=hint, retry_after=retry_after, origin=origin
        )


class ProviderError(_ErrorOfKind):
    """The model's side failed."""


class Overloaded(ProviderError):
    """The vendor's servers failed or are too busy; another try may work."""

    retryable = True
    hint = "This is usually temporary: try again in a moment, or name a fallback model."


class RateLimited(ProviderError):
    """The vendor asks for fewer requests."""

    class_kind = "rate_limit"
    retryable = True
    hint = "Wait a little, or use another model or key."


class Unreachable(ProviderError):
    """No connection could be made."""

    class_kind = "network"
    retryable = True
    hint = "Check the network, the proxy settings and the base URL."


class StreamCutShort(ProviderError):
    """The stream ended before the reply did."""

    class_kind = "network"
    retryable = True
    hint = "The connection broke in the middle of the reply: send the prompt again."


class StreamStalled(ProviderError):
    """No byte came for too long."""

    class_kind = "timeout"
    retryable = True
    hint = "The model went silent: try again, or allow a longer idle timeout."


class BadStream(ProviderError):
    """What came over the wire cannot be read."""

    hint = "The server does not speak the API that was expected: check the base URL."


class BadReply(ProviderError):
    """The reply does not fit what was asked for."""


class ModelRefused(ProviderError):
    """The model declined to answer."""

    hint = "Rephrase the prompt, or use another model."


class KeyRefused(ProviderError):
    """The vendor does not accept the key."""

    class_kind = "invalid"
    hint = "Check the API key and what it is allowed to use."


class RequestRefused(ProviderError):
    """The vendor says that the request is wrong."""

    class_kind = "invalid"


class UnknownModel(RequestRefused):
    """There is no such model there."""

    hint = "Check the model's name, as the vendor writes it; `bridle doctor --models` lists some."


class ContextTooLong(RequestRefused):
    """The conversation does not fit into the model's window."""

    hint = "Start a new session, or use a model with a larger context window."


class ToolError(_ErrorOfKind):
    """A tool failed; the model reads the text."""

    class_kind = "tool"


class OutsideWorkspace(ToolError):
    """A path that leads out of the workspace, or is protected in it."""


class TimedOut(_ErrorOfKind):
    """The deadline passed."""

    class_kind = "timeout"


class BudgetReached(_ErrorOfKind):
    """A limit that the person set. `set_aside`: it is not used up, but others have reserved it."""

    set_aside: bool = False


class ConfigError(_ErrorOfKind):
    """The settings cannot work."""

    class_kind = "invalid"


class MissingKey(ConfigError):
    """No API key was found for the provider."""


class MissingModel(ConfigError):
    """No model was named, and none was found: no API key is set, and no local server answers."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed. `str()` says how to install it, too."""

    def __str__(self) -> str:
        return f"{self.message} → {self.hint}" if self.hint else self.message


class UsageError(ConfigError):
    """A command was given flags, arguments or input that it cannot use."""


class StoreFailed(_ErrorOfKind):
    """The log could not be written or read."""


class SessionError(_ErrorOfKind):
    """The caller asked for the impossible."""

    class_kind = "invalid"


class EmptyPrompt(SessionError):
    """There is nothing to send."""


class SessionBusy(SessionError):
    """A turn is running already."""

    hint = "Wait for it, interrupt it, or send with when='queue'."


class SessionClosed(SessionError):
    """The session was closed."""


class SessionLocked(SessionError):
    """Another process owns the session."""


class UnknownSession(SessionError):
    """No session has this id."""

    hint = "`bridle sessions list` shows the sessions there are."


class UnknownApproval(SessionError):
    """The request was answered already, has expired, or was never made."""


class HookDenied(SessionError):
    """A hook refused a prompt or a turn."""

    hint = "The hooks are your own: read their messages, or change them."
