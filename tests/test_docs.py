"""What the documents say is run: every example, every command of the README, every link."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAID = {
    "add_a_tool.py": "Yes: there are three saddles.\n",
    "add_a_provider.py": "HOLD YOUR HORSES \n",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs_and_says_what_it_should(example):
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, SAID[example.name], "")


def test_the_pages_show_the_examples_as_they_are():
    script = [sys.executable, str(ROOT / "scripts" / "sync-examples"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""


def test_every_link_between_the_pages_leads_somewhere():
    broken = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 60


def test_every_make_target_of_the_readme_exists():
    readme = (ROOT / "README.md").read_text("utf-8")
    wanted = set(re.findall(r"^make ([a-z]+)", readme, re.M))
    made = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert wanted
    assert wanted <= made


def bridle_lines():
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    return sorted(set(re.findall(r"^\$? ?(bridle [^\n#]+)", text, re.M)))


@pytest.mark.parametrize("line", bridle_lines())
def test_every_command_in_the_pages_is_one_that_the_program_knows(line):
    """The words before the first argument are asked for their help."""
    words = []
    for word in shlex.split(line)[1:]:
        if not re.fullmatch(r"[a-z]+", word) or len(words) == 2:
            break
        words.append(word)
    known = words[:1] if words and words[0] in ("run", "repl", "demo", "doctor") else words
    command = [sys.executable, "-m", "bridle", *known, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
