"""For every test of the terminal: a state folder that nobody else has."""

import pytest


@pytest.fixture(autouse=True)
def at_home(isolated, monkeypatch, tmp_path):
    monkeypatch.setenv("BRIDLE_STATE", str(tmp_path / "state"))
