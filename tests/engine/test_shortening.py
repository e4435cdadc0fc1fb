"""What of a conversation can go, and what is left of it: on step boundaries alone (S5)."""

from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.budget import estimate
from bridle.engine.compaction import (
    TokenCounter,
    is_stand_in,
    note,
    plan,
    shorten_old_message,
    stand_in,
)
from bridle.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Transcript,
    user,
)
from rig import is_valid

PICTURE = Image("image/png", "aGk=")


def step(number, text="seen"):
    thought = Thinking(f"hm {number}", {"signature": f"s{number}"})
    asked = Message("assistant", (thought, ToolCall(f"c{number}", "look")), f"m{number}")
    return [asked, Message("tool", (ToolOutput(f"c{number}", text, name="look"),), f"m{number}r")]


def said(text, name="", *parts):
    return Message("user", (Text(text), *parts), name, "then")


def answered(text):
    return Message("assistant", (Text(text),))


def test_old_outputs_are_cut_first_and_the_newest_steps_are_left_alone():
    old, new = step(1, "x" * 9000), [*step(2, "y" * 3000), *step(3, "z" * 3000)]
    first = said("go", "m0", PICTURE, File("text/plain", "aGk=", "a.txt"))
    history = Transcript([first, *old, answered("so"), said("and now", "m9", PICTURE), *new])
    found = plan(history, 6_000, 100)
    assert (found.old, found.shortened) == ((), 3)
    assert found.kept[0] == said(
        "go",
        "m0",
        Text("[A picture was left out here to save space: image/png]"),
        Text("[A file was left out here to save space: a.txt]"),
    )
    text = found.kept[2].tool_results[0].text
    assert (text[:3], text[-3:], "characters (0 lines) are left out here" in text) == (
        *("xxx", "xxx"),
        True,
    )
    assert len(text) <= 1500
    assert found.kept[1] is history[1]
    assert found.kept[3:] == tuple(history[3:])  # this turn's prompt, its picture, its steps


def test_then_old_steps_go_and_the_prompts_of_this_turn_stay_word_for_word():
    steps = [one for number in range(1, 20) for one in step(number, "w" * 900)]
    prompt, steering = said("do it all", "m50"), said("but not that", "m51")
    begun = [said("before"), answered("yes"), prompt, *steps[:4]]
    history = Transcript([*begun, steering, *steps[4:]])
    found = plan(history, 2_000, 200)
    kept = found.kept
    assert kept[:2] == (prompt, steering)
    assert (kept[2].role, kept[2:]) == ("assistant", tuple(history[2 - len(kept) :]))
    assert found.tokens <= 2_000
    assert len(found.old) + len(kept) == len(history)
    assert is_valid(kept)


def test_a_long_newest_output_is_cut_and_a_long_prompt_never():
    prompt, end = said("p" * 6000), step(1, "o" * 90_000)
    found = plan(Transcript([prompt, *end]), 4_000, 100)
    assert (found.kept[0], found.kept[1], found.old) == (prompt, end[0], ())
    assert (found.tokens <= 4_000, found.shortened) == (True, 1)
    alone = plan(Transcript([prompt]), 100, 20)
    assert (alone.kept, alone.old, alone.shortened) == ((prompt,), (), 0)


def test_several_outputs_of_one_step_share_the_room_and_small_ones_stay_whole():
    calls = tuple(ToolCall(name, "look") for name in "abc")
    sizes = {"a": 60, "b": 30_000, "c": 40_000}
    outputs = tuple(ToolOutput(name, "é" * size) for name, size in sizes.items())
    history = Transcript([user("go"), Message("assistant", calls), Message("tool", outputs)])
    found = plan(history, 3_000, 100)
    left = found.kept[-1].tool_results
    assert left[0] == outputs[0]
    assert all(500 < len(one.text) < 4_000 for one in left[1:])
    assert found.tokens <= 3_000


def test_a_huge_prompt_that_failed_does_not_fill_the_window_for_ever():
    history = Transcript([said("h" * 90_000, "m1"), said("again, shorter", "m2")])
    found = plan(history, 3_000, 200)
    assert (found.kept, found.old) == ((history[1],), (history[0],))


def test_what_stands_for_the_old_part_is_known_again_and_carried_on():
    old = [said("go", "m1"), *step(2), Message("assistant", (Text("done"),), "m4", "now")]
    written = stand_in(old, "What was.", written=True)
    assert written == Message("user", (Text("What was."),), "m4s", "now")
    assert stand_in([written], "", written=False).id == "m4n"
    assert (is_stand_in(written), is_stand_in(old[0])) == (True, False)
    text = note([written, *old], 2_000)
    assert text.startswith("What was.\n\n[The beginning of this conversation was left out")
    assert text.endswith("- go]")
    assert "look (1)" in text
    again = plan(Transcript([written, said("p", "m7"), *step(8, "x" * 9000)]), 900, 100)
    assert (again.old, again.kept[0]) == ((written,), said("p", "m7"))


def test_slimming_twice_is_slimming_once():
    message = Message("tool", (ToolOutput("a", "x" * 9000, data={"x": 1}, media=(PICTURE,)),))
    once = shorten_old_message(message)
    assert (once.tool_results[0].media, once.tool_results[0].data) == ((), None)
    assert shorten_old_message(shorten_old_message(once)) == shorten_old_message(once)
    assert shorten_old_message(answered("x" * 9000)) == answered("x" * 9000)


pieces = st.lists(
    st.one_of(
        st.builds(lambda n: [said("p" * n)], st.integers(1, 3000)),
        st.builds(lambda n: [answered("a" * n)], st.integers(1, 3000)),
        st.builds(lambda n: step(n, "o" * n), st.integers(1, 9000)),
    ),
    max_size=12,
)


@given(pieces, st.integers(0, 9000))
def test_whatever_is_cut_every_call_keeps_its_result_and_a_prompt_its_words(found, target):
    history = Transcript([said("first"), *(one for piece in found for one in piece)])
    made = plan(history, target, 100)
    gone = [id(one) for one in made.old]
    left = [one for one in history if id(one) not in gone]
    assert is_valid(made.kept)
    assert [one.role for one in made.kept] == [one.role for one in left]
    assert [one.parts for one in made.kept if one.role != "tool"] == [
        one.parts for one in left if one.role != "tool"
    ]
    newest = [one for one in history if one.role == "user"][-1]
    assert newest in made.kept
    assert len(made.kept) + len(made.old) == len(history)


@given(pieces, st.integers(0, 20), st.integers(1, 9000))
def test_a_gauge_that_saw_it_grow_says_what_one_says_that_sees_it_now(found, cut, read):
    messages = [said("first"), *(one for piece in found for one in piece)]
    growing, gauge = Transcript(messages[:1]), TokenCounter()
    for message in messages[1:]:
        gauge.measure(growing, 10)
        growing = growing.plus(message)
    total = sum(map(estimate, messages)) + 10
    assert gauge.measure(growing, 10) == TokenCounter().measure(Transcript(messages), 10) == total
    gauge.count(read)
    assert gauge.measure(growing, 10) == read
    more = growing.plus(said("more"))
    assert gauge.measure(more, 10) == read + estimate(said("more"))
    other = Transcript(messages[: cut + 1])
    guess = sum(map(estimate, messages[: cut + 1])) + 10
    assert gauge.measure(other, 10) == int(guess * min(2, max(0.25, read / total)))


def test_a_gauge_goes_by_the_count_in_the_log_when_a_session_is_taken_up():
    history = Transcript([said("x" * 900), answered("so"), said("more")])
    tail = estimate(history[1]) + estimate(history[2])
    assert TokenCounter(77).measure(history, 10) == 77 + tail
