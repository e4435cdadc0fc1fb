"""What turns changed in a workspace, in order: one line for each call, undo and redo.

An entry that undoes others makes them void; undone itself, it makes them count again. Beside the
journal lie the calls that are pending, each with what was there before it: if the process that runs
one dies, that is still there. Knows nothing of how files are scanned or restored.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct

from bridle.workspace.undo.storage import UndoFolder, try_lock
from bridle.workspace.undo.tree import ABSENT, State, Tree, decode, spell, unspell

_JOURNAL = "journal.jsonl"
_INDEX = "index"


class Change(Struct, frozen=True, gc=False, array_like=True):
    """A path, what was there, and what is there instead."""

    path: str
    before: State = ABSENT
    after: State = ABSENT

    @property
    def how(self) -> Literal["added", "changed", "deleted"]:
        if not self.before.mode:
            return "added"
        return "changed" if self.after.mode else "deleted"


class JournalEntry(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one call changed; or what an undo restored, and the entries that it `takes` back.

    `at` is the time in seconds. `cut` means that nobody saw the call's end, so that everything that
    changed until the next scan counts as its doing. `named` means that it said beforehand which
    paths it touches, so that it is certain who changed them.
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


class PendingEntry(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call, or an undo, that has begun and has not ended.

    `states` are what was at the paths that it touches; with `whole`, all of the workspace was
    scanned and the tree lies beside this file. `offset` is how long the journal was.
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


_decode_entry = msgspec.json.Decoder(JournalEntry).decode
_decode_pending = msgspec.json.Decoder(PendingEntry).decode


class Journal:
    """The journal of one folder. Hold the folder's lock for every call. Raises `OSError`."""

    def __init__(self, folder: UndoFolder) -> None:
        self._folder = folder

    @property
    def size(self) -> int:
        """How long it is, in bytes."""
        return self._folder.size(_JOURNAL)

    def add(self, entry: JournalEntry) -> None:
        """Append an entry."""
        self._folder.append(_JOURNAL, msgspec.json.encode(_respell(entry, spell)))

    def read(self, offset: int = 0) -> list[JournalEntry]:
        """Read the entries from an offset on. A line that was never finished is skipped."""
        data = self._folder.read(_JOURNAL, offset) or b""
        entries = []
        for line in data.split(b"\n"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, ValueError):
                entries.append(_respell(_decode_entry(line), unspell))
        return entries

    def rewrite(self, entries: Iterable[JournalEntry]) -> None:
        """Replace all entries."""
        lines = [msgspec.json.encode(_respell(entry, spell)) + b"\n" for entry in entries]
        self._folder.write(_JOURNAL, b"".join(lines))

    def open(self, pending: PendingEntry) -> int:
        """Record that a call begins. Return a handle to hold until it has ended."""
        if pending.whole:
            self._folder.link(_INDEX, f"open/{pending.token}.tree")
        states = tuple(
            (spell(path), _respell_state(state, spell)) for path, state in pending.states
        )
        data = msgspec.json.encode(msgspec.structs.replace(pending, states=states))
        return self._folder.write(f"open/{pending.token}.json", data, hold=True)

    def close(self, token: str) -> None:
        """Remove a pending entry: the call has ended, and what it changed is in the journal."""
        self._folder.remove(f"open/{token}.json")
        self._folder.remove(f"open/{token}.tree")

    def pending(self) -> tuple[list[PendingEntry], list[PendingEntry]]:
        """Return the pending entries of processes that live, and of processes that have died."""
        alive: list[PendingEntry] = []
        dead: list[PendingEntry] = []
        for name in self._folder.names("open"):
            if not name.endswith(".json"):
                continue
            try:
                handle = self._folder.open(f"open/{name}")
            except FileNotFoundError:
                continue
            try:
                entries = dead if try_lock(handle) else alive
                entry = _decode_pending(self._folder.read(f"open/{name}") or b"")
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.close(name.removesuffix(".json"))
                continue
            finally:
                os.close(handle)
            states = tuple(
                (unspell(path), _respell_state(state, unspell)) for path, state in entry.states
            )
            entries.append(msgspec.structs.replace(entry, states=states))
        return alive, dead

    def tree(self, token: str) -> Tree | None:
        """Return what was in the whole workspace before that call."""
        data = self._folder.read(f"open/{token}.tree")
        return decode(data) if data is not None else None


def effective_entries(entries: list[JournalEntry]) -> list[JournalEntry]:
    """Return the entries that count: those that no entry which counts takes back."""
    void: set[str] = set()
    effective: list[JournalEntry] = []
    for entry in reversed(entries):
        if entry.token not in void:
            void.update(entry.takes)
            effective.append(entry)
    return effective[::-1]


def _respell(entry: JournalEntry, change: Callable[[str], str]) -> JournalEntry:
    changes = tuple(
        Change(
            change(item.path),
            _respell_state(item.before, change),
            _respell_state(item.after, change),
        )
        for item in entry.changes
    )
    return msgspec.structs.replace(entry, changes=changes)


def _respell_state(state: State, change: Callable[[str], str]) -> State:
    if not state.is_link:  # only the target of a link may not be valid text
        return state
    return State(state.mode, change(state.object), state.why)
