"""Patterns of a shell, with real shells as the referee."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridle.workspace import machine
from bridle.workspace.machine import expand

NAMES = ["a.py", "b.py", "-rf", ".hidden", "with space", "x[1]", "é", "star*", "B.PY", "new\nline"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_text("")
    for below in ("src/deep/er", "src/other", ".config"):
        (tmp_path / below).mkdir(parents=True)
    (tmp_path / "src/deep/m.py").write_text("")
    (tmp_path / "src/other/m.py").write_text("")
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "dangling").symlink_to("nowhere")
    return tmp_path


def by_shell(shell: str, pattern: str, folder: Path) -> tuple[str, ...]:
    """What the shell makes of it. Space is quoted, as it would be in a command."""
    quoted = pattern.replace(" ", "' '").replace("\n", "'\n'")
    done = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {quoted}"],
        cwd=folder,
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
    )
    return tuple(os.fsdecode(one) for one in done.stdout.split(b"\0")[:-1])


SHELLS = [one for one in ("bash", "dash") if shutil.which(one)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "*.py",
        "[ab].py",
        "[!a].py",
        "[a-c]*",
        "?.py",
        "src/*",
        "src/*/",
        "*/",
        "src/*/m.py",
        "*/deep/*.py",
        "src/*/../*",
        "./*",
        ".h*",
        "nothing*",
        "nothing/*",
        "link/*",
        "x[[]1]",
        "x[",
        "star[*]",
        "[]]*",
        "dang*",
        "dang*/",
        "with*",
        "-*",
        "src//*",
        "**",
        "*/*/*",
        "{folder}/*.py",
        "/et[c]",
        "[.]hidden",
        "src/deep/?.py",
    ],
)
def test_the_names_are_those_of_the_shell(folder: Path, shell: str, pattern: str) -> None:
    pattern = pattern.replace("{folder}", str(folder))
    assert set(expand(pattern, str(folder)) or ()) == set(by_shell(shell, pattern, folder))


def test_dots_are_among_hidden_names_because_some_shells_have_them(folder: Path) -> None:
    assert expand(".*", str(folder)) == (".", "..", ".config", ".hidden")


@pytest.mark.parametrize(
    "pattern",
    ["[^a]*", "[[:alpha:]]*", "[[.a.]]", "[[=a=]]", "a\\*", "", "a\0*", "no[*]*", "x" * 5000, "?"],
)
def test_what_shells_or_locales_read_differently_is_not_said(folder: Path, pattern: str) -> None:
    assert expand(pattern, str(folder)) is None


def test_too_many_names_are_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1001):
        (tmp_path / f"f{number}").write_text("")
    assert expand("*", str(tmp_path)) is None
    assert expand("f1000", str(tmp_path)) == ("f1000",)
    assert expand("*99*", str(tmp_path)) is not None
    monkeypatch.setattr(machine, "_MAX_LOOKS", 500)
    assert expand("*99*", str(tmp_path)) is None


def test_a_pattern_that_multiplies_ends(tmp_path: Path) -> None:
    (tmp_path / "me").symlink_to(".")
    (tmp_path / "you").symlink_to(".")
    assert expand("/".join(["*"] * 40), str(tmp_path)) is None
    assert expand("/".join([*["*"] * 9, *["."] * 500]), str(tmp_path)) is None


PARTS = st.sampled_from(
    ["*", "?", "[ab]", "[!a]", "a", ".py", "src", "/", "b", ".", "-", "[", "]", "x", "deep", "*/"]
)


@given(st.lists(PARTS, min_size=1, max_size=6).map("".join))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_name_that_bash_would_find_is_missing(folder: Path, pattern: str) -> None:
    if pattern.startswith("/") or not any(one in pattern for one in "*?["):
        return
    found = expand(pattern, str(folder))
    if found is not None and SHELLS:
        extra = set(found) - set(by_shell(SHELLS[0], pattern, folder))
        assert set(by_shell(SHELLS[0], pattern, folder)) <= set(found)
        assert all(name.rstrip("/").endswith(".") or "/." in name for name in extra)
