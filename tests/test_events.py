"""The vocabulary: names, families, and that an event is a fact (A2)."""

import msgspec
import pytest

from bridle import events
from bridle.engine.budget import Limits
from bridle.events import (
    STATE_TRACES,
    LimitsNarrowed,
    ModelEvent,
    Recorded,
    StateTrace,
    Streamed,
    TextDelta,
    ToolCallReady,
    TurnEnded,
)
from bridle.messages import ToolCall


def kinds():
    found = [kind for kind in vars(events).values() if isinstance(kind, type)]
    return [
        kind
        for kind in found
        if issubclass(kind, Streamed | Recorded) and kind not in (Streamed, Recorded)
    ]


def test_the_seven_names_are_there():
    """A2."""
    names = {kind.__name__ for kind in kinds()}
    assert names >= {
        "TextDelta",
        "ToolCallStarted",
        "ToolCallArgsDelta",
        "ToolCallReady",
        "ToolResultEvent",
        "ResponseCompleted",
        "TraceEvent",
    }


def test_a_model_says_eight_kinds_of_things():
    assert {kind.__name__ for kind in ModelEvent.__args__} == {
        "TextDelta",
        "ThinkingDelta",
        "ToolCallStarted",
        "ToolCallArgsDelta",
        "ToolCallReady",
        "TraceEvent",
        "UsageReported",
        "ResponseCompleted",
    }


def test_tags_are_their_own():
    """But for what the log has as a trace: its kind tells it apart."""
    tags = [kind.__struct_config__.tag for kind in kinds() if not issubclass(kind, StateTrace)]
    assert {kind.__struct_config__.tag for kind in STATE_TRACES.values()} == {"TraceEvent"}
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_every_kind_says_what_it_is_and_cannot_be_changed(kind):
    assert kind.__doc__
    assert kind.__struct_config__.frozen


def test_facts_are_compared_by_what_they_say():
    assert TextDelta("a") == TextDelta("a") != TextDelta("b")
    ready = ToolCallReady(ToolCall("c", "look", {"n": 1}))
    assert ready.call.arguments == {"n": 1}
    with pytest.raises(AttributeError):
        TurnEnded(1, "done").reason = "failed"


def test_limits_of_earlier_logs_have_the_names_of_today():
    earlier = {"steps": 3, "money": 0.5, "session_money": 2.0, "day_tokens": 9, "tool_seconds": 60}
    limits = LimitsNarrowed.of("ana", earlier).limits
    assert msgspec.convert(limits, Limits) == Limits(
        max_steps=3, max_cost=0.5, max_session_cost=2.0, max_day_tokens=9, tool_seconds=60
    )
