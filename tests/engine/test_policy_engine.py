"""A person's own policy engine: it may allow, ask and deny, and lifts nothing that holds (A5)."""

import asyncio
import enum
from types import SimpleNamespace

import pytest
from standing import Opinion

from bridle.engine.call_middleware import parse_policy_answer
from bridle.events import ApprovalAsked
from bridle.policy import Decision, Rule, ToolPolicy
from bridle.protocols.session import NO, YES
from rig import Thing, call, events, make_engine, results, run


class Word(enum.Enum):
    ALLOWED = "allowed"
    REQUIRES_APPROVAL = "requires_approval"
    DENIED = "denied"


class Plain(enum.StrEnum):
    ALLOWED = "allowed"


def changing(done, policy=None):
    async def execute(arguments, context):
        done.append(arguments.get("what", ""))
        return "done"

    thing = Thing(execute, read_only=False)
    thing.parameters = {"type": "object", "properties": {"what": {"type": "string"}}}
    thing.policy = policy or ToolPolicy()
    return thing


def outcome(said, answer=NO, policy=None, **rest):
    """What a call comes to that this engine judges: was it run, asked about, and its result."""

    async def story():
        done = []

        async def approver(asked):
            return answer

        thing = changing(done, policy)
        judge = said if isinstance(said, Opinion) else Opinion(said)
        parts = {"judge": judge, "approver": approver, **rest}
        async with make_engine([call("thing", what="a"), "ok"], thing, **parts) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            asked = events(engine, session.id, ApprovalAsked)
            return done, len(asked), results(engine, session.id)[0][1]

    return run(story())


ALLOWED = [
    "allowed",
    Word.ALLOWED,
    Plain.ALLOWED,
    Decision("allow"),
    SimpleNamespace(value="allowed"),
]
ALLOWED += [SimpleNamespace(decision="allowed"), SimpleNamespace(decision=Word.ALLOWED)]


@pytest.mark.parametrize("said", ALLOWED, ids=repr)
def test_it_may_allow_what_would_be_asked_about(said):
    """A5."""
    assert outcome(said) == (["a"], 0, "done")


@pytest.mark.parametrize(
    "said",
    ["requires_approval", Word.REQUIRES_APPROVAL, Decision("ask", "hm")],
    ids=repr,
)
def test_it_may_have_asked_what_would_run(said):
    """A5."""
    reads = ToolPolicy(read_only=True)
    assert outcome(said, YES, reads) == (["a"], 1, "done")
    assert outcome(said, NO, reads) == ([], 1, "not run: approval was denied")


@pytest.mark.parametrize("said", ["denied", Word.DENIED, Decision("deny", "hm")], ids=repr)
def test_it_may_deny_what_would_run_and_nobody_is_asked(said):
    """A5."""
    done, asked, text = outcome(said, YES, ToolPolicy(read_only=True))
    assert (done, asked) == ([], 0)
    assert text in ("not run: hm", "not run: the policy engine decided so")


STRANGE = [None, True, "yes", "allow", 1, object(), {}, ["allowed"], Decision("maybe")]
STRANGE += [SimpleNamespace(decision=True), SimpleNamespace(value=None), RuntimeError("broken")]


@pytest.mark.parametrize("said", STRANGE, ids=lambda one: type(one).__name__)
def test_whatever_else_it_says_or_raises_is_a_deny(said):
    """A5: fail closed."""
    done, asked, text = outcome(said, YES, ToolPolicy(read_only=True))
    assert (done, asked) == ([], 0)
    assert text.startswith("not run: the policy engine ")


def test_it_is_not_asked_where_a_rule_denies_and_does_not_lift_it():
    """A5."""
    opinion = Opinion("allowed")
    done, asked, text = outcome(opinion, YES, rules=(Rule("deny", "thing"),), mode="auto")
    assert (done, asked, text) == ([], 0, "not run: a rule forbids it")
    assert opinion.asked == []


def test_it_does_not_lift_plan_mode():
    """A5, P4."""
    done, asked, text = outcome("allowed", YES, mode="plan")
    assert (done, asked) == ([], 0)
    assert text.startswith("not run: plan mode only reads")


def test_a_question_to_the_person_stays_one():
    """A5: what only a person may settle, no engine settles."""
    asks = ToolPolicy(read_only=True, asks=True)
    assert outcome("allowed", NO, asks) == ([], 1, "not run: approval was denied")
    assert outcome("denied", YES, asks)[:2] == ([], 0)


def test_a_tool_that_requires_approval_asks_in_every_mode_but_auto():
    """A5: `--yes` stands for the answer."""
    needs = ToolPolicy(requires_approval=True)
    for policy in (needs, ToolPolicy(read_only=True, requires_approval=True)):
        for mode in ("ask", "edits"):
            assert asked_in(mode, policy) == 1, mode
        assert asked_in("auto", policy) == 0
    assert asked_in("plan", ToolPolicy(read_only=True, requires_approval=True)) == 1


def asked_in(mode, policy):
    """How often a person is asked about a call of that tool, where no engine judges it."""

    async def story():
        async def approver(asked):
            return YES

        done = []
        parts = {"approver": approver, "mode": mode}
        async with make_engine(
            [call("thing", what="a"), "ok"], changing(done, policy), **parts
        ) as e:
            session = await e.session()
            await session.wait(await session.send("go"))
            assert done == ["a"]
            return len(events(e, session.id, ApprovalAsked))

    return run(story())


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_it_may_allow_a_tool_that_requires_approval(mode):
    """A5: a policy of one's own answers for the person."""
    needs = ToolPolicy(requires_approval=True)
    assert outcome("allowed", NO, needs, mode=mode) == (["a"], 0, "done")


def test_in_auto_its_asks_are_answered_and_its_denies_are_not():
    """A5: `--yes` skips approval, never a deny."""
    assert outcome("requires_approval", NO, mode="auto") == (["a"], 0, "done")
    assert outcome("denied", YES, mode="auto")[:2] == ([], 0)


def test_it_cannot_alter_what_it_was_shown():
    """SECURITY: shown text differed from what ran."""

    def alter(tool, arguments):
        arguments["what"] = "b"
        return "allowed"

    assert outcome(alter) == (["a"], 0, "done")


def test_a_decision_keeps_its_reason():
    assert parse_policy_answer(Decision("ask", "because")) == Decision(
        "ask", "because", "policy engine"
    )
    said = SimpleNamespace(decision="denied", reason="not today")
    assert parse_policy_answer(said) == Decision("deny", "not today", "policy engine")


class Silent:
    """A policy engine that never answers; a stubborn one does not even let go."""

    def __init__(self, stubborn):
        self.stubborn = stubborn
        self.freed = asyncio.Event()

    async def evaluate(self, tool, arguments):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.stubborn:
                raise
            await self.freed.wait()
        return "allowed"


@pytest.mark.parametrize("stubborn", [False, True])
def test_one_that_never_answers_has_said_no(stubborn):
    """A5: what cannot be judged does not run."""

    async def story():
        done, judge = [], Silent(stubborn)
        parts = {"judge": judge, "judge_seconds": 0.01, "mode": "auto"}
        async with make_engine([call("thing"), "ok"], changing(done), **parts) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            judge.freed.set()
            return done, results(engine, session.id)[0][1]

    said = "not run: the policy engine did not answer within 0.01 s"
    assert run(story()) == ([], said)
