"""Ten thousand file calls beside a process that swaps links: none gets out (A6)."""

import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from attacked import CANARY, Field

from bridle.errors import ToolError
from rig import seeds

CALLS = [
    ("read", "door/secret"),
    ("read", "door/a.py"),
    ("read", "file"),
    ("read", "folder/secret"),
    ("write", "door/w"),
    ("write", "file"),
    ("write", "gate/pre-commit"),
    ("write", "gate/config"),
    ("write", "gate/policy.yaml"),
    ("write", "folder/secret"),
    ("write", "folder/made/deep"),
    ("names", "door"),
    ("names", "folder"),
    ("remove", "door/w"),
    ("remove", "door/secret"),
    ("remove", "folder/made/deep"),
    ("remove", "gate/pre-commit"),
    ("rename", "door/w"),
    ("rename", "folder/secret"),
    ("onto", "door/secret2"),
    ("onto", "gate/hooks"),
    ("resolve", "folder/secret"),
]


def doors(base):
    """A field with a folder and a link that change places."""
    field = Field(base)
    (field.root / "folder").mkdir()
    (field.root / "folder/secret").write_bytes(b"honest")
    (field.root / "trap").symlink_to("../ws-evil")
    return field


@contextmanager
def neighbour(field):
    """The process that swaps; it ends with the block."""
    program = Path(__file__).with_name("swapping.py")
    process = subprocess.Popen(
        [sys.executable, str(program), str(field.root), str(field.base / "ws-evil")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout.readline() == b"swapping\n"
            yield
        finally:
            process.stdin.close()
    assert process.returncode == 0


def attempt(field, verb, path):
    files = field.files
    if verb == "write":
        return files.write(path, b"overwritten")
    if verb == "rename":
        return files.rename(path, "src/taken")
    if verb == "onto":
        (field.root / "src/mine").write_bytes(b"mine")
        return files.rename("src/mine", path)
    return getattr(files, verb)(path)


def test_no_file_call_gets_out_beside_a_process_that_swaps_links(tmp_path):
    field = doors(tmp_path)
    before = field.kept()
    ends, read = Counter(), set()
    with neighbour(field):
        for number in seeds(10_000):
            verb, path = CALLS[number % len(CALLS)]
            try:
                found = attempt(field, verb, path)
                ends["done"] += 1
            except ToolError:
                ends["refused"] += 1
                continue
            if verb == "read":
                read.add(found)
            (field.root / "src/taken").unlink(missing_ok=True)
    assert field.kept() == before
    assert CANARY not in read
    assert ends["done"] > 0
    assert ends["refused"] > 0


def test_places_are_told_beside_a_process_that_swaps_links(tmp_path):
    """Judging never fails; each answer is one that was true at some moment."""
    field = doors(tmp_path)
    with neighbour(field):
        places = {field.machine.place("door/secret", "").path for _ in seeds(5_000)}
        field.machine.expand("*/*", "")
    outside = f"{field.base}/ws-evil/secret"
    assert places <= {"src/secret", outside, "door/secret"}
