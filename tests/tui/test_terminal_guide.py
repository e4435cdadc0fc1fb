"""The guide of the terminal says every command and every key, and shows pictures that are there."""

import json
import re
import subprocess
import sys
from pathlib import Path

from bridle.presentation.commands import TABLE
from bridle.tui.keys import KEYS

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "guides" / "terminal.md").read_text("utf-8")
IMAGES = ROOT / "docs" / "img"


def test_its_tables_come_from_the_code():
    script = [sys.executable, str(ROOT / "scripts" / "sync-commands"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr == ""


def test_every_command_and_key_is_in_it():
    assert [one.name for one in TABLE if f"| `/{one.name}" not in GUIDE] == []
    assert [one.key for one in KEYS if f"`{one.shown or one.key}`" not in GUIDE] == []


def test_its_pictures_are_of_text_and_fetch_nothing():
    shown = re.findall(r"\.\./img/(terminal-[a-z-]+\.svg)", GUIDE)
    assert len(shown) >= 5
    for name in shown:
        svg = (IMAGES / name).read_text("utf-8")
        assert svg.startswith("<svg")
        assert "@font-face" not in svg and "url(http" not in svg and "<image" not in svg


def test_the_recording_is_an_asciicast_whose_times_go_on():
    head, *lines = (IMAGES / "terminal.cast").read_text("utf-8").splitlines()
    assert json.loads(head)["version"] == 2
    frames = [json.loads(line) for line in lines]
    assert len(frames) > 10
    assert [at for at, _, _ in frames] == sorted(at for at, _, _ in frames)
    assert all(kind == "o" for _, kind, _ in frames)
    assert "the test passes" in frames[-2][2] or "the test passes" in frames[-1][2]
