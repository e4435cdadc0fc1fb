"""The page about the architecture names files, folders and functions that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import bridle

SRC = Path(bridle.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
WORDS = re.findall(r"`([^`\n]+)`", PAGE.read_text("utf-8"))
FILES = re.compile(r"([a-z_/]+\.py)(?::([\w.]+))?")


@cache
def defined_in(path):
    """Return the classes and functions of a module, with those of its classes as Class.name."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if hasattr(inner, "name")}
        names.add(getattr(node, "name", ""))
    return names


def test_every_file_and_function_that_the_page_names_exists():
    named = [match for match in map(FILES.fullmatch, WORDS) if match]
    assert len(named) > 50
    missing = [match[0] for match in named if not (SRC / match[1]).is_file()]
    assert missing == []
    undefined = [
        match[0] for match in named if match[2] and match[2] not in defined_in(SRC / match[1])
    ]
    assert undefined == []


def test_every_package_is_in_a_layer_of_the_page_and_every_layer_exists():
    named = {word.rstrip("/") for word in WORDS if re.fullmatch(r"[a-z_]+/", word)}
    packages = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert named == packages
