"""An ACP agent through the engine: the gate, the log, approvals, undo, resume."""

import bridle
from agents.acp_rig import acp_engine, scripted
from bridle.agents.acp import AcpAgent
from bridle.engine.budget import Limits
from bridle.events import (
    AgentAttached,
    ApprovalAsked,
    CallIntended,
    FileChange,
    FilesChanged,
    TextDelta,
    ToolResultEvent,
    TraceEvent,
)
from bridle.protocols.session import Answer
from bridle.testing import Scripted
from rig import conversation, endings, events, is_valid, results, run, until


def an_edit(root, call_id="e1"):
    """A call that edits a file, asked about and then made by the agent itself."""
    path = str(root / "a.txt")
    call = {
        "id": call_id,
        "title": "Edit a.txt",
        "kind": "edit",
        "diffs": [{"path": path, "old": "one", "new": "two"}],
    }
    done = {"id": call_id, "status": "completed", "text": "edited"}
    return [
        {"say": "I will edit it."},
        {"call": {**call, "status": "pending"}},
        {
            "ask": call,
            "then": [
                {"put": {"path": path, "content": "two\n"}},
                {"update": done},
                {"say": "Edited."},
            ],
            "else": [{"update": {**done, "status": "failed", "text": ""}}, {"say": "Not edited."}],
        },
    ]


def places(tmp_path):
    root, aside = tmp_path / "work", tmp_path / "aside"
    root.mkdir()
    aside.mkdir()
    (root / "a.txt").write_text("one\n")
    return root, aside


def test_an_edit_is_asked_about_made_and_reported_and_the_next_process_resumes_it(tmp_path):
    """The journey: prompt, gated edit, approval, result, resume. (S7)"""
    root, aside = places(tmp_path)
    remembers = {"remember": str(aside / "sessions.json"), "load": True}
    command = scripted(aside, an_edit(root), [{"prompt": 1}], **remembers)
    asked = []

    async def approve(question: ApprovalAsked):
        asked.append((question.call.name, question.call.arguments))
        return Answer(True, by="tester")

    async def first():
        async with acp_engine(root, command, approver=approve) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("edit it"))
            assert is_valid(session.history.transcript)
            return engine, session.id, result

    async def second(session_id):
        async with acp_engine(root, command, approver=approve) as engine:
            session = await engine.session(session_id)
            return engine, await session.wait(await session.send("and now?"))

    engine, session_id, result = run(first())
    assert (result.reason, result.text) == ("done", "Edited.")
    assert (root / "a.txt").read_text() == "two\n"
    given = {"path": "a.txt", "old": "one", "new": "two"}
    assert asked == [("edit", given)]
    assert results(engine, session_id) == [("e1", "edited", False)]
    order = [type(one) for one in events(engine, session_id)]
    assert order.index(CallIntended) < order.index(ToolResultEvent)
    (changed,) = events(engine, session_id, FilesChanged)
    assert (changed.call_id, changed.files) == ("e1", (FileChange("a.txt"),))
    first_id = events(engine, session_id, AgentAttached)[-1].session_id

    engine, result = run(second(session_id))
    assert result.text == "mode= prompt=and now?"  # the second turn of the script: it was resumed
    assert events(engine, session_id, AgentAttached)[-1].session_id == first_id
    assert "replayed" not in "".join(one.text for one in events(engine, session_id, TextDelta))
    assert endings(engine, session_id) == ["done", "done"]
    assert conversation(engine, session_id)[-1] == ("assistant", "mode= prompt=and now?")


def test_a_refused_edit_is_not_made_and_a_rule_refuses_it_without_a_person(tmp_path):
    root, aside = places(tmp_path)

    async def story():
        rules = ("deny: write(a.txt)",)
        command = scripted(aside, an_edit(root))
        async with acp_engine(root, command, rules=rules, mode="edits") as engine:
            session = await engine.session()
            result = await session.wait(await session.send("edit it"))
            return engine, session.id, result

    engine, session_id, result = run(story())
    assert (result.reason, result.text) == ("done", "Not edited.")
    assert (root / "a.txt").read_text() == "one\n"
    ((call_id, text, failed),) = results(engine, session_id)
    assert (call_id, failed) == ("e1", True)
    assert "a rule forbids it" in text


def test_plan_mode_holds_whatever_mode_the_agent_has(tmp_path):
    """(P4)"""
    root, aside = places(tmp_path)

    async def story():
        command = scripted(aside, [*an_edit(root), {"prompt": 1}], modes=["auto", "plan"])
        async with acp_engine(root, command, mode="plan") as engine:
            session = await engine.session()
            result = await session.wait(await session.send("edit it"))
            return engine, session.id, result

    engine, session_id, result = run(story())
    assert result.text.endswith("mode=plan prompt=edit it")
    assert (root / "a.txt").read_text() == "one\n"
    assert "plan mode" in results(engine, session_id)[0][1]


def test_files_and_commands_that_the_agent_has_us_do_pass_the_gate(tmp_path):
    root, aside = places(tmp_path)
    steps = [
        {"read": {"path": str(root / "a.txt")}},
        {"say": "[{result}]"},
        {"read": {"path": "/etc/passwd"}},
        {"say": "[{result}]"},
        {"write": {"path": str(root / "b.txt"), "content": "new\n"}},
        {"say": "[{result}]"},
        {"run": {"command": "printf", "args": ["%s", "a b"]}},
        {"say": "[{result}]"},
        {"run": {"command": "printf 1234567890", "limit": 4}},
        {"say": "[{result}]"},
    ]

    async def story():
        async with acp_engine(root, scripted(aside, steps), mode="auto") as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return engine, session.id

    engine, session_id = run(story())
    said = "".join(one.text for one in events(engine, session_id, TextDelta))
    read, outside, written, ran, cut = said.removeprefix("[").removesuffix("]").split("][")
    assert (read, written, ran, cut) == ("one\n", "written", "0 False a b", "0 True 7890")
    assert outside.startswith("error -32603:")
    assert (root / "b.txt").read_text() == "new\n"
    failed = [is_error for _, _, is_error in results(engine, session_id)]
    assert failed == [False, True, False, False, False]
    assert [one.name for one in events(engine, session_id, CallIntended)] == [
        *("read", "write", "shell", "shell")
    ]


def test_what_is_done_without_asking_is_in_the_log_as_that_and_said_once(tmp_path):
    root, aside = places(tmp_path)
    path = str(root / "a.txt")

    def sneaky(name):
        call = {"id": name, "title": f"Write {name}", "kind": "edit", "paths": [path]}
        given = {"input": {"file_path": path, "content": name}}
        return [{"call": {**call, **given}}, {"update": {"id": name, "status": "completed"}}]

    async def story():
        command = scripted(aside, [*sneaky("one"), *sneaky("two"), {"say": "Done."}])
        async with acp_engine(root, command) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert is_valid(session.history.transcript)
            return engine, session.id, result

    engine, session_id, result = run(story())
    assert result.reason == "done"
    traces = [one.kind for one in events(engine, session_id, TraceEvent)]
    assert (traces.count("ungated_call"), traces.count("ungated")) == (2, 1)
    assert [one[0] for one in results(engine, session_id)] == ["one", "two"]
    assert events(engine, session_id, CallIntended) == []


def test_an_interrupt_reaches_the_agent_and_the_session_goes_on(tmp_path):
    """(S9)"""
    root, aside = places(tmp_path)

    async def story():
        command = scripted(aside, [{"say": "Waiting."}, {"wait": 1}], [{"say": "Here again."}])
        async with acp_engine(root, command) as engine:
            session = await engine.session()
            turn = await session.send("wait")
            await until(session, lambda event: isinstance(event, TextDelta))
            await session.interrupt()
            first = await session.wait(turn)
            second = await session.wait(await session.send("go on"))
            return engine, session.id, (first.reason, second.reason, second.text)

    engine, session_id, found = run(story())
    assert found == ("interrupted", "done", "Here again.")
    assert len({one.session_id for one in events(engine, session_id, AgentAttached)} - {""}) == 1


def test_a_program_that_dies_fails_the_turn_with_a_sentence_and_the_next_one_goes_on(tmp_path):
    root, aside = places(tmp_path)
    remembers = {"remember": str(aside / "sessions.json"), "resume": True}

    async def story():
        turns = [{"say": "Hm."}, {"die": 3}], [{"say": "Second."}]
        async with acp_engine(root, scripted(aside, *turns, **remembers)) as engine:
            session = await engine.session()
            first = await session.wait(await session.send("die"))
            second = await session.wait(await session.send("again"))
            return engine, session.id, first, second

    engine, session_id, first, second = run(story())
    assert first.reason == "failed"
    assert "ended with exit code 3" in first.detail
    assert "the scripted agent dies as it was told" in first.detail
    assert (second.reason, second.text) == ("done", "Second.")
    assert [one for one in events(engine, session_id, TraceEvent) if one.kind == "notice"] == []


def test_a_plan_passes_through_the_person_and_then_the_work_begins(tmp_path):
    """(P4) The agent's own way out of its plan mode is our question."""
    root, aside = places(tmp_path)
    plan = {"id": "p", "title": "Ready", "kind": "switch_mode", "input": {"plan": "Edit a.txt."}}
    steps = [{"ask": plan, "then": [{"mode": "default"}, *an_edit(root)], "else": []}]
    asked = []

    async def approve(question):
        asked.append(question.call.name)
        return Answer(True, by="tester")

    async def story():
        command = scripted(aside, steps, modes=["default", "plan"])
        async with acp_engine(root, command, mode="plan", approver=approve) as engine:
            session = await engine.session()
            await session.wait(await session.send("plan it"))
            return engine, session.id

    engine, session_id = run(story())
    assert asked == ["exit_plan_mode", "edit"]
    assert (root / "a.txt").read_text() == "two\n"
    assert [failed for _, _, failed in results(engine, session_id)] == [False, False]


def test_an_agent_is_told_instructions_and_what_others_did_before_and_meanwhile(tmp_path):
    root, aside = places(tmp_path)
    remembers = {"remember": str(aside / "sessions.json"), "load": True}
    command = scripted(aside, *[[{"prompt": 1}]] * 3, **remembers)
    options = {"workspace": root, "state": tmp_path / "state"}

    async def turn(words, session_id=None, **more):
        async with bridle.build_engine(**more, **options) as engine:
            session = await engine.session(session_id)
            return session.id, (await session.wait(await session.send(words))).text

    async def work():
        model = Scripted(["Hello Ada.", "Noted."])
        agent = {"agent": AcpAgent(command), "instructions": "Speak plainly."}
        session_id, _ = await turn("call me Ada", provider=model)
        first = (await turn("one", session_id, **agent))[1]
        await turn("it rains", session_id, provider=model)
        agent["agent"] = AcpAgent(command)
        second = (await turn("two", session_id, **agent))[1]
        agent["agent"] = AcpAgent(command)
        return first, second, (await turn("three", session_id, **agent))[1]

    first, second, third = run(work())
    assert "Speak plainly." in first and "Hello Ada." in first and first.endswith("one")
    assert "it rains" in second and "Noted." in second and second.endswith("two")
    assert "Speak plainly." not in second and "Hello Ada." not in second
    assert third == "mode= prompt=three"


def test_a_limit_of_money_ends_what_an_agent_does_that_does_not_say_what_it_costs(tmp_path):
    """The first use without a price is the last: nobody could say when the limit is reached."""
    root, aside = places(tmp_path)
    used = {"totalTokens": 50, "inputTokens": 40, "outputTokens": 10}
    steps = [{"say": "x"}, {"tokens": used}]

    async def story(limits):
        command = scripted(aside, steps, steps)
        async with acp_engine(root, command, limits=limits) as engine:
            session = await engine.session()
            found = [await session.wait(await session.send("go")) for _ in range(2)]
            return [(one.reason, one.metrics.tokens) for one in found]

    assert run(story(Limits(max_session_cost=1.0))) == [("budget", 50), ("budget", 0)]
    assert run(story(Limits(max_cost=1.0))) == [("budget", 50), ("budget", 50)]
    assert run(story(Limits(max_session_tokens=1000))) == [("done", 50), ("done", 50)]
