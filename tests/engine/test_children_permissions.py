"""Child sessions can never do what the session that began them could not."""

import asyncio
import time

from family import Cast, children_of, family_engine, task
from hypothesis import given, settings
from hypothesis import strategies as st
from standing import Opinion

from bridle.engine.budget import Budget, Limits
from bridle.engine.call_middleware import CallMiddleware
from bridle.engine.engine_config import EngineConfig
from bridle.engine.gate import Gate
from bridle.engine.grants import timestamp
from bridle.engine.subagents import Parent, Tree
from bridle.events import ApprovalAsked, Grant, ModeChanged
from bridle.messages import ToolCall
from bridle.policy import MODES, ORDER, Act, Facts, ToolPolicy, parse_rule
from bridle.protocols.provider import ProviderInfo
from bridle.protocols.session import Answer
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import tool
from bridle.tools.session_tools import ExitPlanMode
from bridle.workspace.workspace import Workspace
from rig import SOAK, call, events, results, run

NAMES = ("shell", "write", "read")
SUBJECTS = ("git push", "ls", "a.txt", "db/x.sql")
WORDS = ("allowed", "requires_approval", "denied", "strange")

acts = st.builds(
    Act,
    st.sampled_from([(name,) for name in NAMES]),
    st.sampled_from(SUBJECTS),
    st.sampled_from(["reads", "edits", "builds", "changes"]),
    minor=st.booleans(),
)
policies = st.builds(
    ToolPolicy,
    read_only=st.booleans(),
    requires_approval=st.booleans(),
    edits=st.booleans(),
    asks=st.booleans(),
    delegates=st.booleans(),
)
rare = st.sampled_from(["", "", "because"])
facts = st.builds(
    Facts,
    policies,
    st.sampled_from(SUBJECTS),
    st.sampled_from(["", "", "", "", "never"]),
    st.lists(acts, max_size=3).map(tuple),
    rare,
    rare,
    st.booleans(),
)
rules = st.builds(
    lambda verdict, name, subject: parse_rule(f"{verdict}: {name}({subject})"),
    st.sampled_from(ORDER),
    st.sampled_from((*NAMES, "*")),
    st.sampled_from((*SUBJECTS, "*", "*.sql")),
)
grants = st.lists(
    st.builds(
        lambda name, subject: Grant(
            f"{name}{subject}",
            until=timestamp(time.time() + 3600),
            cwd="/",
            rule=f"allow: {name}({subject})",
        ),
        st.sampled_from(NAMES),
        st.sampled_from((*SUBJECTS, "*")),
    ),
    max_size=3,
)
modes = st.sampled_from(MODES)


class Told:
    """A tool of which the test says what a call would do."""

    name = "shell"
    description = "a thing"
    parameters = {"type": "object"}

    def __init__(self, found):
        self.policy = found.policy
        self._found = found

    def facts(self, arguments):
        return self._found


def verdict(parts, mode, found, granted=()):
    """What the gate, and then the person's own policy, say of a call in a session."""
    judging = Gate.of_session(parts, lambda: mode, {one.id: one for one in granted})

    async def weigh():
        judged = judging.judge(ToolCall("1", "shell", {}), Told(found))
        if judged.decision.verdict == "deny":
            return judged
        return await CallMiddleware(parts, "s", 1, print).apply_policy_engine(judged, mode)

    return ORDER.index(asyncio.run(weigh()).decision.verdict)


@settings(max_examples=2000 if SOAK else 300, deadline=None)
@given(
    facts,
    st.lists(rules, max_size=4),
    st.tuples(modes, modes, modes),
    grants,
    st.sampled_from((None, *WORDS)),
)
def test_the_verdict_in_a_child_is_never_wider_than_above_it(found, given, chosen, granted, word):
    """Whatever the modes, rules, grants and policies are, and whoever changes a mode meanwhile."""
    judge = None if word is None else Opinion(word)
    parts = EngineConfig(
        Scripted([]), {}, MemoryStore(), Workspace("/"), tuple(given), judge=judge, mode="auto"
    )
    budget, tree = Budget(Limits(), ProviderInfo("m")), Tree()
    top, middle, low = chosen
    above = Parent("a", "1", 1, budget, lambda: top, tree)
    middle = above.narrowed(middle)
    below = Parent("b", "1", 2, budget, lambda: middle, tree, above)
    parent = verdict(parts, top, found, granted)
    child = verdict(parts.changed(parent=above), middle, found)
    grandchild = verdict(parts.changed(parent=below), below.narrowed(low), found)
    assert grandchild <= child <= parent
    assert MODES.index(below.narrowed(low)) <= MODES.index(middle) <= MODES.index(top)


@tool
async def mark(word: str) -> str:
    """Change something."""
    return f"made {word}"


async def in_modes(mode, change=None):
    """What becomes of a child's change where the parent has this mode, and then another."""
    cast = Cast(
        go=[task("a"), "ok"], a=[call("turn"), call("mark", word="x"), "done"], more=["never"]
    )
    sessions = []

    @tool(read_only=True)
    async def turn() -> str:
        """Have somebody change the modes meanwhile."""
        if change is not None:
            child = next(one.id for one in engine.summaries() if one.parent)
            engine.get_open(child).mode = change[1]
            sessions[0].mode = change[0]
        return "turned"

    async with family_engine(cast, mark, turn, ExitPlanMode()) as engine:
        sessions.append(session := await engine.session())
        session.mode = mode
        await session.wait(await session.send("go"))
        (child,) = children_of(engine, session.id)
        assert events(engine, child, ModeChanged)[0].mode == mode
        return [(text, failed) for _, text, failed in results(engine, child)][1]


def test_a_child_has_its_parents_mode_and_keeps_below_it_when_modes_change():
    planned = "not run: plan mode only reads; nothing is changed until the plan is agreed"
    nobody_here = "no one is available to approve it"
    asked = f"not run: approval was denied: {nobody_here}"
    assert run(in_modes("auto")) == ("made x", False)
    assert run(in_modes("ask")) == (asked, True)
    assert run(in_modes("plan")) == (planned, True)
    assert run(in_modes("plan", ("plan", "auto"))) == (planned, True)
    assert run(in_modes("auto", ("plan", "auto"))) == (planned, True)
    assert run(in_modes("auto", ("ask", "auto"))) == (asked, True)
    assert run(in_modes("auto", ("auto", "plan"))) == (planned, True)


def test_a_child_cannot_leave_plan_mode_by_itself():
    async def story():
        cast = Cast(go=[task("a"), "ok"], a=[call("exit_plan_mode", plan="p"), "I cannot"])
        asked = []

        async def yes(question):
            asked.append(question)
            return True

        async with family_engine(cast, ExitPlanMode(), mode="plan", approver=yes) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (child,) = children_of(engine, session.id)
            ((_, text, failed),) = results(engine, child)
            return asked, text, failed

    missing = "there is no tool named 'exit_plan_mode'; there are: task"
    assert run(story()) == ([], missing, True)


def test_a_yes_for_the_parents_session_is_none_for_its_children():
    """And the question says which task it is of."""
    asked = []

    async def answer(question: ApprovalAsked):
        asked.append((question.call.name, question.reason))
        return Answer(True, "session")

    async def story():
        again = call("mark", word="x")
        cast = Cast(
            go=[again, again, task("a", description="mark it"), "ok"], a=[again, again, "done"]
        )
        async with family_engine(cast, mark, approver=answer) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            return result.reason

    assert run(story()) == "done"
    plain = "mark may change things"
    assert asked == [("mark", plain), ("mark", f"{plain}; for the task “mark it”")]
