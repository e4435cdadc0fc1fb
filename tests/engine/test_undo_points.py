"""What is kept for undo, and when; which calls only read by what is known of them."""

import asyncio

import pytest
from standing import Ledger

from bridle.engine.gate import JudgedCall
from bridle.events import CallIntended, FileChange, FilesChanged, ToolResultEvent, TraceEvent
from bridle.messages import ToolCall
from bridle.policy import Act, Decision, Facts, ToolPolicy
from rig import Thing, call, calls, events, make_engine, results, run


def writing(story, name="thing"):
    async def execute(arguments, context):
        story.append(("effect", context.call_id))
        return "done"

    return Thing(execute, name, read_only=False)


def reading(name="look"):
    async def execute(arguments, context):
        return "seen"

    return Thing(execute, name, read_only=True)


async def turn(replies, *tools, **rest):
    async with make_engine(replies, *tools, mode="auto", **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send("go"))
        return engine, session.id, result


def test_what_stands_there_is_kept_before_each_effect_and_what_changed_is_said_before_the_result():
    ledger = Ledger()
    replies = [calls(("look", {}), ("thing", {}), ("thing", {})), "ok"]
    work = turn(replies, reading(), writing(ledger.story), undo=ledger)
    engine, found, _ = run(work)
    assert ledger.story == [
        ("keep", 1),
        ("before", "call_2"),
        ("effect", "call_2"),
        ("after", "call_2"),
        ("before", "call_3"),
        ("effect", "call_3"),
        ("after", "call_3"),
    ]
    order = events(engine, found, (CallIntended, FilesChanged, ToolResultEvent))
    kinds = [type(one).__name__ for one in order]
    whole = ["CallIntended", "FilesChanged", "ToolResultEvent"]
    assert kinds == ["CallIntended", "ToolResultEvent", *whole, *whole]


def test_a_turn_that_only_reads_keeps_nothing():
    ledger = Ledger()
    run(turn([call("look"), "ok"], reading(), undo=ledger))
    assert ledger.story == []


def test_what_cannot_be_kept_is_not_changed():
    ledger = Ledger(fails="before")
    engine, found, _ = run(turn([call("thing"), "ok"], writing(ledger.story), undo=ledger))
    said = "not run: what it would change cannot be saved for undo: OSError('the disk is full')"
    assert results(engine, found) == [("call_1", said, True)]
    assert ledger.story == [("keep", 1)]


def test_trouble_after_the_effect_is_said_and_takes_nothing_back():
    ledger = Ledger(fails="after")
    engine, found, _ = run(turn([call("thing"), "ok"], writing(ledger.story), undo=ledger))
    assert results(engine, found) == [("call_1", "done", False)]
    (changed,) = events(engine, found, FilesChanged)
    assert changed.uncovered == ("undo failed: OSError('the disk is full')",)


def test_what_an_interrupted_call_changed_is_kept_all_the_same():
    async def story():
        ledger, begun = Ledger(), asyncio.Event()

        async def execute(arguments, context):
            begun.set()
            await asyncio.Event().wait()

        thing = Thing(execute, read_only=False)
        async with make_engine([call("thing"), "ok"], thing, undo=ledger, mode="auto") as engine:
            session = await engine.session()
            await session.send("go")
            await begun.wait()
            await session.interrupt()
            return ledger.story, len(events(engine, session.id, FilesChanged))

    assert run(story()) == ([("keep", 1), ("before", "call_1"), ("after", "call_1")], 1)


READS, WRITES = Act(("shell",), "ls", "reads"), Act(("shell",), "rm a", "changes")


@pytest.mark.parametrize(
    ("policy", "facts", "reads"),
    [
        (ToolPolicy(read_only=True), Facts(), True),
        (ToolPolicy(), Facts(), False),
        (ToolPolicy(), Facts(acts=(READS, READS)), True),
        (ToolPolicy(), Facts(acts=(READS, WRITES)), False),
        (ToolPolicy(), Facts(acts=(READS,), opaque="an expansion"), False),
        (ToolPolicy(), Facts(acts=(READS,), floor="never"), False),
    ],
)
def test_a_call_only_reads_where_everything_in_it_is_known_to(policy, facts, reads):
    thing = Thing(None)
    thing.policy = policy
    assert JudgedCall(ToolCall("c", "shell"), thing, facts, Decision("allow")).reads is reads


@pytest.mark.parametrize(
    ("command", "moves"),
    [("cd sub", True), ("cd", True), ("pushd x", True), ("cdrecord x", False), ("ls cd", False)],
)
def test_a_command_that_moves_the_shell_is_known(command, moves):
    facts = Facts(acts=(Act(("shell",), command, "reads"),))
    assert (
        JudgedCall(ToolCall("c", "shell"), Thing(None), facts, Decision("allow")).changes_folder
        is moves
    )


class Changing(Ledger):
    """A undo that says that a call changed these files."""

    def __init__(self, *paths):
        super().__init__()
        self.paths = paths
        self.how = "changed"

    def record_turn(self, session_id, turn):
        kept = super().record_turn(session_id, turn)
        kept.after = self._after
        return kept

    async def _after(self, call):
        files = tuple(FileChange(path, self.how) for path in self.paths)
        return FilesChanged(1, call.id, files)


def running():
    async def execute(arguments, context):
        return "done"

    tool = Thing(execute, "run", read_only=False)
    tool.policy = ToolPolicy(runs="command")
    tool.parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
    return tool


def test_files_that_take_care_and_that_a_command_changed_are_told_to_the_model_and_to_all():
    """Under `auto` nobody was asked about them: a script has no path that could be judged."""
    undo = Changing("a.txt", ".github/workflows/ci.yml", ".env", ".bridle/x")
    work = turn([call("run", command="ls"), "ok"], running(), undo=undo, sandbox="landlock")
    engine, found, _ = run(work)
    said = (
        "this command changed files that run by themselves or hold credentials: "
        ".github/workflows/ci.yml (it runs in continuous integration), "
        ".env (it holds credentials), .bridle/x (it is one of bridle's own files)"
    )
    paths = [".github/workflows/ci.yml", ".env", ".bridle/x"]
    detail = {"callId": "call_1", "paths": paths, "message": said}
    assert events(engine, found, TraceEvent) == [TraceEvent("guarded_change", detail)]
    assert results(engine, found)[0][1] == f"done\n[note: {said}]"


@pytest.mark.parametrize("how", ["added", "deleted"])
def test_packages_that_a_command_installs_or_removes_are_not_told_of(how):
    paths = (
        ".venv/pyvenv.cfg",
        ".venv/lib/python3/site-packages/certifi/cacert.pem",
        ".venv/lib/python3/site-packages/distutils-precedence.pth",
        "app/node_modules/a/.npmrc",
    )
    undo = Changing(*paths)
    undo.how = how
    work = turn([call("run", command="ls"), "ok"], running(), undo=undo, sandbox="landlock")
    engine, found, _ = run(work)
    assert events(engine, found, TraceEvent) == []
    assert results(engine, found)[0][1] == "done"


@pytest.mark.parametrize(
    ("tool", "path"), [(running(), "a.txt"), (writing([], "run"), ".github/workflows/ci.yml")]
)
def test_ordinary_files_and_files_that_were_judged_by_their_names_are_not_told_of(tool, path):
    replies = [call("run", command="ls"), "ok"]
    work = turn(replies, tool, undo=Changing(path), sandbox="landlock")
    engine, found, _ = run(work)
    assert events(engine, found, TraceEvent) == []
    assert results(engine, found)[0][1] == "done"
