"""Questions of one step that belong together: shown once, numbered, and answered at once. Pure."""

import re
from collections.abc import Iterable, Sequence

from bridle.cli.question import body, history, offered, to_answer, why
from bridle.cli.style import Paint
from bridle.events import ApprovalAsked
from bridle.protocols.session import NO, YES, Answer
from bridle.workspace.event_text import session_words
from bridle.workspace.text import flat

_NUMBERS = re.compile(r"\d{1,4}(?:\s*-\s*\d{1,4})?(?:[\s,]+\d{1,4}(?:\s*-\s*\d{1,4})?)*")
_WORDS = "or type what to do instead, which denies all of them"


def questions(
    several: Sequence[ApprovalAsked], paint: Paint, width: int, befores: Sequence[str | None]
) -> str:
    """All of them. What they have in common is said once."""
    reasons = [tuple(why(one, Paint(False), 10_000)) for one in several]
    alike = len(set(reasons)) == 1
    head = f"Allow these {len(several)} calls?"
    lines = [f"{paint.yellow('?')} {paint.bold(head)}"]
    if alike:
        lines += why(several[0], paint, width)
    for number, (one, before) in enumerate(zip(several, befores, strict=True), 1):
        lines.append(f"  {paint.yellow(f'{number}.')} {paint.bold(flat(one.call.name))}")
        if not alike:
            lines += why(one, paint, width)
        lines += body(one, paint, width, before)
        lines += history(one, paint, width)
    return "\n".join(lines)


def clusters(every: Iterable[ApprovalAsked]) -> list[list[ApprovalAsked]]:
    """Questions of one session, those that belong together in one list."""
    found: dict[str, list[ApprovalAsked]] = {}
    for one in every:
        found.setdefault(one.group or one.shown, []).append(one)
    return list(found.values())


def choices(several: Sequence[ApprovalAsked], width: int = 200) -> str:
    """What can be said to them."""
    found = {"y": "allow all once"}
    if not any(one.once_only for one in several):
        found["s"] = session_words(several[0])
    found |= {"1,2": "only these", "each": "one by one", "n": "deny all"}
    return offered(found, _WORDS, width)


def to_answers(line: str | None, count: int) -> list[Answer] | None:
    """An answer for each of them; None where what was typed fits none of the choices."""
    said = (line or "").strip()
    if _NUMBERS.fullmatch(said):
        chosen = _chosen(said)
        if not all(1 <= one <= count for one in chosen):
            return None
        return [YES if number in chosen else NO for number in range(1, count + 1)]
    answer = to_answer(line)
    return None if answer.scope == "rule" else [answer] * count


def wants_each(line: str | None) -> bool:
    """Are they to be walked through one by one?"""
    return (line or "").strip().lower() in ("e", "each")


def _chosen(said: str) -> set[int]:
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", said):
        found.update(range(int(first), int(last or first) + 1))
    return found
