"""A binding that comes from elsewhere is signed: for one call, once, for a short while."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.chat.tools.identity import Binding, BindingRefused, Signer, parse_binding

SECRET = "a secret of the tests, long enough"
NOW = datetime(2026, 3, 25, 12, tzinfo=UTC)
BOUND = Binding("ana", "talk", "turn:1", "Europe/Berlin", "es", NOW)
TEXT = st.text(max_size=20)


def test_what_is_signed_is_read_again():
    wire = Signer(SECRET).sign(BOUND, "add_task", {"title": "Milk"}, at=NOW)
    assert Signer(SECRET).check(wire, "add_task", {"title": "Milk"}, at=NOW) == BOUND


@pytest.mark.parametrize(
    "change",
    [
        {"user_id": "bob"},
        {"conversation_id": "other"},
        {"operation": "turn:2"},
        {"timezone": "UTC"},
        {"now": None},
        {"nonce": "another"},
        {"issued": 0},
        {"signature": ""},
        {"signature": "é" * 64},
        {"signature": None},
        {"more": "than that"},
    ],
)
def test_T3_a_binding_that_was_changed_is_refused(change):
    wire = Signer(SECRET).sign(BOUND, "list_tasks", {}, at=NOW)
    with pytest.raises(BindingRefused):
        Signer(SECRET).check(wire | change, "list_tasks", {}, at=NOW)


def test_T3_a_signature_holds_for_no_other_call_and_no_other_secret():
    wire = Signer(SECRET).sign(BOUND, "complete_task", {"task_id": 1}, at=NOW)
    seal = Signer(SECRET)
    for tool, arguments in [("delete_task", {"task_id": 1}), ("complete_task", {"task_id": 2})]:
        with pytest.raises(BindingRefused, match="is wrong"):
            seal.check(wire, tool, arguments, at=NOW)
    with pytest.raises(BindingRefused, match="is wrong"):
        Signer(SECRET + "!").check(wire, "complete_task", {"task_id": 1}, at=NOW)


def test_T3_a_call_that_is_played_again_is_refused():
    wire = Signer(SECRET).sign(BOUND, "list_tasks", {}, at=NOW)
    seal = Signer(SECRET)
    seal.check(wire, "list_tasks", {}, at=NOW)
    with pytest.raises(BindingRefused, match="used before"):
        seal.check(wire, "list_tasks", {}, at=NOW + timedelta(seconds=60))
    for late in (timedelta(seconds=121), timedelta(seconds=-121), timedelta(days=400)):
        with pytest.raises(BindingRefused, match="too old"):
            seal.check(wire, "list_tasks", {}, at=NOW + late)


def test_what_was_seen_is_forgotten_once_it_could_not_be_used_anyway():
    seal, signing = Signer(SECRET), Signer(SECRET)
    for minute in range(60):
        at = NOW + timedelta(minutes=minute)
        seal.check(signing.sign(BOUND, "list_tasks", {}, at=at), "list_tasks", {}, at=at)
    assert len(seal._seen) < 8


@pytest.mark.parametrize("wire", [None, 1, "ana", [], {}, {"user_id": ""}, {"user_id": 7}])
def test_what_is_no_binding_is_refused(wire):
    with pytest.raises(BindingRefused):
        parse_binding(wire)
    with pytest.raises(BindingRefused):
        Signer(SECRET).check(wire, "list_tasks", {})


def test_a_short_secret_is_none():
    with pytest.raises(BindingRefused, match="fewer than 16"):
        Signer("short")
    assert Signer(SECRET).token != Signer(SECRET + "!").token


@given(
    arguments=st.dictionaries(TEXT, st.none() | st.integers() | TEXT | st.lists(TEXT), max_size=4),
    other=st.dictionaries(TEXT, st.none() | st.integers() | TEXT | st.lists(TEXT), max_size=4),
)
def test_T3_only_the_very_same_arguments_are_vouched_for(arguments, other):
    wire = Signer(SECRET).sign(BOUND, "t", arguments)
    if arguments == other:
        assert Signer(SECRET).check(wire, "t", other) == BOUND
    else:
        with pytest.raises(BindingRefused):
            Signer(SECRET).check(wire, "t", other)


def test_an_unknown_zone_is_utc():
    assert Binding("ana", timezone="Mars/Base", now=NOW).moment == NOW
    assert Binding("ana", timezone="../../etc/passwd").zone.key == "UTC"
