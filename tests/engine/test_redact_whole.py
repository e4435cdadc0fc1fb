"""No half of a secret, none that only the log shows, none in what an error came from; ids stay."""

import traceback
from dataclasses import dataclass, field

import pytest

from bridle.engine.redaction import Redactor
from bridle.errors import ToolError
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    InterruptRequested,
    ResponseCompleted,
    TitleChanged,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.protocols.session import Answer
from bridle.protocols.tool import ToolResult
from bridle.stores.jsonl import JsonlStore
from rig import Speaking, Thing, call, calls, events, is_valid, make_engine, one_turn, run

KEY = "Zx9-very-secret-value-0123456789-abcdef"


def test_the_end_of_a_turn_that_is_stuck_quotes_no_half_of_a_secret():
    async def fail(arguments, context):
        raise ToolError("x" * (203 - len(KEY)) + KEY)

    replies = [call("thing")] * 5
    engine, found, result = run(one_turn(replies, Thing(fail), secrets=(KEY,)))
    (ended,) = events(engine, found, TurnEnded)
    said = "thing failed 3 times in the same way: " + "x" * (203 - len(KEY)) + "[redacted]"
    assert (result.reason, result.detail, ended.detail) == ("stuck", said, said)


def test_an_event_that_nobody_knows_is_quoted_without_half_of_a_secret():
    before = "y" * (2003 - len("TitleChanged(title='") - len(KEY))

    async def stream():
        yield TitleChanged(before + KEY)
        yield ResponseCompleted("complete")

    engine, found, _ = run(one_turn(Speaking(stream), secrets=(KEY,)))
    (said,) = events(engine, found, TraceEvent)
    assert said.detail == f"TitleChanged(title='{before}[redacted]')"


@dataclass
class Login:
    user: str
    password: str = field(repr=False)


def test_what_only_the_log_would_show_of_a_value_is_cleaned_too(tmp_path):
    async def log_in(arguments, context):
        return ToolResult.success({"login": Login("joe", KEY)}, text="logged in")

    store = JsonlStore(tmp_path)
    replies = [call("thing"), "ok"]
    _, found, _ = run(one_turn(replies, Thing(log_in), secrets=(KEY,), store=store))
    (said,) = [one.event for one in store.read(found) if isinstance(one.event, ToolResultEvent)]
    assert said.output.data == {"login": {"user": "joe", "password": "[redacted]"}}


def test_a_value_without_a_secret_is_handed_on_as_it_is():
    data = {"login": Login("joe", "none"), "raw": b"abc"}
    assert Redactor((KEY,)).value(data) is data


def test_what_an_error_came_from_shows_no_secret():
    async def break_off():
        try:
            raise KeyError(KEY)
        except KeyError:
            raise ValueError(f"https://x/?key={KEY}")  # noqa: B904 - the context is the point
        yield

    _, _, result = run(one_turn(Speaking(break_off), secrets=(KEY,)))
    assert KEY not in "".join(traceback.format_exception(result.error))
    assert str(result.error.cause) == "ValueError: https://x/?key=[redacted]"


def test_what_an_error_came_from_stays_where_it_shows_none():
    async def break_off():
        raise ValueError("odd")
        yield

    _, _, result = run(one_turn(Speaking(break_off), secrets=(KEY,)))
    assert repr(result.error.cause) == "ValueError('odd')"


@pytest.mark.parametrize("pattern", [r"[0-9a-f]{32}", r"call[-_]\w+", r"once|session|tool_use"])
def test_a_pattern_of_the_person_changes_no_id_and_no_hash(pattern):
    async def work():
        ran = []

        async def use(arguments, context):
            ran.append(context.call_id)
            return "ok"

        async def approver(asked):
            return Answer(True, "session")

        tool = Thing(use, read_only=False)
        replies = [calls(("thing", {"a": 1}), ("thing", {"a": 2})), "ok"]
        async with make_engine(replies, tool, approver=approver, redact=(pattern,)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            asked = events(engine, session.id, ApprovalAsked)
            answered = events(engine, session.id, ApprovalAnswered)
            assert is_valid(session.history.transcript)
            return ran, asked, answered, session.history.checkpoint("0" * 32)

    ran, asked, answered, checkpoint = run(work())
    assert ran == ["call_1", "call_2"]
    assert [len(one.shown) for one in asked] == [48, 48]
    assert [(one.shown, one.scope) for one in answered] == [(one.shown, "session") for one in asked]
    assert Redactor((), (pattern,)).value(checkpoint) == checkpoint


def test_a_letter_that_was_done_keeps_its_name():
    letter = InterruptRequested.of("ab12ab12", "ab12ab12")
    cleaned = Redactor((), ("ab12ab12",)).value(letter)
    assert cleaned == InterruptRequested.of("[redacted]", "ab12ab12")
