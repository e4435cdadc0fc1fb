"""For every test: no keys, no settings and no home folder of the machine that runs it."""

import os
import sys

import pytest
from hypothesis import settings

from rig import SOAK

settings.register_profile(
    "house", deadline=None, database=None, derandomize=not SOAK, max_examples=1000 if SOAK else 100
)
settings.load_profile("house")

_OURS = ("BRIDLE_", "XDG_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_", "OLLAMA_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path_factory):
    """The environment of nobody: an empty home, no keys, no proxies."""
    for name in list(os.environ):
        if name.startswith(_OURS) or name.upper() in _PROXIES or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "home"))
    if (adapters := sys.modules.get("bridle.runtime.adapters")) is not None:
        monkeypatch.setattr(adapters, "_handed_in", set())  # keys that other tests made known


@pytest.fixture
def state(tmp_path):
    """A state folder that is not there yet, as on a new machine."""
    return tmp_path / "state"
