"""What the model asks with `ask_user`: options to choose from, several of them, or words. Pure.

An option is chosen by its number or with the arrows and sent with Enter; Space marks several
where the model takes other words. Every word is an answer; `n` leaves the question unanswered.
"""

from collections.abc import Sequence

from bridle.presentation.approvals import Line, Sheet
from bridle.presentation.calls import as_json
from bridle.protocols.session import Answer
from bridle.tui.house import Asked
from bridle.tui.plan_review import markdown_lines
from bridle.tui.question_views import NEW_LINE, Given, Offer, Outcome, Redrawn, Write
from bridle.workspace.text import flat

ASK = "ask_user"
_KNOWN = frozenset(("question", "options", "free_text"))


class AskView:
    """A question of the model's own, and what was chosen so far."""

    head = "A question for you"

    def __init__(self, asked: Asked) -> None:
        self.covers = (asked,)
        self._arguments = asked.asked.call.arguments
        self._options = options_of(asked)
        self._free = self._arguments.get("free_text", True) is not False
        self._at = 0
        self._marked: set[int] = set()
        self._first = 0  # the line of the first option

    @property
    def offers(self) -> Sequence[Offer]:
        """Choose, or write."""
        found: list[Offer] = []
        if self._options:
            found.append(Offer("↑↓ 1-9", "choose"))
            if self._free:
                found.append(Offer("space", "mark several", short="mark"))
            found.append(Offer("enter", "answer", True))
        if self._free or not self._options:
            found.append(Offer("w", "type an answer", short="type"))
        return (*found, Offer("n", "leave unanswered", short="skip"))

    def lines(self, sheet: Sheet) -> list[Line]:
        """The question, and its options with what was chosen."""
        question = self._arguments.get("question", "")
        asked = question if isinstance(question, str) else as_json(question)
        found = [*markdown_lines(asked, sheet)]
        if rest := {name: self._arguments[name] for name in self._arguments if name not in _KNOWN}:
            found += sheet.barred(as_json(rest))
        if self._options:
            found.append(NEW_LINE)
        self._first = len(found)
        for at, option in enumerate(self._options):
            found += self._option(at, option, sheet)
        return found

    def _option(self, at: int, option: str, sheet: Sheet) -> list[Line]:
        several = self._free and bool(self._marked)
        box = ("[x] " if at in self._marked else "[ ] ") if several else ""
        first, *rest = sheet.folded(f"{at + 1}. {box}{flat(option)}", 6)
        here = at == self._at
        return [
            Line("chosen" if here else "plain", first, "›" if here else " "),
            *(Line("chosen" if here else "plain", more, "↪") for more in rest),
        ]

    def press(self, key: str) -> Outcome | None:
        """What that key means here."""
        count = len(self._options)
        match key:
            case "up" | "down" if count:
                self._at = (self._at + (1 if key == "down" else -1)) % count
                return self._redrawn()
            case "space" if count and self._free:
                self._marked ^= {self._at}
                return self._redrawn()
            case "enter" if count:
                return self._given("; ".join(self._chosen()))
            case "w" | "enter" if self._free or not count:
                return Write("your answer", self._given)
            case "n":
                return Given(((self.covers[0], Answer(False)),))
        if len(key) == 1 and key in "123456789" and int(key) <= count:
            self._at = int(key) - 1
            return self._redrawn()
        return None

    def _redrawn(self) -> Redrawn:
        return Redrawn(self._first + self._at)

    def _chosen(self) -> list[str]:
        if self._marked:
            return [self._options[at] for at in sorted(self._marked)]
        return [self._options[self._at]]

    def _given(self, said: str) -> Given:
        return Given(((self.covers[0], Answer(True, word=said)),))


def options_of(asked: Asked) -> list[str]:
    """What the model offers; nothing where it is no list of words."""
    found = asked.asked.call.arguments.get("options", ())
    return [str(one) for one in found] if isinstance(found, list | tuple) else []
