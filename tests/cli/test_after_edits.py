"""Diagnostics and skills at the command line: whose count, and what is said of them."""

import json
import sys
from pathlib import Path

import pytest

RUFF = Path(sys.executable).with_name("ruff")
LINE = f"{RUFF} check --no-cache --isolated --output-format=concise {{files}}"
SKILL = "---\nname: notes\ndescription: How notes are written.\n---\nWrite them short.\n"


@pytest.fixture
def model(bridle, tmp_path):
    """Writes a file with an unused import, reads the skill, and says that it is done."""
    calls = [
        {"name": "write", "arguments": {"path": "a.py", "content": "import os\n"}},
        {"name": "skill", "arguments": {"name": "notes"}},
    ]
    replies = [*({"calls": [one]} for one in calls), {"text": "Done."}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": replies}))
    return f"scripted:{script}"


def results(bridle, model):
    done = bridle.run("run", "--model", model, "--yes", "--json", "go")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    messages = [one["data"] for one in records if one["data"]["type"] == "message"]
    return done, json.dumps([one for one in messages if one.get("role") == "tool"])


def put(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_folders_own_count_after_trust(bridle, model):
    put(bridle.workspace / ".bridle" / "diagnostics.yaml", f"- {LINE}\n")
    put(bridle.workspace / ".claude" / "skills" / "notes" / "SKILL.md", SKILL)
    done, said = results(bridle, model)
    assert "F401" not in said and "Write them short" not in said
    assert "this folder has its own diagnostics, which do not run" in done.stderr
    assert "this folder has a skill that is not read until you trust it" in done.stderr
    (bridle.workspace / "a.py").unlink()
    shown = bridle.run("trust", "--yes")
    assert "ruff check" in shown.stdout and "Write them short." in shown.stdout
    done, said = results(bridle, model)
    assert "F401" in said and "Write them short." in said
    assert "trust" not in done.stderr


def test_the_persons_own_count_and_doctor_lists_them(bridle, model):
    config = bridle.home / ".config" / "bridle"
    put(config / "config.yaml", f"diagnostics:\n  - {LINE}\n")
    put(config / "skills" / "notes" / "SKILL.md", SKILL)
    put(config / "skills" / "broken" / "SKILL.md", "no head")
    done, said = results(bridle, model)
    assert "F401" in said and "Write them short." in said
    assert "the skill broken/SKILL.md is left out" in done.stderr
    found = json.loads(bridle.run("doctor", "--json").stdout)
    listed = {(one["topic"], one["found"].split(" ")[0]) for one in found}
    assert {("diagnostics", str(RUFF)), ("skill", "notes")} <= listed


def test_a_line_that_cannot_be_read_is_refused_before_anything_starts(bridle, model):
    put(bridle.home / ".config" / "bridle" / "config.yaml", "diagnostics: ['ruff --x={files}']\n")
    done = bridle.run("run", "--model", model, "--yes", "go")
    assert done.returncode == 2
    assert "inside a word" in done.stderr and "Traceback" not in done.stderr
    assert not (bridle.workspace / "a.py").exists()
