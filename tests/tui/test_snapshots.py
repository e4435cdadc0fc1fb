"""Every screen at 80×24, 120×40 and 60×20, as it was looked at and kept (S10)."""

import shutil
import tempfile
from pathlib import Path

import pytest

from bridle.tui.widgets import status
from rig import run
from tui.scenes import SCENES
from tui.snapshot_rig import FOLDER, compare, still

SIZES = [(80, 24), (120, 40), (60, 20)]


@pytest.fixture
def folder(monkeypatch):
    """A folder whose path has the same length wherever the tests run."""
    made = Path(tempfile.mkdtemp(prefix="bridle-shot-", dir="/tmp"))
    monkeypatch.setenv("BRIDLE_STATE", str(made / "state"))
    monkeypatch.setenv("HOME", str(made / "home"))
    monkeypatch.setenv("USER", "ann")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(status, "monotonic", float)  # what works does so for 0 s, however long
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("name", SCENES)
def test_a_screen_looks_as_it_was_kept(name, folder):
    """S10: at three sizes, one after the other: also a window that is resized is drawn whole."""

    async def story():
        async with SCENES[name](folder) as pilot:
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                await still(pilot)
                compare(f"{name}-{width}x{height}", pilot.app)

    run(story())


def test_no_snapshot_is_kept_of_a_screen_that_there_is_not():
    names = {f"{name}-{width}x{height}" for name in SCENES for width, height in SIZES}
    assert {one.stem for one in FOLDER.glob("*.txt")} == names
