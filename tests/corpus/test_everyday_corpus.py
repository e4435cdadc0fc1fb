"""An ordinary day: what only reads runs unasked, and nothing that runs unasked does harm."""

import corpora
import pytest
import reality
from field import make_field

from rig import SOAK

UNASKED = corpora.everyday("+")
ASKED = corpora.everyday("?")


def test_there_are_enough_of_them():
    assert len(set(UNASKED)) >= 300
    assert len(set(UNASKED) | set(ASKED)) >= 400


def test_what_only_reads_runs_unasked(everyday_gate):
    assert [line for line in UNASKED if everyday_gate.verdict(line) != "allow"] == []


def test_what_changes_things_or_runs_code_is_asked_about_and_not_forbidden(everyday_gate):
    assert [line for line in ASKED if everyday_gate.verdict(line) != "ask"] == []


@pytest.mark.skipif(bool(reality.why_not()), reason=reality.why_not() or "it works")
def test_what_runs_unasked_changes_nothing_and_gives_nothing_away(gate, tmp_path):
    """Run for real, with links that lead out and a home full of secrets around it."""
    allowed = [line for line in UNASKED if gate.verdict(line) == "allow"]
    place = make_field(tmp_path)
    lines = allowed if SOAK else allowed[::4]
    assert len(allowed) > 290
    assert reality.harm_of(place, lines) == []


@pytest.mark.skipif(bool(reality.why_not()), reason=reality.why_not() or "it works")
def test_the_check_can_fail(tmp_path):
    """The hostile of the same kind is seen to do harm."""
    place = make_field(tmp_path)
    assert reality.harm_of(place, ["touch pwned"]) == ["changed: ws/pwned"]
    assert reality.harm_of(place, ["cat ~/.ssh/id_rsa"]) == [
        "gave away a secret: 'cat ~/.ssh/id_rsa'"
    ]
    assert reality.harm_of(place, ["cd ..; echo x >> outside.txt"]) == ["changed: outside.txt"]
    assert reality.harm_of(place, ["cd wild && git diff"]) == ["changed: ws/wild/pwned"]
