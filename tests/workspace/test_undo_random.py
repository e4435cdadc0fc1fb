"""Whatever a turn does to files, undo gives back what stood there, and redo what came of it."""

import os
import shutil
import tempfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from undo_rig import Place

from bridle.errors import SessionError, ToolError
from rig import SOAK

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b", "c", "d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
DATA = st.sampled_from([b"", b"1", b"2", b"1\n2\n", b"\0\xff"])
MODES = st.sampled_from([0o600, 0o644, 0o755])


def _clear(path):
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def write(root, path, other, data, mode):
    _clear(root / path)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    (root / path).chmod(mode)


def remove(root, path, other, data, mode):
    _clear(root / path)


def rename(root, path, other, data, mode):
    (root / path).rename(root / other)


def link(root, path, other, data, mode):
    _clear(root / path)
    (root / path).symlink_to(other)


def folder(root, path, other, data, mode):
    (root / path).mkdir(parents=True)
    (root / path).chmod(mode | 0o700)


def hard_link(root, path, other, data, mode):
    os.link(root / path, root / other, follow_symlinks=False)


def change_mode(root, path, other, data, mode):
    if not (root / path).is_symlink():
        (root / path).chmod(mode | (0o700 if (root / path).is_dir() else 0))


def add_to(root, path, other, data, mode):
    if not (root / path).is_symlink():
        with (root / path).open("ab") as file:
            file.write(data)


OPERATIONS = st.tuples(
    st.sampled_from([write, write, remove, rename, link, folder, hard_link, change_mode, add_to]),
    PATHS,
    PATHS,
    DATA,
    MODES,
)


def perform(root, operations):
    for operation, *arguments in operations:
        with suppress(OSError, shutil.Error):
            operation(root, *arguments)


SOME = st.lists(OPERATIONS, min_size=1, max_size=5)


@settings(max_examples=1500 if SOAK else 40, deadline=None)
@given(SOME, SOME, SOME, st.sampled_from([{}, {"keep_going": True}]))
def test_what_a_person_changed_since_is_never_lost(first, turn, person, way):
    """Undo does it all, or around that, or nothing; each path is the turn's or the person's."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        perform(place.root, first)
        before = place.picture()
        place.effects(lambda: perform(place.root, turn))
        left = place.picture()
        perform(place.root, person)
        now = place.picture()
        try:
            outcome = place.undo.undo("s", **way)
        except SessionError:
            assert left == before
            return
        except ToolError:
            assert place.picture() == now
            return
        found = place.picture()
        if not outcome.done:
            assert (found, outcome.conflicts != ()) == (now, True)
            return
        for path in {*before, *left, *now, *found}:
            touched = before.get(path) != left.get(path)
            theirs = now.get(path) != left.get(path)
            wanted = before if touched and not theirs else now
            stays = path in outcome.left or path in {one.path for one in outcome.conflicts}
            assert found.get(path) == (now if stays else wanted).get(path), path


class Turns(RuleBasedStateMachine):
    """Turns, undos and redos; the pictures after each are what has to come back."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.place = Place(self.folder)
        self.pictures = [self.place.picture()]
        self.undone = []

    def teardown(self):
        shutil.rmtree(self.folder)

    @rule(calls=st.lists(st.lists(OPERATIONS, max_size=4), min_size=1, max_size=3))
    def turn(self, calls):
        before = self.place.picture()
        self.place.effects(*[lambda call=call: perform(self.place.root, call) for call in calls])
        if self.place.picture() != before:
            self.pictures.append(self.place.picture())
            self.undone = []
        elif self.place.undo.turns("s") and self.place.undo.turns("s")[-1].turn == self.place.turn:
            self.pictures.append(before)  # there and back again within the turn
            self.undone = []

    @precondition(lambda self: len(self.pictures) > 1)
    @rule(elsewhere=st.booleans())
    def undo(self, elsewhere):
        undo = self.place.another() if elsewhere else self.place.undo
        assert undo.undo("s").done
        self.undone.append(self.pictures.pop())

    @precondition(lambda self: self.undone)
    @rule()
    def redo(self):
        assert self.place.undo.redo("s").done
        self.pictures.append(self.undone.pop())

    @invariant()
    def everything_stands_as_it_should(self):
        assert self.place.picture() == self.pictures[-1]


Turns.TestCase.settings = settings(
    max_examples=300 if SOAK else 15,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestTurns = Turns.TestCase
