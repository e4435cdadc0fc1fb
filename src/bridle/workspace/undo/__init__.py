"""Undo: what turns change in a workspace can be undone, and that can be redone.

`Undo` (undo.py) is what the engine and people use. Before and after each call the workspace is
scanned (snapshot.py) and compared (change_detector.py). Contents, scans and the journal of changes
are kept in `STATE/undo`, outside the workspace and outside of git (storage.py, tree.py,
journal.py). An undo is planned (plan.py), and done completely or not at all (restore.py).
"""
