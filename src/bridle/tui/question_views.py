"""What of a question is looked at, and what each key means then. Pure: no screen, no clock.

A view covers certain questions, by what was shown; its answers are for these and for no others.
The kinds: one call, several that belong together, the rule that would be made of a yes. Plans and
the model's own questions have modules of their own.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from bridle.events import ApprovalAsked
from bridle.policy import CLASSES, Mode
from bridle.presentation import approvals as words
from bridle.presentation.approvals import Line, Sheet, session_grant_text
from bridle.protocols.session import Answer
from bridle.tui.house import Asked
from bridle.workspace.text import one_line

_WHY = "why not, or what to do instead"
NEW_LINE = Line("plain", "")
Held = Callable[[Asked], str | None]  # what the file that a call would change holds now


def _unknown(_asked: Asked) -> str | None:
    return None


class Offer(NamedTuple):
    """A key and what it means. `whole`: it counts once the end of what is asked was seen.

    `short` is said where there is little room.
    """

    key: str
    meaning: str
    whole: bool = False
    short: str = ""


class Given(NamedTuple):
    """Answers, each with its question; `mode` is what the session changes to once they are in."""

    answers: tuple[tuple[Asked, Answer], ...]
    mode: Mode | None = None


class Write(NamedTuple):
    """Words are wanted, and this is what they become."""

    label: str
    given: Callable[[str], Given]


class Preview(NamedTuple):
    """The rule of this question is to be looked at first."""

    of: Asked


class Turn(NamedTuple):
    """Something else is to be looked at; None: what was looked at before."""

    to: "View | None" = None


class Redrawn(NamedTuple):
    """The same, but something in it changed; `line` is to be on the screen."""

    line: int = 0


Outcome = Given | Write | Preview | Turn | Redrawn


class View(Protocol):
    """What is on the sheet."""

    @property
    def covers(self) -> tuple[Asked, ...]: ...
    @property
    def head(self) -> str: ...
    @property
    def offers(self) -> Sequence[Offer]: ...
    def lines(self, sheet: Sheet) -> list[Line]: ...
    def press(self, key: str) -> Outcome | None: ...


class OneView:
    """One call. `kin` are those that belong together; `held` tells what files hold now."""

    def __init__(self, asked: Asked, kin: Sequence[Asked] = (), held: Held = _unknown) -> None:
        self._asked = asked
        self.kin = tuple(kin)
        self._held = held
        self.covers = (asked,)
        self.head = words.approval_title(asked.asked.call)

    @property
    def offers(self) -> Sequence[Offer]:
        """Once, for the session, by a rule, all of them; no, no with a word."""
        asked = self._asked.asked
        found = [Offer("y", "allow once", True, "once")]
        if not asked.once_only:
            found.append(_for_session(asked))
        if words.has_rule(asked):
            found.append(Offer("r", "by this rule", True, "rule"))
        if len(self.kin) > 1:
            found.append(Offer("a", f"all {len(self.kin)} at once", short="all"))
        return (*found, Offer("n", "deny"), Offer("w", "deny, say why", short="say why"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """The whole question."""
        asked = self._asked
        return words.approval_lines(asked.asked, sheet, self._held(asked), asked.diff)

    def press(self, key: str) -> Outcome | None:
        """What that key means here; nothing, where it is not offered."""
        one = self._asked
        if key not in {offer.key for offer in self.offers}:
            return None
        match key:
            case "y":
                return _given(one, Answer(True))
            case "s":
                return _given(one, Answer(True, "session"))
            case "r":
                return Preview(one)
            case "a":
                return Turn(GroupView(self.kin, self._held))
            case "n":
                return _given(one, Answer(False))
            case "w":
                return Write(_WHY, lambda said: _given(one, Answer(False, word=said)))
        return None


class GroupView:
    """Calls that belong together, all of them to be read; a yes is for these and no others."""

    def __init__(self, several: Sequence[Asked], held: Held = _unknown) -> None:
        self.covers = tuple(several)
        self._held = held
        self.head = f"Allow these {len(several)} calls?"

    @property
    def offers(self) -> Sequence[Offer]:
        """Yes and no to all of them."""
        found = [Offer("y", f"allow all {len(self.covers)} once", True, "all once")]
        if not any(one.asked.once_only for one in self.covers):
            found.append(_for_session(self.covers[0].asked, "all for this session"))
        back = Offer("escape", "one by one", short="back")
        word = Offer("w", "deny all, say why", short="say why")
        return (*found, Offer("n", "deny all", short="deny"), word, back)

    def lines(self, sheet: Sheet) -> list[Line]:
        """All of them. What they have in common is said once."""
        return list(self._lines(sheet))

    def _lines(self, sheet: Sheet) -> Iterator[Line]:
        reasons = {tuple(words.reason_part(one.asked, Sheet(10_000))) for one in self.covers}
        if alike := len(reasons) == 1:
            yield from words.reason_part(self.covers[0].asked, sheet)
        for number, one in enumerate(self.covers, 1):
            asked = one.asked
            yield Line("head", f"{number}. {one_line(asked.call.name, 60)}")
            if not alike:
                yield from words.reason_part(asked, sheet)
            yield from words.change_part(asked, sheet, self._held(one), one.diff)
            yield from words.history_part(asked, sheet)

    def press(self, key: str) -> Outcome | None:
        """What that key means here."""
        match key:
            case "y":
                return self._all(Answer(True))
            case "s":
                return self._all(Answer(True, "session"))
            case "n":
                return self._all(Answer(False))
            case "w":
                return Write(_WHY, lambda said: self._all(Answer(False, word=said)))
            case "escape":
                return Turn()
        return None

    def _all(self, answer: Answer) -> Given:
        return Given(tuple((one, answer) for one in self.covers))


class RuleView:
    """The rule that a yes would make, what it would have covered, and where it goes."""

    def __init__(self, asked: Asked, preview: Sequence[str]) -> None:
        self.covers = (asked,)
        self._preview = tuple(preview)
        self.head = "Save this rule?"

    @property
    def offers(self) -> Sequence[Offer]:
        """Make it or not."""
        return (Offer("y", "allow, and save the rule", True, "save"), Offer("escape", "back"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """The rule, and all that was found out about it."""
        rule, rest = self.covers[0].asked.proposal, self._preview
        if rest and rest[0].startswith(rule):  # it says where the rule holds, too
            rule, rest = rest[0], rest[1:]
        found = list(sheet.barred(rule, "command"))
        for line in rest:
            found += sheet.noted("", line)
        return found

    def press(self, key: str) -> Outcome | None:
        """What that key means here."""
        one = self.covers[0]
        if key == "y":
            return _given(one, Answer(True, "rule", rule=one.asked.proposal))
        return Turn() if key in ("escape", "n") else None


def kin_of(asked: Asked, every: Sequence[Asked]) -> list[Asked]:
    """The questions of the same session that belong to it, itself among them, in their order."""
    group, session = asked.asked.group, asked.session_id
    if not group:
        return [asked]
    return [one for one in every if one.session_id == session and one.asked.group == group]


def _for_session(asked: ApprovalAsked, same: str = "for this session") -> Offer:
    """The key for a yes that lasts; `same` is its label if it allows the same call again."""
    if not asked.covers:
        return Offer("s", same, True, "session")
    short = f"{CLASSES.get(asked.covers, asked.covers)}, session"
    return Offer("s", session_grant_text(asked), True, short)


def _given(one: Asked, answer: Answer) -> Given:
    return Given(((one, answer),))
