"""The newest calls of a workspace, from its logs, as they would be judged today. Runs nothing."""

from collections.abc import Iterable, Iterator, Sequence

from bridle.errors import AgentError
from bridle.events import ResponseCompleted, ToolResultEvent
from bridle.messages import ToolCall
from bridle.policy import Facts
from bridle.promises.store import Record, SessionSummary
from bridle.runtime.dry_run import DryRun
from bridle.stores.reader import SessionFolder

_MOST = 200  # calls that are looked at
_LARGEST = 32 << 20  # bytes of a log that is read for them

Past = list[tuple[ToolCall, Facts]]


def past_calls(session_id: str, folder: SessionFolder) -> Past:
    """The newest finished calls in that session's workspace, as they would be judged today."""
    root = root_of(session_id, folder)
    if not root:
        return []
    sessions = folder.sessions()
    mine = [one for one in sessions if one.workspace == root and one.size <= _LARGEST]
    calls = _newest(mine, folder)
    try:
        dry_run = DryRun(root)
        return [(call, dry_run.judge(call, cwd=cwd).facts) for call, cwd in calls]
    except AgentError:  # the folder is gone
        return []


def root_of(session_id: str, folder: SessionFolder) -> str:
    """The workspace of that session; empty where it is not known."""
    return next((one.workspace for one in folder.sessions() if one.id == session_id), "")


def _newest(
    sessions: Sequence[SessionSummary], folder: SessionFolder
) -> list[tuple[ToolCall, str]]:
    found: list[tuple[ToolCall, str]] = []
    for one in sessions:
        try:
            found += reversed(list(_finished(folder.read(one.id))))
        except AgentError:  # a log that cannot be read says nothing
            continue
        if len(found) >= _MOST:
            break
    return found[:_MOST]


def _finished(records: Iterable[Record]) -> Iterator[tuple[ToolCall, str]]:
    """Calls that have a result, each with the folder that its words were read in."""
    calls: dict[str, ToolCall] = {}
    cwd = ""
    for record in records:
        match record.event:
            case ResponseCompleted(message=message) if message is not None:
                calls = {call.id: call for call in message.tool_calls if not call.broken}
            case ToolResultEvent(output=output):
                if (call := calls.pop(output.call_id, None)) is not None:
                    yield call, cwd
                if isinstance(output.data, dict) and isinstance(output.data.get("cwd"), str):
                    cwd = output.data["cwd"]
