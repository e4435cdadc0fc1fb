"""Who carried a session last: what the newest start in its log says, and what an agent said since.

Reads the file's end first.
"""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

_PIECE = 1 << 18  # bytes that are looked at in one go
_LINE = 1 << 14  # no such line is longer: it names a folder and a model
_START = b'"data":{"type":"session_start",'  # inside a text its quotes would be escaped
_AGENT = b'"data":{"type":"agent'  # its conversation, or its account of a turn
_NAME = re.compile(_AGENT + rb'(?:_response)?","agent":("(?:[^"\\]|\\.)*")')
_DATA = b'"data":{'


class Carried(NamedTuple):
    """By whom, with what, where, and behind which face a session was carried last."""

    agent: str = ""
    model: str = ""
    workspace: str = ""
    face: str = ""
    effort: str = ""


def carriers(log: Path) -> tuple[str, str]:
    """The agent that spoke since the newest start, if one did; and what the start names."""
    return carried(log)[:2]


def carried(log: Path) -> Carried:
    """What the newest start says, and the agent that spoke since, if one did."""
    try:
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
    except OSError:
        return Carried()  # whoever takes the session up will say why
    try:
        size = os.fstat(handle).st_size
        at, start = newest(handle, size, _START)
        _, spoke = newest(handle, size, _AGENT, at)
        said = _data(start)
        return Carried(
            _spoken(spoke), *(_text(said, key) for key in ("model", "workspace", "mode", "effort"))
        )
    except OSError:
        return Carried()
    finally:
        os.close(handle)


def newest(handle: int, size: int, mark: bytes, since: int = 0) -> tuple[int, bytes]:
    """The newest line with that mark after the place `since`, and where it begins."""
    rest, end = b"", size
    while end > since:
        begin = max(since, end - _PIECE)
        piece = os.pread(handle, end - begin, begin) + rest
        at = piece.rfind(mark)
        while at >= 0:
            line = piece.rfind(b"\n", 0, at) + 1
            if (line or begin == since) and _DATA not in piece[line:at]:  # not an argument's
                return begin + line, piece[line:].partition(b"\n")[0]
            at = piece.rfind(mark, 0, at)
        rest, end = piece[:_LINE], begin  # a line may begin before the piece
    return since, b""


def _spoken(line: bytes) -> str:
    """The agent of a line of which only the beginning may be there."""
    import json

    found = _NAME.search(line)
    return str(json.loads(found[1])) if found else ""


def _data(line: bytes) -> dict[str, Any]:
    import json

    try:
        found = json.loads(line)["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(said: dict[str, Any], key: str) -> str:
    found = said.get(key)
    return found if isinstance(found, str) else ""
