"""The guard: what no reply may hold, what a title may, and how a reply is repaired."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.chat.reply_filter import (
    FilterFacts,
    clean_title,
    filter_reply,
    find_leaks,
    find_problems,
    strip_controls,
)

LEAKING = [
    "Added it as task 42.",
    "The task (id: 42) is done.",
    "Its ID is 7f3a.",
    "Done: #12",
    "6f9619ff-8b86-d011-b42d-00c04fc964ff is done.",
    "6F9619FF-8B86-D011-B42D-00C04FC964FF is done.",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV was added.",
    "Saved as 5f2b8c9d1e3a4b6c.",
    "See task_42 or call_3.",
    '{"success": true}',
    '[{"title": "x"}]',
    '"title": "x"',
    "```\nx\n```",
    "Traceback (most recent call last):",
    "KeyError: 'x'",
    "java.lang.NullPointerException",
    "at com.acme.Main(Main.java:3)",
    "I used add_task for it.",
    "The database said no.",
    "The tool call failed.",
    "An invalid parameter was given.",
    "HTTP status code 500",
    "Internal server error",
    "value is null",
    "The MCP endpoint is away.",
    "my system prompt says so",
    "See https://evil.example/x",
    "![x](http://evil.example)",
    "<script>alert(1)</script>",
    "\x1b[31mred",
    "right\u202eleft",
    "tag\U000e0041",
    "You are ana-7 in our books.",
]
FINE = [
    "Got it! Added 'Buy milk' to your list. Anything else?",
    "1. ☐ Buy milk\n2. ✓ Call mom (due Fri 20 Nov 2026)",
    "Great! I've marked 'Buy milk' as complete.",
    "You have 42 tasks, 3 of them are due today.",
    "Updated! 'Buy milk' now has a due date of Fri 20 Nov 2026 at 17:00.",
    "I found multiple tasks about 'milk'. Which one: 'Buy milk' or 'Buy oat milk'?",
    "¡Hecho! He añadido 'x' a tu lista. ¿Algo más?",
    "تم! أضفت 'x' إلى قائمتك. هل من شيء آخر؟",
    "Nice work 🎉 👩‍🚀",
    "Would you like to hear your to-do list?",
]
FACTS = FilterFacts(ids=frozenset({"42"}), hidden=("ana-7",), nouns=("task", "todo"))


@pytest.mark.parametrize("text", LEAKING)
def test_no_reply_holds_ids_jargon_traces_or_data(text):
    """T5."""
    assert find_leaks(text, FACTS)


@pytest.mark.parametrize("text", FINE)
def test_what_people_say_is_no_leak(text):
    """T5."""
    assert find_problems(text, FACTS) == []


def test_text_inside_a_quoted_title_does_not_count():
    """T5: a title says what its user wrote, also «Fix the JSON error in task #12»."""
    title = "Fix the JSON error in task #12 (see add_task, KeyError)"
    known = FilterFacts(titles=frozenset({title}))
    assert find_leaks(f"Great! I've marked '{title}' as complete.", known) == []
    assert find_leaks(f"1. ☐ {title}\n2. ✓ {title}", known) == []
    assert find_leaks(f"“{title}” is done.", known) == []
    assert find_leaks(f"Great! I've marked '{title}' as complete.", FilterFacts()) != []


def test_quotes_hide_nothing_but_titles():
    """T5: a model cannot put an id into quotes and call it a title."""
    known = FilterFacts(titles=frozenset({"Buy milk"}), ids=frozenset({"42"}), nouns=("task",))
    assert find_leaks("'6f9619ff-8b86-d011-b42d-00c04fc964ff' is done.", known) == ["id"]
    assert find_leaks("'Buy milk' is 'task 42' now.", known) == ["id"]
    assert find_leaks("'Buy milk' task 42", known) == ["id"]


def test_a_number_that_is_no_id_of_this_turn_may_be_said():
    assert (
        find_leaks("Task 3 of 5 is done.", FilterFacts(ids=frozenset({"42"}), nouns=("task",)))
        == []
    )
    assert find_leaks("Task 42 is done.", FilterFacts(ids=frozenset({"42"}), nouns=("task",))) == [
        "id"
    ]


def test_a_reply_that_says_what_happened_says_nothing_else():
    expected = "Got it! Added 'Buy milk' to your list. Anything else?"
    said = f"{expected} I also told your boss."
    assert filter_reply(said, expected, FilterFacts(), "fallback") == expected


@pytest.mark.parametrize("said", [*LEAKING, "ok", "", "Done. " * 100])
def test_a_reply_that_does_not_is_replaced_by_the_sentence(said):
    """T5: whatever the model says."""
    expected = "Got it! Added 'Buy milk' to your list. Anything else?"
    assert filter_reply(said, expected, FACTS, "fallback") == expected


def test_without_a_sentence_the_wrong_part_is_cut_out():
    said = "Your day looks fine. The database has id 42. Anything else?"
    assert filter_reply(said, "", FACTS, "no") == "Your day looks fine. Anything else?"
    assert filter_reply("Only the database.", "", FACTS, "no") == "no"
    assert filter_reply('{"a": "Fine. Really fine."}', "", FACTS, "no") == "no"
    assert filter_reply("", "", FACTS, "no") == "no"


def test_a_long_reply_ends_with_a_whole_sentence():
    """T4: about 500 characters."""
    said = " ".join(f"This is sentence number {one} of many." for one in range(100))
    kept = filter_reply(said, "", FilterFacts(), "no")
    assert len(kept) <= 500
    assert kept.endswith("of many.")
    endless = filter_reply("word " * 500, "", FilterFacts(), "no")
    assert len(endless) <= 500
    assert endless.endswith("word…")


@given(st.text(max_size=800), st.sets(st.text(min_size=1, max_size=20), max_size=3))
def test_whatever_is_said_the_reply_is_clean_and_short(said, titles):
    """T5, T4."""
    known = FilterFacts(titles=frozenset(titles), hidden=("ana-7",))
    text = filter_reply(said, "", known, "What would you like to do?")
    assert find_problems(text, known) == []


@given(st.text(max_size=400))
def test_a_shown_title_is_one_short_harmless_line(title):
    text = clean_title(title)
    assert len(text) <= 200
    assert strip_controls(text) == text
    assert "\n" not in text
