"""The lines above and below a question: what it is, which of how many, and what each key means."""

from collections.abc import Sequence

from textual.content import Content

from bridle.tui.question_views import Offer
from bridle.workspace.text import one_line, quantity

_NAMES = {"escape": "Esc", "enter": "Enter", "space": "Space"}


def head_line(head: str, position: tuple[int, int], session: str) -> Content:
    """What is asked; which of several; whose it is, where it is another session's."""
    at, count = position
    parts: list[Content | str | tuple[str, str]] = [("? ", "bold $text-warning"), (head, "bold")]
    if count > 1:
        parts.append((f"  {at} of {count}", "$text-muted"))
    if session:
        parts.append((f"  {one_line(session, 60)}", "$text-accent"))
    return Content.assemble(*parts)


def key_line(offers: Sequence[Offer], width: int, *, short: bool = False) -> Content:
    """Keys and their meanings; a meaning is never parted from its key."""
    lines: list[list[Content]] = [[]]
    taken, gap = 0, "  " if short else "   "
    for offer in offers:
        name = _NAMES.get(offer.key, offer.key)
        meaning = (short and offer.short) or offer.meaning
        piece = Content.assemble((name, "bold $text-warning"), f" {meaning}")
        if taken and taken + len(gap) + piece.cell_length > width:
            lines.append([])
            taken = 0
        lines[-1].append(piece)
        taken += piece.cell_length + (len(gap) if taken else 0)
    return Content("\n").join(Content(gap).join(line) for line in lines)


def hint_line(*, below: int, unseen: bool, focused: bool, count: int, width: int) -> str:
    """What else is to be known, the most pressing first, as far as there is room."""
    hints: list[str] = []
    if not focused:
        hints.append("F4: answer")
    if below:
        lines = quantity(below, "more line")
        after = ", then allow"
        hints.append(f"↓ {lines}: PgDn, End" + (after if unseen and width > 56 else ""))
    if count > 1:
        hints.append("Tab: the next one")
    while len(hints) > 1 and len(" · ".join(hints)) > width:
        hints.pop()
    return " · ".join(hints)
