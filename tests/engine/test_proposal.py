"""The rule that is proposed covers exactly the call that was asked about; what a rule covered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.grants import covered_calls, propose_rule
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Facts, Rule, ToolPolicy, decide, parse_rule

ASK = Decision("ask", "it may change things")
CALL = ToolCall("c", "shell", {"command": "make"})


def command(text, **rest):
    return Act(("shell",), text, **rest)


def path(text, *names):
    return Act(names or ("write",), text, "edits", is_path=True)


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        ((command("npm install"),), "allow: shell(npm install)"),
        ((command("ls", does="reads"), command("make")), "allow: shell(make)"),
        ((command("make"), command("make")), "allow: shell(make)"),
        ((command("a"), command("b")), ""),
        ((command("a"), path("x", "shell", "write")), ""),
        ((command("a"), Act(("write",), "x", is_path=True, minor=True)), "allow: shell(a)"),
        ((path("src/a.py"),), "allow: write(src/a.py)"),
        ((path("a.py", "edit", "write"),), "allow: edit(./a.py)"),
        ((command("git add '*.py'"),), ""),
        ((command("rm file?"),), ""),
        ((path("a*.py"),), ""),
        ((command("echo (x)"),), "allow: shell(echo (x))"),
        ((command("a\nb"),), ""),
        ((command(" a"),), ""),
        ((command("x" * 5000),), ""),
    ],
)
def test_the_rule_is_the_narrowest_or_none(acts, expected):
    assert propose_rule(CALL, Facts(acts=acts), ASK) == expected


def test_a_tool_without_a_subject_is_named_alone():
    assert propose_rule(ToolCall("c", "deploy", {"to": "x"}), Facts(), ASK) == "allow: deploy"
    strange = ToolCall("c", "de ploy", {})
    assert propose_rule(strange, Facts(), ASK) == ""


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        (Facts(guard="a secret"), Decision("ask", "a secret", once_only=True)),
        (Facts(guard="a secret"), ASK),
        (Facts(opaque="an expansion"), ASK),
        (Facts(floor="never"), ASK),
        (Facts(), Decision("ask", "it is a question to you", once_only=True)),
        (Facts(), Decision("ask", "a rule says so", "ask: shell")),
    ],
)
def test_nothing_is_proposed_where_no_rule_would_help(facts, decision):
    assert propose_rule(CALL, facts, decision) == ""


subjects = st.text(st.sampled_from("ab /.*?[](){}'\"\\$-\né"), max_size=12)
acts = st.builds(Act, st.just(("shell",)), subjects, st.sampled_from(["reads", "changes", "edits"]))
paths = st.builds(
    Act, st.just(("edit", "write")), subjects, st.just("edits"), is_path=st.just(True)
)


@given(st.lists(acts | paths, max_size=3), acts | paths)
def test_a_proposal_allows_the_call_and_no_other_subject(found, other):
    """Accepted as a rule, the call runs; an act with another subject is not covered."""
    facts = Facts(acts=tuple(found))
    said = propose_rule(CALL, facts, ASK)
    if not said:
        return
    rule = parse_rule(said)
    assert decide(CALL, facts, (rule,), "ask").verdict == "allow"
    mine = {act.subject for act in found} or {""}
    same = other.subject in mine or f"./{other.subject}" in mine
    if rule.pattern != "*" and not same and other.is_path == any(one.is_path for one in found):
        bare = {one.removeprefix("./") for one in mine}
        assert not rule.applies_to(other) or other.subject.removeprefix("./") in bare


def past(*acts, **rest):
    return ToolCall("c", "shell", {"command": "x"}), Facts(acts=acts, **rest)


def test_a_preview_says_which_calls_a_rule_would_have_covered():
    make, both = past(command("make test")), past(command("make test"), command("rm a"))
    opaque = past(command("make test"), opaque="$(x)")
    guarded = past(command("make test"), guard="a secret")
    asks = past(command("make test"), policy=ToolPolicy(asks=True))
    every = (make, both, opaque, guarded, asks)
    assert covered_calls(Rule("allow", "shell", "make *"), every) == (make[0],)
    assert len(covered_calls(Rule("deny", "shell", "make *"), every)) == 5
    assert covered_calls(Rule("allow", "write"), every) == ()
    plain = (ToolCall("d", "deploy"), Facts())
    assert covered_calls(Rule("allow", "deploy"), [plain]) == (plain[0],)


def test_no_rule_is_proposed_for_a_command_in_another_folder():
    assert propose_rule(CALL, Facts(acts=(command("make", within="/w/evil"),)), ASK) == ""


def test_a_rule_for_a_folder_allows_what_runs_in_it_and_forbids_below_it_as_well():
    here, below = command("make"), command("make", within="/w/evil")
    allow, deny = Rule("allow", "shell", "make", where="/w"), Rule("deny", "shell", where="/w")
    assert [allow.applies_to(one) for one in (here, below)] == [True, False]
    assert [deny.applies_to(one) for one in (here, below)] == [True, True]
    assert Rule("allow", "shell", where="/w").applies_to(below) is False
