"""The field of the corpora, made once; judged by the same function as the command line uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from field import Gate, make_field

sys.path.append(str(Path(__file__).parent.parent / "cli"))  # for `cli_program`, run alone or not


@pytest.fixture(scope="session")
def ground_of_corpora(tmp_path_factory):
    return make_field(tmp_path_factory.mktemp("corpora"))


@pytest.fixture
def field(ground_of_corpora, monkeypatch):
    """A repository and what lies around it. Whoever changes it has found a fault."""
    monkeypatch.setenv("HOME", str(ground_of_corpora.home))
    return ground_of_corpora


@pytest.fixture
def gate(field):
    return Gate(field.root)


@pytest.fixture
def everyday_gate(field, tmp_path):
    """The same repository without the links that lead out, as people have them."""
    found = make_field(tmp_path / "plain")
    for name in ("link-out", "link-file", "link-loop", "src/link-up"):
        (found.root / name).unlink()
    return Gate(found.root)


@pytest.fixture
def bridle_program(field, tmp_path):
    """The real program in the field: lines of JSON in, lines of JSON out."""

    def ask(lines):
        return subprocess.run(
            [sys.executable, "-m", "bridle", "policy", "explain", "--json", "-"],
            input=lines.encode(),
            capture_output=True,
            cwd=field.root,
            env={
                "HOME": str(field.home),
                "PATH": os.environ["PATH"],
                "PYTHONPATH": os.pathsep.join(sys.path),
                "BRIDLE_STATE": str(tmp_path / "state"),
            },
            timeout=240,
        )

    return ask
