"""What turns changed in a workspace, in order: one line for each call, undo and redo.

A line that takes others back makes them void; taken back itself, it makes them count again. Beside
the journal lie the calls that are under way, each with what stood there before it: when the one
who made it dies, that is still there. Knows nothing of how files are looked at or put back.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct

from bridle.workspace.undo.storage import UndoFolder, free
from bridle.workspace.undo.tree import ABSENT, State, Tree, decode, spell, unspell

_JOURNAL = "journal.jsonl"
_INDEX = "index"


class Change(Struct, frozen=True, gc=False, array_like=True):
    """A path, what stood there, and what stands there instead."""

    path: str
    before: State = ABSENT
    after: State = ABSENT

    @property
    def how(self) -> Literal["added", "changed", "deleted"]:
        if not self.before.mode:
            return "added"
        return "changed" if self.after.mode else "deleted"


class Kept(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one call changed; or what an undo put back, and the lines that it takes back.

    `at` is when, in seconds; `cut`: nobody saw the call's end, so that everything which changed
    until somebody looked is counted as its doing; `named`: it said beforehand which paths it
    touches, so that it is certain who changed them.
    """

    token: str
    at: float
    session: str
    turn: int
    kind: Literal["call", "undo", "redo"] = "call"
    call: str = ""
    changes: tuple[Change, ...] = ()
    uncovered: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    cut: bool = False
    named: bool = False


class Opened(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call, or an undo, that is under way.

    `states` are what stood at the paths that it touches; with `whole`, all of the workspace was
    looked at and the tree lies beside this. `offset` is how long the journal was.
    """

    token: str
    at: float
    session: str
    turn: int
    kind: Literal["call", "undo", "redo"] = "call"
    call: str = ""
    whole: bool = False
    states: tuple[tuple[str, State], ...] = ()
    offset: int = 0


_kept = msgspec.json.Decoder(Kept).decode
_opened = msgspec.json.Decoder(Opened).decode


class Journal:
    """The journal of one folder. Everything is done under the folder's lock; raises `OSError`."""

    def __init__(self, folder: UndoFolder) -> None:
        self._folder = folder

    @property
    def size(self) -> int:
        """How long it is, in bytes."""
        return self._folder.size(_JOURNAL)

    def add(self, kept: Kept) -> None:
        """Add a line."""
        self._folder.add(_JOURNAL, msgspec.json.encode(_respelled(kept, spell)))

    def read(self, offset: int = 0) -> list[Kept]:
        """The lines from there on. One that was never finished is passed over."""
        data = self._folder.found(_JOURNAL, offset) or b""
        found = []
        for line in data.split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, ValueError):
                found.append(_respelled(_kept(line), unspell))
        return found

    def rewrite(self, lines: Iterable[Kept]) -> None:
        """Have these lines and no others."""
        data = [msgspec.json.encode(_respelled(one, spell)) + b"\n" for one in lines]
        self._folder.place(_JOURNAL, b"".join(data))

    def open(self, opened: Opened) -> int:
        """Note that something begins: a handle that is held until it has ended."""
        if opened.whole:
            self._folder.link(_INDEX, f"open/{opened.token}.tree")
        states = tuple((spell(path), _state(one, spell)) for path, one in opened.states)
        data = msgspec.json.encode(msgspec.structs.replace(opened, states=states))
        return self._folder.place(f"open/{opened.token}.json", data, hold=True)

    def close(self, token: str) -> None:
        """It has ended, and what it changed is in the journal."""
        self._folder.remove(f"open/{token}.json")
        self._folder.remove(f"open/{token}.tree")

    def under_way(self) -> tuple[list[Opened], list[Opened]]:
        """What is under way: by those who live, and by those who have died meanwhile."""
        alive: list[Opened] = []
        dead: list[Opened] = []
        for name in self._folder.names("open"):
            if name.endswith(".json"):
                self._sort(name, alive, dead)
        return alive, dead

    def tree(self, token: str) -> Tree | None:
        """What stood in the whole workspace before that began."""
        data = self._folder.found(f"open/{token}.tree")
        return decode(data) if data is not None else None

    def _sort(self, name: str, alive: list[Opened], dead: list[Opened]) -> None:
        try:
            handle = self._folder.open(f"open/{name}")
        except FileNotFoundError:
            return
        try:
            owner = dead if free(handle) else alive
            opened = _opened(self._folder.found(f"open/{name}") or b"")
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.close(name.removesuffix(".json"))
            return
        finally:
            os.close(handle)
        states = tuple((unspell(path), _state(one, unspell)) for path, one in opened.states)
        owner.append(msgspec.structs.replace(opened, states=states))


def counting(lines: list[Kept]) -> list[Kept]:
    """The lines that count: those that no line which counts takes back."""
    taken: set[str] = set()
    found: list[Kept] = []
    for one in reversed(lines):
        if one.token not in taken:
            taken.update(one.takes)
            found.append(one)
    return found[::-1]


def _respelled(kept: Kept, change: Callable[[str], str]) -> Kept:
    changes = tuple(
        Change(change(one.path), _state(one.before, change), _state(one.after, change))
        for one in kept.changes
    )
    return msgspec.structs.replace(kept, changes=changes)


def _state(state: State, change: Callable[[str], str]) -> State:
    if not state.is_link:  # only where a link leads can be no text
        return state
    return State(state.mode, change(state.object), state.why)
