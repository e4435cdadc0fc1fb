"""What a person is shown when they are asked, and which questions come together."""

import asyncio

from bridle.events import ApprovalAnswered, ApprovalAsked, CallIntended, ToolResultEvent
from bridle.policy import Rule, ToolPolicy
from bridle.protocols.session import NO, YES, Answer
from bridle.stores.jsonl import JsonlStore
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace
from rig import Thing, call, calls, events, make_engine, results, run, until


def shell(done):
    """A tool that says which command it would have run, and where."""

    async def execute(arguments, context):
        done.append(arguments["command"])
        return "done"

    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    thing = Thing(execute, "shell", read_only=False, parameters=schema)
    thing.policy = ToolPolicy(runs="command", risk="high")
    return thing


def files(done, name):
    """A tool that changes the file that it names."""

    async def execute(arguments, context):
        done.append((name, arguments["path"]))
        return "done"

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    thing = Thing(execute, name, read_only=False, parameters=schema)
    thing.policy = ToolPolicy(edits=True, files=True)
    return thing


class Person:
    """Answers in the same way, and remembers the questions and what stood open beside them."""

    def __init__(self, answer=YES):
        self.answer, self.asked, self.open = answer, [], []
        self.session = None

    async def __call__(self, asked):
        self.asked.append(asked)
        self.open.append([one.call.id for one in self.session.history.pending.values()])
        return self.answer


async def story(root, script, person, *tools, **rest):
    rest = {"root": root, "machine": LocalMachine(Workspace(root)), "approver": person, **rest}
    async with make_engine(script, *tools, **rest) as engine:
        session = person.session = await engine.session()
        await session.wait(await session.send("go"))
        return engine, session


def test_a_question_says_what_a_command_would_do_and_proposes_a_rule(tmp_path):
    done, person = [], Person()
    run(story(tmp_path, [call("shell", command="cd . && touch  a.txt"), "ok"], person, shell(done)))
    (asked,) = person.asked
    assert "touch a.txt" in asked.commands
    assert asked.paths == (".", "a.txt")
    assert asked.proposal == "allow: shell(touch a.txt)"
    assert asked.cwd == str(tmp_path)
    assert done == ["cd . && touch  a.txt"]


def test_a_question_says_where_a_path_leads_and_how_often_the_like_was_allowed(tmp_path):
    (tmp_path / "link").symlink_to("real.txt")
    done, person = [], Person()
    script = [call("write", path="link"), call("write", path="real.txt"), "ok"]
    run(story(tmp_path, script, person, files(done, "write")))
    first, second = person.asked
    assert first.paths == second.paths == ("real.txt",)
    assert first.proposal == "allow: write(./real.txt)"
    assert (first.times, second.times) == (0, 1)
    assert first.reason == "write changes files"


def test_edits_of_one_step_are_put_together_and_run_in_their_order(tmp_path):
    done, person = [], Person()
    wanted = [("write", {"path": "a"}), ("edit", {"path": "b"}), ("write", {"path": "c"})]
    tools = files(done, "write"), files(done, "edit")
    engine, session = run(story(tmp_path, [calls(*wanted), "ok"], person, *tools))
    assert len({one.group for one in person.asked}) == 1
    assert person.asked[0].group
    assert person.open == [["call_1", "call_2", "call_3"], ["call_2", "call_3"], ["call_3"]]
    kinds = (ApprovalAsked, ApprovalAnswered, CallIntended, ToolResultEvent)
    order = [type(one).__name__ for one in events(engine, session.id, kinds)]
    step = ["ApprovalAnswered", "CallIntended", "ToolResultEvent"]
    assert order == ["ApprovalAsked"] * 3 + step * 3
    assert done == [("write", "a"), ("edit", "b"), ("write", "c")]


def test_one_answer_is_for_one_call_of_a_group(tmp_path):
    class Choosy(Person):
        async def __call__(self, asked):
            await super().__call__(asked)
            return NO if asked.call.arguments["path"] == "b" else YES

    done, person = [], Choosy()
    wanted = [("write", {"path": one}) for one in "abc"]
    work = story(tmp_path, [calls(*wanted), "ok"], person, files(done, "write"))
    engine, session = run(work)
    assert done == [("write", "a"), ("write", "c")]
    assert [failed for _, _, failed in results(engine, session.id)] == [False, True, False]


def test_the_answers_of_a_group_may_come_in_any_order(tmp_path):
    async def whole():
        done = []
        wanted = [("write", {"path": one}) for one in "abc"]
        script, tool = [calls(*wanted), "ok"], files(done, "write")
        async with make_engine(script, tool, root=tmp_path, on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: isinstance(event, ApprovalAsked))
            questions = list(session.history.pending.values())
            for asked in reversed(questions):
                assert done == []
                yes = asked.call.id != "call_2"
                await session.answer(asked.call.id, yes, shown=asked.shown, by="ann")
            await session.wait(turn)
            return len(questions), done

    assert run(whole()) == (3, [("write", "a"), ("write", "c")])


def test_what_does_not_belong_together_is_asked_one_after_the_other(tmp_path):
    done, person = [], Person()
    wanted = [
        ("write", {"path": "a"}),
        ("write", {"path": ".env"}),
        ("shell", {"command": "touch x"}),
    ]
    tools = files(done, "write"), shell(done)
    run(story(tmp_path, [calls(*wanted), "ok"], person, *tools))
    assert [one.group for one in person.asked] == ["", "", ""]
    assert person.open == [["call_1"], ["call_2"], ["call_3"]]
    assert [one.once_only for one in person.asked] == [False, True, False]
    assert person.asked[1].proposal == ""


def test_a_yes_to_a_guard_is_for_once_whatever_it_says(tmp_path):
    done, person = [], Person(Answer(True, "rule", rule="allow: write"))
    script = [call("write", path=".env"), call("write", path=".env"), "ok"]
    learnt = []
    learn = {"learn": lambda rule, by: learnt.append(rule)}
    work = story(tmp_path, script, person, files(done, "write"), **learn)
    engine, session = run(work)
    assert (len(person.asked), len(done), learnt) == (2, 2, [])
    assert [one.scope for one in events(engine, session.id, ApprovalAnswered)] == ["once", "once"]
    assert session.grants() == ()


BUILDS = ["make", "make test", "pytest -q"]


def test_a_yes_once_to_a_build_allows_that_build_alone(tmp_path):
    done, person = [], Person()
    script = [call("shell", command=one) for one in (*BUILDS, *BUILDS)] + ["ok"]
    engine, session = run(story(tmp_path, script, person, shell(done)))
    assert done == [*BUILDS, *BUILDS]
    assert [one.call.arguments["command"] for one in person.asked] == done
    assert {one.covers for one in person.asked} == {"builds"}
    answers = events(engine, session.id, ApprovalAnswered)
    assert {(one.scope, one.until) for one in answers} == {("once", "")}
    assert session.grants() == ()


def test_a_yes_for_the_session_to_a_build_allows_the_builds_of_the_folder(tmp_path):
    done, person = [], Person(Answer(True, "session"))
    script = [call("shell", command=one) for one in BUILDS] + ["ok"]
    engine, session = run(story(tmp_path, script, person, shell(done)))
    assert done == BUILDS
    assert [one.call.arguments["command"] for one in person.asked] == ["make"]
    (grant,) = session.grants()
    assert grant.what == f"tests and builds in {tmp_path}"
    (answer,) = events(engine, session.id, ApprovalAnswered)
    assert (answer.scope, answer.until) == ("session", grant.until)


def test_builds_of_one_step_need_one_answer_for_the_session(tmp_path):
    done, person = [], Person(Answer(True, "session"))
    wanted = [("shell", {"command": one}) for one in ("make", "make test")]
    engine, session = run(story(tmp_path, [calls(*wanted), "ok"], person, shell(done)))
    assert (len(person.asked), done) == (1, ["make", "make test"])
    answered = events(engine, session.id, ApprovalAnswered)
    assert [(one.call_id, one.by) for one in answered] == [
        ("call_1", "approver"),
        ("call_2", "grant"),
    ]
    assert len(session.grants()) == 1
    assert session.grants()[0].until == answered[0].until  # a grant does not make itself longer


def test_commands_that_only_read_run_unasked_and_side_by_side(tmp_path):
    async def whole():
        met = asyncio.Barrier(2)

        async def execute(arguments, context):
            await met.wait()  # each waits for the other: in order they would wait for ever
            return "seen"

        tool = shell([])
        tool._execute = execute
        wanted = [("shell", {"command": one}) for one in ("ls", "cat a.txt")]
        rest = {"root": tmp_path, "machine": LocalMachine(Workspace(tmp_path))}
        async with make_engine([calls(*wanted), "ok"], tool, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            intents = events(engine, session.id, CallIntended)
            return [one.read_only for one in intents], results(engine, session.id)

    reads, found = run(whole())
    assert reads == [True, True]
    assert sorted(found) == [("call_1", "seen", False), ("call_2", "seen", False)]


def test_a_command_is_judged_in_the_folder_where_the_shell_stands(tmp_path):
    from bridle.protocols.tool import CWD

    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to("/etc")
    done, person = [], Person(NO)
    tool = shell(done)
    real = tool._execute

    async def moving(arguments, context):
        context.memory[CWD] = str(tmp_path / "sub")
        return await real(arguments, context)

    tool._execute = moving
    script = [call("shell", command="ls"), call("shell", command="touch a.txt"), "ok"]
    run(story(tmp_path, script, person, tool))
    (asked,) = person.asked
    assert (asked.cwd, asked.paths) == (str(tmp_path / "sub"), ("sub/a.txt",))


def test_a_parked_step_has_all_its_questions_in_their_groups(tmp_path):
    root, state = tmp_path / "w", tmp_path / "state"
    root.mkdir()

    async def whole():
        done = []
        wanted = [
            ("write", {"path": "a"}),
            ("shell", {"command": "touch x"}),
            ("write", {"path": "b"}),
        ]
        tools = files(done, "write"), shell(done)
        rest = {"root": root, "machine": LocalMachine(Workspace(root)), "on_ask": "park"}
        store = JsonlStore(state)
        async with make_engine([calls(*wanted), "ok"], *tools, store=store, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            found = session.history.pending.values()
            groups = {one.call.id: one.group for one in found}
        store = JsonlStore(state)
        async with make_engine(["ok"], *tools, store=store, **rest) as engine:
            session = await engine.session(session.id)
            for one in list(session.history.pending.values()):
                await session.answer(one.call.id, True, shown=one.shown, by="ann")
            await session.wait(session.turn)
            return groups, done

    groups, done = run(whole())
    assert groups["call_1"] == groups["call_3"] != ""
    assert groups["call_2"] == ""
    assert done == [("write", "a"), "touch x", ("write", "b")]


def test_rules_of_the_person_still_speak_first(tmp_path):
    done, person = [], Person()
    rules = (Rule("deny", "write", "**/b"),)
    wanted = [("write", {"path": one}) for one in "abc"]
    work = story(tmp_path, [calls(*wanted), "ok"], person, files(done, "write"), rules=rules)
    run(work)
    assert [one.call.arguments["path"] for one in person.asked] == ["a", "c"]
    assert done == [("write", "a"), ("write", "c")]
