"""Every flag that a program itself admits to, with values of every kind: what is allowed is run.

The table of known programs says which flags are harmless; the programs, in a place where they can
do no harm, are the referee. Nothing may be written, and no secret printed.
"""

import random
import re
import shutil
import string
import subprocess

import pytest
import reality
from field import make_field

from bridle.command_analysis.programs import PROGRAMS
from rig import SOAK, seeds

PROGRAMS = sorted(
    name for name, entry in PROGRAMS.items() if entry.does == "reads" and shutil.which(name)
)
VERBS = [
    "status", "log", "diff", "show", "branch", "rev-parse", "ls-files", "blame", "grep",
    "tag", "remote", "reflog", "describe", "shortlog", "cat-file", "config", "ls-tree",
    "for-each-ref", "check-ignore", "name-rev", "merge-base", "rev-list", "stash",
    "show-ref", "count-objects", "diff-tree", "whatchanged", "symbolic-ref", "check-attr",
    "cherry", "range-diff", "worktree", "bisect",
]  # fmt: skip
VALUES = ("src/app.py", "./evil.sh", ".env", "../outside.txt", "HEAD", "x", "1")
FORMS = (
    "{p} {o}",
    "{p} {o} a.txt",
    "{p} {o} {v}",
    "{p} {o} {v} a.txt",
    "{p} {o}={v} a.txt",
    "{p} {o}{v} a.txt",
    "{p} a.txt {o} {v}",
)
OLD = ["--ext-diff", "--output", "--textconv", "--show-signature", "--open-files-in-pager"]
LINES = 4000 if SOAK else 1500  # of a seed, before they are judged


def flags_of(words):
    """What a program says that it can be given, and every letter besides."""
    said = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=240)
    text = (said.stdout + said.stderr).decode("utf-8", "replace")
    found = {f"--{name}" for name in re.findall(r"--(?:\[no-\])?([a-z][a-z0-9-]+)", text)}
    return sorted(found) + [f"-{letter}" for letter in string.ascii_letters + string.digits]


def lines_of(dice, count):
    """Lines of programs with a flag of theirs."""
    programs = dice.sample(PROGRAMS, 8)
    verbs = dice.sample(VERBS, 4)
    known = {name: flags_of([name, "--help"]) for name in programs if name != "git"}
    known |= {f"git {verb}": flags_of(["git", verb, "-h"]) + OLD for verb in verbs}
    for _ in range(count):
        program = dice.choice(list(known))
        flag, value = dice.choice(known[program]), dice.choice(VALUES)
        yield dice.choice(FORMS).format(p=program, o=flag, v=value)


@pytest.mark.skipif(bool(reality.why_not()), reason=reality.why_not() or "it works")
@pytest.mark.parametrize("seed", seeds(30))
def test_no_flag_that_is_allowed_writes_or_gives_away_anything(gate, seed, tmp_path):
    lines = lines_of(random.Random(seed), LINES)
    allowed = sorted({line for line in lines if gate.verdict(line) == "allow"})
    assert len(allowed) > 100
    place = make_field(tmp_path)
    assert reality.harm_of(place, allowed[:: 1 if SOAK else 3]) == []
