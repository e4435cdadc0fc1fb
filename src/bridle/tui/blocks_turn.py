"""How a turn ended, in words: why, and what it took. Pure."""

from datetime import datetime

from bridle.events import TurnEnded
from bridle.tui.blocks import Ending, Tone
from bridle.tui.blocks_state import State
from bridle.tui.labels import cost_of, duration, tokens
from bridle.usage import ExecutionMetrics
from bridle.workspace.event_text import end_text
from bridle.workspace.text import quantity

_CALM = ("done", "parked")
_WORDS = {"interrupted": "stopped", "the turn was interrupted": "stopped"}


def ending_of(event: TurnEnded, state: State, now: str) -> Ending:
    """The block for it."""
    reason = _WORDS.get(end_text(event), end_text(event))
    tone: Tone = "bad"
    if event.reason in _CALM:
        tone = "dim"
    elif event.reason == "interrupted":
        tone = "warn"
    return Ending(
        reason, used_words(state.spent, seconds_between(state.began, now)), event.hint, tone
    )


def used_words(used: ExecutionMetrics, seconds: float | None) -> str:
    """Time, calls, tokens, money."""
    figures = [] if seconds is None else [duration(seconds)]
    if used.tool_calls:
        figures.append(quantity(used.tool_calls, "call"))
    if used.invocations:
        if count := used.tokens or used.total_input_tokens + used.total_output_tokens:
            figures.append(tokens(count))
        figures.append(cost_of(used))
    return " · ".join(figures)


def seconds_between(began: str, now: str) -> float | None:
    """The time from one record to another; None where either has no readable time."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(0.0, passed.total_seconds())
