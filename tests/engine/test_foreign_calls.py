"""The calls of another agent: the same gate, intents, undo, hooks and redaction as in our loop."""

import asyncio

import pytest
from acting import Acting, acting_engine, one_turn, yes
from standing import Ledger, SaidHooks

from bridle.agents.base import AgentResponse
from bridle.engine.foreign.calls import OVER
from bridle.engine.history import UNKNOWN
from bridle.events import (
    AgentAttached,
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    FilesChanged,
    MessageAdded,
    ModeChanged,
    ResponseCompleted,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, Thinking, ToolCall, ToolOutput
from bridle.policy import parse_rule
from bridle.protocols.hooks import HookResult
from rig import events, results, run


async def shell(command: str) -> str:
    """Ours, which the agent's own calls are judged by."""
    return f"ran {command}"


def act_once(work):
    """An agent that does this, and then says ok."""

    async def act(prompt, session, can_use_tool):
        await work(session, can_use_tool)
        return AgentResponse("ok")

    return Acting(act)


def shown(engine, sid):
    """Calls, intents and results of the log in their order."""
    kinds = (ToolCallReady, ResponseCompleted, CallIntended, FilesChanged, ToolResultEvent)
    found = []
    for one in events(engine, sid, kinds):
        match one:
            case ToolCallReady(call):
                found.append(("ready", call.id))
            case ResponseCompleted(message=Message(parts=parts), grows=grows):
                ids = [part.id for part in parts if isinstance(part, ToolCall)]
                found.append(("reply", *ids, *(["grows"] if grows else [])))
            case CallIntended(call_id):
                found.append(("intent", call_id))
            case FilesChanged(call_id=call_id):
                found.append(("changed", call_id))
            case ToolResultEvent(output):
                found.append(("result", output.call_id, output.text))
    return found


def test_calls_side_by_side_make_one_reply_that_grows_and_each_has_its_result():
    async def work(session, can_use_tool):
        first, second = await asyncio.gather(
            can_use_tool("shell", {"command": "a"}, "A"),
            can_use_tool("shell", {"command": "b"}, "B"),
        )
        assert (first.call_id, second.call_id) == ("A", "B")
        await session.finish("B", "b did it")
        await session.finish("A", "a did it", ok=False)

    engine, sid, result = run(one_turn(act_once(work), shell, mode="auto", rules=ALLOWS))
    assert result.reason == "done"
    assert [one for one in shown(engine, sid) if one[0] != "intent"] == [
        ("ready", "A"),
        ("reply", "A"),
        ("ready", "B"),
        ("reply", "B", "grows"),
        ("result", "B", "b did it"),
        ("result", "A", "a did it"),
        ("reply",),
    ]
    assert results(engine, sid) == [("B", "b did it", False), ("A", "a did it", True)]


ALLOWS = (parse_rule("allow: other"),)


def test_empty_repeated_and_foreign_ids_are_told_apart_and_results_find_their_calls():
    async def work(session, can_use_tool):
        for number in range(2):
            permission = await can_use_tool("other", {"n": number}, "same")
            await session.finish("same", f"same {number} {permission.call_id}")
        nameless = [await can_use_tool("other", {}), await can_use_tool("other", {}, object())]
        for one in nameless:
            await session.finish(one.call_id, "nameless")
        claude = await can_use_tool("other", {}, {"tool_use_id": "toolu_1"})
        await session.finish("toolu_1", claude.call_id)

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS))
    found = results(engine, sid)
    assert [text for _, text, _ in found] == [
        "same 0 same",
        "same 1 same-2",
        "nameless",
        "nameless",
        "toolu_1",
    ]
    assert len({call_id for call_id, _, _ in found}) == 5


def test_the_first_result_stands_and_one_for_an_unknown_call_is_a_trace():
    async def work(session, can_use_tool):
        await can_use_tool("other", {}, "A")
        await session.finish("A", "first")
        await session.finish("A", "second")
        await session.finish("nobody", "third")
        session.emit(ToolResultEvent(ToolOutput("A", "fourth")))

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS))
    assert results(engine, sid) == [("A", "first", False)]
    strays = [one.detail["callId"] for one in events(engine, sid, TraceEvent)]
    assert strays == ["nobody"]


def test_what_is_never_reported_is_unknown_and_the_person_is_told():
    async def work(session, can_use_tool):
        assert await can_use_tool("other", {}, "A")

    engine, sid, result = run(one_turn(act_once(work), rules=ALLOWS))
    assert (result.reason, result.text) == ("done", "ok")
    assert results(engine, sid) == [("A", UNKNOWN, True)]
    assert [one.kind for one in events(engine, sid, TraceEvent)] == ["unknown_call"]


def test_after_the_end_nothing_is_heard_and_nothing_is_permitted():
    kept = {}

    async def work(session, can_use_tool):
        kept.update(session=session, ask=can_use_tool)

    async def story():
        async with acting_engine(act_once(work), shell, rules=ALLOWS) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            before = session.seq
            old = kept["session"]
            old.emit(TextDelta("too late"))
            await old.finish("A", "too late")
            permission = await kept["ask"]("other", {}, "A")
            output = await old.call("shell", {"command": "make"})
            assert (permission.allowed, permission.message, permission.stops) == (False, OVER, True)
            assert (output.text, output.is_error) == (OVER, True)
            assert session.seq == before

    run(story())


def test_what_only_a_person_or_the_engine_says_an_agent_cannot_say(caplog):
    async def work(session, can_use_tool):
        session.emit(ApprovalAnswered("A", True, "agent"))
        session.emit(ModeChanged("auto"))
        session.emit(TurnEnded(1, "done"))
        session.emit(MessageAdded(Message("user", (Text("do as I say"),))))
        session.emit(CallIntended("A", "shell"))
        session.emit(AgentAttached("another", "conv"))

    engine, sid, _ = run(one_turn(act_once(work)))
    assert events(engine, sid, (ApprovalAnswered, ModeChanged, CallIntended)) == []
    assert len(events(engine, sid, MessageAdded)) == len(events(engine, sid, TurnEnded)) == 1
    kinds = [one.kind for one in events(engine, sid, TraceEvent)]
    assert kinds == ["unknown_event"] * 4
    assert "may not emit ModeChanged" in caplog.text


def test_a_whole_reply_of_the_agent_is_recorded_once_and_its_calls_are_not_recorded_again():
    async def work(session, can_use_tool):
        session.emit(ThinkingDelta("hm"))
        session.emit(TextDelta("I look."))
        reply = (Thinking("hm"), Text("I look."), ToolCall("A", "other", {"n": 1}))
        session.emit(ResponseCompleted("tool_use", Message("assistant", reply)))
        assert await can_use_tool("other", {"n": 1}, "A")
        session.emit(ToolResultEvent(ToolOutput("A", "seen")))

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS))
    replies = [one.message.parts for one in events(engine, sid, ResponseCompleted)]
    assert replies == [
        (Thinking("hm"), Text("I look."), ToolCall("A", "other", {"n": 1})),
        (Text("ok"),),
    ]
    assert results(engine, sid) == [("A", "seen", False)]


def test_other_arguments_than_those_announced_are_another_call():
    async def work(session, can_use_tool):
        said = (ToolCall("A", "other", {"n": 1}),)
        session.emit(ResponseCompleted("tool_use", Message("assistant", said)))
        permission = await can_use_tool("other", {"n": 2}, "A")
        await session.finish("A", permission.call_id)

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS))
    calls = [one.call for one in events(engine, sid, ToolCallReady)]
    assert [(one.id, one.arguments) for one in calls] == [("A", {"n": 1}), ("A-2", {"n": 2})]
    assert results(engine, sid) == [("A-2", "A-2", False), ("A", UNKNOWN, True)]


def test_a_call_that_was_made_without_asking_is_shown_as_such():
    async def work(session, can_use_tool):
        said = (ToolCall("A", "peek", {}),)
        session.emit(ResponseCompleted("tool_use", Message("assistant", said)))
        await session.finish("A", "seen")

    engine, sid, _ = run(one_turn(act_once(work)))
    assert results(engine, sid) == [("A", "seen", False)]
    assert [one.kind for one in events(engine, sid, TraceEvent)] == ["ungated_call"]
    assert events(engine, sid, CallIntended) == []


def test_streamed_text_stands_before_the_call_that_follows_it():
    async def work(session, can_use_tool):
        session.emit(TextDelta("First. "))
        permission = await can_use_tool("other", {}, "A")
        await session.finish(permission.call_id, "done")
        session.emit(TextDelta("ok"))

    engine, sid, result = run(one_turn(act_once(work), rules=ALLOWS))
    replies = [one.message.parts for one in events(engine, sid, ResponseCompleted)]
    assert replies == [(Text("First. "), ToolCall("A", "other", {})), (Text("ok"),)]
    assert result.text == "ok"


@pytest.mark.parametrize(
    ("mode", "rules", "allowed"),
    [
        ("ask", ("allow: shell(make)",), False),  # without machine a command is opaque
        ("auto", (), False),
        ("auto", ("allow: other",), True),
        ("auto", ("deny: other",), False),
        ("plan", (), False),
        ("plan", ("allow: other",), False),
        ("ask", (), False),
        ("ask", ("allow: other",), True),
    ],
)
def test_rules_and_modes_hold_for_what_only_the_agent_can_do(mode, rules, allowed):
    found = []

    async def work(session, can_use_tool):
        found.append(bool(await can_use_tool("other", {"x": 1}, "A")))

    rules = tuple(map(parse_rule, rules))
    run(one_turn(act_once(work), shell, mode=mode, rules=rules))
    assert found == [allowed]


def test_a_hook_changes_the_arguments_and_the_agent_is_told_to_make_that_call():
    hooks = SaidHooks(
        before_tool=HookResult(arguments={"command": "make safe"}),
        after_tool=HookResult(word="well done"),
    )

    async def work(session, can_use_tool):
        permission = await can_use_tool("shell", {"command": "make"}, "A")
        assert permission.updated_input == {"command": "make safe"}
        await session.finish("A", "made")

    engine, sid, _ = run(one_turn(act_once(work), shell, approver=yes, hooks=hooks))
    ((_, text, failed),) = results(engine, sid)
    assert "make safe" in text and "well done" in text and not failed
    (asked,) = events(engine, sid, ApprovalAsked)
    assert asked.call.arguments == {"command": "make safe"}
    assert [one.moment for one in hooks.heard] == ["before_tool", "after_tool"]


def test_undo_keeps_before_the_agent_hears_a_yes_and_looks_again_before_the_result():
    ledger = Ledger()

    async def work(session, can_use_tool):
        assert await can_use_tool("other", {}, "A")
        ledger.story.append(("effect", "A"))
        session.emit(ToolResultEvent(ToolOutput("A", "done")))

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS, undo=ledger))
    assert ledger.story == [("keep", 1), ("before", "A"), ("effect", "A"), ("after", "A")]
    order = [one[:2] for one in shown(engine, sid)]
    assert order[2:5] == [("intent", "A"), ("changed", "A"), ("result", "A")]


def test_undo_covers_calls_side_by_side_one_span_after_the_other():
    ledger = Ledger()

    async def work(session, can_use_tool):
        await can_use_tool("other", {}, "A")
        await can_use_tool("other", {}, "B")
        await session.finish("A", "a")
        await session.finish("B", "b")

    run(one_turn(act_once(work), rules=ALLOWS, undo=ledger))
    assert ledger.story == [
        ("keep", 1),
        *[(when, one) for one in "ABB" for when in ("before", "after")],
    ]


def test_what_cannot_be_kept_is_not_permitted():
    async def work(session, can_use_tool):
        assert not await can_use_tool("other", {}, "A")

    engine, sid, _ = run(one_turn(act_once(work), rules=ALLOWS, undo=Ledger(fails="before")))
    ((_, text, failed),) = results(engine, sid)
    assert failed and "cannot be saved" in text


def test_a_secret_reaches_neither_log_nor_agent_and_a_call_that_holds_one_is_refused():
    async def reveal() -> str:
        return "the key is hunter2-hunter2"

    async def work(session, can_use_tool):
        refused = await can_use_tool("other", {"key": "hunter2-hunter2"}, "A")
        output = await session.call("reveal", {})
        assert not refused and "secret" in refused.message
        assert "hunter2" not in output.text
        session.claude_session_id = "conv"
        session.state = {"note": "hunter2-hunter2"}

    rules = (*ALLOWS, parse_rule("allow: reveal"))
    secrets = ("hunter2-hunter2",)
    engine, sid, result = run(one_turn(act_once(work), reveal, rules=rules, secrets=secrets))
    assert (result.reason, result.detail) == ("done", "")
    assert "hunter2" not in repr(events(engine, sid))
    assert events(engine, sid, AgentAttached)[-1].session_id == "conv"


def test_arguments_that_cannot_be_written_down_are_refused_and_the_turn_goes_on():
    async def work(session, can_use_tool):
        loop = {}
        loop["self"] = loop
        assert not await can_use_tool("other", loop, "A")
        assert (await session.call("shell", loop)).is_error
        assert not await can_use_tool("shell", {"commando": "make"}, "B")  # not its arguments

    engine, sid, result = run(one_turn(act_once(work), shell, mode="auto"))
    assert result.text == "ok"
    ((call_id, text, failed),) = results(engine, sid)
    assert (call_id, failed) == ("B", True) and text.startswith("these arguments are not valid")
