"""The decision, pure: what rules, modes and tools say, and who wins (A5 as far as it stands)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.messages import ToolCall
from bridle.policy import MODES, Act, Decision, Facts, Rule, ToolPolicy, decide

READS = ToolPolicy(read_only=True)
EDITS = ToolPolicy(edits=True)
ACTS = ToolPolicy()
ALWAYS = ToolPolicy(requires_approval=True)
CAREFUL = ToolPolicy(read_only=True, requires_approval=True)


@pytest.mark.parametrize(
    ("policy", "verdicts"),
    [
        (READS, ("allow", "allow", "allow", "allow")),
        (EDITS, ("deny", "ask", "allow", "allow")),
        (ACTS, ("deny", "ask", "ask", "allow")),
        (ALWAYS, ("deny", "ask", "ask", "allow")),
        (CAREFUL, ("ask", "ask", "ask", "allow")),
    ],
)
def test_each_mode_with_each_kind_of_tool(policy, verdicts):
    call = ToolCall("c", "it", {})
    found = tuple(decide(call, Facts(policy), (), mode).verdict for mode in MODES)
    assert found == verdicts


def test_a_rule_is_named_in_the_decision():
    rules = (Rule("allow", "shell", "git *"), Rule("deny", "shell", "git push*"))
    push = decide(ToolCall("c", "shell"), Facts(subject="git push"), rules, "ask")
    status = decide(ToolCall("c", "shell"), Facts(subject="git status"), rules, "ask")
    assert push == Decision("deny", "a rule forbids it", "deny: shell(git push*)")
    assert status == Decision("allow", "a rule says so", "allow: shell(git *)")


def test_the_floor_denies_whatever_a_rule_or_a_mode_says():
    facts = Facts(READS, floor="it would erase the disk")
    found = decide(ToolCall("c", "shell"), facts, (Rule("allow", "*"),), "auto")
    assert found == Decision("deny", "it would erase the disk", "floor")


def test_yes_to_everything_is_said_in_the_reason():
    found = decide(ToolCall("c", "shell"), Facts(), (Rule("ask", "shell"),), "auto")
    assert found == Decision(
        "allow", "a rule says so; the mode auto runs it without asking", "ask: shell"
    )


RANK = {"allow": 0, "ask": 1, "deny": 2}
names = st.sampled_from(["shell", "read", "write", "sh*", "*"])
rules = st.builds(
    Rule, st.sampled_from(["allow", "ask", "deny"]), names, st.sampled_from(["*", "a*", "ab"])
)
policies = st.builds(
    ToolPolicy, st.booleans(), st.booleans(), st.sampled_from(["low", "high"]), st.booleans()
)
facts = st.builds(
    Facts, policies, st.sampled_from(["a", "ab", "b", ""]), st.sampled_from(["", "x"])
)
made = st.builds(ToolCall, st.just("c"), st.sampled_from(["shell", "read", "write"]))
modes = st.sampled_from(MODES)


@given(made, facts, st.lists(rules, max_size=6), modes, rules, st.integers(0, 6))
def test_adding_a_deny_or_an_ask_never_permits_more(call, facts, before, mode, rule, place):
    old = decide(call, facts, before, mode)
    for verdict in ("ask", "deny"):
        added = Rule(verdict, rule.tool, rule.pattern)
        new = decide(call, facts, [*before[:place], added, *before[place:]], mode)
        assert RANK[new.verdict] >= RANK[old.verdict]
        if verdict == "deny" and added.applies_to(Act((call.name,), facts.subject)):
            assert new.verdict == "deny"


@given(made, facts, st.lists(rules, max_size=6), modes, st.randoms())
def test_the_order_of_the_rules_does_not_matter(call, facts, found, mode, random):
    mixed = list(found)
    random.shuffle(mixed)
    one, two = decide(call, facts, found, mode), decide(call, facts, mixed, mode)
    assert one.verdict == two.verdict


@given(made, facts, st.lists(rules, max_size=6))
def test_plan_mode_never_allows_what_is_not_read_only(call, facts, found):
    verdict = decide(call, facts, found, "plan").verdict
    if not facts.policy.read_only:
        assert verdict == "deny"


@given(made, facts, st.lists(rules, max_size=6))
def test_yes_to_everything_lifts_no_deny(call, facts, found):
    ask, auto = decide(call, facts, found, "ask"), decide(call, facts, found, "auto")
    assert (ask.verdict == "deny") == (auto.verdict == "deny")
    assert auto.verdict != "ask"
