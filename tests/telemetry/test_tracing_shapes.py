"""What the fold makes of sessions that were killed, damaged, old, or carried by others."""

import asyncio

from rig_spans import LOOKS, TOOLS, Collected, shape, traced_engine

from bridle.agents.base import AgentResponse
from bridle.engine.engine import Engine
from bridle.engine.engine_config import EngineConfig
from bridle.engine.foreign.agent import NoModel
from bridle.engine.trace import SpanBuilder, SpanTree, trace
from bridle.events import (
    CallIntended,
    ChildEnded,
    ChildStarted,
    InterruptRequested,
    MessageAdded,
    PromptReceived,
    Repaired,
    ResponseCompleted,
    SessionStarted,
    TextDelta,
    ToolOutputDelta,
    ToolResultEvent,
    TurnEnded,
    UnknownCallReported,
    UsageReported,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.store import Record
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from bridle.usage import ExecutionMetrics, Usage
from bridle.workspace.workspace import Workspace
from rig import Thing, call, run, until


def log_of(*events, step=1.0):
    """Records of these events, a second apart; a number among them is a pause in seconds."""
    records, now = [], 0.0
    for event in events:
        if isinstance(event, int):
            now += event
            continue
        stamp = f"2026-03-01T{int(now) // 3600:02}:{int(now) // 60 % 60:02}:{now % 60:06.3f}Z"
        records.append(Record(len(records) + 1, stamp, event))
        now += step
    return records


def begun(turn=1):
    yield SessionStarted("s", model="v/m")
    yield from prompt(turn, 2)


def prompt(turn, seq):
    yield PromptReceived("go", turn)
    yield MessageAdded(Message("user", (Text("go"),)), seq, turn)


def reply(*names, stop=""):
    calls = tuple(ToolCall(f"c{number}", name) for number, name in enumerate(names, 1))
    return ResponseCompleted(
        stop or ("tool_use" if calls else "complete"), Message("assistant", calls)
    )


def spans(root, kind):
    return [node.span for node in root.walk() if node.span.kind == kind]


def times(span):
    zero = trace(log_of(SessionStarted("s"))).span.start
    return (span.start - zero) / 1000, (span.end - zero) / 1000


def test_a_model_call_begins_at_the_prompt_or_after_the_last_result():
    result = ToolResultEvent(ToolOutput("c1", "fine"))
    log = log_of(
        *begun(), TextDelta("a"), reply("look"), CallIntended("c1", "look"), result, reply()
    )
    models = spans(trace(log), "model")
    assert [times(one) for one in models] == [(2.0, 4.0), (6.0, 7.0)]
    assert [one.first - one.start for one in models] == [1000, 1000]
    assert [times(one) for one in spans(trace(log), "tool")] == [(5.0, 6.0)]
    assert [times(one) for one in spans(trace(log), "step")] == [(2.0, 6.0), (6.0, 7.0)]


def test_an_interrupt_before_the_first_word_leaves_the_request_that_it_cut_off():
    stopped = InterruptRequested.of("me")
    log = log_of(*begun(), 40, stopped, TurnEnded(1, "interrupted"))
    (model,) = spans(trace(log), "model")
    assert (times(model), model.status, model.first) == ((2.0, 44.0), "interrupted", 0)


def test_what_is_still_going_on_is_measured_up_to_the_moment_in_which_one_looks():
    tree = SpanTree()
    tracing = SpanBuilder(tree.add)
    for record in log_of(*begun(), reply("look"), CallIntended("c1", "look")):
        tracing.apply(record)
    tracing.close(trace(log_of(SessionStarted("s"))).span.start + 60_000)
    (tool,) = spans(tree.root, "tool")
    assert (times(tool), tool.status) == ((4.0, 60.0), "open")


def test_what_a_killed_process_left_open_ends_with_its_last_record_and_not_with_the_next_start():
    lost = ToolResultEvent(
        ToolOutput("c1", "no result was recorded: it is not known whether this call ran", True)
    )
    log = log_of(
        *begun(), reply("look"), CallIntended("c1", "look"), TextDelta("…"), 3600,
        Repaired(torn=3), SessionStarted("s", resumed=True, model="v/m"),
        UnknownCallReported.of(ToolCall("c1", "x"), ""), lost, TurnEnded(1, "interrupted"),
        *prompt(2, 11), reply(), TurnEnded(2, "done"),
    )  # fmt: skip
    root = trace(log)
    first, second = spans(root, "turn")
    assert (times(first), first.status) == ((2.0, 5.0), "interrupted")
    (tool,) = spans(root, "tool")
    assert (times(tool), tool.status) == ((4.0, 5.0), "unknown")
    assert times(second)[0] > 3600


def test_a_task_holds_what_it_used_and_the_turn_counts_it_once():
    used = ExecutionMetrics(10, 5, 1, cost=0.5, tokens=15)
    log = log_of(
        *begun(), reply("task"), CallIntended("c1", "task"), ChildStarted("c1", "kid", "loop"),
        UsageReported(Usage(10, 5), cost=0.5, purpose="task"),
        ChildEnded("c1", "kid", "done", used), ToolResultEvent(ToolOutput("c1", "fine")),
        UsageReported(Usage(1, 1), cost=0.25), reply(), TurnEnded(1, "done"),
    )  # fmt: skip
    root = trace(log)
    found = {
        one.kind: (one.used.tokens, one.used.cost) for node in root.walk() if (one := node.span)
    }
    assert found["task"] == found["tool"] == (15, 0.5)
    assert found["turn"] == found["session"] == (17, 0.75)
    assert [one.used.tokens for one in spans(root, "step")] == [15, 2]
    assert [one.child for one in spans(root, "task")] == ["kid"]


def test_use_that_is_reported_after_its_reply_is_not_that_of_the_next():
    spent = Usage(7, 3)
    late = [ResponseCompleted("complete", Message("assistant", (Text("a"),)), spent)]
    log = log_of(*begun(), *late, UsageReported(spent, cost=1.0), reply(), TurnEnded(1, "done"))
    models = spans(trace(log), "model")
    assert [one.used.tokens for one in models] == [10, 0]
    assert [one.used.cost for one in spans(trace(log), "turn")] == [1.0]


def test_a_title_and_a_summary_are_model_calls_beside_the_steps():
    log = log_of(
        *begun(), TextDelta("a"), UsageReported(Usage(1, 1), "small", purpose="title"),
        reply(), UsageReported(Usage(9, 9), "m", purpose="summary"), TurnEnded(1, "done"),
    )  # fmt: skip
    asides = [one for one in spans(trace(log), "model") if one.detail]
    found = [(one.name, one.model, one.parent.kind, times(one)) for one in asides]
    assert found == [("title", "small", "turn", (2.0, 4.0)), ("summary", "m", "turn", (5.0, 6.0))]


def test_a_turn_whose_end_is_lost_ends_where_the_next_begins():
    log = log_of(*begun(), reply("look"), CallIntended("c1", "look"), *prompt(2, 6), reply())
    turns = [(one.name, one.status) for one in spans(trace(log), "turn")]
    assert turns == [("turn 1", "unknown"), ("turn 2", "open")]
    assert [one.status for one in spans(trace(log), "tool")] == ["unknown"]


def test_a_log_of_another_program_has_turns_and_replies_too_a7():
    answer = Message("assistant", (Text("hello"),))
    asks = Message("assistant", (ToolCall("x", "read"),))
    log = log_of(
        SessionStarted("s"), PromptReceived("hi"), MessageAdded(Message("user", (Text("hi"),))),
        MessageAdded(asks), ToolResultEvent(ToolOutput("x", "text", name="read")),
        MessageAdded(answer), PromptReceived("more"),
    )  # fmt: skip
    assert shape(trace(log)) == [
        "session open",
        "  turn turn 1 ok",
        "    step step 1 ok",
        "      model ok",
        "      tool read ok",
        "    step step 2 ok",
        "      model ok",
        "  turn turn 2 open",
    ]


def test_a_turn_that_another_agent_carries_says_so_and_has_its_calls():
    class Agent:
        name = "acting"

        async def execute(
            self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None
        ):
            await on_text_chunk("looking ")
            await can_use_tool("look", {})
            return AgentResponse("looked", "conv", 0.25)

        async def cancel(self, session_id):
            pass

        async def shutdown(self):
            pass

    async def story():
        agent, tools = Agent(), {"look": LOOKS}
        parts = EngineConfig(NoModel(agent), tools, MemoryStore(), Workspace("/"), agent=agent)
        async with Engine(parts) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
        return list(engine.store.read(session.id))

    root = trace(run(story()))
    (turn,) = spans(root, "turn")
    assert (turn.detail, turn.status, turn.used.cost) == ("acting", "ok", 0.25)
    assert [(one.name, one.status) for one in spans(root, "tool")] == [("look", "unknown")]


def test_an_engine_that_was_left_behind_and_the_one_that_recovers_tell_each_their_part(tmp_path):
    """Killed: the log is unlocked under a process that never says goodbye."""

    async def stays(arguments, context):
        context.emit(ToolOutputDelta("", "begun"))
        await asyncio.Event().wait()

    async def story():
        after, store = Collected(), JsonlStore(tmp_path)
        tool = Thing(stays, "stays")
        async with traced_engine(
            [call("stays")], tool, collected=Collected(), store=store
        ) as engine:
            session = await engine.session()
            await session.send("go")
            await until(session, lambda event: isinstance(event, ToolOutputDelta))
            copy = tmp_path / "copy" / "sessions" / session.id
            copy.mkdir(parents=True)
            copy.joinpath("log.jsonl").write_bytes(
                (tmp_path / "sessions" / session.id / "log.jsonl").read_bytes()
            )
        again = JsonlStore(tmp_path / "copy")
        async with traced_engine(["back"], *TOOLS, collected=after, store=again) as engine:
            session = await engine.session(session.id)
            await session.wait(await session.send("more"))
        return after, list(engine.store.read(session.id))

    after, records = run(story())
    assert [span.attributes["bridle.turn"] for span in after.named("invoke_agent bridle")] == [2]
    assert after.named("execute_tool stays") == []  # it belongs to who began it
    assert shape(trace(records)) == [
        "session ok",
        "  turn turn 1 interrupted",
        "    step step 1 ok",
        "      model scripted/tiny ok",
        "      tool stays unknown",
        "  turn turn 2 ok",
        "    step step 1 ok",
        "      model scripted/tiny ok",
    ]
