"""Logs that were written once and must load for ever (A7, A8). They are never written anew."""

import json
import shutil
from pathlib import Path

import pytest

from bridle.engine.history import History, fold
from bridle.events import Checkpoint, UnknownEvent
from bridle.protocols.codec import decode_data, decode_line, encode_data
from bridle.stores.jsonl import JsonlStore
from rig import run

LOGS = Path(__file__).parent.parent / "logs"
NAMES = ["format-1", "format-1-lasting"]


async def take(state, name):
    """The records that taking it up feeds, all of them, and what had to be mended."""
    path = state / "sessions" / name / "log.jsonl"
    path.parent.mkdir(parents=True)
    shutil.copyfile(LOGS / f"{name}.jsonl", path)
    store, fed = JsonlStore(state), []
    log = await store.resume(name, fed.append)
    await log.close()
    store.close()
    assert path.read_bytes() == (LOGS / f"{name}.jsonl").read_bytes()
    return fed, list(store.read(name)), log.repair


def shown(history):
    return {
        "title": history.title,
        "tags": list(history.tags),
        "turn": history.turn,
        "messages": [[one.role, one.content] for one in history.transcript],
        "todos": [[one.content, one.status] for one in history.todos],
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_old_log_is_taken_up_without_a_word_and_left_as_it_is(name, state):
    _, records, mended = run(take(state, name))
    assert mended is None
    assert [one.seq for one in records] == list(range(1, len(records) + 1))


def test_a_log_with_everything_that_lasts_folds_to_the_same_session(state):
    """Parked, answered by letter, compacted, rewound, forked, repaired, with a checkpoint."""
    fed, records, _ = run(take(state, "format-1-lasting"))
    expected = json.loads((LOGS / "format-1-lasting.expected.json").read_text())
    assert [type(one.event).__name__ for one in records] == expected.pop("kinds")
    assert isinstance(fed[0].event, Checkpoint)
    assert shown(fold(records)) == expected
    history = History()
    for record in fed:
        history.apply(record)
    assert shown(history) == expected


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_can_be_written_again_as_it_was(name):
    """No key of an old record is lost on the way."""
    for line in (LOGS / f"{name}.jsonl").read_bytes().splitlines():
        data = bytes(decode_line(line).data)
        event = decode_data(data)
        assert isinstance(event, UnknownEvent) or data_keys(encode_data(event)) >= data_keys(data)


def data_keys(data):
    """The paths and values in it."""
    return set(leaves(json.loads(data)))


def leaves(value, path=()):
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, found in items:
            yield from leaves(found, (*path, key))
    else:
        yield path, value
