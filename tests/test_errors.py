"""One tree of errors (M8): kinds, what may be tried again, hints, and the drawing of it."""

import copy
import pickle
import re
from typing import get_args

import pytest

from bridle import errors
from bridle.errors import AgentError, Kind, Origin, Overloaded, RateLimited, TimedOut, ToolError


def tree():
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return [kind for kind in found if issubclass(kind, AgentError) and kind.__name__[0] != "_"]


def made(kind):
    return kind("agent", "words") if kind is AgentError else kind("words")


def test_an_error_has_kind_message_and_cause():
    """M8."""
    cause = ValueError("deep")
    error = AgentError("network", "words", cause, hint="do this")
    assert (error.kind, error.message, str(error)) == ("network", "words", "words")
    assert error.cause is cause
    assert error.__cause__ is cause
    assert (error.retryable, error.retry_after, error.hint) == (False, None, "do this")


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_is_of_a_known_kind_and_caught_by_one_name(kind):
    error = made(kind)
    assert isinstance(error, AgentError)
    assert error.kind in get_args(Kind)
    assert kind.__doc__


def test_the_drawing_in_the_docstring_is_the_tree():
    """Names, kinds and what may be tried again, as a reader sees them."""
    drawn = {}
    for line in errors.__doc__.splitlines():
        match = re.match(r"[│├└─ ]*([A-Z]\w+)(.*)", line)
        if match and hasattr(errors, match[1]):
            drawn[match[1]] = match[2]
    assert set(drawn) == {kind.__name__ for kind in tree()}
    for kind in tree():
        said = re.search(r"\((\w+)(, retryable)?\)\s*$", drawn[kind.__name__])
        if said and kind is not AgentError:
            assert (said[1], bool(said[2])) == (made(kind).kind, kind.retryable)


def test_what_may_be_tried_again():
    again = {kind.__name__ for kind in tree() if kind.retryable}
    assert again == {
        "Overloaded",
        "RateLimited",
        "StreamCutShort",
        "StreamStalled",
        "Unreachable",
    }


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("travel", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_travels_whole(kind, travel):
    """To another process and back, with all that a person needs."""
    first = ("agent",) if kind is AgentError else ()
    origin = Origin(529, "overloaded_error", "req_1")
    error = kind(*first, "words", hint="do this", retry_after=2.5, origin=origin)
    found = travel(error)
    assert type(found) is kind
    names = ("kind", "message", "hint", "retry_after", "origin", "status", "request_id")
    assert [getattr(found, name) for name in names] == [getattr(error, name) for name in names]


def test_a_class_brings_its_own_hint_and_a_better_one_wins():
    assert "fallback" in Overloaded("busy").hint
    assert Overloaded("busy", hint="wait").hint == "wait"
    assert RateLimited("slow", retry_after=3.0).retry_after == 3.0
    assert (ToolError("no").kind, TimedOut("late").kind) == ("tool", "timeout")
