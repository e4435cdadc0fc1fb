"""The time, as records carry it: UTC, milliseconds, always the same shape."""

import time

_second = -1
_prefix = ""


def stamp(when: float | None = None) -> str:
    """Now, or `when`, as `2026-01-31T10:30:00.123Z`. The date is formatted once a second."""
    global _second, _prefix
    now = time.time() if when is None else when
    second = int(now)
    if second != _second:
        _prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _second = second
    return f"{_prefix}.{int((now - second) * 1000):03d}Z"
