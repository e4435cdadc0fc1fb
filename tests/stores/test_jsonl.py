"""Sessions as files: private, numbered, line_hash, mended when torn (A7, A8)."""

import asyncio
import json
import logging
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.history import fold
from bridle.errors import StoreFailed, UnknownSession
from bridle.events import MessageAdded, PromptReceived, Repaired, TextDelta, TraceEvent, TurnEnded
from bridle.protocols.codec import line_hash, to_record
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.log_format import utc_timestamp
from bridle.stores.reader import NEWLINE_MISSING, SessionFolder
from rig import make_engine, run


async def write(state, events, session_id="s", durability="disk"):
    """A log with these events, settled and let go."""
    store = JsonlStore(state, durability)
    log = store.create(session_id)
    for event in events:
        log.append(event)
    try:
        await log.close()
    finally:
        store.close()
    return log.path


async def take(state, session_id="s"):
    """Take a log up again: its records, and the log."""
    store, records = JsonlStore(state), []
    return records, await store.resume(session_id, records.append), store


async def go_on(state, *events, session_id="s"):
    """Take it up again and write some more; everything that was read, then everything there is."""
    records, log, store = await take(state, session_id)
    for event in events:
        log.append(event)
    await log.close()
    store.close()
    return records, list(store.read(session_id))


def noise(count):
    return [TraceEvent("noise", number) for number in range(count)]


def test_numbers_are_dense_and_hashes_are_chained(state):
    async def story():
        path = await write(state, noise(50))
        await go_on(state, *noise(50))
        return path

    path = run(story())
    previous = ""
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        found = json.loads(line)
        assert found["seq"] == number
        body = line[: line.rindex(b',"hash"')]
        assert found["hash"] == line_hash(body, previous)
        previous = found["hash"]
    assert number == 100


def test_a_change_anywhere_shows_in_the_chain(state):
    path = run(write(state, noise(5)))
    lines = path.read_bytes().splitlines(keepends=True)
    changed = lines[2].replace(b'"detail":2', b'"detail":9')
    assert changed != lines[2]
    before = json.loads(lines[1])["hash"]
    assert line_hash(changed[: changed.rindex(b',"hash"')], before) != json.loads(changed)["hash"]


def test_files_and_folders_are_private(state):
    path = run(write(state, noise(1)))
    modes = [
        stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent, path.parent.parent, state)
    ]
    assert modes == [0o600, 0o700, 0o700, 0o700]


def test_folders_that_are_missing_are_made(tmp_path):
    deep = tmp_path / "a" / "b" / "c"
    path = run(write(deep, noise(1)))
    assert path == deep / "sessions" / "s" / "log.jsonl"
    assert path.is_file()


def test_times_are_utc_in_one_shape():
    assert utc_timestamp(0.5) == "1970-01-01T00:00:00.500Z"
    assert utc_timestamp(1769855400.1239) == "2026-01-31T10:30:00.123Z"
    assert len({len(utc_timestamp(second / 7)) for second in range(100)}) == 1


def test_a_log_cut_at_any_byte_of_its_last_line_goes_on(state):
    """A8: the torn rest is cut off, the log says so, and everything before it is there."""
    events = [PromptReceived("go", 1), TextDelta("ä語🙂"), TurnEnded(1, "done")]
    path = run(write(state, events))
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for cut in range(start, len(whole) - 1):
        path.write_bytes(whole[:cut])
        read, after = run(go_on(state, TraceEvent("more")))
        said = [Repaired(cut - start)] if cut > start else []
        assert [record.event for record in read] == [events[0], *said]
        expected = [*events[:2], *said, TraceEvent("more")]
        assert [record.event for record in after] == expected
        assert [record.seq for record in after] == list(range(1, len(expected) + 1))


def test_a_last_line_that_lacks_only_its_end_is_kept(state, caplog):
    """A8: its hash proves it."""
    events = [PromptReceived("go", 1), TurnEnded(1, "done")]
    path = run(write(state, events))
    path.write_bytes(path.read_bytes()[:-1])
    read, after = run(go_on(state, TraceEvent("more")))
    assert [record.event for record in read[:2]] == events
    assert [(line.after, line.why) for line in read[2].event.broken] == [(1, NEWLINE_MISSING)]
    assert [record.seq for record in after] == [1, 2, 3, 4]
    assert [one.getMessage() for one in caplog.records] == [
        f"session s: a line after record 1: {NEWLINE_MISSING}"
    ]


@given(data=st.data())
def test_any_damage_leaves_the_other_lines_readable(data, tmp_path_factory):
    """A8: a broken line is skipped, nothing raises, and the session goes on."""
    state = tmp_path_factory.mktemp("damaged")
    path = run(write(state, noise(14)))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    read, after = run(go_on(state, TraceEvent("more")))
    assert after[-1].event == TraceEvent("more")
    assert after[:-1] == read
    # a line, another that it was joined to, and the one behind, whose hash stands on it
    assert len(set(noise(14)) & {record.event for record in read}) >= 14 - 3 * 4


def test_a_broken_line_is_warned_about_and_passed_over(state, caplog):
    """A8: warns and goes on."""
    path = run(write(state, noise(3)))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"not json\n" + lines[1] + b"[" * 200_000 + b"\n" + lines[2])
    with caplog.at_level(logging.WARNING):
        read, _ = run(go_on(state))
    assert [record.seq for record in read] == [1, 2, 3, 4]
    assert [(line.after, line.size) for line in read[3].event.broken] == [(1, 8), (2, 200_000)]
    said = [record.getMessage() for record in caplog.records]
    words = "session s: a line after record {} was skipped: it is not a record"
    assert said == [words.format(1), words.format(2)]


def test_a_reader_stops_at_a_line_that_is_still_being_written(state):
    """And goes on with it: else there would be a gap for whoever watches."""
    path = run(write(state, noise(4)))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'"seq":3') + 20])
    with SessionFolder(state).reader("s") as reader:
        seen = [[record.seq for record in reader.read_new()], reader.read_new()]
        path.write_bytes(whole)
        seen += [[record.seq for record in reader.read_new()], reader.read_new()]
    assert seen == [[1, 2], [], [3, 4], []]


def test_reading_begins_after_a_number(state):
    run(write(state, noise(5)))
    assert [record.seq for record in JsonlStore(state).read("s", 3)] == [4, 5]


@pytest.mark.parametrize("name", ["nope", "..", "../s", "/etc", "", "a\nb", "s\0"])
def test_names_that_lead_nowhere_are_unknown_sessions(state, name):
    run(write(state, noise(1)))
    with pytest.raises(UnknownSession):
        list(JsonlStore(state).read(name))
    with pytest.raises(UnknownSession):
        run(take(state, name))


def test_a_link_where_the_log_should_be_is_not_followed(state, tmp_path):
    """Neither for a new log nor for an old one."""
    target = tmp_path / "target"
    target.write_text("precious\n")
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    (folder / "log.jsonl").symlink_to(target)
    with pytest.raises(StoreFailed):
        run(write(state, noise(1)))
    with pytest.raises(StoreFailed):
        run(take(state))
    with pytest.raises(StoreFailed):
        list(JsonlStore(state).read("s"))
    (listed,) = JsonlStore(state).sessions()
    assert (listed.id, listed.title) == ("s", "(the log cannot be read: it is a symlink)")
    assert target.read_text() == "precious\n"


def test_an_event_that_cannot_be_written_takes_no_number(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        log.append(TraceEvent("one"))
        endless = []
        endless.append(endless)
        with pytest.raises(RecursionError):
            log.append(TraceEvent("bad", endless))
        log.append(TraceEvent("a\udcffb"))
        await log.close()
        store.close()
        return [(record.seq, record.event) for record in store.read("s")]

    assert run(story()) == [(1, TraceEvent("one")), (2, TraceEvent("a\\udcffb"))]


def test_the_record_that_is_handed_back_is_the_one_that_was_written(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        made = [log.append(event) for event in (*noise(3), TraceEvent("x\udcff"))]
        await log.close()
        store.close()
        return made, list(store.read("s"))

    made, read = run(story())
    assert made == read


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_settled_means_written(state, durability):
    async def story():
        store = JsonlStore(state, durability)
        log = store.create("s")
        seen = []
        for event in noise(20):
            log.append(event)
            await log.settled()
            seen.append(len(log.path.read_bytes().splitlines()))
        await log.close()
        store.close()
        return seen

    assert run(story()) == list(range(1, 21))


def test_lines_that_nobody_waits_for_are_written_all_the_same(state):
    async def story():
        store = JsonlStore(state)
        log = store.create("s")
        written = asyncio.Event()
        log.append(TraceEvent("quiet"))  # before anybody watches
        log.on_written(lambda records: written.set())
        await written.wait()
        on_disk = list(store.read("s"))
        await log.close()
        store.close()
        return len(on_disk)

    assert run(story()) == 1


def test_the_list_of_sessions_shows_what_a_person_looks_for(state):
    async def story():
        found = []
        async with make_engine(["ok"] * 3, store=JsonlStore(state)) as engine:
            for prompt in ("mend\n the parser", "ä" * 9000, "last"):
                found.append((await engine.run(prompt)).session_id)
        return found

    ids = run(story())
    for age, session_id in enumerate(reversed(ids)):  # the clock of a file system is a coarse one
        os.utime(state / "sessions" / session_id / "log.jsonl", (1e9 - age, 1e9 - age))
    (state / "sessions" / "empty").mkdir()
    (state / "sessions" / "not a session").mkdir()
    shown = SessionFolder(state).sessions()
    by_id = {one.id: one for one in shown}
    assert set(by_id) == set(ids)
    assert [one.id for one in shown] == ids[::-1]
    assert [by_id[one].title[:9] for one in ids] == ["mend\n the", "ä" * 9, "last"]
    assert {(one.model, one.workspace) for one in shown} == {("scripted/scripted", "/")}
    assert all(
        one.size == Path(state / "sessions" / one.id / "log.jsonl").stat().st_size for one in shown
    )


def test_no_folder_is_no_sessions_and_a_file_is_an_error(tmp_path):
    assert SessionFolder(tmp_path / "none").sessions() == []
    (tmp_path / "sessions").write_text("")
    with pytest.raises(StoreFailed):
        SessionFolder(tmp_path).sessions()


FOREIGN = [
    {"type": "session_start", "sessionId": "s", "mode": "repl", "resumed": False},
    {"type": "user_prompt", "content": "look"},
    {"type": "message", "role": "user", "content": "look"},
    {"type": "event", "eventType": "TextDelta", "text": "I"},
    {
        "type": "message",
        "role": "assistant",
        "content": "I look",
        "toolCalls": [{"id": "c1", "name": "read", "arguments": {"path": "a"}}],
    },
    {"type": "message", "role": "tool", "callId": "c1", "result": {"ok": True, "text": "seen"}},
    {"type": "message", "role": "assistant", "content": "Done."},
]


def test_a_log_in_the_documented_shapes_alone_can_be_gone_on_from(state):
    """A7, A8: no numbers, no hashes, nothing of ours; the conversation is rebuilt."""
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    lines = [json.dumps({"timestamp": "2024-01-15T10:30:00Z", "data": data}) for data in FOREIGN]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")

    async def story():
        model = Scripted(["ok"])
        async with make_engine(model, store=JsonlStore(state)) as engine:
            await engine.run("and now?", session="s")
            numbers = [record.seq for record in engine.store.read("s")]
        return [(one.role, one.content) for one in model.requests[0].messages], numbers

    sent, numbers = run(story())
    assert sent == [
        ("user", "look"),
        ("assistant", "I look"),
        ("tool", ""),
        ("assistant", "Done."),
        ("user", "and now?"),
    ]
    assert numbers == list(range(1, len(numbers) + 1))


def test_old_logs_always_load():
    """Invariant: a log of format 1, with everything in it, folds to the same conversation."""
    path = Path(__file__).parent.parent / "logs" / "format-1.jsonl"
    records = [to_record(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    kinds = [type(record.event).__name__ for record in records]
    expected = (path.parent / "format-1.expected.json").read_text()
    history = fold(records)
    found = {
        "kinds": kinds,
        "title": history.title,
        "turn": history.turn,
        "messages": [[one.role, one.content, one.reasoning] for one in history.transcript],
        "results": [one.text for message in history.transcript for one in message.tool_results],
        "invocations": history.metrics.invocations,
        "cost": history.metrics.cost,
    }
    assert found == json.loads(expected)
    assert isinstance(records[2].event, MessageAdded)


def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(state):
    """A8: not one whole line of it can be read, so nothing of it is ours to cut."""
    folder = state / "sessions" / "foreign"
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_bytes(b"somebody's notes without an end of line")

    async def take():
        await JsonlStore(state).resume("foreign", lambda record: None)

    with pytest.raises(StoreFailed):
        asyncio.run(take())
    assert (folder / "log.jsonl").read_bytes() == b"somebody's notes without an end of line"
