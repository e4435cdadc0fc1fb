"""Patterns of paths: against a slow reading of the same words, and quick on every path."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.policy import Act, Rule


def fits(pattern: str, path: str) -> bool:
    """What the guide says, word for word and as slowly as it likes."""
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    wanted, found = pattern.removeprefix("./").split("/"), path.split("/")

    @cache
    def name(one: str, text: str) -> bool:
        if not one:
            return not text
        if one[0] == "*":
            return name(one[1:], text) or (bool(text) and name(one, text[1:]))
        return bool(text) and one[0] in ("?", text[0]) and name(one[1:], text[1:])

    @cache
    def rest(at: int, here: int) -> bool:
        if at == len(wanted):
            return here == len(found)
        if wanted[at] == "**":
            return any(rest(at + 1, place) for place in range(here, len(found) + 1))
        return here < len(found) and name(wanted[at], found[here]) and rest(at + 1, here + 1)

    return rest(0, 0)


def speaks(pattern: str, path: str, verdict: str = "allow") -> bool:
    return Rule(verdict, "write", pattern).applies_to(Act(("write",), path, is_path=True))


names = st.text(alphabet="ab*?", min_size=1, max_size=4).filter(lambda one: "**" not in one)
patterns = st.lists(st.one_of(names, st.just("**")), min_size=1, max_size=5).map("/".join)
paths = st.lists(st.text(alphabet="ab", min_size=1, max_size=3), min_size=1, max_size=6).map(
    "/".join
)


@given(patterns, paths)
def test_a_pattern_means_what_its_words_say(pattern, path):
    assert speaks(pattern, path) is fits(pattern, path)
    assert speaks(pattern, path, "deny") is fits(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path", "wanted"),
    [
        ("src/**.py", "src/a.py", True),
        ("src/**.py", "src/x/a.py", True),
        ("src/**.py", "lib/a.py", False),
        ("src/a**", "src/ab/c", True),
        ("src/a**", "src/ab", True),
        ("src/a**z", "src/abz", True),
        ("src/a**z", "src/ab/c/z", True),
        ("src/a**z", "src/bz", False),
        ("/etc/**", "/etc/ssh/config", True),
        ("/etc/**", "etc/ssh", False),
        ("**", "a/b", True),
        ("**/", "a/b", True),
        ("a.b", "x/a.b", True),
        ("a+(b", "a+(b", True),
    ],
)
def test_odd_patterns(pattern, path, wanted):
    assert speaks(pattern, path) is wanted


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/a/**/b/**/a/**/b/**/c", "a/b/" * 1000 + "z"),
        ("**/*a*a*a*a*a*b/**/c", "a" * 4000 + "/" + "a" * 4000),
        ("*a*a*a*a*a*a*a*a*b", "a" * 4000),
        ("**/**/**/**/**/x", "a/" * 2000 + "y"),
        ("a**a**a**a**b", "a/" * 2000),
    ],
)
def test_no_path_takes_for_ever(pattern, path):
    """It ends, and that is what is shown here; a pattern that goes back and forth would not."""
    assert [speaks(pattern, path), speaks(pattern, path, "deny")] == [False, False]
