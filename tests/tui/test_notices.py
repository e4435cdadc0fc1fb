"""Sentences about a session itself: one owner for every face, no name for one's own deeds."""

import subprocess
import sys

import pytest
from rich.cells import cell_len

from bridle.cli.render import answered_line, inbox_prompt_line, notice_lines, trace_line
from bridle.cli.style import Paint
from bridle.events import (
    ApprovalAnswered,
    BrokenLine,
    ChildEnded,
    ChildOf,
    Compacted,
    FilesChanged,
    Forked,
    GrantRevoked,
    ModeChanged,
    PromptReceived,
    PromptWithdrawn,
    Repaired,
    Rewound,
    TraceEvent,
    TurnParked,
    Undone,
    UnknownEvent,
)
from bridle.presentation.blocks import Notice, Prompt
from bridle.presentation.fold import Fold
from bridle.presentation.notices import file_notices, notices_of
from bridle.protocols.store import Record

PLAIN = Paint(False)
TOLD = (
    Forked("s1", 7),
    Compacted((), 3, summary=True, before=900, after=100),
    Repaired(torn=3, broken=tuple(BrokenLine(number, 9, "", "x") for number in range(5))),
    TurnParked(1, ("c1", "c2")),
    ModeChanged("plan", reason="because"),
    Undone(3, "ann", ("a", "b")),
    GrantRevoked("g", "ann"),
    PromptWithdrawn(7, 2, "ann"),
    ChildOf("s1", "1"),
    ChildEnded("1", "s2", "done"),
    UnknownEvent({"type": "new"}),
)
DEEDS = (Undone(3, "ann", ("a",)), GrantRevoked("", "ann"), PromptWithdrawn(7, 2, "ann"))


def drawn(event, me="me"):
    """What the screen says of it."""
    fold = Fold()
    fold.state.me = me
    fold.blocks.append(Prompt("hi"))
    fold.seqs.append(0)
    fold.apply(Record(9, "", event))
    return [one.text for one in fold.blocks if isinstance(one, Notice)]


@pytest.mark.parametrize("event", TOLD, ids=lambda one: type(one).__name__)
def test_the_screen_and_the_lines_say_the_same_sentences(event):
    said = [one.text for one in notices_of(event)]
    assert said and drawn(event) == said
    painted = notice_lines(event, PLAIN)
    assert [one.strip()[2:] for one in painted] == said


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("retry", {"error": "busy. Wait.", "seconds": 0.5}),
        ("fallback", {"error": "busy.", "to": "c/d"}),
        ("hook", {"moment": "after_tool", "tool": "shell", "deny": "bad", "word": "look"}),
        ("hook", {"moment": "before_tool", "tool": "write", "arguments": {"path": "b"}}),
        ("ungated_call", {"name": "shell"}),
        ("notice", {"message": "something is otherwise"}),
    ],
)
def test_a_trace_is_told_in_the_same_words_on_both(kind, detail):
    event = TraceEvent(kind, detail)
    (said,) = drawn(event)
    assert trace_line(event, PLAIN, 200).strip()[2:] == said


@pytest.mark.parametrize("event", [*DEEDS, Rewound(0, "ann")], ids=lambda one: type(one).__name__)
def test_a_deed_has_the_name_of_another_and_not_ones_own(event):
    for said in (drawn(event, "ann"), notice_lines(event, PLAIN, me="ann")):
        assert not any("ann" in one for one in said)  # the screen need not even tell it
    for said in (drawn(event, "bo"), notice_lines(event, PLAIN, me="bo")):
        assert " by ann" in said[0]


def test_a_prompt_and_an_answer_have_the_name_of_another_and_not_ones_own():
    prompt, answer = PromptReceived("hi", by="ann"), ApprovalAnswered("1", True, by="ann")
    assert inbox_prompt_line(prompt, PLAIN, 80, "ann") == "❯ hi"
    assert inbox_prompt_line(prompt, PLAIN, 80, "bo") == "❯ hi (ann)"
    assert answered_line(answer, PLAIN, 80, "ann") == "  ✓ allowed"
    assert answered_line(answer, PLAIN, 80, "bo") == "  ✓ allowed by ann"
    fold = Fold()
    fold.state.me = "ann"
    fold.apply(Record(1, "", prompt))
    fold.apply(Record(2, "", PromptReceived("and?", by="bo")))
    assert [one.by for one in fold.blocks] == ["me", "bo"]


def test_who_paints_the_sentences_imports_no_textual():
    code = "import sys, bridle.cli.render, bridle.cli.printer; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_undo_does_not_cover_is_told_to_its_number():
    names = tuple(f"big{n}.bin is too large" for n in range(5))
    told = [one.text for one in file_notices(FilesChanged(1, "c", uncovered=names), is_named=True)]
    assert told[:3] == [f"undo does not cover it: {one}" for one in names[:3]]
    assert told[3:] == ["undo does not cover 2 more"]


def test_the_mark_of_a_hook_takes_one_column_so_that_a_space_follows_it():
    (notice,) = notices_of(TraceEvent("hook", {"moment": "before_tool", "deny": "no licence"}))
    assert cell_len(notice.mark) == 1
