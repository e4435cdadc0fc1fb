"""The decision over acts: who wins, and that no mode and no rule lifts what must not be lifted.

All of it is A5, and what the gate promises beyond it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.errors import ConfigError
from bridle.messages import ToolCall
from bridle.policy import MODES, Act, Decision, Facts, Rule, ToolPolicy, decide, parse_rule

RANK = {"allow": 0, "ask": 1, "deny": 2}
SHELL = ToolPolicy(runs="command", risk="high")
CALL = ToolCall("c", "shell", {"command": "…"})

subjects = st.sampled_from(["ls", "ls -l", "rm x", "git push", "a/b.sql", "B.SQL", ""])
acts = st.builds(
    Act,
    st.sampled_from([("shell",), ("shell", "write"), ("write",), ("web_fetch", "fetch")]),
    subjects,
    st.sampled_from(["reads", "edits", "builds", "changes"]),
    also=st.sampled_from([(), ("rm",), ("/bin/rm x",)]),
    is_path=st.booleans(),
    minor=st.booleans(),
)
policies = st.sampled_from(
    [SHELL, ToolPolicy(), ToolPolicy(read_only=True), ToolPolicy(requires_approval=True)]
)
facts = st.builds(
    Facts,
    policies,
    subjects,
    st.sampled_from(["", "", "", "it erases the disk"]),
    st.lists(acts, max_size=4).map(tuple),
    st.sampled_from(["", "", "it reads a key"]),
    st.sampled_from(["", "", "it has an expansion"]),
    st.booleans(),
)
rules = st.builds(
    Rule,
    st.sampled_from(["allow", "ask", "deny"]),
    st.sampled_from(["shell", "write", "fetch", "*"]),
    st.sampled_from(["*", "ls *", "rm *", "git push", "**/*.sql", "*.sql"]),
)
many = st.lists(rules, max_size=6)
modes = st.sampled_from(MODES)


def own(found, call=CALL):
    return found.acts or (Act((call.name,), found.subject),)


@given(facts, many, modes)
def test_deny_beats_ask_beats_allow(found, given_rules, mode):
    """The strictest rule about any act decides, wherever it stands (A5)."""
    verdict = decide(CALL, found, given_rules, mode).verdict
    speaking = {one.verdict for one in given_rules for act in own(found) if one.applies_to(act)}
    if "deny" in speaking:
        assert verdict == "deny"
    elif "ask" in speaking and mode != "auto":
        assert verdict != "allow"


@given(facts, many, modes, rules, st.integers(0, 6))
def test_a_deny_that_is_added_never_permits_more(found, before, mode, rule, place):
    """Wherever it is put, and whatever it speaks of (A5)."""
    added = Rule("deny", rule.tool, rule.pattern)
    old = decide(CALL, found, before, mode)
    new = decide(CALL, found, [*before[:place], added, *before[place:]], mode)
    assert RANK[new.verdict] >= RANK[old.verdict]


@given(facts, many, many, modes)
def test_no_mode_lifts_a_deny(found, denies, others, mode):
    """What is denied in the mode that asks is denied in each of them (A5)."""
    forbidding = [Rule("deny", one.tool, one.pattern) for one in denies]
    asked = decide(CALL, found, [*forbidding, *others], "ask")
    if asked.verdict == "deny":
        assert decide(CALL, found, [*forbidding, *others], mode).verdict == "deny"


@given(facts, many, modes)
def test_nothing_lifts_the_floor(found, given_rules, mode):
    """Neither rules nor modes (A5)."""
    if found.floor:
        assert decide(CALL, found, given_rules, mode) == Decision("deny", found.floor, "floor")


@given(facts, many, modes)
def test_nothing_but_a_person_lifts_a_guard(found, given_rules, mode):
    """It asks, and where the person has answered everything beforehand it is denied (A5)."""
    if found.guard:
        verdict = decide(CALL, found, given_rules, mode).verdict
        assert verdict == "deny" if mode == "auto" else verdict != "allow"


@given(facts, many, modes)
def test_what_was_not_understood_runs_unasked_only_in_a_sandbox_and_in_auto(found, rules, mode):
    """An allow rule is about what was understood (A5)."""
    if found.opaque and decide(CALL, found, rules, mode).verdict == "allow":
        assert mode == "auto"
        assert found.sandboxed
        assert not found.guard


@given(facts, many)
def test_plan_mode_lets_nothing_change_anything(found, given_rules):
    """Whatever the rules say."""
    if decide(CALL, found, given_rules, "plan").verdict != "deny":
        assert not found.opaque
        assert all(act.does == "reads" for act in found.acts)


@given(facts, many, modes)
def test_a_call_is_never_freer_than_each_of_its_acts(found, given_rules, mode):
    """More acts make it stricter, or leave it (A5)."""
    whole = decide(CALL, found, given_rules, mode).verdict
    for act in found.acts:
        if not act.minor:
            part = Facts(found.policy, found.subject, "", (act,), sandboxed=found.sandboxed)
            alone = decide(CALL, part, given_rules, mode)
            if not found.policy.requires_approval:
                assert RANK[whole] >= RANK[alone.verdict]


def test_an_allow_needs_to_cover_every_act():
    line = (Act(("shell",), "git push"), Act(("shell",), "rm -rf build"))
    rule = (Rule("allow", "shell", "git push"),)
    assert decide(CALL, Facts(SHELL, acts=line), rule, "ask").verdict == "ask"
    assert decide(CALL, Facts(SHELL, acts=line[:1]), rule, "ask").verdict == "allow"


def test_a_minor_act_needs_no_allow_of_its_own_and_can_be_forbidden():
    wrapped = (Act(("shell",), "make test"), Act(("shell",), "timeout 5 make test", minor=True))
    allow, deny = Rule("allow", "shell", "make test"), Rule("deny", "shell", "timeout *")
    found = Facts(SHELL, acts=wrapped)
    assert decide(CALL, found, (allow,), "ask").verdict == "allow"
    assert decide(CALL, found, (allow, deny), "ask").verdict == "deny"


def test_a_minor_act_that_is_part_of_nothing_counts_as_any_other():
    alone = Facts(SHELL, acts=(Act(("shell",), "x", minor=True),))
    assert decide(CALL, alone, (), "ask").verdict == "ask"


def test_an_allow_looks_at_the_words_as_they_were_understood_and_a_deny_at_every_spelling():
    act = Act(("shell",), "/opt/bin/Curl x", also=("curl x",))
    found = Facts(SHELL, acts=(act,))
    assert decide(CALL, found, (Rule("allow", "shell", "curl *"),), "ask").verdict == "ask"
    assert decide(CALL, found, (Rule("deny", "shell", "curl *"),), "auto").verdict == "deny"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.sql", "a.sql", True),
        ("**/*.sql", "db/x/a.sql", True),
        ("*.sql", "db/x/a.sql", True),
        ("db/*", "db/x/a.sql", False),
        ("db/**", "db/x/a.sql", True),
        ("db/**", "db", True),
        ("db/**", "dbx", False),
        ("src/?.py", "src/a.py", True),
        ("src/?.py", "src/a/.py", False),
        ("./db/*", "db/a", True),
        ("a.b", "aXb", False),
    ],
)
def test_patterns_of_paths(pattern, path, fits):
    act = Act(("write",), path, is_path=True)
    assert [Rule(one, "write", pattern).applies_to(act) for one in ("allow", "deny")] == [fits] * 2


@pytest.mark.parametrize(
    ("pattern", "command", "fits"),
    [
        ("git push *", "git push", True),
        ("git push *", "git push origin", True),
        ("git push *", "git pushy", False),
        ("git * origin", "git push -f origin", True),
        ("git [a]", "git a", False),
        ("git [a]", "git [a]", True),
        ("ls", "ls -l", False),
        ("* --force *", "git push --force", True),
        ("* --force *", "git push --force x", True),
    ],
)
def test_patterns_of_commands(pattern, command, fits):
    act = Act(("shell",), command)
    assert Rule("allow", "shell", pattern).applies_to(act) is fits


def test_a_rule_forbids_whatever_the_case_or_the_form_of_a_name():
    act = Act(("write",), "DB/ＳＥＣＲＥＴ.Sql", is_path=True)
    assert Rule("deny", "write", "db/secret.sql").applies_to(act)
    assert not Rule("allow", "write", "db/secret.sql").applies_to(act)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("allow: shell(git status)", Rule("allow", "shell", "git status")),
        (" deny : web_fetch ", Rule("deny", "web_fetch")),
        ("ask: write(**/*.sql)", Rule("ask", "write", "**/*.sql")),
        ("ask: mcp__x__*(a (b) c)", Rule("ask", "mcp__x__*", "a (b) c")),
        ("allow:shell( ls )", Rule("allow", "shell", "ls")),
    ],
)
def test_a_rule_is_read_from_its_words(words, rule):
    assert parse_rule(words) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "words",
    ["", "allow", "allow: ", "permit: shell", "allow: shell(", "allow: shell()", "allow: a b",
     "allow: shell(a\nb)", "allow: shell(\x1b)", f"allow: shell({'x' * 2000})", "shell(ls)"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_an_example(words):
    with pytest.raises(ConfigError) as caught:
        parse_rule(words, "FILE:3")
    assert caught.value.message.startswith("FILE:3: ")
    assert caught.value.hint


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_is_refused(words):
    try:
        rule = parse_rule(words)
    except ConfigError:
        return
    assert parse_rule(str(rule)) == rule


def test_the_reason_of_a_rule_is_said():
    rule = Rule("deny", "shell", "curl *", "FILE:1", "nothing leaves this machine")
    found = decide(CALL, Facts(SHELL, acts=(Act(("shell",), "curl x"),)), (rule,), "auto")
    said = "a rule forbids it: nothing leaves this machine"
    assert found == Decision("deny", said, "deny: shell(curl *)")


def ruled(found, *texts):
    return decide(CALL, Facts(SHELL, acts=found), [parse_rule(one) for one in texts], "ask")


def test_the_rule_is_named_by_which_any_act_was_allowed():
    reads, runs = Act(("shell",), "ls", "reads"), Act(("shell",), "./run.sh")
    rule = "allow: shell(./run.sh)"
    said = Decision("allow", "a rule says so", rule)
    assert [ruled(one, rule) for one in ((reads, runs), (runs, reads), (runs,))] == [said] * 3
    assert ruled((reads, runs), "allow: shell(ls)", rule) == said
    assert ruled((reads,), rule) == Decision("allow", "it only reads")


def test_every_reason_is_told_the_worst_first_and_not_too_many():
    names = ("builds", "edits", "changes", "changes", "builds", "changes")
    found = tuple(Act(("shell",), f"c{at}", does, f"why {at % 5}") for at, does in enumerate(names))
    assert ruled(found[:2]).reason == "why 0; why 1"
    assert ruled(found[:3]).reason == "why 2; why 0; why 1"
    assert ruled(found).reason == "why 2; why 3; why 0 and 2 more"
    assert ruled(found, "allow: shell(c2)").reason == "why 3; why 0; why 4 and 1 more"
