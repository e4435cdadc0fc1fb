"""What the quick commands import: they must be there before a person has let go of Enter."""

import subprocess
import sys

import pytest
from cli_program import Program

HEAVY = ["asyncio", "aiohttp", "rich", "yaml", "anthropic", "openai", "bridle.engine", "ssl"]


@pytest.mark.parametrize(
    ("arguments", "banned"),
    [
        (["--version"], [*HEAVY, "msgspec", "pathlib"]),
        (["--help"], [*HEAVY, "msgspec", "pathlib"]),
        ([], [*HEAVY, "msgspec", "pathlib"]),
        (["run", "--help"], ["aiohttp", "rich", "yaml"]),
        (["sessions", "list"], [*HEAVY, "msgspec"]),
        (["sessions", "list", "--json"], [*HEAVY, "msgspec"]),
        (["config", "path"], [*HEAVY, "msgspec"]),
        (["config", "show"], HEAVY),
    ],
)
def test_a_command_that_runs_no_turn_imports_next_to_nothing(
    bridle: Program, arguments: list[str], banned: list[str]
):
    bridle.run("run", "hi", "-m", bridle.script("ok"))
    program = (
        "import sys\nfrom bridle.cli import main\n"
        f"code = main({arguments!r})\n"
        f"print(sorted(set(sys.modules) & set({banned!r})), code, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=bridle.environ
    )
    assert done.stderr == "[] 0\n"
    assert done.stdout
