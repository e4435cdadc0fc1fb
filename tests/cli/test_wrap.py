"""Prose is broken between words, code is not, and no letter is lost on the way."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.cli.style import Wrap, wrapped

TEXT = st.text(st.sampled_from("ab -*`1.\n\té漢"), max_size=80)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three four", ["one two", "three four"]),
        ("one two  three", ["one two", "three"]),
        ("a-word-longer-than-a-line here", ["a-word-longer-than-a-line", "here"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("- one two three", ["- one two", "  three"]),
        ("10. one two three", ["10. one", "    two", "    three"]),
        ("  one two three", ["  one two", "  three"]),
        ("    code that is long", ["    code that is long"]),
        (
            "```py\ncode that is long\n```\none two three",
            [
                "```py",
                "code that is long",
                "```",
                "one two",
                "three",
            ],
        ),
        ("漢字 漢字 漢字", ["漢字 漢字", "漢字"]),
        ("", []),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str]):
    assert wrapped(text, 10).split("\n") == (lines or [""])


@given(TEXT, st.integers(1, 40), st.lists(st.integers(0, 80), max_size=6))
def test_pieces_give_what_the_whole_gives_and_no_word_is_lost(text, width, cuts):
    wrap, places = Wrap(), [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    piecemeal = "".join(wrap.feed(piece, width) for piece in pieces) + wrap.flush(width)
    assert piecemeal == wrapped(text, width)
    assert piecemeal.split() == text.split()


@given(TEXT)
def test_what_is_narrow_enough_stays_as_it_is(text: str):
    assert wrapped(text + "\n", 1000) == text + "\n"
