"""The time, as records carry it: UTC, milliseconds, always the same shape."""

import time

_newest = (-1, "")  # one value, so that a thread never sees half of it


def stamp(when: float | None = None) -> str:
    """Now, or `when`, as `2026-01-31T10:30:00.123Z`. The date is formatted once a second."""
    global _newest
    now = time.time() if when is None else when
    second = int(now)
    known, prefix = _newest
    if second != known:
        prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _newest = (second, prefix)
    return f"{prefix}.{int((now - second) * 1000):03d}Z"
