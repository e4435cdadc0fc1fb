"""The questions that stand open, which of them is looked at, and how. Pure.

A question is known by its session and by what was shown. One that was answered here is put aside
at once; it comes back only if its answer could not be delivered.
"""

from collections.abc import Iterable, Sequence

from bridle.tui.asking_user import ASK, AskView
from bridle.tui.house import Asked
from bridle.tui.plan_review import PLAN, PlanView
from bridle.tui.question_views import GroupView, Held, OneView, View, kin_of

Key = tuple[str, str]


def key_of(asked: Asked) -> Key:
    """What a question is known by."""
    return asked.session_id, asked.asked.shown


class Pile:
    """Open questions in their order. `held` tells what the files hold that calls would change."""

    def __init__(self, held: Held) -> None:
        self._look = held
        self._files: dict[Key, str | None] = {}  # as they were when a question was first drawn
        self._standing: list[Asked] = []
        self._aside: set[Key] = set()
        self._views: dict[Key, View] = {}  # as they were left
        self._at = 0
        self._over: View | None = None  # what is looked at instead of the question itself
        self.here = ""  # the session on the screen

    def _held(self, asked: Asked) -> str | None:
        key = key_of(asked)
        if key not in self._files:
            self._files[key] = self._look(asked)
        return self._files[key]

    @property
    def open(self) -> list[Asked]:
        """Those that can be answered."""
        return [one for one in self._standing if key_of(one) not in self._aside]

    @property
    def current(self) -> Asked | None:
        """The one that is looked at."""
        found = self.open
        return found[min(self._at, len(found) - 1)] if found else None

    @property
    def position(self) -> tuple[int, int]:
        """The how manieth of how many is looked at; several that are looked at at once are one."""
        count = len(self.open)
        if self._over is not None and len(self._over.covers) > 1:
            return 1, count - len(self._over.covers) + 1
        return min(self._at + 1, count), count

    @property
    def view(self) -> View | None:
        """What is to be on the sheet."""
        if self._over is not None:
            return self._over
        return self._own(self.current) if self.current is not None else None

    def stand(self, standing: Iterable[Asked]) -> list[Asked]:
        """These are open now. The ones that went away and were not answered here."""
        before, current = {key_of(one): one for one in self._standing}, self.current
        self._standing = list({key_of(one): one for one in standing}.values())
        now = {key_of(one) for one in self._standing}
        gone = [one for key, one in before.items() if key not in now | self._aside]
        self._aside &= now
        self._views = {key: view for key, view in self._views.items() if key in now}
        self._files = {key: held for key, held in self._files.items() if key in now}
        self._settle(current)
        return gone

    def put_aside(self, answered: Iterable[Asked]) -> None:
        """These were answered here."""
        current = self.current
        self._aside |= {key_of(one) for one in answered}
        self._settle(current)

    def take_back(self, key: Key) -> None:
        """Its answer was not taken: it is open as it was."""
        current = self.current
        self._aside.discard(key)
        self._settle(current)

    def walk(self, step: int) -> bool:
        """To the next one; False where there is no other."""
        count = len(self.open)
        if count < 2:
            return False
        self._at = (min(self._at, count - 1) + step) % count
        self._over = None
        return True

    def go_to(self, key: Key) -> bool:
        """To that one."""
        for at, one in enumerate(self.open):
            if key_of(one) == key:
                self._at, self._over = at, None
                return True
        return False

    def turn(self, to: View | None) -> None:
        """Look at something else about it; None: at the question itself."""
        self._over = to

    def _settle(self, current: Asked | None) -> None:
        """Stay where one was, as far as that is still there."""
        found = self.open
        keys = [key_of(one) for one in found]
        if current is not None and key_of(current) in keys:
            self._at = keys.index(key_of(current))
        self._at = min(self._at, max(0, len(found) - 1))
        if self._over is not None:
            self._over = self._left_of(self._over, keys)
        for one in found:
            if isinstance(view := self._views.get(key_of(one)), OneView):
                view.kin = self._kin(one)

    def _left_of(self, over: View, keys: Sequence[Key]) -> View | None:
        left = [one for one in over.covers if key_of(one) in keys]
        if len(left) == len(over.covers):
            return over
        if isinstance(over, GroupView) and len(left) > 1:
            return GroupView(left, self._held)
        return None

    def _own(self, asked: Asked) -> View:
        key = key_of(asked)
        if key not in self._views:
            self._views[key] = self._made(asked)
        return self._views[key]

    def _made(self, asked: Asked) -> View:
        match asked.asked.call.name:
            case name if name == PLAN:
                return PlanView(asked, here=asked.session_id == self.here)
            case name if name == ASK:
                return AskView(asked)
        return OneView(asked, self._kin(asked), self._held)

    def _kin(self, asked: Asked) -> tuple[Asked, ...]:
        kin = kin_of(asked, self.open)
        return tuple(one for one in kin if one.asked.call.name not in (PLAN, ASK))
