"""Throws away what undo kept long ago, in all workspaces; only when a person says so."""

import stat
from pathlib import Path

from msgspec import Struct

from bridle.workspace.undo.index import State, decode
from bridle.workspace.undo.journal import Journal, Kept
from bridle.workspace.undo.objects import Objects
from bridle.workspace.undo.shelf import Shelf


class Pruned(Struct, frozen=True):
    """`calls` can be undone no more, `freed` bytes are free; `busy` workspaces were left alone."""

    calls: int = 0
    freed: int = 0
    busy: tuple[str, ...] = ()


def prune(state: str | Path, before: float, *, preview: bool = False) -> Pruned:
    """Forget what was kept before that time, in seconds. Raise `OSError`."""
    calls = freed = 0
    busy: list[str] = []
    for shelf in Shelf.all(state):
        with shelf.locked():
            journal = Journal(shelf)
            lines = journal.read()
            alive, _ = journal.under_way()
            if alive or shelf.is_used():
                busy.append(shelf.root)
                continue
            kept = [one for one in lines if one.at >= before]
            calls += len(lines) - len(kept)
            if not preview:
                freed += _forget(shelf, journal, kept, before)
    return Pruned(calls, freed, tuple(busy))


def _forget(shelf: Shelf, journal: Journal, kept: list[Kept], before: float) -> int:
    _, dead = journal.under_way()
    for one in dead:
        if one.at < before:
            journal.close(one.token)
    if shelf.stamp("index")[1] < before * 1e9:
        shelf.remove("index")
    journal.rewrite(kept)
    wanted = {name for one in kept for item in one.changes for name in _names(item.before)}
    wanted |= {name for one in kept for item in one.changes for name in _names(item.after)}
    wanted |= {name for one in dead for _, state in one.states for name in _names(state)}
    for file in ("index", *(f"open/{one.token}.tree" for one in dead)):
        tree = decode(shelf.found(file) or b"")
        for folder in tree.folders.values() if tree is not None else ():
            wanted.update(name for one in folder.entries.values() for name in _names(one.state))
    return Objects(shelf).sweep(wanted)


def _names(state: State) -> tuple[str, ...]:
    return (state.object,) if stat.S_ISREG(state.mode) and not state.why else ()
