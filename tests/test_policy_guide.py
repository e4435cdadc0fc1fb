"""The guide to policies: every rule in it is read, and every example in it comes out as it says."""

import re
from datetime import date
from pathlib import Path

import pytest

from bridle.config.policy import parse_rules
from bridle.policy import parse_rule
from bridle.runtime.dry_run import DryRun

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "policy.md"
TEXT = GUIDE.read_text("utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.M | re.S)
RULES = re.findall(r"[`\"]((?:allow|ask|deny): [^`\"\n]+)[`\"]", TEXT)
TODAY = date(2030, 1, 1)


def test_there_is_something_to_prove():
    assert len(BLOCKS) >= 2
    assert len(RULES) >= 4


@pytest.mark.parametrize("block", BLOCKS)
def test_every_file_of_the_guide_is_sound(block, tmp_path):
    found = parse_rules(block, GUIDE, TODAY, "/home/ada/shop")
    assert found.rules
    assert not found.expired + found.elsewhere
    dry_run = DryRun(tmp_path, found.rules, sandbox="none")
    told = [
        (one.subject, dry_run.judge(dry_run.call(one.tool, one.subject)).decision.verdict)
        for one in found.examples
    ]
    assert told == [(one.subject, one.expects) for one in found.examples]


@pytest.mark.parametrize("words", RULES)
def test_every_rule_in_the_text_is_one(words):
    assert str(parse_rule(words)) == words


def test_what_the_guide_says_of_its_rules_is_so(tmp_path):
    found = parse_rules(BLOCKS[0], GUIDE, TODAY)
    dry_run = DryRun(tmp_path, found.rules, sandbox="none")

    def verdict(command, mode="ask"):
        return dry_run.judge(dry_run.call("shell", command), mode).decision.verdict

    assert verdict("git add") == "allow"
    assert verdict("git add . && curl x") == "deny"
    assert {verdict(one, "auto") for one in ("/usr/bin/curl x", '"cu"rl x', "CURL x")} == {"deny"}
    assert verdict("echo x > db/a.sql", "edits") == "ask"
