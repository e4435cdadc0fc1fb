"""What the side panel shows: todos, what runs, changed files, context and cost. Pure."""

from msgspec import Struct

from bridle.presentation.amounts import cost_text, short_number, token_count
from bridle.presentation.fold import ConversationState
from bridle.tui.render.safe_text import clean_line
from bridle.workspace.text import quantity

_MARKS = {"pending": ("○", "dim"), "in_progress": ("◐", "accent"), "completed": ("✓", "good")}
_CALL_MARKS = {"asked": ("?", "warn"), "running": ("●", "accent")}
_HOW = {"added": ("+", "good"), "changed": ("±", "text"), "deleted": ("−", "bad")}
_FILES = 12
_TODOS = 14
_RUNNING = 6


class Row(Struct, frozen=True):
    """One line: a mark, words, and their tones."""

    text: str
    tone: str = "text"
    mark: str = ""
    mark_tone: str = "dim"


def rows(state: ConversationState, window: int, width: int) -> list[Row]:
    """The panel's lines. `window` is the model's context in tokens, 0 where it is not known."""
    parts = [_meters(state, window, width), _todos(state, width)]
    parts += [_running(state, width), _files(state, width)]
    found: list[Row] = []
    for part in parts:
        if part:
            found += [Row(""), *part] if found else part
    return found


def _meters(state: ConversationState, window: int, width: int) -> list[Row]:
    used = state.used.context_tokens
    said = [Row("context", "dim")]
    if window and used:
        share = min(1.0, used / window)
        tone = "bad" if share > 0.9 else "warn" if share > 0.7 else "accent"
        said.append(Row(meter(share, max(4, width)), tone))
        said.append(Row(f"{short_number(used)} of {token_count(window)}"))
    elif used:
        said.append(Row(token_count(used)))
    else:
        said.append(Row("not known" if state.used.invocations else "empty"))
    cost = cost_text(state.used).removeprefix("cost ") if state.used.invocations else "nothing yet"
    return [*said, Row(""), Row("cost", "dim"), Row(cost)]


def meter(share: float, width: int) -> str:
    """A bar of that share."""
    filled = round(share * width)
    if share > 0:
        filled = max(1, filled)
    return "━" * filled + "┄" * (width - filled)


def _todos(state: ConversationState, width: int) -> list[Row]:
    if not state.todos:
        return []
    done = sum(one.status == "completed" for one in state.todos)
    said = [Row(f"todo  {done} of {len(state.todos)}", "dim")]
    shown = _around(len(state.todos), _first_open(state), _TODOS)
    for one in state.todos[shown]:
        mark, tone = _MARKS.get(one.status, ("○", "dim"))
        words = "dim" if one.status == "completed" else "text"
        said.append(Row(clean_line(one.content, width - 2), words, mark, tone))
    if (left := len(state.todos) - (shown.stop - shown.start)) > 0:
        said.append(Row(f"and {left} more", "dim", " "))
    return said


def _first_open(state: ConversationState) -> int:
    pairs = enumerate(state.todos)
    return next((at for at, one in pairs if one.status != "completed"), 0)


def _around(count: int, at: int, most: int) -> slice:
    start = max(0, min(at - 3, count - most))
    return slice(start, min(count, start + most))


def _running(state: ConversationState, width: int) -> list[Row]:
    calls = [one for one in state.calls.values() if one.is_open]
    if not calls:
        if not state.activity:
            return []
        return [
            Row("running", "dim"),
            Row(clean_line(state.activity, width - 2), "text", "●", "accent"),
        ]
    said = [Row("running", "dim")]
    for call in calls[:_RUNNING]:
        mark, tone = _CALL_MARKS.get(call.state, ("·", "dim"))
        said.append(Row(clean_line(f"{call.name} {call.subject}", width - 2), "text", mark, tone))
    if len(calls) > _RUNNING:
        said.append(Row(f"and {len(calls) - _RUNNING} more", "dim", " "))
    return said


def _files(state: ConversationState, width: int) -> list[Row]:
    if not state.files:
        return []
    said = [Row(f"{quantity(len(state.files), 'file')} changed", "dim")]
    for path, how in list(state.files.items())[-_FILES:]:
        mark, tone = _HOW.get(how, ("±", "text"))
        said.append(Row(_tail(clean_line(path, 400), width - 2), "text", mark, tone))
    if len(state.files) > _FILES:
        said.append(Row(f"and {len(state.files) - _FILES} more", "dim", " "))
    return said


def _tail(path: str, room: int) -> str:
    return path if len(path) <= room else "…" + path[-(room - 1) :] if room > 1 else "…"
