"""Rules of one's own: what they ask for, when they stop, and what they say where none fits."""

import pytest

from bridle.chat import Ask, Rules
from bridle.messages import Message, Text, ToolCall, ToolOutput

rules = Rules("small", fallback="I can look and drop.")


@rules.when(r"look at (?P<what>\w+)")
def look(said):
    return Ask("find", {"what": said["what"]})


@rules.when(r"drop (?P<what>.+)")
def drop(said):
    if said.data is None:
        return Ask("find", {"what": said["what"]})
    return [Ask("drop", {"id": one}) for one in said.data] or "There is none."


def asked(*messages):
    """The calls that are asked for, or the words that are said."""
    parts = rules.answer(messages)
    return [(one.name, one.arguments) if isinstance(one, ToolCall) else one.text for one in parts]


def prompt(text):
    return Message("user", (Text(text),))


def called(name, arguments, result):
    """A call and what came back."""
    return (
        Message("assistant", (ToolCall("c1", name, arguments),)),
        Message("user", (ToolOutput("c1", result),)),
    )


@pytest.mark.parametrize("text", ["look at milk", "LOOK AT milk!", "  look at milk.\n"])
def test_a_rule_fits_a_whole_message_in_any_case(text):
    assert asked(prompt(text)) == [("find", {"what": "milk"})]


def test_where_no_rule_fits_it_says_what_it_can_do():
    assert asked(prompt("please look at milk")) == ["I can look and drop."]


def test_a_call_that_was_made_is_not_asked_for_again():
    done = called("find", {"what": "milk"}, '{"success": true, "data": [1]}')
    assert asked(prompt("look at milk"), *done) == ["Done."]


def test_a_rule_goes_on_with_what_its_calls_gave_back():
    found = called("find", {"what": "milk"}, '{"success": true, "data": [1, 2]}')
    assert asked(prompt("drop milk"), *found) == [("drop", {"id": 1}), ("drop", {"id": 2})]
    nothing = called("find", {"what": "milk"}, '{"success": true, "data": []}')
    assert asked(prompt("drop milk"), *nothing) == ["There is none."]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ('{"success": false, "error": {"code": "not_found", "message": "No milk."}}', "No milk."),
        ("refused by hand", "refused by hand"),
        ("[]", "[]"),
    ],
)
def test_a_call_that_failed_ends_the_turn_with_its_reason(result, words):
    assert asked(prompt("look at milk"), *called("find", {"what": "milk"}, result)) == [words]
