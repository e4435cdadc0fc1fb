"""Hostile lines, each crossed with every wrapper and every separator (SECURITY: Commands)."""

import pytest
from deciding import decided, understood, verdict
from hostile import ASKED, FLOOR, GUARDED
from surroundings import SEPARATORS, SPELLED, WRAPPERS

from rig import SOAK

SIMPLE = [
    line
    for line in FLOOR
    if not any(mark in line for mark in (";", "&", "|", "(", "`", "cd ", "<<", "if ", "for ", "! "))
    and line[:1] not in ">{X"
]


def some(lines, wrapper):
    """All of them in a soak; otherwise every fourth, others with another wrapper."""
    return lines if SOAK else lines[sum(map(ord, wrapper)) % 4 :: 4]


def test_the_floor_holds_in_every_mode():
    ran = [line for line in FLOOR if not understood(line).floor]
    assert ran == []
    assert {decided(line, mode="auto").verdict for line in FLOOR} == {"deny"}
    assert {decided(line, "allow: shell").verdict for line in FLOOR} == {"deny"}


def test_what_takes_a_person_is_not_answered_by_yes():
    loose = [line for line in GUARDED if not (understood(line).guard or understood(line).floor)]
    assert loose == []
    assert {decided(line, mode="auto").verdict for line in GUARDED} == {"deny"}
    assert {verdict(line) for line in GUARDED} <= {"ask", "deny"}


def test_nothing_hostile_runs_unasked():
    ran = [line for line in [*ASKED, *SPELLED] if verdict(line) not in ("ask", "deny")]
    assert ran == []


def test_nothing_hostile_runs_while_planning():
    lines = [*ASKED, *SPELLED, *FLOOR]
    assert [line for line in lines if verdict(line, mode="plan") != "deny"] == []
    assert [line for line in GUARDED if verdict(line, mode="plan") == "allow"] == []


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_floor_holds_behind_a_wrapper(wrapper):
    assert len(SIMPLE) > 100
    joins = wrapper.startswith("watch")  # it takes quotes off once more
    lines = [line for line in some(SIMPLE, wrapper) if not (joins and set("'\"") & set(line))]
    assert [line for line in lines if not understood(wrapper.format(line)).floor] == []


@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_floor_holds_beside_another_command(separator):
    moved = separator.startswith("cd src")  # then `.` and `..` are other folders
    lines = [line for line in some(SIMPLE, separator) if not (moved and is_relative(line))]
    ran = [line for line in lines if not understood(separator.format(line)).floor]
    assert ran == []


def is_relative(line):
    names = (" .", " *", "./", "$PWD", ".git", ".env", "pwd", "id_rsa", " src", " x", "fd", "git c")
    return any(name in line for name in names)


@pytest.mark.parametrize("wrapper", [*WRAPPERS, *SEPARATORS])
def test_nothing_hostile_runs_behind_or_beside_another_command(wrapper):
    inside = ("cd .. && ls", "cd src && cat ../../secret", "git -C .. status")
    lines = [line for line in some([*ASKED, *GUARDED], wrapper) if line not in inside]
    ran = [line for line in lines if verdict(wrapper.format(line)) in ("allow", "builds")]
    assert ran == []


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "bash -l", "sudo sh", "env bash"])
def test_the_floor_holds_in_text_for_a_shell(shell):
    quoted = [f"{shell} -c '{line}'" for line in SIMPLE if "'" not in line]
    assert [line for line in quoted if not understood(line).floor] == []


@pytest.mark.parametrize("line", ["rm -rf /", "rm -rf ~", "mkfs /dev/sda", "shutdown now"])
def test_the_floor_holds_however_the_name_is_spelled(line):
    name, rest = line.split(" ", 1)
    spellings = [f"\\{name}", f"'{name}'", f'"{name}"', f"{name[0]}''{name[1:]}",
                 f"{name[0]}\\{name[1:]}", f"/bin/{name}", f"/usr/bin/../bin/{name}",
                 f"$'{name}'", name.upper()]  # fmt: skip
    ran = [s for s in spellings if not understood(f"{s} {rest}").floor]
    assert ran == []


def test_over_a_limit_is_denied_and_stays_so():
    lines = ["ls; " * 200 + "ls", "(" * 60 + "ls" + ")" * 60, "ls " + "x" * 200_000]
    assert [decided(line, "allow: shell").verdict for line in lines] == ["deny"] * 3
    wrapped = "timeout 1 " * 40 + "ls"
    assert decided(wrapped).verdict == "deny"


LONG = {
    "guesses in guesses": "sudo --strange " * 12 + "rm x",
    "folders times names": "find " + "a " * 60 + "-name x " * 20 + "-exec ls {} ;",
    "the root among many": "rm -rf " + "x " * 200 + "/",
    "the root among too many": "rm -rf " + "x " * 3000 + "/",
    "folders in folders": "; ".join(["cd a"] * 40) + "; rm -rf /",
    "a shell in a shell": "bash -c 'bash -c \"" + "ls; " * 30 + "rm -rf /\"'",
}


@pytest.mark.parametrize("line", LONG.values(), ids=LONG)
def test_long_lines_are_not_waved_through(line):
    assert decided(line, "allow: shell").verdict == "deny"


@pytest.mark.parametrize(
    "line",
    ["{" + "a" * 9000, "a" + " " * 9000 + "{", "rm -rf " + '"$X' * 2500, "ls " + "* " * 4000,
     "sed '" + "[" * 4000 + "' x", "awk '/" + "[" * 4000 + ">print' x",
     "docker run " + "-v a:b " * 900],
    ids=["brace", "blanks", "quotes", "patterns", "sed", "awk", "mounts"],
)  # fmt: skip
def test_long_lines_are_judged_in_bounded_time(line):
    """The suite's own timeout is the clock: what backtracks here would not come back."""
    assert decided(line).verdict != "allow"
