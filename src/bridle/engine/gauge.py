"""How full the model's window is: what the vendor counted last, and an estimate of what is new.

A message is looked at once; only a conversation that was replaced is looked at from its beginning.
Pure arithmetic.
"""

from bridle.engine.budget import estimate
from bridle.messages import Transcript

_LEAST, _MOST = 0.25, 2.0  # how far the vendors' tokens may be from our estimate of them


class Gauge:
    """The size of one growing conversation, in tokens."""

    __slots__ = ("_counted", "_guess", "_known", "_read", "_sent", "_shelf", "scale", "sure")

    def __init__(self, read: int = 0) -> None:
        self.scale = 1.0  # the vendor's tokens for each that we estimated
        self.sure = False  # is it one that a vendor has confirmed?
        self._read = read  # the vendor's own count of the newest request
        self._sent = 0  # our estimate of the same
        self._guess = 0  # our estimate of everything so far
        self._known = 0  # messages in it
        self._counted = False  # is `_read` about this very conversation?
        self._shelf: object = None

    def measure(self, history: Transcript, overhead: int) -> int:
        """About how many tokens a request with this conversation takes."""
        if history.wires is not self._shelf or len(history) < self._known:
            self._start(history, overhead)
        self._guess += sum(estimate(message) for message in history[self._known :])
        self._known = len(history)
        if self._counted:
            return self._read + self._guess - self._sent
        return int(self._guess * self.scale)

    def count(self, read: int) -> None:
        """The vendor's own count of the conversation that was measured last."""
        if read <= 0 or not self._guess:
            return
        self._read, self._sent, self._counted = read, self._guess, True
        self.sure = True
        self.scale = min(_MOST, max(_LEAST, read / self._guess))

    def _start(self, history: Transcript, overhead: int) -> None:
        self._guess, self._known, self._counted = overhead, 0, False
        if self._shelf is None and self._read:
            self._recall(history, overhead)
        self._shelf = history.wires

    def _recall(self, history: Transcript, overhead: int) -> None:
        """A session that was taken up: the count in its log is of what its newest reply read."""
        newest = len(history)
        while newest > 0 and history[newest - 1].role != "assistant":
            newest -= 1
        if newest:
            before = sum(estimate(message) for message in history[: newest - 1])
            self._guess, self._known = overhead + before, newest - 1
            self.count(self._read)
