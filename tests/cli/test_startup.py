"""What the quick commands import: they must be there before a person has let go of Enter."""

import subprocess
import sys

import pytest
from cli_program import Program

from bridle import policy
from bridle.cli import options
from bridle.cli.commands import config
from bridle.cli.commands.sessions import TABLE
from bridle.config import settings
from bridle.engine.budget import Limits
from bridle.protocols import store

HEAVY = ["asyncio", "aiohttp", "rich", "yaml", "anthropic", "openai", "bridle.engine", "ssl"]


@pytest.fixture(scope="module")
def spoken(tmp_path_factory) -> Program:
    """A program with one session, which nobody here changes."""
    program = Program(tmp_path_factory.mktemp("spoken"))
    program.run("run", "hi", "-m", program.script("ok"))
    return program


@pytest.mark.parametrize(
    ("arguments", "banned"),
    [
        (["--version"], [*HEAVY, "msgspec", "pathlib"]),
        (["--help"], [*HEAVY, "msgspec", "pathlib"]),
        ([], [*HEAVY, "msgspec", "pathlib"]),
        (["run", "--help"], [*HEAVY, "msgspec"]),
        (["repl", "--help"], [*HEAVY, "msgspec"]),
        (["demo", "--help"], [*HEAVY, "msgspec"]),
        (["doctor", "--help"], [*HEAVY, "msgspec"]),
        (["sessions", "--help"], [*HEAVY, "msgspec"]),
        *((["sessions", name, "--help"], HEAVY) for name in TABLE if name != "list"),
        (["approvals", "--help"], [*HEAVY, "msgspec"]),
        (["approvals", "answer", "--help"], HEAVY),
        (["approvals", "list"], HEAVY),
        (["sessions", "search", "hi"], HEAVY),
        (["sessions", "verify", "--all"], HEAVY),
        (["sessions", "export", "2"], HEAVY),
        (["sessions", "show", "2", "--json"], HEAVY),
        (["config", "--help"], HEAVY),
        (["sessions", "show", "2"], HEAVY),
        (["sessions", "list"], [*HEAVY, "msgspec"]),
        (["sessions", "list", "--json"], [*HEAVY, "msgspec"]),
        (["config", "path"], HEAVY),
        (["config", "show"], HEAVY),
    ],
)
def test_a_command_that_runs_no_turn_imports_next_to_nothing(
    spoken: Program, arguments: list[str], banned: list[str]
):
    program = (
        "import sys\nfrom bridle.cli import main\n"
        f"code = main({arguments!r})\n"
        f"print(sorted(set(sys.modules) & set({banned!r})), code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=spoken.environ
    )
    assert done.stderr == "[] 0\n"
    assert done.stdout


def test_a_missing_prompt_is_said_before_anything_is_loaded(bridle: Program):
    program = (
        "import sys\nfrom bridle.cli import main\n"
        f"main(['run'])\nprint(sorted(set(sys.modules) & set({[*HEAVY, 'msgspec']!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="",
        capture_output=True,
        text=True,
        env=bridle.environ,
    )
    assert done.stdout == "[]\n"
    assert "the prompt is empty" in done.stderr


def test_what_is_said_twice_to_save_an_import_is_the_same():
    assert options.MODES == policy.MODES
    assert settings.Durability == store.Durability
    assert config.DEFAULTS["limits.max_steps"] == Limits().max_steps
