"""Ten thousand random and hostile strings: no exception, and none is allowed by mistake.

Whatever is allowed of a mutated hostile command is run for real, where it can do no harm: it must
have become harmless.
"""

import os
import subprocess
import sys

import fuzzing
import pytest
import reality
from field import make_field

from rig import seeds

STRINGS = 100  # of a seed
VERDICTS = {"allow", "ask", "deny"}


@pytest.mark.parametrize("seed", seeds(100))
def test_any_string_is_decided(gate, seed):
    for text in fuzzing.strings(seed, STRINGS):
        assert set(gate.verdicts(text)) <= VERDICTS


@pytest.mark.skipif(bool(reality.why_not()), reason=reality.why_not() or "it works")
@pytest.mark.parametrize("seed", seeds(20))
def test_a_mutation_that_is_allowed_is_harmless_when_it_is_run(gate, seed, tmp_path):
    allowed = [line for line in fuzzing.mutants(seed, 500) if gate.verdict(line) == "allow"]
    assert reality.harm_of(make_field(tmp_path), allowed) == []


def test_the_same_seed_gives_the_same_strings():
    assert list(fuzzing.strings(7, 50)) == list(fuzzing.strings(7, 50))
    assert fuzzing.mutants(7, 50) == fuzzing.mutants(7, 50)


_EVERY_CHARACTER = """
import sys
from bridle.command_analysis.parser import parse
for number in [*range(0, 0x300), *range(0x300, 0x110000, 997), 0xE0041, 0x10FFFF]:
    for before in ("{", "${", "<<"):
        parse(before + chr(number))
"""


def test_no_character_ends_the_process():
    """A grammar in C that looks a character up in a table that is too short ends all of it."""
    environ = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", _EVERY_CHARACTER], env=environ)
    assert done.returncode == 0


@pytest.mark.parametrize("line", ["env -S ''", "env -S '\u3000'", "xargs env", "sh -c ''", "nice"])
def test_a_wrapper_around_nothing_is_decided(gate, line):
    assert set(gate.verdicts(line)) <= VERDICTS
