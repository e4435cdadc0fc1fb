"""A question in full: what was understood, which files, what a yes covers, what can be said."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.cli.approval_prompt import (
    answer_prompt,
    full_text,
    group_prompt,
    parse_answer,
    parse_group_answers,
)
from bridle.cli.style import Paint, cells
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.protocols.session import NO, YES, Answer
from bridle.workspace.change import change_lines

PLAIN = Paint(False)
LINE = "git add -A && git commit -m x && git push"
EVIL = "a\x1b[2J\u202e\nb"


def asked(name: str, arguments: dict[str, Any], **more: Any) -> ApprovalAsked:
    return ApprovalAsked(ToolCall("1", name, arguments), "hash", "it asks", cwd="/w", **more)


def request_text(asked: ApprovalAsked, paint: Paint, width: int = 200) -> str:
    return full_text([asked], paint, width, lambda _: None)


def test_a_request_to_read_names_the_file_in_its_first_line():
    asked = ApprovalAsked(ToolCall("c", "read", {"path": ".env"}), "it holds credentials")
    assert request_text(asked, Paint(False), 80).startswith("? Allow read of .env?\n")


def test_every_command_of_a_line_stands_on_a_line_of_its_own():
    commands = ("git add -A", "git commit -m x", "git push")
    text = request_text(asked("shell", {"command": LINE}, commands=commands), PLAIN)
    assert text.splitlines() == [
        "? Run this command?",
        "  why: it asks",
        "  in:  /w",
        f"  │ $ {LINE}",
        "  3 commands:",
        "  │ git add -A",
        "  │ git commit -m x",
        "  │ git push",
    ]


def test_a_command_that_says_just_that_is_not_said_twice():
    plain = request_text(asked("shell", {"command": "git push"}, commands=("git push",)), PLAIN)
    assert plain.splitlines()[3:] == ["  │ $ git push"]
    odd = request_text(asked("shell", {"command": 'gi"t" push'}, commands=("git push",)), PLAIN)
    assert odd.splitlines()[3:] == ['  │ $ gi"t" push', "  understood as:", "  │ git push"]


def test_what_is_known_besides_the_call_is_said():
    call = {"command": "make"}
    more = {"commands": ("make",), "covers": "builds", "times": 3, "proposal": "allow: shell(make)"}
    text = request_text(asked("shell", call, rule="ask: shell(make)", **more), PLAIN)
    assert text.splitlines()[1:] == [
        "  why: it asks (ask: shell(make))",
        "  in:  /w",
        "  │ $ make",
        "  similar calls were allowed 3 times in this session",
        "  rule: allow: shell(make), in this folder",
    ]


def test_that_nothing_holds_a_command_while_it_runs_is_said():
    lines = [
        request_text(asked("shell", {"command": "make"}, sandbox=level), PLAIN).splitlines()
        for level in ("none", "landlock", "")
    ]
    said = "  it would run without a sandbox"
    assert [one.count(said) for one in lines] == [1, 0, 0]
    assert lines[0][3] == said


def test_a_file_is_named_where_it_really_lies():
    arguments = {"path": "a/../b.txt", "content": "x\n"}
    text = request_text(asked("write", arguments, paths=("b.txt",)), PLAIN)
    assert text.splitlines()[3:] == ["  │ a/../b.txt", "  │ + x", "  file: b.txt"]
    same = request_text(asked("write", {"path": "b", "content": "x\n"}, paths=("b",)), PLAIN)
    assert same.splitlines()[3:] == ["  │ b", "  │ + x"]


BEFORE = "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            {"path": "a", "old": "two", "new": "2"},
            ["a", "@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"],
        ),
        (
            {"path": "a", "edits": [{"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "x"}]},
            ["a", "@@ -1,3 +1,2 @@", "-one", "-two", "+x", " three"],
        ),
        (
            {"path": "a", "old": "t", "new": "T", "all": True},
            ["a", "@@ -1,3 +1,3 @@", " one", "-two", "-three", "+Two", "+Three"],
        ),
        (
            {"path": "a", "content": "one\ntwo\nthree"},
            ["a", "@@ -1,4 +1,3 @@", " one", " two", " three", "-"],
        ),
        (
            {"path": "a", "old": "t", "new": "T"},
            ["a", "(this is not what the file holds now)", "- t", "+ T"],
        ),
        (
            {
                "path": "a",
                "edits": [{"old": "x", "new": "y"}, {"old": "e", "new": "", "all": True}],
            },
            [
                "a",
                "(this is not what the file holds now)",
                "@@ 1 of 2 @@",
                "- x",
                "+ y",
                "@@ 2 of 2 everywhere @@",
                "- e",
            ],
        ),
        (
            {"patch": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"},
            ["--- a", "+++ a", "@@ -1 +1 @@", "-x", "+y"],
        ),
    ],
)
def test_a_change_is_shown_on_what_the_file_holds(arguments: dict[str, Any], lines: list[str]):
    found = change_lines(arguments, BEFORE)
    assert found is not None
    assert (found[0], set(found[1]) - {"all"}) == (lines, set())


TEXT = st.text(st.sampled_from("ab\n "), max_size=8)
EDIT = st.fixed_dictionaries({"old": TEXT, "new": TEXT}, optional={"all": st.booleans()})


@given(edits=st.lists(EDIT, min_size=1, max_size=3), before=st.none() | TEXT)
def test_no_text_that_would_be_written_is_left_out(edits: list[dict[str, Any]], before: str | None):
    """Every line of a replacement is among the lines, unless a later one replaces it again."""
    found = change_lines({"path": "p", "edits": edits}, before)
    assert found is not None and found[1] == {}
    shown = {line[1:].removeprefix(" ").strip() for line in found[0]} | {"", "p"}
    shown |= {line[1:].strip() for line in found[0]}
    if found[0][1:2] == ["(this is not what the file holds now)"] or before is None:
        assert {line.strip() for one in edits for line in one["new"].split("\n")} <= shown


@pytest.mark.parametrize(
    "odd",
    [
        {"edits": [{"old": 1, "new": "x"}]},
        {"edits": [{"old": "x", "new": "y", "path": "elsewhere"}]},
        {"edits": []},
        {"old": "x"},
        {"content": "x", "patch": "y"},
    ],
)
def test_arguments_that_make_no_change_are_shown_as_they_came(odd: dict[str, Any]):
    text = request_text(asked("edit", {"path": "a", **odd}), PLAIN)
    assert text.splitlines()[3].startswith('  │ {"path":"a",')


def test_an_argument_that_is_no_part_of_the_change_is_shown_beside_it():
    arguments = {"path": ["a", "b"], "content": "x\n", "to": "all"}
    text = request_text(asked("publish", arguments), PLAIN)
    assert text.splitlines()[3:] == ["  │ + x", '  │ {"path":["a","b"],"to":"all"}']


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({}, "[y/s/N] "),
        ({"proposal": "allow: shell(x)"}, "[y/s/r/N] "),
        ({"covers": "builds"}, "[y/s/N] "),
        ({"once_only": True, "proposal": "allow: shell(x)"}, "[y/N] "),
    ],
)
def test_only_what_would_count_is_offered(more: dict[str, Any], keys: str):
    offered = answer_prompt(asked("shell", {"command": "x"}, **more), 80)
    assert offered.splitlines()[-1].strip() + " " == keys
    assert max(map(cells, offered.splitlines())) <= 80


def test_once_and_for_the_session_are_told_apart():
    build = answer_prompt(asked("shell", {"command": "make"}, covers="builds"))
    assert "[y] Allow once  [s] Allow for this session: tests and builds in this folder" in build
    other = answer_prompt(asked("shell", {"command": "git push"}))
    assert "[y] Allow once  [s] Allow for this session  [n] Deny" in other
    assert "[s]" not in answer_prompt(asked("read", {"path": ".env"}, once_only=True))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("r", Answer(True, "rule")),
        ("y, but mind b", Answer(True, word="but mind b")),
        ("Yes , and c", Answer(True, word="and c")),
        ("y,", Answer(False, word="y,")),
        ("yes but not b", Answer(False, word="yes but not b")),
        ("a, b and c are wrong", Answer(False, word="a, b and c are wrong")),
        ("rule it out", Answer(False, word="rule it out")),
    ],
)
def test_a_yes_with_words_begins_as_one(line: str, answer: Answer):
    assert parse_answer(asked("shell", {"command": "x"}), line) == answer


@given(st.text(max_size=30))
def test_what_does_not_begin_with_a_yes_is_none(line: str):
    if parse_answer(asked("shell", {"command": "x"}), line).allowed:
        assert re.match(r"\s*(?:y|yes|s|a|always|r|rule)\s*(?:,|$)", line, re.IGNORECASE)


def path_of(asked: ApprovalAsked) -> Any:
    return asked.call.arguments["path"]


def group(count: int, **more: Any) -> list[ApprovalAsked]:
    return [asked("write", {"path": f"{n}.md", "content": f"{n}\n"}, **more) for n in range(count)]


def test_questions_that_belong_together_are_numbered_and_share_their_reason():
    text = full_text(group(2), PLAIN, 80, lambda one: {"1.md": "0\n"}.get(path_of(one)))
    assert text.splitlines() == [
        "? Allow these 2 calls?",
        "  why: it asks",
        "  in:  /w",
        "  1. write",
        "  │ 0.md",
        "  │ + 0",
        "  2. write",
        "  │ 1.md",
        "  │ @@ -1 +1 @@",
        "  │ -0",
        "  │ +1",
    ]
    other = asked("edit", {"path": "x", "old": "a", "new": "b"}, rule="ask: edit")
    mixed = full_text([*group(1), other], PLAIN, 80, lambda _: None).splitlines()
    assert mixed.count("  why: it asks") == 1 and "  why: it asks (ask: edit)" in mixed


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("y", [YES] * 4),
        ("s", [Answer(True, "session")] * 4),
        ("1,3", [YES, NO, YES, NO]),
        (" 4 ", [NO, NO, NO, YES]),
        ("1 2", [YES, YES, NO, NO]),
        ("2-4", [NO, YES, YES, YES]),
        ("n", [NO] * 4),
        (None, [NO] * 4),
        ("into docs/", [Answer(False, word="into docs/")] * 4),
        ("0", None),
        ("1,5", None),
        ("r", None),
    ],
)
def test_one_answer_counts_for_all_and_numbers_for_some(line: str | None, answers: Any):
    assert parse_group_answers(line, 4) == answers


def test_a_session_is_not_offered_where_a_yes_is_for_once():
    assert group_prompt(group(2), 80).endswith("  [y/s/1,2/each/N] ")
    assert group_prompt(group(2, once_only=True), 80).endswith("  [y/1,2/each/N] ")


@given(st.lists(st.text(st.sampled_from(["a", "\x1b", "\n", "\u202e", "漢"])), max_size=3))
def test_nothing_in_a_question_breaks_out_of_its_lines(words: list[str]):
    """Long or hostile text is folded and marked; a line is never wider than the terminal."""
    more = {"commands": tuple(words), "paths": tuple(words), "proposal": EVIL * 20}
    text = request_text(asked("shell", {"command": EVIL * 30}, rule=EVIL * 9, **more), PLAIN, 40)
    for line in text.splitlines()[1:]:
        assert line.startswith("  ") and cells(line) <= 40 and "\x1b" not in line
