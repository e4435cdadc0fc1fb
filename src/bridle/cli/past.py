"""What a rule would have covered, in a line: the newest calls of a workspace. Runs nothing."""

from msgspec.structs import replace

from bridle.cli.event_lines import subject_of
from bridle.cli.style import cut
from bridle.engine.grants import covered_calls
from bridle.messages import ToolCall
from bridle.policy import parse_rule
from bridle.runtime.dry_run import past_calls, root_of
from bridle.stores.reader import SessionFolder
from bridle.workspace.text import quantity

_NAMED = 3  # that are told by name


def covered_line(rule: str, session_id: str, folder: SessionFolder) -> str:
    """How many of the newest calls in that session's workspace the rule would have covered."""
    past = past_calls(session_id, folder)
    if not past:
        return "there are no earlier calls in this folder to hold it against"
    here = replace(parse_rule(rule), where=root_of(session_id, folder))
    found = [_name(call) for call in covered_calls(here, past)]
    of = f"of the last {quantity(len(past), 'call')} in this folder"
    if not found:
        return f"it would have covered none {of}"
    several = {name: found.count(name) for name in found}
    named = [f"{name} ×{count}" if count > 1 else name for name, count in several.items()]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"it would have covered {len(found)} {of}: {', '.join(named[:_NAMED])}{more}"


def _name(call: ToolCall) -> str:
    return cut(f"{call.name} {subject_of(call)}".strip(), 60)
