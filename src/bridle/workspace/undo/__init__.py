"""Undo: what turns change in a workspace can be taken back, and that can be taken back as well.

`Undo` keeps the promise `Keeper` (keeper.py). Before and after each call the workspace is looked at
(observer.py, snapshots.py, reader.py); what stood there lies in `STATE/undo`, outside the workspace
and outside of git (shelf.py, objects.py, index.py, journal.py). Taking back is planned (undoing.py)
and then done (restoring.py). Nothing is thrown away but by command (pruning.py).
"""

from bridle.workspace.undo.keeper import Turn, Undo
from bridle.workspace.undo.pruning import Pruned, prune
from bridle.workspace.undo.reader import Limits
from bridle.workspace.undo.undoing import Conflict, Outcome, Restored

__all__ = ["Conflict", "Limits", "Outcome", "Pruned", "Restored", "Turn", "Undo", "prune"]
