"""The time, as records carry it: UTC, milliseconds, always the same shape."""

import time

_newest = (-1, "")  # a millisecond and its spelling; one value, so no thread sees half of it


def stamp(when: float | None = None) -> str:
    """Now, or `when`, as `2026-01-31T10:30:00.123Z`. Spelled once a millisecond."""
    global _newest
    tick = int((time.time() if when is None else when) * 1000)
    known, spelled = _newest
    if tick != known:
        second, rest = divmod(tick, 1000)
        if second == known // 1000:
            date = spelled[:19]
        else:
            date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        spelled = f"{date}.{rest:03d}Z"
        _newest = (tick, spelled)
    return spelled
