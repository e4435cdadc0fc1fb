"""`bridle demo`: what a person sees first has to work (A9)."""

import json

import pytest
from cli_program import Program

from bridle.cli.style import cells


def test_the_demo_mends_its_project_and_shows_the_gate_at_work(bridle: Program):
    done = bridle.run("demo", "--fast")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    for part in (
        "❯ The test in this folder fails.",
        "▸ read basket.py",
        "the demo says yes, for this session",
        "the demo says no: fix the line",
        "$ rm basket.py test_basket.py",
        "  │ -    return sum(prices) * (100 - discount) / 10",
        "  │ +    return sum(prices) * (100 - discount) / 100",
        "the cost is made up",
        "✓ verified: the test passes now",
    ):
        assert part in said
    log = bridle.logs()[0]
    assert str(log) in said
    assert f"bridle sessions show {log.parent.name}" in said
    answers = [
        (data["allowed"], data["by"])
        for data in (json.loads(line)["data"] for line in log.read_text().splitlines())
        if data["type"] == "approval_answered"
    ]
    assert answers == [(True, "the demo"), (False, "the demo"), (True, "the demo")]


@pytest.mark.parametrize("columns", [60, 100])
def test_the_demo_fits_its_terminal(bridle: Program, columns: int):
    with bridle.terminal("demo", "--fast", columns=columns) as terminal:
        code, shown = terminal.end()
    assert code == 0
    calls = [line for line in shown.splitlines() if "▸" in line]
    assert calls
    assert max(cells(_bare(line)) for line in calls) <= columns


def _bare(line: str) -> str:
    import re

    return re.sub(r"\x1b\[\d*m", "", line)
