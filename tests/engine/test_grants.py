"""Grants: what a yes covers beyond its call, until when, and how it is taken back."""

import time

import pytest

from bridle.engine.grants import (
    call_grant_id,
    class_grant_id,
    granted_rules,
    grants_of_answer,
    has_ended,
    with_end,
)
from bridle.engine.history import History, fold
from bridle.errors import SessionError
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Checkpoint,
    Forked,
    Grant,
    GrantRevoked,
    SessionStarted,
)
from bridle.messages import ToolCall
from bridle.policy import Rule
from bridle.protocols.session import Answer
from bridle.protocols.store import InboxMessage, Record
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from rig import Thing, call, events, make_engine, run, until

CALL = ToolCall("a", "shell", {"command": "make"})
LONG_AGO, SOON = "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


def numbered(found):
    return [Record(seq, "2026-01-01T00:00:00Z", one) for seq, one in enumerate(found, 1)]


def changing(done):
    async def execute(arguments, context):
        done.append(arguments.get("what", ""))
        return "done"

    schema = {"type": "object", "properties": {"what": {"type": "string"}}}
    return Thing(execute, read_only=False, parameters=schema)


class Person:
    """Answers everything in the same way, and counts."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def __call__(self, asked):
        self.asked.append(asked)
        return self.answer


async def same_call(person, *, times=2, **rest):
    """The same call several times; how often the person was asked."""
    done = []
    replies = [call("thing", what="a")] * times + ["ok"]
    async with make_engine(replies, changing(done), approver=person, **rest) as engine:
        session = await engine.session()
        await session.wait(await session.send("go"))
        return len(person.asked), done, session.grants(), engine, session.id


def test_a_yes_for_the_session_ends_after_its_time():
    one = run(same_call(Person(Answer(True, "session"))))
    none = run(same_call(Person(Answer(True, "session")), ask_grant_seconds=-1.0))
    assert (one[0], none[0]) == (1, 2)
    assert one[1] == none[1] == ["a", "a"]
    (grant,) = one[2]
    assert (grant.what, grant.by, grant.cwd) == ("thing({'what': 'a'})", "approver", "/")
    assert grant.since < grant.until
    assert none[2] == ()


def test_a_grant_from_before_they_had_an_end_lasts_its_time_from_then():
    now = time.time()
    assert has_ended(Grant("g", since=LONG_AGO), 3600)
    assert has_ended(Grant("g"), 3600)
    assert not has_ended(Grant("g", since=LONG_AGO, until=SOON), 0)
    assert not has_ended(Grant("g", since=LONG_AGO), now)
    assert not has_ended(Grant("g"), float("inf"))
    assert with_end(Grant("g", since=LONG_AGO), 3600).until == "2001-01-01T01:00:00Z"
    assert with_end(Grant("g"), float("inf")).until == ""


def asked(**rest):
    return ApprovalAsked(CALL, "q", cwd="/w", **rest)


def test_what_a_yes_grants():
    once = ApprovalAnswered("a", True, shown="q")
    session = ApprovalAnswered("a", True, "me", "session", shown="q", until=SOON)
    mine, builds = call_grant_id(CALL, "/w"), class_grant_id("builds", "/w")
    assert list(grants_of_answer(asked(), once, "t")) == []
    assert [one.id for one in grants_of_answer(asked(), session, "t")] == [mine]
    assert list(grants_of_answer(asked(covers="builds"), once, "t")) == []
    assert [one.id for one in grants_of_answer(asked(covers="builds"), session, "t")] == [builds]
    rule = ApprovalAnswered("a", True, "me", "rule", shown="q", rule="allow: shell(make)")
    (ruled,) = grants_of_answer(asked(covers="builds"), rule, "t")
    assert (ruled.id, ruled.rule) == (mine, "allow: shell(make)")
    assert list(grants_of_answer(asked(covers="builds", once_only=True), session, "t")) == []
    no = ApprovalAnswered("a", False, "me", "session", shown="q")
    assert list(grants_of_answer(asked(covers="builds"), no, "t")) == []


def test_a_yes_once_in_a_log_of_an_earlier_version_still_grants_what_it_granted():
    """It recorded until when all tests and builds were allowed; now a yes for once has no end."""
    earlier = ApprovalAnswered("a", True, shown="q", until=SOON)
    (grant,) = grants_of_answer(asked(covers="builds"), earlier, LONG_AGO)
    assert (grant.id, grant.until) == (class_grant_id("builds", "/w"), SOON)


def test_a_grant_is_for_the_same_call_in_the_same_folder_that_does_the_same():
    other = ToolCall("b", "shell", {"command": "make "})
    seen = {
        call_grant_id(CALL, "/w"),
        call_grant_id(CALL, "/v"),
        call_grant_id(other, "/w"),
        call_grant_id(CALL, "/w", "make"),
        class_grant_id("builds", "/w"),
        class_grant_id("builds", "/v"),
    }
    assert len(seen) == 6
    assert call_grant_id(ToolCall("z", "shell", {"command": "make"}), "/w") == call_grant_id(
        CALL, "/w"
    )


def test_rules_of_a_session_hold_in_their_workspace_and_only_if_they_allow():
    def grants(*found):
        return {str(n): one for n, one in enumerate(found)}

    good = Grant("g", until=SOON, cwd="/w/sub", rule="allow: shell(make *)")
    strange = [
        Grant("g", until=SOON, cwd="/w-evil", rule="allow: shell(a)"),
        Grant("g", until=LONG_AGO, cwd="/w", rule="allow: shell(b)"),
        Grant("g", until=SOON, cwd="/w", rule="deny: shell(c)"),
        Grant("g", until=SOON, cwd="/w", rule="what?"),
    ]
    expected = (Rule("allow", "shell", "make *", "this session", where="/w"),)
    assert granted_rules(grants(good, *strange), "/w", 0) == expected
    assert [one.where for one in granted_rules(grants(good), "/", 0)] == ["/"]
    assert granted_rules(grants(good), "/v", 0) == ()


def test_grants_are_folded_revoked_and_kept_in_a_checkpoint():
    yes = ApprovalAnswered("a", True, "ann", "session", "", "q", cwd="/w", until=SOON)
    story = [SessionStarted("s"), asked(), yes]
    history = fold(numbered(story))
    (grant,) = history.grants.values()
    assert (grant.by, grant.until, grant.since) == ("ann", SOON, "2026-01-01T00:00:00Z")
    assert history.times == {"shell make": 1}
    kept = fold(numbered([history.checkpoint("h")]))
    assert (kept.grants, kept.times) == (history.grants, history.times)
    for revoked in (GrantRevoked(), GrantRevoked(grant.id)):
        assert fold(numbered([*story, revoked])).grants == {}
    assert fold(numbered([*story, GrantRevoked("other")])).grants == history.grants
    assert fold(numbered([*story, Forked("x", 1)])).grants == {}


def test_an_old_checkpoint_with_bare_grants_still_loads():
    history = History()
    history.apply(Record(1, LONG_AGO, Checkpoint("h", grants=("abc",))))
    assert history.grants == {"abc": Grant("abc", since=LONG_AGO)}


def test_a_grant_is_taken_back_and_the_next_call_asks_again():
    async def story():
        person, done = Person(Answer(True, "session")), []
        script = [call("thing", what="a"), "ok"] * 2
        async with make_engine(script, changing(done), approver=person) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (grant,) = session.grants()
            with pytest.raises(SessionError, match="has no grant nothing"):
                await session.revoke("nothing")
            await session.revoke(grant.id, by="ann")
            assert session.grants() == ()
            await session.wait(await session.send("again"))
            return len(person.asked), events(engine, session.id, GrantRevoked), grant.id

    count, revoked, name = run(story())
    assert count == 2
    assert revoked == [GrantRevoked(name, "ann")]


def test_another_process_takes_grants_back_by_letter():
    async def story():
        person, store = Person(Answer(True, "session")), MemoryStore()
        async with make_engine(
            [call("thing"), "ok"], changing([]), approver=person, store=store
        ) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            assert len(session.grants()) == 1
            store.send_message(session.id, InboxMessage("l", "revoke", "bob"))
            found = await until(session, lambda event: isinstance(event, GrantRevoked))
            return found.event, session.grants(), "l" in session.history.inbox_ids

    assert run(story()) == (GrantRevoked("", "bob", "l"), (), True)


def test_grants_last_over_a_restart_and_end_at_the_same_time(state):
    async def story(session_id=None):
        person, done = Person(Answer(True, "session")), []
        script = [call("thing", what="a"), "ok"]
        store = JsonlStore(state)
        async with make_engine(script, changing(done), approver=person, store=store) as engine:
            session = await engine.session(session_id)
            before = session.grants()
            await session.wait(await session.send("go"))
            return session.id, len(person.asked), before, session.grants()

    found, first, none, grants = run(story())
    _, second, before, after = run(story(found))
    assert (first, second, none) == (1, 0, ())
    assert before == after == grants


def test_a_rule_holds_for_the_session_and_is_handed_on_to_be_learnt():
    learnt = []
    person = Person(Answer(True, "rule", rule="allow: thing"))

    async def story():
        replies = [call("thing", what=one) for one in "abc"] + ["ok"]
        done = []
        rest = {"approver": person, "learn": lambda rule, by: learnt.append(rule)}
        async with make_engine(replies, changing(done), **rest) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            (answered,) = events(engine, session.id, ApprovalAnswered)
            return done, answered.rule, session.grants()[0].rule

    assert run(story()) == (["a", "b", "c"], "allow: thing", "allow: thing")
    assert (len(person.asked), learnt) == (1, ["allow: thing"])


def test_the_proposed_rule_is_taken_where_the_answer_names_none():
    person = Person(Answer(True, "rule"))
    count, done, grants, _, _ = run(same_call(person))
    assert (count, done, grants[0].rule) == (1, ["a", "a"], "allow: thing")


@pytest.mark.parametrize("rule", ["deny: thing", "what?", "allow: (x)", 7])
def test_an_answer_with_a_rule_that_allows_nothing_is_no_answer(rule):
    count, done, grants, _, _ = run(same_call(Person(Answer(True, "rule", rule=rule)), times=1))
    assert (count, done, grants) == (1, [], ())


def test_a_face_that_cannot_keep_a_rule_does_not_stop_the_call():
    def broken(rule, by):
        raise OSError("read-only")

    count, done, _, _, _ = run(same_call(Person(Answer(True, "rule")), learn=broken))
    assert (count, done) == (1, ["a", "a"])
