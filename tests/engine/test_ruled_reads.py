"""A deny of some files holds against a command that would read everything around them."""

import pytest

from bridle.policy import parse_rule
from bridle.runtime.dry_run import DryRun

DENY = (parse_rule("deny: read(private/**)"),)


@pytest.fixture
def decided(tmp_path):
    for name in ("private/key.txt", "open/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("quokka")
    dry_run = DryRun(tmp_path)

    def decide(command, rules=DENY, mode="ask"):
        return dry_run.judge(dry_run.call("shell", command), mode, rules).decision

    return decide


@pytest.mark.parametrize(
    "command",
    [
        "grep -r q .",
        "rg q",
        "grep -rn q private",
        "rg q . -l",
        "cd open && grep -R q ..",
        "egrep -nr q",
        "git grep q",
        "git -C private grep q",
        "env grep -r q .",
        "ack q",
    ],
)
def test_what_would_read_all_below_is_denied_where_a_rule_keeps_some_of_it(decided, command):
    for mode in ("ask", "edits", "auto", "plan"):
        found = decided(command, mode=mode)
        assert (found.verdict, found.rule) == ("deny", "deny: read(private/**)")


@pytest.mark.parametrize(
    "command",
    ["grep -r q open", "rg q open", "ls -R", "rg private open", "grep q open/a.txt", "find ."],
)
def test_what_reads_elsewhere_or_only_names_is_not(decided, command):
    assert decided(command).verdict == "allow"


def test_an_ask_rule_asks_and_without_rules_nothing_is_looked_for(decided):
    asks = (parse_rule("ask: read(*.txt)"),)
    assert decided("grep -r q .", asks).verdict == "ask"
    assert decided("grep -r q .", ()).verdict == "allow"
