"""How a turn ended, said to a person, and as an exit code."""

from bridle.cli import failure
from bridle.cli.render import usage_line
from bridle.cli.screen import Screen
from bridle.cli.wrap import wrapped
from bridle.promises.session import TurnResult

_CODES = {
    "done": failure.DONE,
    "interrupted": failure.INTERRUPTED,
    "budget": failure.BUDGET,
    "timeout": failure.BUDGET,
    "parked": failure.PERMISSION,
}


def tell_ending(result: TurnResult, screen: Screen, again: str, *, name: str = "") -> None:
    """Why it ended, if that is worth a word; then steps, tokens and cost, and the session's name.

    `again` says how to go on where nothing better is known.
    """
    paint = screen.paint
    if result.reason == "interrupted":
        screen.line(paint.yellow("■ interrupted; the session is kept"))
        screen.line(f"  → {again}")
    elif not result.ok:
        screen.break_line()
        failure.trace(result.error)
        hint = result.error.hint if result.error is not None else ""
        failure.complain(result.detail or result.reason, hint or again)
    if result.permission_needed:
        failure.complain(
            "a call needed approval, and nobody was there to give it",
            "Run it at a terminal, or allow more with --mode edits or --yes.",
        )
    used = usage_line(result.metrics) + (f" · {name}" if name else "")
    screen.line(paint.dim(wrapped(used, screen.width)))


def code_of(result: TurnResult) -> int:
    """The exit code of a turn."""
    if result.permission_needed and result.reason in ("done", "stuck"):
        return failure.PERMISSION
    return _CODES.get(result.reason, failure.FAILED)
