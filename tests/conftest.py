"""For every test: no keys, no settings and no home folder of the machine that runs it."""

import gc
import os
import sys
from zlib import crc32

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


# What takes long begins in time, so that no process is left with it when the others are done: by
# the seconds that the files took on two cores. Between them come the others, mixed: what waits
# shares the machine with what reckons.
_IN_TIME = 0.7  # of the whole
_LONG = (
    *("tui/test_adversary_server", "chat/http/test_chat_server_command", "web/test_journeys_looks"),
    *(
        "web/test_journeys_together",
        "server/test_server_chaos",
        "chat/page/test_chat_page_journeys",
    ),
    *("chat/test_hostile_people", "mcp/test_conformance_client", "chat/test_guide"),
    *("chat/page/test_chat_page_looks", "web/test_journeys_doors", "chat/test_parts_die"),
    *("tui/test_snapshots", "agents/test_claude_failures", "tui/test_adversary_sizes"),
    *("chat/test_service_killed", "chat/test_service_away", "web/test_journeys_work"),
    *("web/test_journeys_turns", "bridges/test_acp_editor", "cli/test_background_command"),
    *("corpus/test_hostile_corpus", "tui/test_screen_sizes", "chat/test_workers_killed"),
    *("server/test_schemathesis", "agents/test_acp_scripted", "tui/test_obeying_more"),
    *("tui/test_question_panel", "agents/test_claude_conformance", "cli/test_completion"),
    *("chat/test_remote_tools", "cli/test_mcp_command", "tools/test_lifeline"),
    *("chat/test_mcp_foreign", "agents/test_acp_engine", "web/test_journeys_long"),
    *("web/test_journeys_safety", "journeys/test_same_journey", "workspace/test_path_attacks"),
)


def pytest_collection_modifyitems(config, items):
    """Where several processes share the files (`make test`): in an order of their own."""
    if not hasattr(config, "workerinput"):
        return
    turn = {f"tests/{name}.py": _IN_TIME * at / len(_LONG) for at, name in enumerate(_LONG)}
    for item in items:
        name = item.path.relative_to(config.rootpath).as_posix()
        turn.setdefault(name, crc32(name.encode()) / 2**32)
    items.sort(key=lambda item: turn[item.path.relative_to(config.rootpath).as_posix()])


def pytest_collection_finish():
    """What was read until now stays to the end: looking for garbage there is time lost."""
    gc.collect()
    gc.freeze()
