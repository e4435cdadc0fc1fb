"""What somebody else was allowed is not ours: an imported log ends with a record that says so."""

import io

import pytest

from bridle.engine.history import fold
from bridle.errors import StoreFailed
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Forked,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    TextDelta,
    TurnEnded,
    TurnParked,
)
from bridle.messages import Message, ToolCall, to_parts
from bridle.protocols.codec import encode_data, encode_line
from bridle.stores.jsonl import JsonlStore
from bridle.stores.reader import SessionFolder
from bridle.stores.transfer import export_lines, fork, import_log, is_imported
from rig import run

WHEN = "2026-01-31T10:30:01.000Z"
ONE, TWO = ToolCall("call_1", "shell", {"command": "a"}), ToolCall("call_2", "shell", {})
PARKED = [
    SessionStarted("s", workspace="/theirs"),
    PromptReceived("go", 1),
    MessageAdded(Message("user", to_parts("go")), 2, 1),
    ResponseCompleted(Message("assistant", (ONE, TWO))),
    ApprovalAsked(ONE, "f1"),
    ApprovalAsked(TWO, "f2"),
    ApprovalAnswered("call_1", True, "mallory", "session", shown="f1"),
    PromptReceived("and then this", 2, when="queue"),
    TurnParked(1, ("call_2",)),
]


def chain(*events, seq=0, before=""):
    lines = []
    for event in events:
        seq += 1
        line, before = encode_line(seq, WHEN, encode_data(event), before)
        lines.append(line)
    return lines


def brought(folder, data):
    return import_log(folder, io.BytesIO(data), lambda: "fresh")[0]


def taken(state, session_id):
    """The folds of the session, as one finds them who takes it up."""

    async def story():
        store, found = JsonlStore(state), []
        log = await store.resume(session_id, found.append)
        await log.close()
        store.close()
        return fold(found)

    return run(story())


def owed(history):
    """What would run, be asked or be sent without anybody here having said so."""
    return (history.running, history.parked, *map(len, (history.pending, history.answers))), (
        set(history.grants),
        dict(history.waiting),
    )


NOTHING = (0, False, 0, 0), (set(), {})


@pytest.fixture
def folder(state):
    return SessionFolder(state)


def test_the_log_itself_has_all_of_that_before_it_is_imported(state, folder):
    path = folder.path("s")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(chain(*PARKED)))
    assert owed(taken(state, "s")) != NOTHING


def test_grants_answers_questions_prompts_and_turns_do_not_come_along(state, folder):
    data = b"".join(chain(*PARKED))
    assert brought(folder, data) == "s"
    assert owed(taken(state, "s")) == NOTHING
    assert folder.path("s").read_bytes().startswith(data)


LINES = chain(*PARKED)
OTHERS = chain(*PARKED, seq=40, before="1" * 32)  # lines of a log that is not this one


@pytest.mark.parametrize(
    "data",
    [
        b"".join(LINES)[:-1],
        b"".join(LINES)[:-9],
        b"".join(LINES) + LINES[-1][:50],
        b"".join([*LINES, b"garbage\n"]),
        b"".join([*LINES, *OTHERS, *OTHERS[:3]]),
        b"".join([*LINES, *(line.replace(b"10:30", b"10:31") for line in LINES)]),
        b"".join([*LINES, b'{"seq":99999999999999,"timestamp":"x","hash":"' + b"0" * 32 + b'"}\n']),
        b"".join([*LINES, *[b"\0" * 100 + b"\n"] * 20]),
    ],
    ids=["no end", "torn", "torn again", "garbage", "strange", "doubled", "far", "zeros"],
)
def test_however_the_log_ends_the_record_behind_it_is_believed(state, folder, data):
    """Somebody may damage a log on purpose, so that what follows does not fit."""
    session_id = brought(folder, data)
    assert folder.path(session_id).read_bytes().startswith(data)
    assert isinstance(list(folder.read(session_id))[-1].event, Forked)
    assert owed(taken(state, session_id)) == NOTHING


def test_a_log_without_one_line_that_can_be_believed_is_refused(state, folder):
    (line,) = chain(SessionStarted("s"))
    with pytest.raises(StoreFailed, match="nothing was imported"):
        brought(folder, line.replace(b"10:30", b"10:31"))
    assert list((state / "sessions").iterdir()) == []


def test_it_is_known_of_an_imported_session_and_of_its_forks_and_of_no_other(folder):
    data = b"".join(chain(SessionStarted("s", workspace="/theirs"), TextDelta("x")))
    brought(folder, data)
    fork(folder, "s", None, "whole")
    fork(folder, "s", 1, "part")
    own = folder.path("own")
    own.parent.mkdir()
    own.write_bytes(b"".join(chain(SessionStarted("own"), TurnEnded(1, "done"))))
    fork(folder, "own", None, "copy")
    known = [is_imported(folder, one) for one in ("s", "whole", "part", "own", "copy")]
    assert known == [True, True, True, False, False]


def test_what_was_imported_twice_says_so_twice(state, folder):
    brought(folder, b"".join(LINES))
    again = brought(folder, b"".join(export_lines(folder, "s")))
    events = [one.event for one in folder.read(again)]
    assert (again, events[-2:]) == ("fresh", [Forked("s", 9), Forked("s", 10)])
    assert owed(taken(state, again)) == NOTHING
