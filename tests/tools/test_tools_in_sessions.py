"""The tools in real sessions: what the gate makes of their paths, and what a session remembers."""

from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.events import ApprovalAsked, ModeChanged
from bridle.protocols.session import Answer
from bridle.providers.scripted import Scripted
from rig import call, calls, events, results, run


async def turn(
    root: Path, state: Path, script: list[Any], answer: Any = False, **rest: Any
) -> tuple[list[tuple[str, bool]], list[Any]]:
    """What the calls of a turn came to, and what the person was asked."""
    asked: list[ApprovalAsked] = []

    async def approver(question: ApprovalAsked) -> Any:
        asked.append(question)
        return answer

    engine = bridle.build_engine(
        Scripted([*script, "done"]), workspace=root, state=state, approver=approver, **rest
    )
    async with engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        found = [(text, not failed) for _, text, failed in results(engine, session.id)]
        return found, [*asked, *events(engine, session.id, ModeChanged)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


def test_a_session_remembers_what_it_read(root: Path, state: Path) -> None:
    """(A4)"""
    unread = call("write", path="a.txt", content="x\n")
    script = [unread, call("read", path="a.txt"), call("apply_patch", patch=PATCH), unread]
    found, _ = run(turn(root, state, script, mode="edits"))
    assert [ok for _, ok in found] == [False, True, True, True]
    assert "has not been read" in found[0][0]
    assert (root / "a.txt").read_text() == "x\n"


def test_reads_and_edits_of_one_step_go_together(root: Path, state: Path) -> None:
    step = calls(
        ("read", {"path": "a.txt"}),
        ("edit", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}),
        ("list", {}),
    )
    found, _ = run(turn(root, state, [step], mode="edits"))
    assert [ok for _, ok in found] == [True, True, True]
    assert found[2][0] == "a.txt  4 B"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git/config", ".bridle/policy.yaml", "../out", "/etc/x"]
)
def test_no_mode_lets_a_patch_touch_what_is_forbidden(root: Path, state: Path, path: str) -> None:
    both = f"{PATCH}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    script = [call("read", path="a.txt"), call("apply_patch", patch=both)]
    found, asked = run(turn(root, state, script, True, mode="auto"))
    assert not found[1][1] and "not run" in found[1][0]
    assert asked == []
    assert sorted(entry.name for entry in root.iterdir()) == ["a.txt"]
    assert (root / "a.txt").read_text() == "one\n"


def test_every_path_of_a_patch_is_shown_to_the_person(root: Path, state: Path) -> None:
    patch = f"{PATCH}--- /dev/null\n+++ b/.github/workflows/x.yml\n@@ -0,0 +1 @@\n+x\n"
    script = [call("read", path="a.txt"), call("apply_patch", patch=patch)]
    found, (asked,) = run(turn(root, state, script, mode="edits"))
    assert asked.paths == ("a.txt", ".github/workflows/x.yml")
    assert not found[1][1]
    assert not (root / ".github").exists()


def test_a_person_answers_in_their_own_words(root: Path, state: Path) -> None:
    question = call("ask_user", question="Which colour?", options=["red", "blue"])
    found, (asked,) = run(turn(root, state, [question], Answer(True, word="2"), mode="auto"))
    assert found == [("The person answered: blue", True)]
    assert asked.call.arguments["question"] == "Which colour?"


def test_a_plan_that_is_agreed_ends_plan_mode(root: Path, state: Path) -> None:
    """(P4)"""
    new = call("write", path="new.txt", content="x\n")
    script = [new, call("exit_plan_mode", plan="# Make new.txt"), new]
    found, seen = run(turn(root, state, script, Answer(True, word="soon"), mode="plan"))
    assert [ok for _, ok in found] == [False, True, True]
    assert found[1][0] == "The plan was agreed; go ahead, with these changes: soon"
    assert [one for one in seen if isinstance(one, ModeChanged)] == [
        ModeChanged("ask", by="plan", reason="the plan was agreed")
    ]
    assert (root / "new.txt").read_text() == "x\n"


def test_a_plan_that_is_refused_changes_nothing(root: Path, state: Path) -> None:
    """(P4)"""
    new = call("write", path="new.txt", content="x\n")
    script = [call("exit_plan_mode", plan="# Make new.txt"), new]
    found, seen = run(turn(root, state, script, Answer(False, word="not so"), mode="plan"))
    assert [ok for _, ok in found] == [False, False]
    assert not [one for one in seen if isinstance(one, ModeChanged)]
    assert not (root / "new.txt").exists()


def test_a_page_is_asked_for_by_its_host(root: Path, state: Path) -> None:
    fetch = call("web_fetch", url="https://docs.python.org/3/")
    found, (asked,) = run(turn(root, state, [fetch], mode="ask", hosts=["docs.python.org"]))
    assert not found[0][1]
    assert asked.call.name == "web_fetch"
    offered, _ = run(turn(root, state, [fetch], mode="ask"))
    assert "there is no tool named 'web_fetch'" in offered[0][0]
