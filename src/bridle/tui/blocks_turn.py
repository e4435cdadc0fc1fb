"""How a turn ended, in words: why, and what it took. Pure."""

from datetime import datetime

from bridle.events import TurnEnded
from bridle.presentation.amounts import cost_text, duration, token_count
from bridle.presentation.blocks import Tone, TurnEnd
from bridle.presentation.notices import end_text
from bridle.tui.blocks_state import State
from bridle.usage import ExecutionMetrics
from bridle.workspace.text import quantity

_CALM = ("done", "parked")
_WORDS = {"interrupted": "stopped", "the turn was interrupted": "stopped"}


def ending_of(event: TurnEnded, state: State, now: str) -> TurnEnd:
    """The block for it."""
    reason = _WORDS.get(end_text(event), end_text(event))
    tone: Tone = "bad"
    if event.reason in _CALM:
        tone = "dim"
    elif event.reason == "interrupted":
        tone = "warn"
    return TurnEnd(
        reason, used_words(state.spent, seconds_between(state.began, now)), event.hint, tone
    )


def used_words(used: ExecutionMetrics, seconds: float | None) -> str:
    """Time, calls, tokens, money."""
    figures = [] if seconds is None else [duration(seconds)]
    if used.tool_calls:
        figures.append(quantity(used.tool_calls, "call"))
    if used.invocations:
        if count := used.tokens or used.total_input_tokens + used.total_output_tokens:
            figures.append(token_count(count))
        figures.append(cost_text(used))
    return " · ".join(figures)


def seconds_between(began: str, now: str) -> float | None:
    """The time from one record to another; None where either has no readable time."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return None
    return max(0.0, passed.total_seconds())
