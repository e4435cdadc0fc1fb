"""The REPL's reins: undo, which shows first and asks then; and the questions of all sessions."""

from bridle.cli.approver import choices_of, full_text, parse_answer
from bridle.cli.failure import complain
from bridle.cli.room import Room
from bridle.cli.slash_sessions import Act, number, say
from bridle.cli.style import Paint, cut
from bridle.errors import AgentError, SessionBusy
from bridle.protocols.session import Answer
from bridle.tui.house import HOW_RESTORED, Asked, Undone
from bridle.workspace.text import flat, neutral, quantity

_SIGNS = {HOW_RESTORED["added"]: "+", HOW_RESTORED["deleted"]: "-"}


async def _undo(room: Room, rest: str) -> None:
    shown = await room.house.undo_preview(number(rest, "/undo") if rest else 0)
    for told in undo_lines(shown, room.screen.paint):
        room.screen.line(told)
    if shown.clashes:
        files = ", ".join(flat(path) for path, _, _ in shown.clashes[:3])
        raise SessionBusy(
            f"nothing was changed: {files} changed since",
            hint="Undo the later turns first, or put those files back by hand.",
        )
    if not shown.files:
        return
    count = quantity(len(shown.files), "file")
    line = await room.approver.line(f"  put back {count}? [y/N] ")
    if line is None or line.strip().lower() not in ("y", "yes"):
        say(room, "nothing was changed")
        return
    await room.house.undo(shown)  # its record says so, as everywhere


def undo_lines(shown: Undone, paint: Paint) -> list[str]:
    """What would be put back, with how each file differs, and what is not covered."""
    colours = {"+": paint.green, "-": paint.red, "~": paint.yellow}
    lines = [paint.bold(f"undo turn {shown.turn}")]
    for path, how, diff in shown.files:
        sign = _SIGNS.get(how, "~")
        lines.append(f"  {colours[sign](sign)} {flat(path)}" + paint.dim(f"  {flat(how)}"))
        for line in diff.splitlines()[:40]:
            colour = {"+": paint.green, "-": paint.red}.get(line[:1], paint.dim)
            lines.append("      " + colour(cut(neutral(line, keep="\t"), 200)))
    if not shown.files and not shown.clashes:
        lines.append("  everything stands as it would be put back")
    lines += [paint.dim(f"  not covered: {flat(word)}") for word in shown.uncovered]
    return lines


async def _approvals(room: Room, rest: str) -> None:
    """Walk through what waits, in all sessions; an empty line leaves a question open."""
    found = await room.house.pending()
    if not found:
        room.screen.line("No question waits for an answer.")
    for place, one in enumerate(found, 1):
        title = flat(one.title) or "(no prompt)"
        head = f"{place} of {len(found)} · {title} · {flat(one.session_id)}"
        room.screen.line(room.screen.paint.cyan(head))
        answer = await _asked(room, one)
        if answer is None:
            say(room, "  left open")
            continue
        try:
            await room.house.answer(one.session_id, one.asked, answer)
            say(room, f"  answered {'yes' if answer.allowed else 'no'}")
        except AgentError as error:
            complain(error.message, error.hint)


async def _asked(room: Room, one: Asked) -> Answer | None:
    """What is said to a question; None: it is left open."""
    screen, asked = room.screen, one.asked
    shown = full_text([asked], screen.paint, screen.width, room.house.current)
    text = f"{shown}\n  (an empty line leaves it open)\n{choices_of(asked, screen.width)}"
    while True:
        line = await room.approver.line(text)
        if line is None or not line.strip():
            return None
        answer = parse_answer(asked, line)
        if answer.scope != "rule":
            return answer
        for told in await room.house.preview_rule(one.session_id, asked):
            screen.line(f"  {flat(told)}")
        line = await room.approver.line("  write this rule? [y/N] ")
        if line is not None and line.strip().lower() in ("y", "yes"):
            return Answer(True, "rule", rule=asked.proposal)
        text = choices_of(asked, screen.width)


REINS: dict[str, Act] = {"undo": _undo, "approvals": _approvals}
