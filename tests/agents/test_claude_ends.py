"""Claude Code's turns that end early or oddly: what they used, and what the log says of calls."""

import asyncio
from types import SimpleNamespace

import pytest
from claude_rig import USED, Gate, Whole, claude, runs, says, until, uses, workspace
from test_claude_engine import Person, engine_with, told

from bridle.agents.claude_code import ClaudeCodeAgent
from bridle.agents.claude_code.messages import MessageReader, outcome_of
from bridle.errors import BudgetReached
from bridle.events import TextDelta, UsageReported
from bridle.protocols.agent import RemainingBudget
from bridle.usage import Usage
from rig import a_mark, conversation, marked, results, run


def test_every_reply_counts_where_a_limit_ends_the_turn(tmp_path):
    async def work():
        session = Whole(workspace(tmp_path))
        session.remaining = RemainingBudget(steps=2)
        async with claude(lambda body: runs("true"), tmp_path) as (agent, server):
            with pytest.raises(BudgetReached):
                await agent.execute("go", session, can_use_tool=Gate())
            count = len(server.requests)
        used = sum(one.usage.total_tokens for one in session.of(UsageReported))
        assert (count, used) == (2, 2 * USED.total_tokens)

    run(work())


@pytest.mark.parametrize(
    "remaining", [RemainingBudget(money=0.0), RemainingBudget(tokens=0), RemainingBudget(steps=0)]
)
def test_nothing_is_started_where_nothing_is_left(tmp_path, remaining):
    async def work():
        session = Whole(workspace(tmp_path))
        session.remaining = remaining
        with pytest.raises(BudgetReached, match="was not started"):
            await ClaudeCodeAgent().execute("go", session)

    run(work())


def test_a_call_that_the_program_refuses_itself_is_in_the_log_as_that(tmp_path):
    async def work():
        script = [uses("Read", {"nonsense": 1}, text="First."), says("Second.")]
        async with engine_with(script, tmp_path, approver=Person()) as (engine, _):
            session, result = await told(engine, "go")
            return engine, session.id, result

    engine, session_id, result = run(work())
    assert (result.reason, result.text) == ("done", "Second.")
    ((_, text, failed),) = results(engine, session_id)
    assert failed and "InputValidationError" in text
    said = [text for who, text in conversation(engine, session_id) if who == "assistant"]
    assert said == ["First.", "Second."]


def test_a_command_that_was_stopped_is_not_said_to_be_refused(tmp_path):
    async def work():
        mark, session = a_mark(), Whole(workspace(tmp_path))
        async with claude([runs(f"sleep {mark}")], tmp_path) as (agent, _):
            turn = asyncio.create_task(agent.execute("go", session, can_use_tool=Gate()))
            await until(lambda: marked(f"sleep\0{mark}"))
            await agent.cancel(session.id)
            await turn
        ((_, text, ok, _),) = session.finished
        assert (text, ok) == ("It was stopped while it ran: it may have run in part.", False)

    run(work())


def test_replies_are_counted_and_kept_apart_as_they_stream():
    def event(**fields):
        kind = type("StreamEvent", (SimpleNamespace,), {})
        return kind(parent_tool_use_id=None, event=fields)

    def start(name):
        used = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}
        return event(type="message_start", message={"id": name, "usage": used})

    def text(words):
        return event(type="content_block_delta", index=0, delta={"text": words})

    end = event(type="message_delta", usage={"output_tokens": 7, "input_tokens": None})
    talk = MessageReader(("/w",))
    came = [talk.read(one) for one in (start("a"), text("x"), end, start("b"), text("y"))]
    assert [one for each in came for one in each] == [
        *(TextDelta("x"), TextDelta("\n\n"), TextDelta("y"))
    ]
    assert talk.usage == Usage(20, 8, 10)


def test_what_the_service_refuses_is_said_in_whole_sentences():
    def said(status):
        fields = {"result": "no such key", "is_error": True, "api_error_status": status}
        rest = dict.fromkeys(
            ("errors", "num_turns", "terminal_reason", "subtype", "session_id", "total_cost_usd")
        )
        result = SimpleNamespace(**rest, **fields, usage=None, duration_ms=1)
        return outcome_of(result, "", resumed=False).content

    assert "no such key. Set ANTHROPIC_API_KEY" in said(401)
    assert "no such key. The same would be refused again: try another model" in said(400)
