"""An ACP agent that says too much: nobody waits for it, and the log stays small."""

import pytest
from acp import schema

from agents.acp_rig import ANSWER, HandMade, one_prompt, opened
from bridle.agents.acp.turn import size_of
from bridle.agents.acp.updates import MAX_ENTRIES, parse_update, to_events
from bridle.errors import AgentError
from bridle.events import Todo, TodosChanged, TraceEvent
from rig import run


def note(**update):
    return {"sessionId": "s", "update": update}


def a_plan(count, words="x"):
    entry = {"content": words, "priority": "low", "status": "pending"}
    return note(sessionUpdate="plan", entries=[entry] * count)


def test_a_plan_that_nobody_reads_is_noted_and_not_made_into_values(monkeypatch):
    made = parse_update(a_plan(MAX_ENTRIES))
    assert len(to_events(made.update)[0].todos) == MAX_ENTRIES
    monkeypatch.setattr(schema.SessionNotification, "model_validate", None)  # it is not called
    assert parse_update(a_plan(MAX_ENTRIES + 1)) == TraceEvent("acp", {"unread": "1001 entries"})


def test_the_words_of_a_plan_have_an_end():
    (event,) = to_events(parse_update(a_plan(1, "x" * 100_000)).update)
    assert isinstance(event, TodosChanged)
    (todo,) = event.todos
    assert isinstance(todo, Todo)
    assert len(todo.content) < 2500


def test_what_is_only_noted_is_cut():
    long = "x" * 1_000_000
    command = {"name": long, "description": ""}
    option = {"type": "boolean", "id": "i", "name": long, "currentValue": True}
    said = [
        note(sessionUpdate="session_info_update", title=long),
        note(sessionUpdate="current_mode_update", currentModeId=long),
        note(sessionUpdate="available_commands_update", availableCommands=[command]),
        note(sessionUpdate="config_option_update", configOptions=[option]),
        note(sessionUpdate=long),
    ]
    for one in said:
        found = parse_update(one)
        events = (found,) if isinstance(found, TraceEvent) else to_events(found.update)
        assert [len(str(event)) < 1000 for event in events] == [True]


def test_everything_that_is_said_counts_also_what_is_not_kept(tmp_path):
    assert size_of(note(title="x" * 1000)) > 1000
    lines = "big = 'x' * 4_000_000\nfor n in range(40):\n"
    lines += f"    update(sessionUpdate='session_info_update', title=big)\n{ANSWER}"
    session = HandMade(tmp_path)
    with pytest.raises(AgentError, match="said more than 67,108,864 characters in one turn"):
        run(one_prompt(opened(tmp_path, lines), session))
