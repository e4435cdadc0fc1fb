"""What the bar, the panel and the curtain say, without a screen."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.events import Todo
from bridle.presentation.amounts import budget_text, cost_text, duration, short_number, token_count
from bridle.presentation.blocks import Call
from bridle.presentation.fold import ConversationState
from bridle.tui.keys import KEYS, help_lines
from bridle.tui.model.side_panel import meter, rows
from bridle.tui.model.status_bar import Facts, cells, short_path
from bridle.tui.session_backend import is_same
from bridle.tui.splash import frame
from bridle.usage import ExecutionMetrics, Usage
from bridle.workspace.text import quantity

FACTS = Facts(
    mode="plan",
    model="anthropic/claude",
    agent="claude-code",
    workspace="/home/ada/work/engine",
    branch="main",
    sandbox="landlock",
)


def said(facts, width):
    return [cell.text for cell in cells(facts, width)]


def test_the_bar_says_model_agent_mode_workspace_sandbox_and_branch():
    """P4, S10"""
    assert said(FACTS, 200) == [
        "plan (read-only)",
        "anthropic/claude",
        "claude-code",
        "/home/ada/work/engine",
        "⎇ main",
        "sandbox landlock",
    ]


@given(st.integers(0, 120))
def test_the_mode_is_the_last_thing_to_go(width):
    """P4"""
    assert said(FACTS, width)[0] == "plan (read-only)"


@given(st.integers(30, 200))
def test_the_bar_is_no_wider_than_the_window(width):
    assert len(" · ".join(said(FACTS, width))) <= width


def test_what_a_server_says_is_neutral_on_the_bar():
    facts = Facts(
        mode="a\x1b]0;x\x07", model="m\u202e", branch="b\r", workspace="/w\n", server="\x9b"
    )
    for text in said(facts, 400):
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\r", "\n", "\x9b"}


def test_a_missing_sandbox_is_said_and_an_unknown_one_is_not():
    assert "no sandbox" in said(Facts(mode="ask", sandbox="none"), 80)
    assert said(Facts(mode="ask"), 80) == ["ask"]
    assert said(Facts(opening=True), 80) == ["opening …"]


def test_a_long_path_is_cut_at_a_folder():
    assert (
        short_path("/home/somebody/very/long/path/to/the/project")
        == "…/very/long/path/to/the/project"
    )
    assert short_path("/a/b") == "/a/b"


@pytest.mark.parametrize(
    ("used", "most", "words"),
    [
        ("$0.30", "$2.00", "$0.30 used of $2.00"),
        ("cost unknown", "no limit", "cost unknown, no limit"),
        ("cost unknown", "$2.00", "cost unknown, at most $2.00"),
        ("", "200", "at most 200"),
    ],
)
def test_a_limit_is_said_as_a_person_would(used, most, words):
    assert budget_text(used, most) == words


def test_a_cost_that_is_not_known_is_never_nothing():
    used = ExecutionMetrics().plus(Usage(1, 1), None)
    assert cost_text(used) == "cost unknown"
    assert cost_text(used.plus(Usage(1, 1), 0.5)) == "$0.50 + unknown"


def test_counts_times_and_sizes_are_said_as_a_person_would():
    assert [quantity(1, "line"), quantity(2000, "line")] == ["1 line", "2,000 lines"]
    assert [quantity(1.0, "second"), quantity(0.5, "second")] == ["1 second", "0.5 seconds"]
    assert [quantity(1, "retry", "retries"), quantity(0, "retry", "retries")] == [
        *("1 retry", "0 retries"),
    ]
    assert [token_count(1), token_count(12_400)] == ["1 token", "12.4k tokens"]
    assert [duration(0.44), duration(12), duration(200), duration(3900)] == [
        *("0.4 s", "12 s"),
        *("3 min 20 s", "1 h 5 min"),
    ]
    assert [short_number(812), short_number(12_400), short_number(2_000_000)] == [
        *("812", "12.4k", "2M"),
    ]


def test_the_panel_shows_meters_todos_what_runs_and_files():
    """S10"""
    state = ConversationState(
        todos=(Todo("a", "completed"), Todo("b", "in_progress"), Todo("c")),
        files={"src/a.py": "added", "b.py": "deleted"},
        calls={"c": Call("c", "shell", "make", "running"), "d": Call("d", "edit", "x", "asked")},
        used=ExecutionMetrics().plus(Usage(50_000, 10), 0.14),
    )
    lines = [f"{row.mark} {row.text}".strip() for row in rows(state, 200_000, 30)]
    assert lines == [
        "context",
        "━" * 8 + "┄" * 22,
        "50k of 200k tokens",
        "",
        "cost",
        "$0.14",
        "",
        "todo  1 of 3",
        "✓ a",
        "◐ b",
        "○ c",
        "",
        "running",
        "● shell make",
        "? edit x",
        "",
        "2 files changed",
        "+ src/a.py",
        "− b.py",
    ]


@given(st.integers(0, 60), st.integers(0, 40), st.integers(0, 20))
def test_the_panel_stays_short_and_says_how_much_it_leaves_out(todos, files, calls):
    state = ConversationState(
        todos=tuple(
            Todo(f"t{n}", "completed" if n < todos // 2 else "pending") for n in range(todos)
        ),
        files={f"f{n}": "changed" for n in range(files)},
        calls={f"c{n}": Call(f"c{n}", "shell", "", "running") for n in range(calls)},
    )
    assert len(rows(state, 0, 30)) <= 60


def test_a_meter_is_never_empty_while_something_is_used():
    assert (meter(0.001, 4), meter(1, 4), meter(0, 4)) == ("━┄┄┄", "━━━━", "┄┄┄┄")


@given(st.integers(1, 200), st.integers(1, 60), st.booleans())
def test_the_curtain_fits_any_window(width, height, coloured):
    drawn = frame(width, height, ("1;1;1",) * 5 if coloured else None)
    for row, column in re.findall(r"\x1b\[(\d+);(\d+)H", drawn):
        assert (1 <= int(row) <= height, 1 <= int(column) <= width) == (True, True)
    assert max(len(part) for part in re.split(r"\x1b\[[0-9;?]*[a-zA-Z]", drawn)) <= width


def test_every_key_is_in_the_help_once():
    keys = [one.key for one in KEYS]
    assert len(set(keys)) == len(keys)
    assert {one.meaning for one in KEYS} <= {meaning for _, meaning in help_lines()}


def test_a_mode_that_was_agreed_to_is_on_the_bar_with_the_answer():
    """P4: what holds stands first until the record of the next one came."""
    assert said(Facts(mode="plan", then="edits"), 80) == ["plan → edits allowed"]
    assert said(Facts(mode="ask", then="edits"), 80) == ["ask → edits allowed"]
    assert said(Facts(mode="edits", then="edits"), 80) == ["edits allowed"]


@pytest.mark.parametrize(
    ("name", "chosen", "same"),
    [
        ("offline", "offline/offline", True),
        ("offline/offline", "offline/offline", True),
        ("scripted:a.json", "scripted/scripted", True),
        ("ollama/a", "ollama/b", False),
        ("openai", "openai/gpt", False),
        ("anthropic/claude", "scripted/scripted", False),
    ],
)
def test_two_spellings_of_one_model_are_one(name, chosen, same):
    assert is_same(name, chosen) is same
