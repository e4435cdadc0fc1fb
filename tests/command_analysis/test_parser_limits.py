"""Too much, or nothing but noise: it comes back at once, refused or opaque, and never raises."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_bash import FRAGMENTS

from bridle.command_analysis.lexer import (
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY_COMMANDS,
    TOO_MANY_PIECES,
    TOO_MANY_TOKENS,
)
from bridle.command_analysis.parser import parse
from bridle.command_analysis.syntax import Script
from rig import seeds

MB2 = 2_000_000
LONG = (
    "a",
    "(",
    "$(",
    "`",
    "'",
    '"',
    "\\",
    "{",
    "[",
    "a;",
    "<<E\n",
    "\0",
    "é",
    "\n",
    "if a; then ",
)


@pytest.mark.parametrize("piece", LONG)
def test_two_megabytes_of_anything_are_refused_unread(piece):
    assert parse(piece * (MB2 // len(piece))) == Script(over_limit=TOO_LONG)


def test_ten_thousand_characters_are_read_and_one_more_is_not():
    assert parse("a" * 10_000).commands[0].argv == ("a" * 10_000,)
    assert parse("a" * 10_001).over_limit == TOO_LONG


@pytest.mark.parametrize("join", [";", "\n", " && ", " | ", " & "])
def test_fifty_commands_are_read_and_one_more_is_refused(join):
    assert len(parse(join.join(["a"] * 50)).commands) == 50
    assert parse(join.join(["a"] * 51)) == Script(over_limit=TOO_MANY_COMMANDS)
    assert parse(join.join(["echo $a"] * 51)) == Script(over_limit=TOO_MANY_COMMANDS)


NESTS = (("(", ")"), ("{ ", "; }"), ("$(", ")"), ("<(", ")"), ("if a; then ", "; fi"))


@pytest.mark.parametrize(("opens", "closes"), NESTS)
def test_what_is_nested_too_deep_is_refused(opens, closes):
    line = opens * 40 + "a" + closes * 40
    assert parse(line) == Script(over_limit=TOO_DEEP)
    assert parse(opens * 3000) == Script(
        over_limit=TOO_DEEP if "(" in opens or "{" in opens else TOO_LONG
    )


def test_twenty_deep_is_read():
    assert parse("( " * 20 + "a" + " )" * 20).commands[0].argv == ("a",)
    assert parse("( " * 21 + "a" + " )" * 21).over_limit == TOO_DEEP


def test_three_hundred_words_and_signs_are_read_and_one_more_is_refused_unread():
    assert len(parse("echo" + " a" * 299).commands[0].argv) == 300
    assert parse("echo" + " a" * 300) == Script(over_limit=TOO_MANY_TOKENS)
    assert parse("rm" + " a" * 299 + " >x") == Script(over_limit=TOO_MANY_TOKENS)


def test_a_word_of_a_hundred_pieces_is_read_and_one_of_more_is_refused_unread():
    assert parse("echo " + "'a'" * 100).commands[0].argv == ("echo", "a" * 100)
    assert parse("echo " + "'a'" * 101) == Script(over_limit=TOO_MANY_PIECES)
    assert parse("echo " + "{a,b}" * 60) == Script(over_limit=TOO_MANY_PIECES)
    assert parse("echo $x " + "'a'" * 101) == Script(over_limit=TOO_MANY_PIECES)


@given(st.text(max_size=300))
def test_any_text_comes_back(text):
    assert isinstance(parse(text), Script)


@pytest.mark.parametrize("seed", seeds(100))
def test_long_noise_comes_back(seed):
    dice = random.Random(seed)
    size = dice.randint(100, 12_000)
    text = "".join(dice.choices(FRAGMENTS, k=size))[:size]
    found = parse(text)
    assert found.opaque or found.over_limit or found.commands
