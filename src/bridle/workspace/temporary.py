"""A folder for temporary files, private to the user, that goes when its owner goes."""

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path


def private_folder(owner: object) -> str:
    """Make one under a name that cannot be guessed: its real path."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="bridle-"))
    weakref.finalize(owner, _remove, path, os.getpid())
    return path


def _remove(path: str, maker: int) -> None:
    """Remove it with everything in it, also what a command has locked. A fork owns nothing."""
    if os.getpid() != maker:
        return
    for folder, _, _ in os.walk(path):
        with suppress(OSError):
            Path(folder).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
