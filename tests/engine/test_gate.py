"""The gate in a session: who is asked, what an answer does, and what silence does (A5, A11)."""

import asyncio

import pytest

from bridle.engine.approvals import Approvals
from bridle.engine.engine_config import EngineConfig
from bridle.engine.gate import JudgedCall, facts_of
from bridle.engine.grants import fingerprint
from bridle.engine.history import History
from bridle.errors import UnknownApproval
from bridle.events import ApprovalAnswered, ApprovalAsked, CallIntended
from bridle.messages import ToolCall
from bridle.policy import Decision, Facts, Rule
from bridle.protocols.session import NO, YES, Answer
from bridle.protocols.store import Record
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import tool
from bridle.workspace.workspace import Workspace
from rig import Thing, call, calls, events, is_valid, make_engine, results, run, until


@pytest.fixture
def change():
    """A tool that changes things, and remembers that it did."""

    @tool
    async def change(what: str = "") -> str:
        done.append(what)
        return "changed"

    done = change.done = []
    return change


async def asking(change, approver, replies=None, **rest):
    """A turn with one question to an approver."""
    script = replies or [call("change", what="a"), "ok"]
    async with make_engine(script, change, approver=approver, **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        assert is_valid(session.history.transcript)
        return engine, session.id, result


def approve(answer):
    async def approver(asked):
        return answer

    return approver


def test_a_yes_runs_exactly_what_was_shown(change):
    seen = []

    async def approver(asked):
        seen.append(asked)
        return YES

    engine, found, result = run(asking(change, approver))
    (asked,) = seen
    assert asked.call == ToolCall("call_1", "change", {"what": "a"})
    assert asked.reason == "change may change things"
    assert change.done == ["a"]
    assert result.ok
    order = events(engine, found, (ApprovalAsked, ApprovalAnswered, CallIntended))
    answered = ApprovalAnswered("call_1", True, "approver", shown=asked.shown, cwd="/")
    assert order[:2] == [asked, answered]
    assert isinstance(order[2], CallIntended)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NO, "not run: approval was denied"),
        (
            Answer(False, word="not on a Friday"),
            "not run: approval was denied: not on a Friday",
        ),
        (False, "not run: approval was denied"),
        (None, "not run: approval was denied"),
        ("yes", "not run: approval was denied"),
    ],
)
def test_anything_but_a_yes_is_a_no_that_the_model_reads(change, answer, said):
    engine, found, result = run(asking(change, approve(answer)))
    assert results(engine, found) == [("call_1", said, True)]
    assert (change.done, result.text) == ([], "ok")


def test_an_approver_that_breaks_has_said_no(change):
    """Fail closed: an exception is not a yes, and not a crash either."""

    async def approver(asked):
        raise RuntimeError("the terminal is gone")

    engine, found, result = run(asking(change, approver))
    said = "not run: approval was denied: the approver failed: "
    said += "RuntimeError('the terminal is gone')"
    assert results(engine, found) == [("call_1", said, True)]
    assert (change.done, result.text) == ([], "ok")


def test_an_approver_that_is_not_async_has_said_no(change):
    engine, found, _ = run(asking(change, lambda asked: YES))
    assert results(engine, found)[0][2]
    assert change.done == []


def test_for_this_session_covers_the_same_call_and_nothing_else(change):
    seen = []

    async def approver(asked):
        seen.append(asked.call.arguments["what"])
        return Answer(True, "session")

    replies = [call("change", what=what) for what in ("a", "a", "b", "a")] + ["ok"]
    run(asking(change, approver, replies))
    assert seen == ["a", "b"]
    assert change.done == ["a", "a", "b", "a"]


def test_once_is_once(change):
    seen = []

    async def approver(asked):
        seen.append(asked.call.id)
        return YES

    run(asking(change, approver, [call("change", what="a"), call("change", what="a"), "ok"]))
    assert seen == ["call_1", "call_2"]


def test_a_deny_rule_is_not_asked_about_and_not_lifted(change):
    work = asking(change, approve(YES), rules=(Rule("deny", "change"),), mode="auto")
    engine, found, _ = run(work)
    assert results(engine, found) == [("call_1", "not run: a rule forbids it", True)]
    assert events(engine, found, ApprovalAsked) == []
    assert change.done == []


def test_plan_mode_denies_without_asking(change):
    engine, found, _ = run(asking(change, approve(YES), mode="plan"))
    assert "plan mode only reads" in results(engine, found)[0][1]
    assert change.done == []


def test_a_mode_changed_between_turns_holds_from_the_next_call_on(change):
    async def story():
        script = [call("change", what="a"), "no", call("change", what="b"), "yes"]
        async with make_engine(script, change, mode="plan") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            session.mode = "auto"
            await session.wait(await session.send("now"))

    run(story())
    assert change.done == ["b"]


def test_with_nobody_to_ask_the_call_is_denied_and_counted(change):
    """`on_ask="deny"`: for scripts; exit code 3 hangs on the count."""
    engine, found, result = run(asking(change, None))
    assert result.permission_needed == 1
    assert "no one is available to approve it" in results(engine, found)[0][1]
    (answered,) = events(engine, found, ApprovalAnswered)
    assert (answered.allowed, answered.by) == (False, "nobody")


def test_silence_is_a_no(change):
    async def approver(asked):
        await asyncio.Event().wait()

    engine, found, result = run(asking(change, approver, ask_seconds=0.05))
    said = "not run: approval was denied: no one answered in time"
    assert results(engine, found) == [("call_1", said, True)]
    assert events(engine, found, ApprovalAnswered)[0].by == "expiry"
    assert (change.done, result.ok) == ([], True)


def test_an_answer_in_the_last_moment_is_the_only_one():
    """The question expires in the same round of the event loop, right after the answer."""

    async def story():
        said = []

        def hear(event):
            said.append(event)
            history.apply(Record(len(said), "", event))
            if isinstance(event, ApprovalAsked):
                loop.call_soon(approvals.answer, "c", YES, event.shown, "me")

        loop = asyncio.get_running_loop()
        space = Workspace("/")
        parts = EngineConfig(Scripted([]), {}, MemoryStore(), space, on_ask="wait", ask_seconds=0.0)
        history = History()
        approvals = Approvals(hear, parts, "s", history)
        judged = JudgedCall(ToolCall("c", "change"), Thing(None), Facts(), Decision("ask"), "/")
        answer = await approvals.ask(judged)
        return answer, [(one.allowed, one.by) for one in said[1:]]

    assert run(story()) == (YES, [(True, "me")])


def test_a_question_may_stay_open_for_ever(change):
    engine, found, _ = run(asking(change, approve(YES), ask_seconds=float("inf")))
    assert events(engine, found, ApprovalAsked)[0].expires == ""
    assert change.done == ["a"]


async def waiting(change, replies=None):
    """An engine whose question waits for `session.answer`; the question is handed out."""
    script = replies or [call("change", what="a"), "ok"]
    engine = make_engine(script, change, on_ask="wait")
    session = await engine.session()
    turn = await session.send("go")
    record = await until(session, lambda event: isinstance(event, ApprovalAsked))
    return engine, session, turn, record.event


def test_the_first_answer_wins_and_a_second_is_unknown(change):
    async def story():
        engine, session, turn, asked = await waiting(change)
        async with engine:
            await session.answer("call_1", True, shown=asked.shown, by="ann")
            with pytest.raises(UnknownApproval):
                await session.answer("call_1", False, shown=asked.shown, by="bob")
            result = await session.wait(turn)
            with pytest.raises(UnknownApproval):
                await session.answer("call_1", False, shown=asked.shown, by="bob")
            return asked.shown, result.ok, events(engine, session.id, ApprovalAnswered)

    shown, done, answers = run(story())
    assert done
    assert answers == [ApprovalAnswered("call_1", True, "ann", shown=shown, cwd="/")]
    assert change.done == ["a"]


def test_an_answer_to_something_else_is_no_answer(change):
    async def story():
        engine, session, turn, asked = await waiting(change)
        async with engine:
            for call_id, shown in (("call_1", "0" * 32), ("call_9", asked.shown), ("", "")):
                with pytest.raises(UnknownApproval):
                    await session.answer(call_id, True, shown=shown, by="ann")
            assert change.done == []
            await session.answer("call_1", YES, shown=asked.shown, by="ann")
            return (await session.wait(turn)).ok

    assert run(story())


def test_an_old_answer_does_not_fit_the_same_question_asked_again(change):
    """One use: also when a server numbers the calls of every step alike."""

    async def story():
        again = {"calls": [{"id": "c", "name": "change", "arguments": {"what": "a"}}]}
        engine, session, turn, first = await waiting(change, [again, again, "ok"])
        async with engine:
            known = ("", first.shown)
            await session.answer("c", True, shown=first.shown, by="ann")
            second = await until(session, lambda event: getattr(event, "shown", "") not in known)
            with pytest.raises(UnknownApproval):
                await session.answer("c", True, shown=first.shown, by="ann")
            await session.answer("c", False, shown=second.event.shown, by="ann")
            await session.wait(turn)

    run(story())
    assert change.done == ["a"]


def test_what_is_shown_binds_call_arguments_session_and_folder():
    one = ToolCall("c", "shell", {"command": "ls"})
    seen = {
        fingerprint(one, "s", "/a"),
        fingerprint(one, "s", "/b"),
        fingerprint(one, "t", "/a"),
        fingerprint(ToolCall("d", "shell", {"command": "ls"}), "s", "/a"),
        fingerprint(ToolCall("c", "shell", {"command": "ls "}), "s", "/a"),
        fingerprint(ToolCall("c", "bash", {"command": "ls"}), "s", "/a"),
        fingerprint(ToolCall("c", "shell", {"command": "l\udcff"}), "s", "/a"),
    }
    assert len(seen) == 7
    assert fingerprint(one, "s", "/a") == fingerprint(one, "s", "/a")


def test_an_interrupt_while_a_question_is_open_runs_nothing(change):
    """S9: the answer that comes too late is unknown, and the next prompt works."""

    async def story():
        engine, session, turn, asked = await waiting(change)
        async with engine:
            assert [one.call.id for one in session.history.pending.values()] == ["call_1"]
            await session.interrupt()
            result = await session.wait(turn)
            with pytest.raises(UnknownApproval):
                await session.answer("call_1", True, shown=asked.shown, by="ann")
            again = await session.wait(await session.send("again"))
            return result.reason, again.text, session.history.pending

    assert run(story()) == ("interrupted", "ok", {})
    assert change.done == []


def test_an_interrupt_cancels_the_approver(change):
    async def story():
        asked, cancelled = asyncio.Event(), []

        async def approver(question):
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(question.call.id)

        async with make_engine([call("change"), "ok"], change, approver=approver) as engine:
            session = await engine.session()
            await session.send("go")
            await asked.wait()
            await session.interrupt()
            return cancelled

    assert run(story()) == ["call_1"]


def test_an_answer_through_the_session_is_as_good_as_the_approvers(change):
    async def story():
        async def approver(question):
            await asyncio.Event().wait()

        async with make_engine([call("change"), "ok"], change, approver=approver) as engine:
            session = await engine.session()
            turn = await session.send("go")
            record = await until(session, lambda event: isinstance(event, ApprovalAsked))
            await session.answer("call_1", True, shown=record.event.shown, by="phone")
            await session.wait(turn)
            return record.event.shown, events(engine, session.id, ApprovalAnswered)

    shown, answers = run(story())
    assert answers == [ApprovalAnswered("call_1", True, "phone", shown=shown, cwd="/")]


def test_an_approver_is_asked_one_thing_at_a_time():
    """Two readers that both ask run side by side; a person reads one question after the other."""

    async def story():
        inside, most = [0], [0]

        @tool(read_only=True, requires_approval=True)
        async def peek(n: int) -> int:
            return n

        async def approver(question):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            await asyncio.sleep(0)
            inside[0] -= 1
            return True

        script = [calls(*(("peek", {"n": n}) for n in range(4))), "ok"]
        async with make_engine(script, peek, approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return most[0], [text for _, text, _ in results(engine, session.id)]

    assert run(story()) == (1, ["0", "1", "2", "3"])


def test_a_gate_that_breaks_lets_nothing_through(change):
    async def story():
        async with make_engine([call("change"), "ok"], change, mode="auto") as engine:
            session = await engine.session()
            session._turns.gate.rules = 7  # not a list of rules
            await session.wait(await session.send("go"))
            return results(engine, session.id)

    ((_, text, failed),) = run(story())
    assert failed
    assert text.startswith("not run: it could not be judged: ")
    assert change.done == []


def test_rules_look_at_the_command_or_the_path(change):
    assert facts_of(ToolCall("c", "x", {"command": "ls"}), change).subject == "ls"
    assert facts_of(ToolCall("c", "x", {"path": "a.txt"}), change).subject == "a.txt"
    assert facts_of(ToolCall("c", "x", {"path": ["a"]}), change).subject == "['a']"
    assert facts_of(ToolCall("c", "x", {}), change).subject == ""
