"""A small private file, put in the place of an older one in one step. Knows no format."""

import os
from pathlib import Path


def replace_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write it whole or not at all, for nobody else to read; durable, and a link stays a link.

    The folder is made where it is missing. Where it fails nothing is left. Raise `OSError`.
    """
    import tempfile  # it loads much, and most runs write no such file

    real = Path(os.path.realpath(path))
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{real.name}-", dir=real.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(real)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
