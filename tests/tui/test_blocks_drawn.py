"""Blocks drawn as lines: marks, folding, diffs, markdown, hostile text, any width (S10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from bridle.presentation.blocks import Call, Notice, Prompt, Reply, Thought, TurnEnd
from bridle.tui.render.blocks import Painter
from bridle.tui.render.markdown import MarkdownSplitter, split_markdown
from bridle.tui.render.palette import DARK, LIGHT

HOSTILE = "a\x1b[31mb\x1b]52;c;eHg=\x07c\u202ed\re&#x202e;"


def drawn(block, width=60, *, unfolded=False, palette=DARK):
    lines = Painter(palette, width).lines(0, block, unfolded=unfolded)
    return ["".join(one.text for one in line).rstrip() for line in lines]


def test_a_call_is_one_line_and_unfolds():
    """S10"""
    call = Call("c", "shell", "make test", "done", result="one\ntwo", summary="two (2 lines)")
    assert drawn(call) == ["✓ shell make test · two (2 lines)"]
    assert drawn(call, unfolded=True)[1:] == ["  │ one", "  │ two"]


def test_a_running_call_shows_the_end_of_what_it_says():
    """S10"""
    call = Call("c", "shell", "make", "running", output="1\n2\n3\n4\n5\n6\n")
    assert drawn(call) == ["● shell make", "  │ 3", "  │ 4", "  │ 5", "  │ 6"]


def test_a_diff_says_how_much_and_unfolds_without_its_header():
    call = Call("c", "edit", "a.py", "done", diff="--- a\n+++ a\n@@ -1 +1 @@\n-x = 1\n+x = 2\n")
    assert drawn(call) == ["✓ edit a.py · +1 −1"]
    assert drawn(call, unfolded=True)[1:] == ["  │ @@ -1 +1 @@", "  │ -x = 1", "  │ +x = 2"]


def test_a_long_subject_leaves_room_for_the_outcome():
    call = Call("c", "shell", "x" * 300, "failed", summary="exit code 1 · it broke")
    (line,) = drawn(call, 80)
    assert "it broke" in line
    assert cell_len(line) <= 80


def test_a_thought_is_one_line_until_it_is_unfolded():
    """S10"""
    thought = Thought(["First.\n\nThen more."], True)
    assert drawn(thought) == ["⋯ thought: First. Then more."]
    assert drawn(thought, unfolded=True) == ["⋯ First.", "", "  Then more."]


def test_a_long_prompt_is_folded():
    prompt = Prompt("\n".join(f"line {number}" for number in range(40)))
    assert len(drawn(prompt)) == 12
    assert drawn(prompt)[-1] == "  … 29 more lines"
    assert len(drawn(prompt, unfolded=True)) == 40


def test_markdown_is_drawn_and_html_is_only_shown():
    said = Reply(["# Head\n\nA **bold** `word`, [a link](https://x.example/y) <b>tag</b>.\n"], True)
    lines = drawn(said)
    assert lines[0] == "  Head"
    assert " ".join(lines).count("https://x.example/y") == 1
    assert "<b>tag</b>" in " ".join(lines)


@pytest.mark.parametrize(
    "block",
    [
        Reply([HOSTILE], True),
        Reply([f"```\n{HOSTILE}\n```"], True),
        Reply([f"| {HOSTILE} |\n|---|\n| {HOSTILE} |"], True),
        Reply([f"[{HOSTILE}](https://x/{HOSTILE}) ![{HOSTILE}](x)"], True),
        Thought([HOSTILE], True),
        Prompt(HOSTILE, by=HOSTILE),
        Notice(HOSTILE),
        TurnEnd(HOSTILE, hint=HOSTILE),
        Call("c", HOSTILE, HOSTILE, "failed", summary=HOSTILE, result=HOSTILE, note=HOSTILE),
        Call("c", "edit", HOSTILE, "done", diff=f"+{HOSTILE}", command=HOSTILE),
        Call("c", "shell", HOSTILE, "running", output=HOSTILE),
    ],
)
@pytest.mark.parametrize("unfolded", [False, True])
def test_what_a_terminal_would_obey_is_written_out(block, unfolded):
    for line in drawn(block, unfolded=unfolded):
        assert not set(line) & {"\x1b", "\x07", "\r", "\u202e", "\x9b"}


@given(
    st.sampled_from([Reply, Thought]),
    st.text("ab `*_#-|>\n漢\t👩‍👩‍👧", max_size=200),
    st.integers(20, 90),
    st.booleans(),
)
def test_no_line_is_wider_than_there_is_room(kind, text, width, unfolded):
    lines = Painter(LIGHT, width).lines(0, kind([text], True), unfolded=unfolded)
    assert all(sum(cell_len(one.text) for one in line) <= width for line in lines)


TEXT = """# One

Words
go on.

- a

- b

  deep

1. x

```python
def f():

    return 1
```
after

    indented

~~~
never closed
"""


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_markdown_falls_into_the_same_pieces_however_it_streams(cuts):
    pieces, at = MarkdownSplitter(), 0
    for cut in [*sorted(cuts), len(TEXT)]:
        pieces.feed(TEXT[at:cut])
        pieces.open()
        at = cut
    pieces.close()
    assert pieces.done == split_markdown(TEXT)


def test_a_discarded_reply_is_struck_through_and_marked():
    said = Reply(["A **half**\n\n```python\nx = 1\n```"], True, discarded=True)
    for block in (said, Thought(["Hm."], True, discarded=True)):
        lines = Painter(DARK, 60).lines(0, block, unfolded=False)
        assert lines[0][0].text == "✗ "
        words = [one for line in lines for one in line if one.text.strip() not in ("", "✗")]
        assert words and all(one.style.strike and not one.style.bgcolor for one in words)


def test_lists_stay_whole_and_code_stands_alone():
    kinds = [(one.kind, one.text.partition("\n")[0]) for one in split_markdown(TEXT)]
    assert kinds == [
        ("text", "# One"),
        ("text", "Words"),
        ("text", "- a"),
        ("code", "def f():"),
        ("text", "after"),
        ("code", "never closed"),
    ]


def test_an_answer_that_grows_is_drawn_as_if_it_had_come_at_once():
    text = TEXT + "é漢\r\n" * 3 + "```py\n" + "x = 1\n" * 100 + "```\n"
    painter, said = Painter(DARK, 60), Reply()
    for at in range(0, len(text), 7):
        said.grow(text[at : at + 7])
        painter.lines(0, said, unfolded=False)
    said.over = True
    whole = Painter(DARK, 60).lines(0, Reply([text], True), unfolded=False)
    assert painter.lines(0, said, unfolded=False) == whole
