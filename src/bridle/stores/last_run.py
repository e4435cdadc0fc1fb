"""Where a session last ran, with which model and agent: read from the end of its log."""

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bridle.stores.log_format import (
    record_types,
)
from bridle.stores.reader import FoundLine, iter_lines_backward

if TYPE_CHECKING:
    from pathlib import Path  # loading it takes as long as a list


_TYPES = record_types("session_start", "agent", "agent_response")
_AGENT = re.compile(rb'"type":"agent(?:_response)?","agent":("(?:[^"\\]|\\.)*")')


class LastRun(NamedTuple):
    """The agent, model, workspace, interface and effort that a session last ran with."""

    agent: str = ""
    model: str = ""
    workspace: str = ""
    face: str = ""
    effort: str = ""


def last_run(log: Path) -> LastRun:
    """What the newest start in a log says, and which agent has answered since, if one has.

    A log that cannot be read gives empty values: whoever resumes the session reports why.
    """
    try:
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may be a pipe
    except OSError:
        return LastRun()
    try:
        return _last_run(handle)
    except OSError:
        return LastRun()
    finally:
        os.close(handle)


def _last_run(handle: int) -> LastRun:
    agent = ""
    size = os.fstat(handle).st_size
    for found in iter_lines_backward(partial(os.pread, handle), size, _TYPES):
        if found.type != b"session_start":
            agent = agent or _agent(found)
            continue
        start = _data(found.line)
        return LastRun(
            agent=agent,
            model=_string(start, "model"),
            workspace=_string(start, "workspace"),
            face=_string(start, "mode"),
            effort=_string(start, "effort"),
        )
    return LastRun(agent=agent)


def _agent(found: FoundLine) -> str:
    name = _AGENT.search(found.line)
    return str(json.loads(name[1])) if name else ""


def _data(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return data if isinstance(data, dict) else {}


def _string(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
