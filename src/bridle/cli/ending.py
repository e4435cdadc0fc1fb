"""How a turn ended, said to a person, and as an exit code."""

from bridle.cli import failure
from bridle.cli.event_lines import usage_line
from bridle.cli.screen import Screen
from bridle.cli.style import wrapped
from bridle.cli.turn import Seen
from bridle.policy import Mode
from bridle.protocols.session import TurnResult

_CODES = {
    "done": failure.DONE,
    "interrupted": failure.INTERRUPTED,
    "budget": failure.BUDGET,
    "timeout": failure.BUDGET,
    "max_tokens": failure.CUT,
    "parked": failure.PERMISSION,
}
_MORE = {
    "ask": "allow more with --mode edits or --yes",
}


def tell_ending(result: TurnResult, watch: Seen, screen: Screen, again: str) -> None:
    """Why it ended, if that is worth a word; `again` says how to go on if nothing else does."""
    if result.reason == "interrupted":
        screen.line(screen.paint.yellow("■ interrupted; the session is kept"))
        screen.line(f"  → {again}")
    elif result.reason == "parked":
        pass  # who parked it says what waits
    elif not result.ok:
        screen.break_line()
        failure.trace(result.error)
        failure.complain(result.detail or result.reason, _advice(result, watch, again))
    elif result.detail:
        failure.complain(result.detail, watch.hint)


def tell_unasked(result: TurnResult, mode: Mode) -> None:
    """Calls needed approval, and nobody was there."""
    if result.permission_needed and mode == "plan":
        failure.complain(
            "a plan, or a question, waits for a person's word, and nobody was there to give it; "
            "nothing was changed",
            "Run it at a terminal, or with --on-ask park and answer when you like.",
        )
    elif result.permission_needed:
        more = _MORE.get(mode, "allow more with --yes")
        failure.complain(
            "a call needed approval, and nobody was there to give it",
            f"Run it at a terminal, or {more}.",
        )


def tell_use(result: TurnResult, watch: Seen, screen: Screen, name: str = "") -> None:
    """Steps, tokens and cost, and the session's name."""
    used = usage_line(result.metrics, watch.steps.count) + (f" · {name}" if name else "")
    screen.line(screen.paint.dim(wrapped(used, screen.width)))


def code_of(result: TurnResult) -> int:
    """The exit code of a turn."""
    if result.permission_needed and result.reason in ("done", "stuck"):
        return failure.PERMISSION
    return _CODES.get(result.reason, failure.FAILED)


def _advice(result: TurnResult, watch: Seen, again: str) -> str:
    hint = result.error.hint if result.error is not None else watch.hint
    if not hint and result.reason == "budget" and not result.metrics.invocations:
        return "Raise the limit: it has no room for a single step."
    return hint or again
