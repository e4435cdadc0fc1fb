"""The approval requests that are open, which of them is shown, and how. Pure.

A request is known by its session and by what was shown. One that was answered here is put aside at
once; it comes back only if its answer could not be delivered.
"""

from collections.abc import Iterable, Sequence

from bridle.presentation.approvals import ASK_USER, PLAN
from bridle.tui.model.approval_views import (
    CallView,
    FileContent,
    GroupView,
    PlanView,
    QuestionView,
    View,
    group_of,
)
from bridle.tui.session_backend import Asked

Key = tuple[str, str]


def key_of(asked: Asked) -> Key:
    """Return what a request is known by."""
    return asked.session_id, asked.asked.shown


class ApprovalQueue:
    """Open requests in their order. `content_of` reads the file that a call would change."""

    def __init__(self, content_of: FileContent) -> None:
        self._read = content_of
        self._contents: dict[Key, str | None] = {}  # of files, when a request was first shown
        self._pending: list[Asked] = []
        self._answered: set[Key] = set()  # those answered here
        self._views: dict[Key, View] = {}  # as they were left
        self._at = 0
        self._other_view: View | None = None  # shown instead of the request itself
        self.here = ""  # the session on the screen

    @property
    def open(self) -> list[Asked]:
        """Those that can be answered."""
        return [asked for asked in self._pending if key_of(asked) not in self._answered]

    @property
    def current(self) -> Asked | None:
        """The one that is shown."""
        pending = self.open
        return pending[min(self._at, len(pending) - 1)] if pending else None

    @property
    def position(self) -> tuple[int, int]:
        """The number of the current request, and how many there are; a group counts as one."""
        count = len(self.open)
        if self._other_view is not None and len(self._other_view.covers) > 1:
            return 1, count - len(self._other_view.covers) + 1
        return min(self._at + 1, count), count

    @property
    def view(self) -> View | None:
        """What is to be on the sheet."""
        if self._other_view is not None:
            return self._other_view
        return self._view_of(self.current) if self.current is not None else None

    def set_pending(self, pending: Iterable[Asked]) -> list[Asked]:
        """Set what is open now; return what is not any more and was not answered here."""
        before, current = {key_of(asked): asked for asked in self._pending}, self.current
        self._pending = list({key_of(asked): asked for asked in pending}.values())
        now = {key_of(asked) for asked in self._pending}
        gone = [asked for key, asked in before.items() if key not in now | self._answered]
        self._answered &= now
        self._views = {key: view for key, view in self._views.items() if key in now}
        self._contents = {key: text for key, text in self._contents.items() if key in now}
        self._stay_at(current)
        return gone

    def put_aside(self, answered: Iterable[Asked]) -> None:
        """Remove requests that were answered here."""
        current = self.current
        self._answered |= {key_of(asked) for asked in answered}
        self._stay_at(current)

    def take_back(self, key: Key) -> None:
        """Open a request again, because its answer was not accepted."""
        current = self.current
        self._answered.discard(key)
        self._stay_at(current)

    def move(self, step: int) -> bool:
        """Go to the next request; False if there is no other."""
        count = len(self.open)
        if count < 2:
            return False
        self._at = (min(self._at, count - 1) + step) % count
        self._other_view = None
        return True

    def go_to(self, key: Key) -> bool:
        """Go to that request; False if it is not open."""
        for at, asked in enumerate(self.open):
            if key_of(asked) == key:
                self._at, self._other_view = at, None
                return True
        return False

    def switch_view(self, view: View | None) -> None:
        """Show another view; None: the one of the request itself."""
        self._other_view = view

    def _stay_at(self, current: Asked | None) -> None:
        """Stay at the request that was shown, as far as it is still there."""
        pending = self.open
        keys = [key_of(asked) for asked in pending]
        if current is not None and key_of(current) in keys:
            self._at = keys.index(key_of(current))
        self._at = min(self._at, max(0, len(pending) - 1))
        if self._other_view is not None:
            self._other_view = self._rest_of(self._other_view, keys)
        for asked in pending:
            if isinstance(view := self._views.get(key_of(asked)), CallView):
                view.group = self._group(asked)

    def _rest_of(self, view: View, keys: Sequence[Key]) -> View | None:
        left = [asked for asked in view.covers if key_of(asked) in keys]
        if len(left) == len(view.covers):
            return view
        if isinstance(view, GroupView) and len(left) > 1:
            return GroupView(left, self._content_of)
        return None

    def _view_of(self, asked: Asked) -> View:
        key = key_of(asked)
        if key not in self._views:
            self._views[key] = self._new_view(asked)
        return self._views[key]

    def _new_view(self, asked: Asked) -> View:
        name = asked.asked.call.name
        if name == PLAN:
            return PlanView(asked, is_here=asked.session_id == self.here)
        if name == ASK_USER:
            return QuestionView(asked)
        return CallView(asked, self._group(asked), self._content_of)

    def _group(self, asked: Asked) -> tuple[Asked, ...]:
        group = group_of(asked, self.open)
        return tuple(other for other in group if other.asked.call.name not in (PLAN, ASK_USER))

    def _content_of(self, asked: Asked) -> str | None:
        key = key_of(asked)
        if key not in self._contents:
            self._contents[key] = self._read(asked)
        return self._contents[key]
