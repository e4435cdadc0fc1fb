"""For every test: no keys, no settings and no home folder of the machine that runs it."""

import gc
import os
import signal
import sys
import threading
import time
from zlib import crc32

import pytest
import pytest_timeout
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
    if (providers := sys.modules.get("bridle.runtime.providers")) is not None:
        monkeypatch.setattr(providers, "_secrets", set())  # keys that other tests made known


@pytest.fixture
def state(tmp_path):
    """A state folder that is not there yet, as on a new machine."""
    return tmp_path / "state"


_REPEAT = 4  # seconds; code under test may swallow the exception that a time limit raises


def pytest_addoption(parser):
    text = "end a run of several processes after so many seconds in which no test starts or ends"
    parser.addoption("--stalled-after", type=float, help=text)


def pytest_configure(config):
    """Rely on nobody's signal dispositions, and watch that a run of several processes goes on."""
    if config.getoption("numprocesses", None):
        limit = float(config.getoption("timeout") or config.getini("timeout"))
        stalled = config.getoption("stalled_after") or 2 * limit + 60
        config.pluginmanager.register(ProgressWatch(limit=stalled))
        return
    # Under nohup, and in the background of a script, these are ignored, and programs that a test
    # starts would ignore them, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_timeout_set_timer(item, settings):
    """Fail a test at its time limit, in the ordinary way, and again if it goes on all the same."""

    def fail(_number, _frame):
        __tracebackhide__ = True
        pytest_timeout.timeout_sigalrm(item, settings)

    def cancel():
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel
    signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, _REPEAT)
    return True


class ProgressWatch:
    """Ends a run in which no test starts or ends any more, and says which tests were running."""

    def __init__(self, *, limit):
        self._limit = limit
        self._running = {}
        self._changed = time.monotonic()

    def pytest_sessionstart(self):
        threading.Thread(target=self._watch, name="progress-watch", daemon=True).start()

    def pytest_runtest_logstart(self, nodeid):
        self._changed = self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self._changed = time.monotonic()
        self._running.pop(nodeid, None)

    def _watch(self):
        while (idle := time.monotonic() - self._changed) < self._limit:
            time.sleep(min(5, self._limit - idle))
        lines = [f"{time.monotonic() - at:7.0f} s  {name}" for name, at in self._running.items()]
        running = "\n".join(lines) or "no test at all"
        text = f"no test has started or ended for {idle:.0f} seconds; these were running:"
        sys.stderr.write(f"\n{text}\n{running}\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGINT)


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
    *("server/test_schemathesis", "agents/test_acp_scripted", "tui/test_slash_pages"),
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
