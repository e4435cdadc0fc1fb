"""What docs/guides/mcp.md shows is true: its settings are read, its rules too, its program runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from bridle.config.mcp import parse_own_servers
from bridle.config.policy import parse_rules

PAGE = Path(__file__).parent.parent.parent / "docs" / "guides" / "mcp.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_the_settings_of_the_guide_are_read():
    [text] = [block for kind, block in BLOCKS if kind == "yaml" and block.startswith("mcp:")]
    github, docs = parse_own_servers(text, PAGE)
    assert (github.name, github.timeout, github.cwd) == ("github", 20.0, "~/work")
    assert (docs.name, docs.enabled, docs.url) == ("docs", False, "https://example.com/mcp")


def test_the_rules_of_the_guide_are_rules():
    [text] = [block for kind, block in BLOCKS if kind == "yaml" and block.startswith("rules:")]
    assert [str(rule) for rule in parse_rules(text, PAGE).rules] == [
        "allow: mcp__github__get_issue",
        "ask: mcp__github__*",
        "deny: mcp__docs__delete_*",
    ]


def test_the_program_of_the_guide_runs(tmp_path):
    [code] = [block for kind, block in BLOCKS if kind == "python" and "mcp_sources" in block]
    given = {"BRIDLE_MODEL": "offline", "BRIDLE_STATE": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | given,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
