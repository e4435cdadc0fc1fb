"""Hooks in a session: before and after a prompt, a turn and a tool. None lifts a deny."""

import asyncio

import pytest
from standing import SaidHooks

from bridle.engine.call_middleware import note
from bridle.engine.grants import fingerprint
from bridle.errors import HookDenied
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    PromptReceived,
    SessionStarted,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Image, Text, ToolCall
from bridle.policy import Rule
from bridle.protocols.hooks import HookEvent, HookResult
from bridle.protocols.session import YES
from bridle.providers.scripted import Scripted
from rig import Thing, call, events, make_engine, results, run

SCHEMA = {
    "type": "object",
    "properties": {"what": {"type": "string", "maxLength": 9}},
    "additionalProperties": False,
}


def changing(done, read_only=False, ok=True):
    async def execute(arguments, context):
        done.append(arguments.get("what", ""))
        return "done"

    return Thing(execute, read_only=read_only, parameters=SCHEMA)


async def one_call(hooks, done, **rest):
    """A turn with one call, under these hooks: the engine, the session's id, its result."""
    model = Scripted([call("thing", what="a"), "ok"])
    rest = {"mode": "auto", **rest}
    async with make_engine(model, changing(done), hooks=hooks, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        return engine, session.id, result, model


def traces(engine, session_id):
    found = events(engine, session_id, TraceEvent)
    return [one.detail for one in found if one.kind == "hook"]


def test_a_hook_before_a_tool_can_deny():
    done, hooks = [], SaidHooks(before_tool=HookResult(deny="not on a Friday"))
    engine, found, _, _ = run(one_call(hooks, done))
    said = "not run: a hook denied it: not on a Friday"
    assert results(engine, found) == [("call_1", said, True)]
    assert done == []
    assert events(engine, found, CallIntended) == []
    detail = {"moment": "before_tool", "callId": "call_1", "tool": "thing"}
    assert traces(engine, found) == [{**detail, "deny": "not on a Friday"}]


@pytest.mark.parametrize(
    "said", [RuntimeError("x"), None, "no", HookResult(deny=7), HookResult(arguments=7)]
)
def test_a_hook_that_fails_or_says_what_nobody_understands_has_denied(said):
    done, hooks = [], SaidHooks(before_tool=said)
    engine, found, _, _ = run(one_call(hooks, done))
    ((_, text, failed),) = results(engine, found)
    assert text.startswith("not run: a hook denied it: a hook ")
    assert (done, failed) == ([], True)


def test_a_hook_is_told_of_the_call_and_its_word_reaches_the_model():
    done, hooks = [], SaidHooks(before_tool=HookResult(word="mind the gap"))
    engine, found, _, model = run(one_call(hooks, done))
    (told,) = hooks.heard
    assert told == HookEvent(
        "before_tool", found, "/", 1, tool="thing", call_id="call_1", arguments={"what": "a"}
    )
    assert results(engine, found) == [("call_1", "done\n[a hook says: mind the gap]", False)]
    read = model.requests[1].messages[-1].tool_results[0].text
    assert read == "done\n[a hook says: mind the gap]"
    assert done == ["a"]


def test_what_a_hook_changes_is_judged_again_recorded_and_shown():
    asked = []

    async def approver(question):
        asked.append(question.call)
        return YES

    done, hooks = [], SaidHooks(before_tool=HookResult(arguments={"what": "b"}))
    work = one_call(hooks, done, mode="ask", approver=approver)
    engine, found, _, _ = run(work)
    changed = ToolCall("call_1", "thing", {"what": "b"})
    assert (done, asked) == (["b"], [changed])
    (intent,) = events(engine, found, CallIntended)
    assert intent.arguments_hash == fingerprint(changed)
    said = 'done\n[a hook changed the arguments to: {"what":"b"}]'
    assert results(engine, found) == [("call_1", said, False)]
    assert traces(engine, found)[0]["arguments"] == {"what": "b"}
    assert len(hooks.heard) == 1  # what it changed is not brought before it again


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (7, "these arguments are not valid"),
        ("far too long for that schema", "these arguments are not valid"),
        ("evil", "not run: a rule forbids it"),
        ("[redacted]", "not run: the arguments hold [redacted]"),
        ("s3cr3t-key-of-mine", "not run: the arguments hold [redacted]"),
    ],
)
def test_changed_arguments_pass_the_schema_and_the_rules_or_nothing_runs(changed, said):
    async def story():
        done, hooks = [], SaidHooks(before_tool=HookResult(arguments={"path": changed}))
        thing = changing(done)
        paths = {"path": {"type": "string", "maxLength": 18}}
        thing.parameters = {"type": "object", "properties": paths}
        rest = {"hooks": hooks, "mode": "auto", "rules": (Rule("deny", "thing", "evil"),)}
        rest["secrets"] = ("s3cr3t-key-of-mine",)
        async with make_engine([call("thing", path="a"), "ok"], thing, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return done, results(engine, session.id)

    done, ((_, text, failed),) = run(story())
    assert text.startswith(said)
    assert (done, failed) == ([], True)


def test_a_hook_that_keeps_what_it_was_given_cannot_alter_it_later():
    kept = []

    def keeps(event):
        kept.append(event.arguments)
        return HookResult(arguments={**event.arguments, "what": "c"})

    def alters(event):
        for one in kept:
            one["what"] = "evil"
        return HookResult()

    done, hooks = [], SaidHooks(before_tool=keeps, after_tool=alters)
    run(one_call(hooks, done))
    assert done == ["c"]
    assert hooks.heard[1].arguments == {"what": "c"}


def test_a_denied_call_is_not_brought_before_the_hooks():
    done, hooks = [], SaidHooks(before_tool=HookResult(arguments={"what": "b"}))
    engine, found, _, _ = run(one_call(hooks, done, rules=(Rule("deny", "thing"),)))
    assert results(engine, found)[0][1] == "not run: a rule forbids it"
    assert (done, hooks.heard) == ([], [])


def test_a_hook_after_a_tool_adds_a_word_and_can_object():
    said = [HookResult(word="well done"), HookResult(deny="the linter complains")]
    done, hooks = [], SaidHooks(after_tool=said)
    replies = [call("thing", what="a"), call("thing", what="b"), "ok"]

    async def story():
        async with make_engine(replies, changing(done), hooks=hooks, mode="auto") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return results(engine, session.id)

    assert run(story()) == [
        ("call_1", "done\n[a hook says: well done]", False),
        ("call_2", "done\n[a hook objects: the linter complains]", True),
    ]
    first = hooks.heard[0]
    assert (first.moment, first.result, first.ok) == ("after_tool", "done", True)


def test_a_prompt_that_a_hook_refuses_leaves_no_trace():
    hooks = SaidHooks(before_prompt=HookResult(deny="no secrets in prompts"))

    async def story():
        async with make_engine(["ok"], hooks=hooks) as engine:
            session = await engine.session()
            with pytest.raises(HookDenied, match="no secrets in prompts"):
                await session.send("my password is x")
            return events(engine, session.id), session.is_busy

    assert run(story()) == ([], False)


def test_a_prompt_is_recorded_and_sent_as_the_hooks_leave_it():
    hooks = SaidHooks(before_prompt=HookResult(prompt="be brief: go", word="it is Monday"))
    picture = Image("image/png", "aGk=")

    async def story():
        model = Scripted(["ok"])
        async with make_engine(model, hooks=hooks) as engine:
            session = await engine.session()
            await session.wait(await session.send([Text("go"), picture]))
            kinds = (SessionStarted, TraceEvent, PromptReceived)
            order = [type(one) for one in events(engine, session.id, kinds)]
            return model.requests[0].messages[0].parts, order

    parts, order = run(story())
    expected = (Text("be brief: go"), picture, Text("\n[a hook says: it is Monday]"))
    assert parts == expected
    assert order == [SessionStarted, TraceEvent, PromptReceived]
    assert hooks.heard[0].prompt == "go"


def test_a_turn_that_a_hook_refuses_asks_no_model():
    hooks = SaidHooks(before_turn=HookResult(deny="after hours"), after_turn=HookResult())

    async def story():
        model = Scripted(["ok"])
        async with make_engine(model, hooks=hooks) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.reason, result.error, len(model.requests)

    reason, error, count = run(story())
    assert (reason, count) == ("failed", 0)
    assert isinstance(error, HookDenied)
    assert [one.moment for one in hooks.heard] == ["before_turn", "after_turn"]


def test_hooks_around_a_turn_speak_to_the_model_and_hear_how_it_ended():
    hooks = SaidHooks(before_turn=HookResult(word="be kind"), after_turn=HookResult(word="noted"))

    async def story():
        model = Scripted(["ok"])
        async with make_engine(model, hooks=hooks, system="You help.") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            order = events(engine, session.id, (TraceEvent, TurnEnded))
            return model.requests[0].system, [type(one) for one in order]

    system, order = run(story())
    assert system == "You help.\n[a hook says: be kind]"
    assert order == [TraceEvent, TraceEvent, TurnEnded]
    last = hooks.heard[-1]
    assert (last.moment, last.turn, last.ok) == ("after_turn", 1, True)


def test_an_interrupted_turn_is_heard_and_a_parked_one_is_heard_when_it_ends():
    async def story():
        begun, hooks = asyncio.Event(), SaidHooks(before_turn=HookResult(), after_turn=HookResult())

        async def execute(arguments, context):
            begun.set()
            await asyncio.Event().wait()

        thing = Thing(execute, read_only=False)
        rest = {"hooks": hooks, "on_ask": "park"}
        async with make_engine([call("thing"), "ok"], thing, **rest) as engine:
            session = await engine.session()
            turn = await session.send("go")
            assert (await session.wait(turn)).reason == "parked"
            heard = [one.moment for one in hooks.heard]
            (asked,) = session.history.pending.values()
            await session.answer("call_1", True, shown=asked.shown, by="ann")
            await begun.wait()
            await session.interrupt()
            return heard, [(one.moment, one.ok) for one in hooks.heard]

    heard, whole = run(story())
    assert heard == ["before_turn"]
    assert whole == [("before_turn", True), ("after_turn", False)]


def test_an_interrupt_does_not_wait_for_a_hook_that_hears_the_end():
    async def story():
        hearing, hooks = asyncio.Event(), SaidHooks(after_turn=HookResult())

        async def wait_forever(event):
            hearing.set()
            await asyncio.Event().wait()

        hooks.run = wait_forever
        async with make_engine(["ok", "again"], hooks=hooks) as engine:
            session = await engine.session()
            turn = await session.send("go")
            await hearing.wait()
            await session.interrupt()
            return (await session.wait(turn)).reason, session.is_busy

    assert run(story()) == ("done", False)


def test_questions_wait_for_the_hooks_of_their_own_call():
    """What a hook may yet change is not asked about before."""
    seen = []

    async def approver(asked):
        seen.append((asked.call.arguments["what"], asked.group))
        return YES

    def change(event):
        return HookResult(arguments={"what": event.arguments["what"] * 2})

    async def story():
        done = []
        wanted = [{"name": "thing", "arguments": {"what": one}} for one in "ab"]
        hooks = SaidHooks(before_tool=change)
        rest = {"hooks": hooks, "approver": approver}
        async with make_engine([{"calls": wanted}, "ok"], changing(done), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return done, len(events(engine, session.id, ApprovalAsked))

    assert run(story()) == (["aa", "bb"], 2)
    assert seen == [("aa", ""), ("bb", "")]


@pytest.mark.parametrize("moment", ["before_tool", "after_tool", "before_turn", "before_prompt"])
def test_a_secret_in_a_long_word_is_taken_out_before_the_word_is_cut(moment):
    """Half of a secret is not found any more when it is recorded."""
    secret = "s3cr3t-" + "0123456789" * 20
    length = next(
        size
        for size in range(4800, 10_000)
        if secret[:40] in (cut := note("x", "a" * size + secret + "b" * 20_000))
        and secret not in cut
    )
    hooks = SaidHooks(**{moment: HookResult(word="a" * length + secret + "b" * 20_000)})
    engine, found, _, model = run(one_call(hooks, [], secrets=(secret,)))
    assert hooks.heard
    assert secret[:40] not in repr(model.requests)
    assert secret[:40] not in repr(events(engine, found))


def test_a_finished_call_keeps_its_result_when_the_hooks_after_it_are_cut_off():
    async def story():
        done, begun = [], asyncio.Event()

        class Slow(SaidHooks):
            async def run(self, event):
                begun.set()
                await asyncio.Event().wait()

        replies = [call("thing", what="a"), "ok"]
        hooks = Slow(after_tool=HookResult())
        async with make_engine(replies, changing(done), hooks=hooks, mode="auto") as engine:
            session = await engine.session()
            await session.send("go")
            await begun.wait()
            await session.interrupt()
            return done, results(engine, session.id)

    said = "done\n[interrupted: the call had finished; what follows it, such as hooks, was cut off]"
    assert run(story()) == (["a"], [("call_1", said, False)])
