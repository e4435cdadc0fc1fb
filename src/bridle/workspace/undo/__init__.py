"""Undo: what turns change in a workspace can be taken back, and that can be taken back as well.

`Undo` (undo.py) is what the engine and people use. Before and after each call the workspace is
scanned (snapshot.py) and compared (change_detector.py, recorder.py). Contents, scans and the
journal of changes are kept in `STATE/undo`, outside the workspace and outside of git (storage.py,
tree.py, journal.py). Taking back is planned (plan.py), and done completely or not at all
(restore.py).
"""

from bridle.workspace.undo.plan import Conflict, Outcome, Restored
from bridle.workspace.undo.snapshot import Limits
from bridle.workspace.undo.undo import Pruned, Turn, Undo, prune

__all__ = ["Conflict", "Limits", "Outcome", "Pruned", "Restored", "Turn", "Undo", "prune"]
