"""For every test: no keys, no settings and no home folder of the machine that runs it."""

import gc
import os
import signal
import sys
import threading
import time
from collections import Counter
from zlib import crc32

import pytest
import pytest_timeout
from hypothesis import settings

from rig import SOAK
from tiers import MARKS, marks_of

settings.register_profile(
    "house", deadline=None, database=None, derandomize=not SOAK, max_examples=1000 if SOAK else 100
)
settings.register_profile("quick", settings.get_profile("house"), max_examples=20)
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


_WEIGHTS = {"browser": 20, "process": 10, "database": 5, "screen": 5, "slow": 20}
_HEAVY = 50  # files that are started in time, so that no worker is left with one at the end
_IN_TIME = 0.7  # of the run


@pytest.hookimpl(tryfirst=True)  # before `-m` deselects
def pytest_collection_modifyitems(config, items):
    """Mark the tests by what they use. Several workers start the heavy files first.

    The others come between them, in a mixed order: what waits shares the machine with what
    computes.
    """
    weights = Counter()
    for item in items:
        names = marks_of(item) | {mark.name for mark in item.iter_markers() if mark.name in MARKS}
        for name in names:
            item.add_marker(name)
        weights[item.path] += 1 + sum(_WEIGHTS[name] for name in names)
    if hasattr(config, "workerinput"):
        order = {
            path: crc32(path.relative_to(config.rootpath).as_posix().encode()) / 2**32
            for path in weights
        }
        for place, (path, _) in enumerate(weights.most_common(_HEAVY)):
            order[path] = _IN_TIME * place / _HEAVY
        items.sort(key=lambda item: order[item.path])


def pytest_collection_finish():
    """Exclude what was imported until now from garbage collection: it stays to the end."""
    gc.collect()
    gc.freeze()
