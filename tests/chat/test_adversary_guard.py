"""What a model tries to get past the guard: markup in any case, hidden letters, other digits."""

import pytest
from runner_rig import chatting, on_sqlite, scripted

from bridle.chat.reply_filter import FilterFacts, clean_title, find_leaks, strip_controls
from bridle.chat.turn import redact
from rig import run

FACTS = FilterFacts(ids=frozenset({"42"}), hidden=("ana-7",), nouns=("task",))
SMUGGLED = [
    "<IMG SRC=x onerror=alert(1)> hi",
    "<Script\nsrc=//evil.example/x></Script> hi",
    "<a\thref=x>here</a>",
    "<!-- hidden --> hi",
    "<svg/onload=alert(1)>",
    "Write to mailto:a@evil.example",
    "Open //evil.example/x now",
    "Go to evil.example/login?u=1 now",
    "Your i\u200dd is 42.",
    "ＩＤ ４２ is yours.",
    "Task ４２ is done.",
    "Task (42) is done.",
    "Task №42 is done.",
    "The d\u200catabase is away.",
    "line one\u2028line two",
    "x\U000e0101\U000e0102y",
    "\u3164\u3164",
]
FINE = [
    "You have 3 tasks due on 1/2 or and/or later.",
    "1. ☐ Buy milk & bread <3",
    "5 < 6 and 7 > 3",
    "It's at 5 p.m. e.g. tomorrow",
    "می\u200cخواهم",
    "👩\u200d🚀 nice",
]


@pytest.mark.parametrize("text", SMUGGLED)
def test_T5_what_is_smuggled_is_seen(text):
    assert find_leaks(text, FACTS) != []


@pytest.mark.parametrize("text", FINE)
def test_T5_what_people_write_is_not(text):
    assert find_leaks(text, FACTS) == []


def test_T5_a_title_is_shown_without_letters_that_nobody_sees():
    assert clean_title("a\u2028b\u3164c\U000e0101d") == "a bcd"
    assert strip_controls("a\u2029b") == "a\nb"


@on_sqlite
def test_T5_bold_words_are_said_without_their_stars(database):
    async def told():
        async with chatting(database, scripted("**Well**, you could __rest__ a bit.")) as chat:
            assert await chat.say("what now?") == "Well, you could rest a bit."

    run(told())


def test_T3_what_is_kept_of_a_call_is_what_was_said_but_for_the_users_id():
    """A name inside a word is no name."""
    kept = redact({"title": "Buy banana for ana", "who": "ana", "n": ["ana@x", "Diana"]}, "ana")
    assert kept == {
        "title": "Buy banana for [redacted]",
        "who": "[redacted]",
        "n": ["[redacted]@x", "Diana"],
    }
