"""An answer is for exactly what was shown; nothing and nobody lifts a deny (A5, A11)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from standing import Opinion, SaidHooks

from bridle.engine.approvals import UNATTENDED, Approvals
from bridle.engine.engine_config import EngineConfig
from bridle.engine.gate import JudgedCall, facts_of
from bridle.engine.history import History
from bridle.errors import UnknownApproval
from bridle.events import ApprovalAsked
from bridle.messages import ToolCall
from bridle.policy import MODES, Act, Decision, Facts, Rule, ToolPolicy, decide
from bridle.protocols.hooks import HookResult
from bridle.protocols.machine import Place
from bridle.protocols.session import NO, YES, Answer
from bridle.protocols.store import Record
from bridle.providers.scripted import Scripted
from bridle.stores.memory_store import MemoryStore
from bridle.workspace.workspace import Workspace
from rig import Thing, call, events, make_engine, run, until

SPACE = Workspace("/")
SHELL = Thing(None, "shell", read_only=False)
SHELL.policy = ToolPolicy(runs="command")


class Desk:
    """The questions of one session, with a log that is a list."""

    def __init__(self, session_id="s", **rest):
        rest.setdefault("redact_tokens", False)
        parts = EngineConfig(Scripted([]), {}, MemoryStore(), SPACE, **rest)
        self.history, self.said = History(), []
        self.approvals = Approvals(self.hear, parts, session_id, self.history)

    def hear(self, event):
        self.said.append(event)
        self.history.apply(Record(len(self.said), "", event))


def question(command="make all", cwd="/w", **rest):
    acts = (Act(("shell",), command), Act(("write",), "out.txt", is_path=True))
    call_ = ToolCall("call_1", "shell", {"command": command, "timeout": 5, "env": {"A": ["b", 1]}})
    return JudgedCall(call_, SHELL, Facts(acts=acts), Decision("ask", "it builds", **rest), cwd)


def altered_text(text, chance):
    """The text with one character changed, dropped, doubled or added."""
    if not text:
        return "x"
    at = chance.randrange(len(text))
    other = chance.choice("abcdef0123456789 _/é")
    choices = [text[:at] + text[at + 1 :], text[:at] + other + text[at:], text[:at] + other]
    choices += [text[:at] + other + text[at + 1 :], text.swapcase(), text + "\0"]
    return chance.choice(choices)


def altered_value(value, chance):
    if isinstance(value, str):
        return altered_text(value, chance)
    if isinstance(value, dict):
        key = chance.choice(sorted(value))
        found = {**value, key: altered_value(value[key], chance)}
        less = {one: value[one] for one in value if one != key}
        return chance.choice([found, less, {**value, "more": 1}])
    if isinstance(value, list):
        return chance.choice([value[::-1], value[:-1], [*value, None]])
    return chance.choice([value + 1, float(value) + 0.5, str(value), None, True])


def altered(judged, chance):
    """The same question but for one thing."""
    call_, facts = judged.call, judged.facts
    acts = list(facts.acts)
    at = chance.randrange(len(acts))
    acts[at] = replace(acts[at], subject=altered_text(acts[at].subject, chance))
    return chance.choice(
        [
            replace(judged, call=replace(call_, arguments=altered_value(call_.arguments, chance))),
            replace(judged, call=replace(call_, name=altered_text(call_.name, chance))),
            replace(judged, cwd=altered_text(judged.cwd, chance)),
            replace(judged, facts=replace(facts, acts=tuple(acts))),
            replace(judged, facts=replace(facts, acts=facts.acts[:1])),
            replace(judged, decision=replace(judged.decision, reason="it reads", rule="x")),
            replace(judged, decision=replace(judged.decision, once_only=True)),
            replace(judged, facts=replace(facts, guard="it reads a key")),
            replace(judged, facts=replace(facts, opaque="it has an expansion")),
            replace(judged, facts=replace(facts, sandbox="none")),
        ]
    )


def test_of_a_thousand_changed_calls_none_runs_on_a_yes_for_another():
    """A11: 1,000 mutations of what was shown, none accepted; the call itself is."""

    async def story():
        accepted = []
        for seed in range(1000):
            chance, desk = random.Random(seed), Desk()
            judged = question()
            asked = desk.approvals.request(judged)
            desk.approvals.answer("call_1", YES, asked.shown, "ann")
            if (await desk.approvals.ask(judged)) != Answer(True, by="ann"):
                accepted.append((seed, "the call itself was not run"))
            other = altered(judged, chance)
            if other != judged and (await desk.approvals.ask(other)) != UNATTENDED:
                accepted.append((seed, other))
        return accepted

    assert run(story()) == []


def test_of_a_thousand_changed_answers_none_is_taken():
    """A11: another hash, another call, another session."""
    taken = []
    for seed in range(1000):
        chance, desk, elsewhere = random.Random(seed), Desk(), Desk("t")
        asked = desk.approvals.request(question())
        elsewhere.approvals.request(question())
        shown, name = asked.shown, asked.call.id
        if chance.random() < 0.5:
            shown = altered_text(shown, chance)
        else:
            name = altered_text(name, chance)
        if (shown, name) == (asked.shown, asked.call.id):
            continue
        for where, hash_, call_id in [
            (desk, shown, name),
            (elsewhere, asked.shown, asked.call.id),
            (elsewhere, shown, name),
        ]:
            try:
                where.approvals.answer(call_id, YES, hash_, "mallory")
            except UnknownApproval:
                continue
            taken.append(seed)
        assert len(desk.history.pending) == len(elsewhere.history.pending) == 1
    assert taken == []


def test_a_session_that_is_called_otherwise_takes_no_answer_from_the_log_of_this_one():
    """A11: bound to the session, also when a log is copied."""

    async def story():
        one, two = Desk("s"), Desk("t")
        asked = one.approvals.request(question())
        one.approvals.answer("call_1", YES, asked.shown, "ann")
        for event in one.said:
            two.hear(event)
        return await two.approvals.ask(question())

    assert run(story()) == UNATTENDED


def test_what_changed_while_it_was_asked_about_does_not_run():
    """A11: a file that became a link, a mode that became stricter."""

    class Shifting:
        """A machine on which a path leads elsewhere at the second look."""

        root, home = "/", "/root"

        def __init__(self):
            self.places = ["a.txt", "b.txt", "b.txt"]

        def place(self, path, cwd, *, read_only=False):
            return Place(self.places.pop(0), True)

    async def story(**rest):
        done = []

        async def execute(arguments, context):
            done.append(arguments)

        async def approver(asked):
            if "machine" not in rest:
                session.mode = "plan"
            return YES

        thing = Thing(execute, "write", read_only=False)
        thing.policy = ToolPolicy(edits=True, files=True)
        thing.parameters = {"type": "object"}
        rest = {"approver": approver, **rest}
        async with make_engine([call("write", path="a.txt"), "ok"], thing, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return done, len(events(engine, session.id, ApprovalAsked))

    assert run(story(machine=Shifting())) == ([], 1)
    assert run(story()) == ([], 1)


def test_an_approver_that_alters_what_it_was_shown_has_allowed_nothing():
    """A11: what was shown, or nothing."""

    async def story():
        done = []

        async def execute(arguments, context):
            done.append(arguments)

        async def approver(asked):
            asked.call.arguments["what"] = "b"
            return YES

        thing = Thing(execute, read_only=False, parameters={"type": "object"})
        async with make_engine([call("thing", what="a"), "ok"], thing, approver=approver) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
        return done

    assert run(story()) == []


def test_an_answer_after_the_session_is_gone_runs_nothing():
    """A11: disconnect, then a late answer."""

    async def story():
        done = []

        async def execute(arguments, context):
            done.append(1)

        thing = Thing(execute, read_only=False)
        store = MemoryStore()
        async with make_engine([call("thing"), "ok"], thing, on_ask="wait", store=store) as engine:
            session = await engine.session()
            await session.send("go")
            asked = await until(session, lambda event: isinstance(event, ApprovalAsked))
            await session.interrupt()
            with pytest.raises(UnknownApproval):
                await session.answer("call_1", True, shown=asked.event.shown, by="ann")
        return done

    assert run(story()) == []


class Lie:
    """A machine of three places: free, secret (a guard) and out (the floor)."""

    root, home = "/", "/root"

    def place(self, path, cwd, *, read_only=False):
        if path == "out":
            return Place("/out", False, why="it leads out")
        return Place(path, True, writing="ask" if path == "secret" else "", why="it is a secret")


paths = st.sampled_from(["free", "other", "secret", "out"])
rules = st.builds(Rule, st.sampled_from(["allow", "ask", "deny"]), st.just("write"), paths)
remarks = st.one_of(
    st.none(),
    st.just(HookResult(deny="no")),
    st.builds(lambda path: HookResult(arguments={"path": path}), paths),
)
opinions = st.sampled_from(
    [None, "allowed", "requires_approval", "denied", "hm", Decision("allow")]
)
answers = st.sampled_from([YES, NO, Answer(True, "session"), Answer(True, "rule"), None])


@settings(max_examples=150, deadline=None)
@given(paths, st.lists(rules, max_size=3), st.sampled_from(MODES), remarks, opinions, answers)
def test_no_approver_hook_engine_or_mode_lifts_a_deny(path, found, mode, remark, opinion, answer):
    """A5: the floor, a deny rule, plan mode, a hook, an engine; and a guard takes a person."""

    async def story():
        done = []

        async def execute(arguments, context):
            done.append(arguments["path"])

        async def approver(asked):
            return answer

        thing = Thing(execute, "write", read_only=False, parameters={"type": "object"})
        thing.policy = ToolPolicy(edits=True, files=True)
        rest = {"rules": tuple(found), "mode": mode, "machine": Lie(), "approver": approver}
        rest["hooks"] = SaidHooks(before_tool=remark) if remark is not None else None
        rest["judge"] = Opinion(opinion) if opinion is not None else None
        async with make_engine([call("write", path=path), "ok"], thing, **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
        return done, thing

    done, thing = run(story())
    changed = remark.arguments["path"] if remark is not None and remark.arguments else path
    said = []
    for one in (path, changed):
        call_ = ToolCall("call_1", "write", {"path": one})
        said.append(decide(call_, facts_of(call_, thing, Lie()), found, mode))
    never = "deny" in (said[0].verdict, said[1].verdict) or mode == "plan"
    never = never or (remark is not None and bool(remark.deny)) or opinion in ("denied", "hm")
    unguarded = said[1].once_only and (answer is None or answer.allowed is not True)
    if never or unguarded:
        assert done == []
    else:
        assert done in ([], [changed])
