"""What the readers of all APIs have in common: a reply that is being read, and its end."""

from collections.abc import Sequence

from bridle.errors import AgentError
from bridle.events import ModelEvent, ResponseCompleted, StopReason
from bridle.messages import Message, Part
from bridle.providers.faults import Headers, request_id_in
from bridle.providers.reading import cut_marked, cut_short
from bridle.usage import Usage


class Reply:
    """A reply being read: whose it is, whether it is over, and what went wrong."""

    def __init__(self, model: str, remarks: Sequence[ModelEvent] = ()) -> None:
        self.over = False
        self.failure: AgentError | None = None
        self._remarks = remarks  # told at its beginning
        self._asked = model
        self._model = model
        self._request_id = ""

    def begin(self, headers: Headers) -> None:
        """Keep the vendor's number for the request."""
        self._request_id = request_id_in(headers) or ""

    def finish(self) -> list[ModelEvent]:
        """The stream is at its end, and no last event has come."""
        self._fail(cut_short(self._request_id))
        return []

    def _fail(self, failure: AgentError) -> None:
        self.over, self.failure = True, failure

    def _whole(
        self, reason: StopReason, parts: Sequence[Part], usage: Usage, word: str
    ) -> ResponseCompleted:
        message = Message("assistant", cut_marked(parts, reason))
        return ResponseCompleted(reason, message, usage, self._model, self._request_id, word)
