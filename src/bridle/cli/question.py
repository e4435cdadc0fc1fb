"""An approval as a person reads it: what, why, and the exact command or change. Pure.

Every byte that would take effect is shown: nothing is cut, and control characters are visible.
Long lines are folded here, each with its mark: text that wraps by itself could pretend to be the
question's own.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from bridle.cli.style import Paint, cells
from bridle.events import ApprovalAsked
from bridle.protocols.session import Answer
from bridle.tui import question_words as words
from bridle.tui.question_words import Line, Sheet
from bridle.tui.question_words import has_rule as has_rule
from bridle.workspace.event_text import session_words

_YES = re.compile(r"(?:y|yes)\s*,(.+)", re.IGNORECASE | re.DOTALL)
_WORDS = 'or type what to do instead, which denies it; "y, …" allows it with a remark'


def question(
    asked: ApprovalAsked, paint: Paint, width: int = 200, before: str | None = None
) -> str:
    """The whole question. `before` is what the file holds now, where the call changes one."""
    head = f"{paint.yellow('?')} {paint.bold(words.head_of(asked.call))}"
    lines = words.question_lines(asked, Sheet(width, cells), before)
    return "\n".join([head, *painted(lines, paint)])


def painted(lines: Iterable[Line], paint: Paint) -> Iterator[str]:
    """The lines with their colours."""
    colours: dict[str, Callable[[str], str]] = {
        "note": paint.dim,
        "label": paint.dim,
        "command": paint.bold,
        "plus": paint.green,
        "minus": paint.red,
        "hunk": paint.cyan,
    }
    for line in lines:
        text = colours.get(line.kind, str)(line.text)
        yield f"  {paint.dim(line.mark)} {text}" if line.mark else f"  {text}"


def why(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    """Why it asks, by which rule, and where it would run."""
    return painted(words.why(asked, Sheet(width, cells)), paint)


def body(asked: ApprovalAsked, paint: Paint, width: int, before: str | None) -> Iterator[str]:
    """The call itself, then what it was understood to do."""
    return painted(words.body(asked, Sheet(width, cells), before), paint)


def history(asked: ApprovalAsked, paint: Paint, width: int) -> Iterator[str]:
    """How often the like was allowed."""
    return painted(words.history(asked, Sheet(width, cells)), paint)


def choices(asked: ApprovalAsked, width: int = 200) -> str:
    """What can be said, and where it is said."""
    found = {"y": "allow once"}
    if not asked.once_only:
        found["s"] = session_words(asked)
    if has_rule(asked):
        found["r"] = "allow by this rule"
    return offered({**found, "n": "deny"}, _WORDS, width)


def offered(found: dict[str, str], words: str, width: int) -> str:
    """Keys and what they mean, a sentence about everything else, and the prompt."""
    keys = "  ".join(f"[{key}] {meaning}" for key, meaning in found.items())
    prompt = "/".join("N" if key == "n" else key for key in found)
    lines = [*_wrapped(keys, width - 2, "  "), *_wrapped(words, width - 2, " ")]
    return "\n".join(f"  {line}" for line in [*lines, f"[{prompt}] "])


def _wrapped(text: str, width: int, between: str) -> list[str]:
    lines = [""]
    for piece in text.split(between):
        longer = f"{lines[-1]}{between}{piece}" if lines[-1] else piece
        if cells(longer) > width and lines[-1]:
            lines.append(piece)
        else:
            lines[-1] = longer
    return lines


def to_answer(line: str | None) -> Answer:
    """What was typed. Silence is no; words that are not an answer are a no that is passed on."""
    said = (line or "").strip()
    match said.lower():
        case "y" | "yes":
            return Answer(True)
        case "s" | "a" | "always":
            return Answer(True, "session")
        case "r" | "rule":
            return Answer(True, "rule")
        case "" | "n" | "no":
            return Answer(False)
    if (yes := _YES.fullmatch(said)) is not None and (word := yes[1].strip()):
        return Answer(True, word=word)
    return Answer(False, word=said.removeprefix("n ").removeprefix("no, ").strip())
