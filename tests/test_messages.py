"""Messages and the transcript: parts in order, a sequence that only grows, shared wires."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Transcript,
    escape_surrogates,
    to_parts,
    user,
)


def test_a_message_tells_its_parts_apart():
    """S2: content, reasoning and its metadata, calls, results."""
    call, output = ToolCall("c", "look", {}), ToolOutput("c", "seen")
    thought = Thinking("hm ", {"signature": "s"})
    parts = (thought, Text("a"), call, Text("b"), Thinking("ok"), output)
    message = Message("assistant", parts)
    assert (message.content, message.reasoning) == ("ab", "hm ok")
    assert message.reasoning_metadata == (thought.meta,)
    assert (message.tool_calls, message.tool_results) == ((call,), (output,))
    assert Message("assistant").content == ""


def test_a_call_is_written_with_its_arguments_and_only_if_broken_with_what_came():
    """(A7): the log's format of ordinary calls."""
    plain = b'{"type":"tool_call","id":"c","name":"look","arguments":{}}'
    assert msgspec.json.encode(ToolCall("c", "look")) == plain
    broken = ToolCall("c", "look", {}, "{")
    assert msgspec.json.encode(broken) == plain[:-1] + b',"broken":"{"}'
    assert msgspec.json.decode(msgspec.json.encode(broken), type=ToolCall) == broken


def test_text_and_parts_mix():
    picture = Image(url="http://127.0.0.1/x.png")
    assert user("a", picture) == Message("user", (Text("a"), picture))
    assert to_parts("a") == (Text("a"),)
    assert to_parts(["a", Text("b")]) == (Text("a"), Text("b"))


def test_messages_do_not_change():
    with pytest.raises(AttributeError):
        user("a").role = "tool"


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_can_always_be_written_and_good_text_stays(text):
    found = escape_surrogates(text)
    found.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        assert found != text
    else:
        assert found is text


def waits(messages):
    """Is there a result to which the model has said nothing yet?"""
    roles = [message.role for message in messages if message.role in ("tool", "assistant")]
    return roles[-1:] == ["tool"]


def last_turn(messages):
    """The definition, written plainly: the last prompt that came when no result waited."""
    starts = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and not waits(messages[:index])
    ]
    return starts[-1] if starts else 0


roles = st.sampled_from(["user", "assistant", "tool", "system"])
some = st.lists(st.tuples(st.integers(0, 30), roles), max_size=30)


@given(some, st.integers(0, 4))
def test_transcripts_are_like_lists_however_they_branch(steps, start):
    """Grow any of the transcripts so far by one; every one of them stays what it was."""
    first = [Message("user", (Text(f"start {n}"),)) for n in range(start)]
    grown, lists = [Transcript(first)], [first]
    for number, (place, role) in enumerate(steps):
        index = place % len(grown)
        message = Message(role, (Text(str(number)),))
        grown.append(grown[index].plus(message))
        lists.append([*lists[index], message])
    for found, plain in zip(grown, lists, strict=True):
        assert list(found) == plain
        assert (len(found), found.turn) == (len(plain), last_turn(plain))
        assert found[1:3] == tuple(plain[1:3])
        assert found[::-1] == tuple(plain[::-1])
        assert found == Transcript(plain)
        assert all(found[index] is found[index - len(found)] for index in range(len(found)))
        for outside in (len(plain), -len(plain) - 1):
            with pytest.raises(IndexError):
                found[outside]


def test_a_turn_goes_on_through_everything_that_steers_it_and_through_silence():
    """The thoughts of a step go back while its results wait; silence is never sent."""
    step = [Message("assistant", (ToolCall("a", "look"),)), Message("tool", (ToolOutput("a", ""),))]
    silent = Message("assistant", (Thinking("hm"), Text(" \n")))
    spoken = Message("assistant", (Thinking("hm"), Text("so")))
    steered = [user("go"), *step, user("left"), user("no, right")]
    assert Transcript(steered).turn == 0
    assert Transcript([user("go"), *step, silent, user("well?")]).turn == 0
    assert Transcript([user("go"), *step, spoken, user("well?"), user("?")]).turn == 5
    assert Transcript([user("go"), *step, spoken, user(" \n"), *step]).turn == 0


def test_those_that_grew_out_of_one_another_share_their_wires():
    """So that a message is encoded once, not once a request."""
    one = Transcript([user("a")])
    one.encoding_caches["x"] = 1
    two = one.plus(user("b"))
    three = two.plus(user("c"))
    assert three.encoding_caches is two.encoding_caches is one.encoding_caches


def test_those_that_parted_ways_do_not():
    one = Transcript([user("a")])
    two = one.plus(user("b"))
    other = one.plus(user("c"))
    assert other.encoding_caches is not two.encoding_caches
    assert (list(two), list(other)) == ([user("a"), user("b")], [user("a"), user("c")])


def test_a_transcript_is_handed_back_as_it_is():
    one = Transcript([user("a")])
    assert Transcript.of(one) is one
    assert Transcript.of([user("a")]) == one
    assert one != [user("a")]
    with pytest.raises(TypeError):
        hash(one)


def test_what_is_added_to_a_copy_is_not_in_the_original():
    one = Transcript([user("a")])
    other = one.copy().plus(user("x"))
    two = one.plus(user("b"))
    assert two.encoding_caches is one.encoding_caches
    assert other.encoding_caches is not one.encoding_caches
    assert (list(two), list(other)) == ([user("a"), user("b")], [user("a"), user("x")])
    assert other.turn == Transcript([user("a"), user("x")]).turn
