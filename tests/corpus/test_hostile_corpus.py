"""No hostile command runs unasked, however it is wrapped, spelled or joined (SECURITY.md)."""

import json
import random
from collections import Counter

import corpora
import crossings
import fuzzing
import pytest
from crossings import HIDDEN, JOINTS, PLAIN, SPELLINGS, WRAPPERS

from bridle.messages import ToolCall
from bridle.policy import parse_rule
from rig import SOAK, seeds

HOSTILE = corpora.hostile()
FINAL = [one for one in HOSTILE if one.final]
STRIDE = 1 if SOAK else 10
LASTING = ("deny", "deny")
# Through these nobody can say what runs, but they are programs or scripts as people run them every
# day: they ask. What they do is the sandbox's affair.
SCRIPTS = {"python", "perl", "file", "ssh"}


def some(commands, name):
    """A part of them, another for each name; all of them in a soak."""
    start = sorted(PLAIN | HIDDEN).index(name) % STRIDE
    return commands[start::STRIDE]


def test_each_row_has_more_than_a_dozen():
    counts = Counter(one.row for one in HOSTILE)
    assert min(counts.values()) > 12
    assert len(counts) == 13
    assert len(set(HOSTILE)) > 1700


@pytest.mark.parametrize("row", sorted({one.row for one in HOSTILE}))
def test_no_hostile_command_runs_unasked(gate, row):
    lines = [one.command for one in HOSTILE if one.row == row]
    assert [line for line in lines if gate.verdict(line) == "allow"] == []


@pytest.mark.parametrize("row", sorted({one.row for one in FINAL}))
def test_what_is_final_is_denied_in_every_mode_inside_a_sandbox_or_not(gate, row):
    lines = [one.command for one in FINAL if one.row == row]
    assert [line for line in lines if gate.verdicts(line)[1:] != LASTING] == []


@pytest.mark.parametrize("name", PLAIN)
def test_no_wrapper_spelling_or_joint_lets_a_hostile_command_through(gate, name):
    lines = [PLAIN[name](one.command) for one in some(HOSTILE, name)]
    assert [line for line in lines if gate.verdict(line) == "allow"] == []


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_final_is_seen_through_wrappers_spellings_and_joints(gate, name):
    lines = [PLAIN[name](one.command) for one in some(FINAL, name)]
    assert [line for line in lines if gate.verdicts(line)[1:] != LASTING] == []


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_asks_and_does_not_run_by_itself_without_a_sandbox(gate, name):
    lines = [HIDDEN[name](one.command) for one in some(HOSTILE, name)]
    assert [line for line in lines if gate.verdict(line) == "allow"] == []
    if name not in SCRIPTS:
        lines = [HIDDEN[name](one.command) for one in some(FINAL, name)]
        assert [line for line in lines if gate.verdicts(line)[1] == "allow"] == []


@pytest.mark.parametrize("seed", seeds(100))
def test_wrapped_and_joined_it_is_still_not_run(gate, seed):
    dice = random.Random(seed)
    for first, second in fuzzing.pairs(dice, 40):
        one = dice.choice(HOSTILE)
        line = JOINTS[second]((WRAPPERS | SPELLINGS)[first](one.command))
        told = gate.verdicts(line)
        assert told[0] != "allow", line
        assert not one.final or told[1:] == LASTING, line


@pytest.mark.parametrize("command", ["touch pwned", "git push origin main", "npm test"])
def test_a_rule_that_denies_a_command_denies_it_however_it_is_wrapped(gate, command):
    """Commands 3: a deny rule for the inner command still denies."""
    rule = parse_rule(f"deny: shell({command})")
    lines = [cross(command) for cross in PLAIN.values()]
    calls = [ToolCall("", "shell", {"command": line}) for line in lines]
    found = [gate.dry_run.judge(call, "auto", (rule,)).decision for call in calls]
    loose = [line for line, one in zip(lines, found, strict=True) if one.verdict != "deny"]
    assert loose == []


def test_the_program_itself_says_the_same(bridle_program, field, gate):
    """A sample, through `bridle policy explain --json -`."""
    lines = [one.command for one in HOSTILE[::25]] + corpora.everyday("+")[::10]
    sound = [line for line in lines if line.isprintable()]
    asked = "".join(json.dumps({"command": line}) + "\n" for line in sound)
    done = bridle_program(asked)
    assert (done.returncode, done.stderr) == (0, b"")
    told = [json.loads(one)["decision"] for one in done.stdout.splitlines()]
    assert told == [gate.verdict(line) for line in sound]
    assert {"allow", "ask", "deny"} == set(told)


LIMITS = {
    "sixty": "; ".join(["ls"] * 60 + ["rm -rf ~"]),
    "fifty-one": " && ".join(["ls"] * 51),
    "hundred pipes": " | ".join(["cat a.txt"] * 100),
    "thousand lines": "\n".join(["ls"] * 1000 + ["touch pwned"]),
    "many in the background": " & ".join(["ls"] * 70),
    "long": "ls " + "a" * 10_001 + "; rm -rf ~",
    "blank": "ls" + " " * 10_001 + "; rm -rf ~",
    "long comment": "ls #" + "x" * 10_001 + "\nrm -rf ~",
    "long name": "touch " + "x/" * 6000,
    "long text": "echo '" + "a" * 20_000 + "'; touch pwned",
    "deep subshells": "(" * 50 + "rm -rf ~" + ")" * 50,
    "deep groups": "{ " * 50 + "rm -rf ~" + "; }" * 50,
    "deep substitutions": "echo " + "$(echo " * 50 + "x" + ")" * 50,
    "deep arithmetic": "echo $((" + "(" * 60 + "1" + ")" * 60 + "))",
    "deep braces": "echo " + "{a," * 60 + "b" + "}" * 60,
    "deep ifs": "if true; then " * 50 + "rm -rf ~" + "; fi" * 50,
    "brace bomb": "echo " + "{a,b}" * 30,
    "two megabytes": "ls;" * 700_000,
    "two megabytes of text": "echo " + "a" * 2_000_000,
    "many words": "rm -rf " + "a " * 4000 + "/",
    "many redirections": "ls " + "> /dev/null " * 500 + "> src/app.py",
    "many wrappers": "nice " * 200 + "touch pwned",
    "many here-texts": "cat " + "<< E " * 100 + "\n" + "x\nE\n" * 100 + "touch pwned",
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_over_a_limit_is_never_run_unasked(gate, name):
    """Commands 8: limits fail closed."""
    assert gate.verdict(LIMITS[name]) != "allow"


@pytest.mark.parametrize("name", LIMITS)
def test_a_deny_stays_a_deny_over_any_limit(gate, name):
    """Commands 8: the rule that denies `rm` is not lost in the crowd."""
    rule = parse_rule("deny: shell(rm *)")
    line = f"rm a.txt; {LIMITS[name]}"
    call = ToolCall("", "shell", {"command": line})
    assert gate.dry_run.judge(call, "auto", (rule,)).decision.verdict == "deny"


@pytest.mark.parametrize("wrapper", sorted(WRAPPERS))
def test_a_harmless_command_does_not_become_opaque_by_accident(gate, wrapper):
    """A wrapper that hides `ls` may ask; it is never said to be final."""
    line = crossings.WRAPPERS[wrapper]("ls")
    assert gate.judge(line).decision.rule != "floor" or wrapper in {"echo to sh"}
