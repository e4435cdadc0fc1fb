"""The vocabulary: names, families, and that an event is a fact (A2)."""

import pytest

from bridle import events
from bridle.events import (
    STATE_TRACES,
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
