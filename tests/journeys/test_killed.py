"""Killed with SIGKILL at any point: nothing acknowledged is lost, nothing runs twice, it goes on.

Real processes, really killed, at hundreds of points over prompts, deltas, calls, approvals,
letters, compactions, checkpoints and the recovery itself (SECURITY, durability; A7, A8, A11, S9).
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridle.engine.history import fold
from bridle.protocols.store import InboxMessage
from rig import PYTHON, SOAK, seeds

pytest.register_assert_rewrite("crash_judge")
from crash_judge import Story, judge, look_at_wreck  # noqa: E402 - after the line above
from crashing import Notes  # noqa: E402

HERE = Path(__file__).parent
AGAIN = 250  # points of a resumed story within which the second kill lies


class Crashing:
    """The process that forks a process for each task."""

    def __init__(self):
        self._process = subprocess.Popen(
            [PYTHON, str(HERE / "crashing.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        )

    def run(self, folder, seed, at=0, seconds=0.0):
        """Play the story in a process of its own; how that ended."""
        folder.mkdir(exist_ok=True)
        task = {"folder": str(folder), "seed": seed, "at": at, "seconds": seconds}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def dies(self, *task):
        """Play it: was it killed? It may come to its end, and does nothing else."""
        ended = self.run(*task)
        assert ended in (0, -signal.SIGKILL)
        return ended != 0

    def close(self):
        with self._process as process:
            process.stdin.close()
            process.wait(60)


@pytest.fixture(scope="module")
def crashing():
    process = Crashing()
    yield process
    process.close()


@pytest.fixture(scope="module")
def points(crashing, tmp_path_factory):
    """How many points a story has that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole") / "story"
    assert crashing.run(folder, 0) == 0
    return judge(folder, set()).noted("points")[0]["count"]


def write_meanwhile(folder, name):
    """Letters to a session that nobody holds: a prompt, and an answer where something is asked."""
    story, notes = Story(folder), Notes(folder)
    if not story.records:
        return
    letters = [InboxMessage(f"{name}-1", "send", "cy", content=f"[{name}] while nobody was there")]
    for asked in list(fold(story.records).pending.values())[:1]:
        yes = not asked.call.arguments.get("word", "").startswith("no")
        about = {"call_id": asked.call.id, "shown": asked.shown, "allowed": yes}
        letters.append(InboxMessage(f"{name}-2", "answer", "cy", **about))
    for letter in letters:
        story.store.send_message(story.id, letter)
        notes.add("posted", letter=letter.id, verb=letter.verb)


def finish(crashing, folder, chance):
    """After a crash: letters come, for some another crash, in the recovery; then the end."""
    unknown = look_at_wreck(folder)
    if chance.random() < 0.5:
        write_meanwhile(folder, "M")
    if chance.random() < 0.4 and crashing.dies(folder, chance.random(), chance.randrange(1, AGAIN)):
        unknown |= look_at_wreck(folder)
    assert crashing.run(folder, chance.random()) == 0
    judge(folder, unknown)


@pytest.mark.parametrize("seed", range(500 if SOAK else 20))
def test_a_session_that_is_killed_at_any_point_goes_on_and_loses_nothing(
    crashing, points, tmp_path, seed
):
    chance = random.Random(seed)
    at, number = chance.randrange(1, points), 0
    while not crashing.dies(tmp_path / f"story{number}", seed, at):
        at, number = at * 3 // 4, number + 1  # it had fewer points this time
    finish(crashing, tmp_path / f"story{number}", chance)


@pytest.mark.parametrize("seed", seeds(50))
def test_a_session_that_is_killed_from_outside_at_any_time_goes_on(crashing, tmp_path, seed):
    chance = random.Random(-1 - seed)
    seconds, number = chance.uniform(0.01, 0.35), 0
    while not crashing.dies(tmp_path / f"story{number}", seed, 0, seconds):
        seconds, number = seconds / 2, number + 1
    finish(crashing, tmp_path / f"story{number}", chance)
