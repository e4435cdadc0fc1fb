"""What a rule would have covered: the newest calls of a workspace, from its logs. Runs nothing."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from bridle.cli.render import counted, subject_of
from bridle.cli.style import cut
from bridle.engine.proposal import preview
from bridle.errors import AgentError
from bridle.events import ResponseCompleted, ToolResultEvent
from bridle.messages import ToolCall
from bridle.policy import Facts, read_rule
from bridle.promises.store import Record, SessionSummary
from bridle.runtime.foresight import Foresight
from bridle.stores.reading import SessionFolder

_MOST = 200  # calls that are looked at
_LARGEST = 32 << 20  # bytes of a log that is read for them
_NAMED = 3  # that are told by name

Past = list[tuple[ToolCall, Facts]]


def covered_line(rule: str, session_id: str, folder: SessionFolder) -> str:
    """How many of the newest calls in that session's workspace the rule would have covered."""
    past = past_calls(session_id, folder)
    if not past:
        return "there are no earlier calls in this folder to hold it against"
    here = replace(read_rule(rule), where=root_of(session_id, folder))
    found = [_name(call) for call in preview(here, past)]
    of = f"of the last {counted(len(past), 'call')} in this folder"
    if not found:
        return f"it would have covered none {of}"
    several = {name: found.count(name) for name in found}
    named = [f"{name} ×{count}" if count > 1 else name for name, count in several.items()]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"it would have covered {len(found)} {of}: {', '.join(named[:_NAMED])}{more}"


def past_calls(session_id: str, folder: SessionFolder) -> Past:
    """The newest finished calls in that session's workspace, as they would be judged today."""
    root = root_of(session_id, folder)
    if not root:
        return []
    sessions = folder.sessions()
    mine = [one for one in sessions if one.workspace == root and one.size <= _LARGEST]
    calls = _newest(mine, folder)
    try:
        foresight = Foresight(root)
        return [(call, foresight.decide(call, cwd=cwd).facts) for call, cwd in calls]
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


def _name(call: ToolCall) -> str:
    return cut(f"{call.name} {subject_of(call)}".strip(), 60)
