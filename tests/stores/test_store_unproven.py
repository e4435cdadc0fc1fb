"""Lines that nothing proves are not believed, also where every line of a log is like that."""

import re

import pytest

from bridle.errors import StoreFailed
from bridle.events import PromptReceived, Repaired, SessionStarted, TextDelta
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import HASHES_REMOVED
from rig import run

EVENTS = (SessionStarted("s"), PromptReceived("kumquat", 1), TextDelta("x"))


def lines():
    before = ""
    for seq, event in enumerate(EVENTS, 1):
        line, before = encode_line(seq, "2026-01-31T10:30:01.000Z", encode_data(event), before)
        yield line


def put(state, content):
    path = state / "sessions" / "s" / "log.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


async def take(state):
    store, seen = JsonlStore(state), []
    log = await store.resume("s", seen.append)
    await log.close()
    store.close()
    return seen, log.repair


def with_carriage_returns(content):
    return content.replace(b"\n", b"\r\n")


def with_other_hashes(content):
    return re.sub(rb'"hash":"[0-9a-f]{32}"', b'"hash":"%b"' % (b"0" * 32), content)


def with_short_hashes(content):
    return re.sub(rb'"hash":"[0-9a-f]{32}"', b'"hash":"abc"', content)


def with_spaces(content):
    return content.replace(b',"hash":', b', "hash": ')


CHANGES = [with_carriage_returns, with_other_hashes, with_short_hashes, with_spaces]


@pytest.mark.parametrize("change", CHANGES)
def test_a_log_of_which_no_line_agrees_with_its_hash_is_not_believed(change, state):
    """A8: it is left as it is, and the error says so."""
    content = change(b"".join(lines()))
    path = put(state, content)
    with pytest.raises(StoreFailed) as caught:
        run(take(state))
    assert caught.value.message == (
        "the log of session s cannot be read: no line in it agrees with its hash"
    )
    assert "verify" in caught.value.hint
    assert path.read_bytes() == content
    assert list(JsonlStore(state).read("s")) == []


def test_a_log_of_ours_without_its_hashes_is_taken_up_and_that_is_said_once(state):
    """A8."""
    put(state, re.sub(rb',"hash":"[0-9a-f]{32}"', b"", b"".join(lines())))
    seen, found = run(take(state))
    assert [one.event for one in seen] == [*EVENTS[:2], found]
    assert isinstance(found, Repaired)
    assert [(one.after, one.why) for one in found.broken] == [(0, HASHES_REMOVED)]
    assert run(take(state)) == (seen, None)
