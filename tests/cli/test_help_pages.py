"""`bridle help`: every command has a page, what is generated is fresh, and it fits the width."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bridle.cli.commands.help import WIDEST, format_page, page, page_names, title_of
from bridle.cli.main import COMMANDS, commands
from bridle.cli.style import Paint, cells

ROOT = Path(__file__).parent.parent.parent
TOPICS = (
    "agents",
    "commands",
    "diagnostics",
    "environment",
    "exit-codes",
    "files",
    "hooks",
    "keys",
    "limits",
    "models",
    "modes",
    "options",
    "skills",
)


def test_every_command_and_topic_has_a_page():
    """One that is missing names itself: `scripts/sync-help` makes it."""
    assert [name for name in (*COMMANDS, *TOPICS) if name not in page_names()] == []


def test_the_parts_that_come_from_the_code_are_up_to_date():
    script = [sys.executable, str(ROOT / "scripts" / "sync-help"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("name", page_names())
def test_a_page_opens_with_its_name_and_what_it_is(name):
    assert re.match(rf"# {re.escape(name)}: \S", page(name))
    assert 10 <= len(title_of(name)) <= 80


@pytest.mark.parametrize("name", page_names())
def test_what_a_page_points_at_is_there(name):
    pointed = re.findall(r"`bridle help ([a-z-]+)", page(name))
    assert [one for one in pointed if one not in page_names()] == []


def test_the_list_has_every_page(bridle):
    done = bridle.run("help")
    assert (done.returncode, done.stderr) == (0, "")
    shown = set(re.findall(r"^  ([a-z-]+)  ", done.stdout, re.M))
    assert shown == set(page_names())


def test_a_page_says_every_option_of_its_command(bridle):
    done = bridle.run("help", "run")
    context = click.Context(commands)
    own = commands.get_command(context, "run").params
    turns = page("options")
    for option in own:
        if isinstance(option, click.Option):
            assert option.opts[0] in done.stdout or option.opts[0] in turns


def test_a_command_of_a_group_has_its_part_of_the_page(bridle):
    done = bridle.run("help", "sessions", "fork")
    assert done.stdout.startswith("bridle sessions fork\n")
    assert "--at SEQ" in done.stdout
    assert "rewind" not in done.stdout


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
@pytest.mark.parametrize("name", ["commands", "environment", "exit-codes", "sessions", "skills"])
def test_text_is_wrapped_to_the_width(name, width):
    """What cannot be broken (a word, a line of code, a term) may be longer, and nothing else."""
    lines = format_page(page(name), Paint(), width).splitlines()
    long = [line for line in lines if cells(line) > width and len(line.split()) > 6]
    assert [line for line in long if not line.startswith("    ")] == []
    assert not any("`" in line or "<!--" in line for line in lines)


@pytest.mark.parametrize("name", page_names())
def test_in_a_pipe_no_line_is_wider_than_80_columns(name):
    lines = format_page(page(name), Paint(), WIDEST).splitlines()
    assert (WIDEST, [line for line in lines if cells(line) > 80]) == (80, [])


def test_colours_are_for_terminals_alone(bridle):
    assert "\x1b" not in bridle.run("help", "modes").stdout
    assert "\x1b[1m" in format_page(page("modes"), Paint(True), 80)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["polcy"], "Did you mean `bridle help policy`?"),
        (["zzz"], "`bridle help` lists all pages."),
        (["sessions", "zzz"], "See `bridle help sessions`."),
        (["\x1b]52;c;AAAA\x07"], "there is no page about"),
    ],
)
def test_a_page_that_there_is_not_is_said_so(bridle, asked, said):
    done = bridle.run("help", *asked)
    assert done.returncode == 2
    assert said in done.stderr
    assert "\x1b" not in done.stderr


def test_a_closed_pipe_is_no_error(bridle):
    line = f"{sys.executable} -m bridle help sessions | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=bridle.environ)
    assert (done.stdout, done.stderr) == (f"sessions: {title_of('sessions')}\n", "")


def test_the_help_of_the_program_names_the_options_that_need_no_command(bridle):
    said, of_chat = bridle.run("--help").stdout, bridle.run("chat", "--help").stdout
    section = said.partition("without a command:")[2].partition("Commands:")[0]
    for option in ("--continue", "--resume [ID]", "-m, --model NAME", "--mode"):
        assert option in section and option in of_chat
