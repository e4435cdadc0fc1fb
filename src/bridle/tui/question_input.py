"""Where words to a question are written: for one question, and what was written never hides."""

from collections.abc import Callable

from textual import events
from textual.widgets import Input

from bridle.tui.question_views import Given, Offer
from bridle.workspace.text import neutral


class WordInput(Input):
    """Closed until words are wanted. What is pasted comes in as one line, made visible."""

    DEFAULT_CSS = """
    WordInput {
        display: none;
        height: 1;
        border: none;
        padding: 0 1;
        background: $surface;
        &:focus { border: none; }
        &.-open { display: block; }
    }
    """

    def __init__(self) -> None:
        super().__init__(max_length=4000, select_on_focus=False)
        self.given: Callable[[str], Given] | None = None
        self.offers: tuple[Offer, ...] = ()

    @property
    def is_open(self) -> bool:
        """Are words being written?"""
        return self.given is not None

    def open(self, label: str, given: Callable[[str], Given]) -> None:
        """Write words that become this."""
        self.given = given
        self.value = ""
        self.placeholder = f"{label} …"
        self.offers = (Offer("enter", "send"), Offer("escape", "back"))
        self.add_class("-open")
        self.focus()

    def close(self) -> str:
        """Take what was written; it is nobody's now."""
        self.given = None
        self.remove_class("-open")
        said, self.value = self.value, ""
        return said

    def validate_value(self, value: str) -> str:
        """However it came in: nothing in it is obeyed, and nothing is invisible."""
        return neutral(value, keep="")

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        line = neutral(" ".join(event.text.split()), keep="")
        self.replace(line, *sorted(self.selection))
