"""`bridle doctor` says at which level commands run, and why."""

import pytest

from bridle.cli.checkup import Finding, examine
from bridle.workspace.sandbox import probe


def line():
    (found,) = (finding for finding in examine() if finding.topic == "sandbox")
    return found


def test_the_level_and_the_reason_are_shown():
    level, why = probe()
    found = line()
    assert found.found == f"{level}: {why}"
    assert found.good is (True if level != "none" else None)


def test_a_sandbox_that_was_switched_off_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BRIDLE_SANDBOX", "none")
    assert line() == Finding(
        "sandbox",
        "none: it was switched off",
        None,
        "Commands run with all your rights: a script can read credentials and write anywhere. "
        "A command that bridle does not understand always needs approval.",
    )


def test_a_sandbox_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BRIDLE_SANDBOX", "cage")
    assert line() == Finding(
        "sandbox",
        "There is no sandbox named 'cage'.",
        False,
        "Choose auto, bubblewrap, landlock or none.",
    )
