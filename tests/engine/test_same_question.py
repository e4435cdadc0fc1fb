"""A yes counts for what was asked: the same reason to ask, the same care and sandbox (A11)."""

import subprocess

import pytest

from bridle.engine.grants import similarity_key
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.policy import ToolPolicy
from bridle.protocols.session import YES, Answer
from bridle.stores.memory_store import MemoryStore
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace
from rig import Thing, call, make_engine, run

WILD = '[core]\n\tfsmonitor = "touch x"\n'


def shell(done):
    async def execute(arguments, context):
        done.append(arguments["command"])
        return "done"

    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    thing = Thing(execute, "shell", read_only=False, parameters=schema)
    thing.policy = ToolPolicy(runs="command", risk="high")
    return thing


class Person:
    """Says the same each time, after something has happened."""

    def __init__(self, answer, before=lambda: None):
        self.answer, self.before, self.asked = answer, before, []

    async def __call__(self, asked):
        self.asked.append(asked)
        self.before()
        return self.answer


class Level:
    """A sandbox whose level may change."""

    def __init__(self, level):
        self.level = level


@pytest.fixture
def place(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


async def story(root, person, *commands, **rest):
    done = []
    rest = {"root": root, "machine": LocalMachine(Workspace(root)), "approver": person, **rest}
    script = [call("shell", command=one) for one in commands]
    async with make_engine([*script, "ok"], shell(done), **rest) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
    return done


def grow(path, text):
    path.write_text(path.read_text() + text)


def test_a_yes_is_none_any_more_once_the_repository_would_run_programs(place):
    config = place / ".git" / "config"
    person = Person(YES, lambda: grow(config, WILD))
    assert run(story(place, person, "git add f")) == []
    assert [one.once_only for one in person.asked] == [False]


def test_a_grant_covers_no_program_that_the_repository_names_later(place):
    person = Person(Answer(True, "session"), lambda: None)
    config = place / ".git" / "config"
    done = run(story(place, person, "git add f", "git add f"))
    assert (len(done), len(person.asked)) == (2, 1)
    grow(config, WILD)
    person = Person(Answer(True, "session"))
    done = run(story(place, person, "git add f", "git add f"))
    assert (len(done), [one.once_only for one in person.asked]) == (2, [True, True])


def test_a_question_says_which_sandbox_the_command_would_run_in(place):
    person = Person(YES)
    for level in ("bubblewrap", "none"):
        run(story(place, person, "touch a", sandbox=Level(level)))
    assert [one.sandbox for one in person.asked] == ["bubblewrap", "none"]


def test_a_yes_under_a_sandbox_is_none_without_one(place):
    level = Level("landlock")
    person = Person(YES, lambda: setattr(level, "level", "none"))
    assert run(story(place, person, "touch a", sandbox=level)) == []


@pytest.mark.parametrize("command", ["touch a", "make"])
def test_a_grant_under_a_sandbox_is_none_without_one(place, command):
    levels = iter(["landlock", "none", "none"])
    level = Level("landlock")
    done = []
    tool = shell(done)
    once = tool.execute

    async def execute(arguments, context):
        found = await once(arguments, context)
        level.level = next(levels)
        return found

    tool.execute = execute
    person = Person(Answer(True, "session"))

    async def told():
        rest = {"root": place, "machine": LocalMachine(Workspace(place)), "approver": person}
        script = [call("shell", command=command)] * 3
        async with make_engine([*script, "ok"], tool, sandbox=level, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))

    run(told())
    assert [one.sandbox for one in person.asked] == ["landlock", "none"]
    assert len(done) == 3


def test_an_answer_that_took_days_does_not_count_in_another_sandbox(place):
    store, done = MemoryStore(), []

    async def told():
        rest = {
            "root": place,
            "machine": LocalMachine(Workspace(place)),
            "store": store,
            "on_ask": "park",
        }
        script = [call("shell", command="touch a"), "ok"]
        async with make_engine(script, shell(done), sandbox=Level("landlock"), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (first,) = session.history.pending.values()
        async with make_engine(["ok"], shell(done), sandbox=Level("none"), **rest) as engine:
            session = await engine.session(session.id)
            await session.answer(first.call.id, YES, shown=first.shown, by="ann")
            await session.wait(session.turn)
            return [one.sandbox for one in session.history.pending.values()]

    assert run(told()) == ["none"]
    assert done == []


def asked(*commands, paths=()):
    return ApprovalAsked(ToolCall("c", "shell", {}), "s", commands=commands, paths=paths)


def test_calls_are_alike_where_all_that_they_do_is():
    calls = [
        asked("touch a"),
        asked("touch a", "rm -rf b"),
        asked("touch a", paths=("a",)),
        asked("touch a", *["x" * 300], "b"),
        asked("touch a", *["x" * 300], "c"),
    ]
    assert len({similarity_key(one) for one in calls}) == len(calls)
    assert similarity_key(asked("touch a")) == similarity_key(calls[0]) == "shell touch a"
    assert max(len(similarity_key(one)) for one in calls) < 300
