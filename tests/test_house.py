"""Rules for the whole project: docstrings, names in the log, what importing costs, contracts."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import bridle
from bridle import events
from bridle.events import Recorded, Streamed

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "bridle"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def files(folder):
    """Our files below it, and none of the environments that a benchmark makes there."""
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in (".envs", "__pycache__")]
        yield from (Path(place) / one for one in names if one.endswith(".py"))


MODULES = sorted(files(SRC))
TESTS = sorted(files(ROOT / "tests"))
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Function(NamedTuple):
    """What the tests need of a function; the tree of every file is too much to keep."""

    name: str
    docstring: str


def statements(node):
    """Every statement below it: what is smaller defines no function."""
    for block in BLOCKS:
        found = getattr(node, block, None)
        for one in found if isinstance(found, list) else ():
            yield one
            yield from statements(one)


def described(node):
    return Function(node.name, ast.get_docstring(node) or "")


@cache
def outline(path):
    """What a file says of itself, and its functions."""
    tree = ast.parse(path.read_text())
    found = [described(node) for node in statements(tree) if isinstance(node, FUNCTIONS)]
    return ast.get_docstring(tree), found


def functions(path):
    return outline(path)[1]


def test_every_module_opens_by_saying_what_it_is():
    assert [str(m) for m in MODULES if not outline(m)[0]] == []


def test_there_is_no_drawer():
    drawers = {"utils", "types", "helpers", "common", "manager", "misc", "base_classes"}
    assert [str(p) for p in MODULES if p.stem in drawers] == []


def test_the_names_in_the_log_are_pinned():
    """A2, A7: these are in people's files; they may be added to and never changed."""
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type)]
    streamed = {k.__name__ for k in kinds if issubclass(k, Streamed) and k is not Streamed}
    recorded = {
        k.__struct_config__.tag for k in kinds if issubclass(k, Recorded) and k is not Recorded
    }
    assert streamed >= {
        "TextDelta",
        "ThinkingDelta",
        "ToolCallStarted",
        "ToolCallArgsDelta",
        "ToolCallReady",
        "ToolOutputDelta",
        "TraceEvent",
        "AgentActivity",
    }
    assert recorded >= {
        "session_start",
        "user_prompt",
        "prompt_withdrawn",
        "message:user",
        "message:assistant",
        "message:tool",
        "intent",
        "approval_asked",
        "approval_answered",
        "usage",
        "todo",
        "title",
        "tags",
        "turn_end",
        "turn_parked",
        "fork",
        "rewind",
        "compaction",
        "repair",
        "checkpoint",
        "agent",
        "agent_response",
        "child_of",
        "child_start",
        "child_end",
    }


def loaded_by(statement):
    code = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    return set(done.stdout.split())


def test_importing_bridle_pulls_in_nothing_heavy():
    modules = loaded_by("import bridle")
    heavy = {"aiohttp", "pydantic", "anthropic", "openai", "asyncio", "click", "rich", "yaml"}
    assert modules & heavy == set()
    assert "msgspec" not in modules


def test_building_an_engine_pulls_in_no_sdk_and_no_aiohttp():
    modules = loaded_by(
        "import bridle; bridle.build_engine(bridle.provider('anthropic/m', api_key='k'))"
    )
    heavy = {"aiohttp", "pydantic", "anthropic", "openai", "click", "rich", "importlib.metadata"}
    assert modules & heavy == set()


def test_every_public_name_loads():
    assert [name for name in bridle.__all__ if getattr(bridle, name, None) is None] == []


def test_no_submodule_has_the_name_of_a_public_function():
    taken = {path.stem for path in SRC.iterdir()}
    assert taken & set(bridle.__all__) == set()


def test_the_project_names_no_registry_and_no_machine():
    """Constraints and lock files work with whatever index a machine is set up for."""
    names = re.compile(r"pypi\.org|pythonhosted|registry\.npm|files\.python|deb\.debian", re.I)
    tracked = [
        ROOT / "pyproject.toml",
        ROOT / "constraints.txt",
        ROOT / "Makefile",
        ROOT / "README.md",
    ]
    assert [str(path) for path in tracked if names.search(path.read_text())] == []


CONTRACTS = [
    *(f"M{n}" for n in range(1, 10)),
    "A1",
    "A2",
    "A3",
    "A4",
    "A5",
    "A6",
    "A7",
    "A8",
    "A9",
    "A10",
    "A11",
    "A12",
    "A13",
    *(f"P{n}" for n in range(1, 9)),
    *(f"S{n}" for n in range(1, 12)),
    *(f"T{n}" for n in range(1, 8)),
]


def test_every_contract_has_a_test_that_names_it():
    """The ids stand in a test's name or docstring; only functions that are tests count."""
    words = set()
    for path in TESTS:
        for node in functions(path):
            if node.name.startswith("test_") and path.name != "test_house.py":
                words |= set(re.findall(r"\b[MSAPT]\d+\b", node.docstring))
                words |= set(re.findall(r"_([MSAPT]\d+)(?=_|$)", node.name))
    assert [one for one in CONTRACTS if one not in words] == []
