"""What the approval panel shows of a request, and what each key means then. Pure: no screen.

A view covers certain requests, by what was shown; its answers are for these and for no others.
There are views of one call, of several that belong together, of the rule that an approval would
add, of a plan, and of a question that the model asks with `ask_user`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from bridle.policy import Mode
from bridle.presentation import approvals
from bridle.presentation.approvals import Choice, Line, Sheet, markdown_lines
from bridle.presentation.calls import as_json
from bridle.protocols.session import Answer
from bridle.tui.session_backend import Asked
from bridle.workspace.text import flat, one_line

_WHY = "Why not, or what to do instead"
_NEW_LINE = Line("plain", "")
_KNOWN = frozenset(("question", "options", "free_text"))  # arguments of `ask_user`
FileContent = Callable[[Asked], str | None]  # what the file that a call would change holds now


def _unknown(_asked: Asked) -> str | None:
    return None


class Answers(NamedTuple):
    """Answers, each with its request; `mode` is what the session changes to once they are given."""

    answers: tuple[tuple[Asked, Answer], ...]
    mode: Mode | None = None


class AskForText(NamedTuple):
    """A text has to be typed; `to_answers` makes the answers of it."""

    label: str
    to_answers: Callable[[str], Answers]


class PreviewRule(NamedTuple):
    """The rule of this request is to be shown first."""

    asked: Asked


class SwitchView(NamedTuple):
    """Show another view; None: the one of the request itself."""

    view: "View | None" = None


class Redraw(NamedTuple):
    """The same view has changed; `line` is to be on the screen."""

    line: int = 0


Outcome = Answers | AskForText | PreviewRule | SwitchView | Redraw


class View(Protocol):
    """What is on the sheet."""

    @property
    def covers(self) -> tuple[Asked, ...]: ...
    @property
    def title(self) -> str: ...
    @property
    def choices(self) -> Sequence[Choice]: ...
    def lines(self, sheet: Sheet) -> list[Line]: ...
    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if nothing."""
        ...


# Calls


class CallView:
    """One call. `group` are the requests that belong together."""

    def __init__(
        self, asked: Asked, group: Sequence[Asked] = (), content_of: FileContent = _unknown
    ) -> None:
        self._asked = asked
        self.group = tuple(group)
        self._content_of = content_of
        self.covers = (asked,)
        self.title = approvals.approval_title(asked.asked.call)

    @property
    def choices(self) -> Sequence[Choice]:
        """Once, for the session, by a rule, the whole group; deny, deny and say why."""
        return approvals.approval_choices(self._asked.asked, len(self.group))

    def lines(self, sheet: Sheet) -> list[Line]:
        """Return the whole request."""
        asked = self._asked
        return approvals.approval_lines(asked.asked, sheet, self._content_of(asked), asked.diff)

    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if it is not among the choices."""
        asked = self._asked
        if key not in {choice.key for choice in self.choices}:
            return None
        match key:
            case "y":
                return _answer(asked, Answer(True))
            case "s":
                return _answer(asked, Answer(True, "session"))
            case "r":
                return PreviewRule(asked)
            case "a":
                return SwitchView(GroupView(self.group, self._content_of))
            case "n":
                return _answer(asked, Answer(False))
            case "w":
                return AskForText(_WHY, lambda text: _answer(asked, Answer(False, word=text)))
        return None


class GroupView:
    """Calls that belong together, all to be read; an approval is for these and no others."""

    def __init__(self, group: Sequence[Asked], content_of: FileContent = _unknown) -> None:
        self.covers = tuple(group)
        self._content_of = content_of
        self.title = f"Allow these {len(group)} calls?"

    @property
    def choices(self) -> Sequence[Choice]:
        """Allow or deny all of them."""
        choices = approvals.group_choices([asked.asked for asked in self.covers])
        return (*choices, Choice("escape", "One by one", short="Back"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """Return all of them. Reasons that they have in common are given once."""
        return list(self._lines(sheet))

    def _lines(self, sheet: Sheet) -> Iterator[Line]:
        reasons = {
            tuple(approvals.reason_part(asked.asked, Sheet(10_000))) for asked in self.covers
        }
        if are_alike := len(reasons) == 1:
            yield from approvals.reason_part(self.covers[0].asked, sheet)
        for number, pending in enumerate(self.covers, 1):
            asked = pending.asked
            yield Line("head", f"{number}. {one_line(asked.call.name, 60)}")
            if not are_alike:
                yield from approvals.reason_part(asked, sheet)
            content = self._content_of(pending)
            yield from approvals.change_part(asked, sheet, content, pending.diff)
            yield from approvals.history_part(asked, sheet)

    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if nothing."""
        match key:
            case "y":
                return self._all(Answer(True))
            case "s":
                return self._all(Answer(True, "session"))
            case "n":
                return self._all(Answer(False))
            case "w":
                return AskForText(_WHY, lambda text: self._all(Answer(False, word=text)))
            case "escape":
                return SwitchView()
        return None

    def _all(self, answer: Answer) -> Answers:
        return Answers(tuple((asked, answer) for asked in self.covers))


class RuleView:
    """The rule that an approval would add, what it would have covered, and where it goes."""

    title = "Save this rule?"

    def __init__(self, asked: Asked, preview: Sequence[str]) -> None:
        self.covers = (asked,)
        self._preview = tuple(preview)

    @property
    def choices(self) -> Sequence[Choice]:
        """Add it or not."""
        return (Choice("y", approvals.SAVE_RULE, True, "Save"), Choice("escape", "Back"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """Return the rule, and what is known about it."""
        rule, rest = self.covers[0].asked.proposal, self._preview
        if rest and rest[0].startswith(rule):  # it says where the rule holds, too
            rule, rest = rest[0], rest[1:]
        lines = list(sheet.barred(rule, "command"))
        for line in rest:
            lines += sheet.noted("", line)
        return lines

    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if nothing."""
        asked = self.covers[0]
        if key == "y":
            return _answer(asked, Answer(True, "rule", rule=asked.asked.proposal))
        return SwitchView() if key in ("escape", "n") else None


def group_of(asked: Asked, pending: Sequence[Asked]) -> list[Asked]:
    """Return the requests of its session that belong to it, itself among them, in their order."""
    group, session = asked.asked.group, asked.session_id
    if not group:
        return [asked]
    return [
        other for other in pending if other.session_id == session and other.asked.group == group
    ]


def _answer(asked: Asked, answer: Answer) -> Answers:
    return Answers(((asked, answer),))


# Plans


class PlanView:
    """A plan to agree to, whole, as the Markdown it is.

    `is_here`: it is this session's, whose mode can be changed along with the yes. A yes leaves plan
    mode; changes are then asked about or, if the person says so, edits run.
    """

    def __init__(self, asked: Asked, *, is_here: bool = True) -> None:
        self.covers = (asked,)
        self.title = approvals.approval_title(asked.asked.call)
        self._is_here = is_here

    @property
    def choices(self) -> Sequence[Choice]:
        """Agree, agree with edits allowed, agree with changes; keep planning."""
        return approvals.plan_choices(edits=self._is_here)

    def lines(self, sheet: Sheet) -> list[Line]:
        """Return the plan, and other arguments if there are any."""
        arguments = dict(self.covers[0].asked.call.arguments)
        plan = arguments.pop("plan", "")
        lines = list(markdown_lines(plan if isinstance(plan, str) else as_json(plan), sheet))
        return [*lines, *sheet.barred(as_json(arguments))] if arguments else lines

    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if nothing."""
        asked = self.covers[0]
        match key:
            case "y":
                return _answer(asked, Answer(True))
            case "e" if self._is_here:
                return Answers(((asked, Answer(True)),), mode="edits")
            case "c":
                return AskForText(
                    "What to change", lambda text: _answer(asked, Answer(True, word=text))
                )
            case "n":
                return _answer(asked, Answer(False))
            case "w":
                return AskForText(
                    "What is wrong with it", lambda text: _answer(asked, Answer(False, word=text))
                )
        return None


# Questions


class QuestionView:
    """A question that the model asks with `ask_user`, and what was chosen so far.

    An option is chosen by its number or with the arrows and sent with Enter; Space marks several
    if the model takes other words. Every text is an answer; `n` leaves the question unanswered.
    """

    def __init__(self, asked: Asked) -> None:
        self.covers = (asked,)
        self.title = approvals.approval_title(asked.asked.call)
        self._arguments = asked.asked.call.arguments
        self._options = approvals.options_of(asked.asked)
        self._takes_text = self._arguments.get("free_text", True) is not False
        self._at = 0
        self._marked: set[int] = set()
        self._first = 0  # the line of the first option

    @property
    def choices(self) -> Sequence[Choice]:
        """Choose an option, or type an answer."""
        choices: list[Choice] = []
        if self._options:
            choices.append(Choice("↑↓ 1-9", "Choose"))
            if self._takes_text:
                choices.append(Choice("space", "Mark several", short="Mark"))
            choices.append(Choice("enter", "Answer", True))
        if self._takes_text or not self._options:
            choices.append(Choice("w", "Type an answer…", short="Type…"))
        return (*choices, Choice("n", approvals.LEAVE_UNANSWERED, short="Skip"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """Return the question, and its options with what was chosen."""
        question = self._arguments.get("question", "")
        text = question if isinstance(question, str) else as_json(question)
        lines = [*markdown_lines(text, sheet)]
        if rest := {name: self._arguments[name] for name in self._arguments if name not in _KNOWN}:
            lines += sheet.barred(as_json(rest))
        if self._options:
            lines.append(_NEW_LINE)
        self._first = len(lines)
        for at, option in enumerate(self._options):
            lines += self._option(at, option, sheet)
        return lines

    def _option(self, at: int, option: str, sheet: Sheet) -> list[Line]:
        are_several = self._takes_text and bool(self._marked)
        box = ("[x] " if at in self._marked else "[ ] ") if are_several else ""
        first, *rest = sheet.folded(f"{at + 1}. {box}{flat(option)}", 6)
        is_here = at == self._at
        return [
            Line("chosen" if is_here else "plain", first, "›" if is_here else " "),
            *(Line("chosen" if is_here else "plain", more, "↪") for more in rest),
        ]

    def press(self, key: str) -> Outcome | None:
        """Return what a key means here; None if nothing."""
        count = len(self._options)
        match key:
            case "up" | "down" if count:
                self._at = (self._at + (1 if key == "down" else -1)) % count
                return self._redraw()
            case "space" if count and self._takes_text:
                self._marked ^= {self._at}
                return self._redraw()
            case "enter" if count:
                return self._text("; ".join(self._chosen()))
            case "w" | "enter" if self._takes_text or not count:
                return AskForText("Your answer", self._text)
            case "n":
                return _answer(self.covers[0], Answer(False))
        if len(key) == 1 and key in "123456789" and int(key) <= count:
            self._at = int(key) - 1
            return self._redraw()
        return None

    def _redraw(self) -> Redraw:
        return Redraw(self._first + self._at)

    def _chosen(self) -> list[str]:
        if self._marked:
            return [self._options[at] for at in sorted(self._marked)]
        return [self._options[self._at]]

    def _text(self, text: str) -> Answers:
        return _answer(self.covers[0], Answer(True, word=text))
