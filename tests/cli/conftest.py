"""The real program for the tests of the command line: its own home, no keys, scripted models."""

from pathlib import Path

import pytest
from cli_program import Program


@pytest.fixture
def bridle(tmp_path: Path) -> Program:
    return Program(tmp_path)
