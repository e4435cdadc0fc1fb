"""`ask_user` and `exit_plan_mode`: what the person said when the call was asked about."""

from pathlib import Path
from typing import Any

import pytest
from desk import Desk

from bridle.events import ModeChanged
from bridle.protocols.tool import ToolResult
from bridle.tools.session_tools import AskUser, ExitPlanMode


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("word", "more", "answer", "text"),
    [
        ("", {}, "", "The person agreed."),
        (" blue ", {}, "blue", "The person answered: blue"),
        ("2", {"options": ["red", "blue"]}, "blue", "The person answered: blue"),
        ("2", {"options": ["3", "2", "1"]}, "2", "The person answered: 2"),
        ("3", {"options": ["red", "blue"]}, "3", "The person answered: 3"),
        ("green", {"options": ["red", "blue"]}, "green", "The person answered: green"),
        (
            "green",
            {"options": ["red", "blue"], "free_text": False},
            "green",
            "The person chose none of the options, and said: green",
        ),
    ],
)
def test_the_answer_is_what_the_person_said(
    desk: Desk, word: str, more: dict[str, Any], answer: str, text: str
) -> None:
    """(A4)"""
    desk.word = word
    found = desk.run(AskUser(), question="Which colour?", **more)
    assert found == ToolResult(True, text, {"question": "Which colour?", "answer": answer})


def test_an_agreed_plan_ends_plan_mode(desk: Desk) -> None:
    """(P4)"""
    desk.mode = "plan"
    found = desk.run(ExitPlanMode(), plan="# Do it")
    assert found == ToolResult(
        True, "The plan was agreed; go ahead.", {"plan": "# Do it", "changes": ""}
    )
    assert desk.events == [ModeChanged("ask", by="plan", reason="the plan was agreed")]


def test_a_plan_may_be_agreed_with_changes(desk: Desk) -> None:
    """(P4)"""
    desk.mode, desk.word = "plan", "but keep the old name\n"
    found = desk.run(ExitPlanMode(), plan="# Do it").text
    assert found == "The plan was agreed; go ahead, with these changes: but keep the old name"


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_outside_plan_mode_there_is_no_plan_to_agree_to(desk: Desk, mode: Any) -> None:
    """(P4)"""
    desk.mode = mode
    assert desk.refused(ExitPlanMode(), plan="x").startswith("The session is not in plan mode")
    assert desk.events == []
