"""Too much, or nothing but noise: it comes back at once, refused or opaque, and never raises."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_bash import FRAGMENTS

from bridle.commands.limits import TOO_DEEP, TOO_LONG, TOO_MANY
from bridle.commands.parse import parse
from bridle.commands.shape import Script
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
    assert parse(piece * (MB2 // len(piece))) == Script(refused=TOO_LONG)


def test_ten_thousand_characters_are_read_and_one_more_is_not():
    assert parse("a" * 10_000).commands[0].argv == ("a" * 10_000,)
    assert parse("a" * 10_001).refused == TOO_LONG


@pytest.mark.parametrize("join", [";", "\n", " && ", " | ", " & "])
def test_fifty_commands_are_read_and_one_more_is_refused(join):
    assert len(parse(join.join(["a"] * 50)).commands) == 50
    assert parse(join.join(["a"] * 51)) == Script(refused=TOO_MANY)
    assert parse(join.join(["echo $a"] * 51)) == Script(refused=TOO_MANY)


NESTS = (("(", ")"), ("{ ", "; }"), ("$(", ")"), ("<(", ")"), ("if a; then ", "; fi"))


@pytest.mark.parametrize(("opens", "closes"), NESTS)
def test_what_is_nested_too_deep_is_refused(opens, closes):
    line = opens * 50 + "a" + closes * 50
    assert parse(line) == Script(refused=TOO_DEEP)
    assert parse(opens * 3000) == Script(
        refused=TOO_DEEP if "(" in opens or "{" in opens else TOO_LONG
    )


def test_twenty_deep_is_read():
    assert parse("( " * 20 + "a" + " )" * 20).commands[0].argv == ("a",)
    assert parse("( " * 21 + "a" + " )" * 21).refused == TOO_DEEP


@given(st.text(max_size=300))
def test_any_text_comes_back(text):
    assert isinstance(parse(text), Script)


@pytest.mark.parametrize("seed", seeds(100))
def test_long_noise_comes_back(seed):
    dice = random.Random(seed)
    size = dice.randint(100, 12_000)
    text = "".join(dice.choices(FRAGMENTS, k=size))[:size]
    found = parse(text)
    assert found.opaque or found.refused or found.commands
