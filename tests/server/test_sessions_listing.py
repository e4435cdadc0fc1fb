"""Lists of sessions over the server: quick, in pages, and never more read than is shown."""

import asyncio
import os
import time

import pytest
from sessions_rig import ASKS, asked, made, refused, serving, spoken

from bridle.events import MessageAdded, PromptReceived, SessionStarted, TurnEnded
from bridle.messages import Message, Text
from bridle.protocols.codec import encode_data, encode_line
from bridle.protocols.session_errors import BadRequest
from bridle.protocols.session_values import PromptRequest, SessionUpdate
from rig import run

MANY = 5000


def written(place, number):
    """A session's log, as a server would have left it; the higher the number, the newer."""
    name = f"20260101-000000-{number:010x}"
    folder = place / "state" / "sessions" / name
    folder.mkdir(parents=True)
    events = [
        SessionStarted(name, "server", workspace=str(place / "work"), model="scripted/scripted"),
        PromptReceived(f"prompt number {number}", 1),
        MessageAdded(Message("user", (Text(f"prompt number {number}"),)), 2, 1),
        TurnEnded(1, "done" if number % 2 else "failed"),
    ]
    lines, digest = [], ""
    for seq, event in enumerate(events, 1):
        line, digest = encode_line(seq, "2026-01-01T00:00:00.000Z", encode_data(event), digest)
        lines.append(line)
    path = folder / "log.jsonl"
    path.write_bytes(b"".join(lines))
    moment = 1_700_000_000 + number
    os.utime(path, (moment, moment))
    return name


async def every(sessions, **asked_for):
    """All pages."""
    found, cursor = [], ""
    while True:
        page = await sessions.list(cursor=cursor, **asked_for)
        found += page.sessions
        if not (cursor := page.next):
            return found


def test_pages_hold_every_session_once_the_newest_first(tmp_path):
    names = [written(tmp_path, number) for number in range(25)]

    async def story():
        async with serving(tmp_path, []) as sessions:
            found = await every(sessions, limit=10)
            assert [one.id for one in found] == names[::-1]
            assert [one.state for one in found[:2]] == ["failed", "done"]
            assert found[0].title == "prompt number 24"
            assert [one.id for one in await every(sessions, query="NUMBER 7")] == [names[7]]
            assert [one.id for one in await every(sessions, query=names[3][-4:])] == [names[3]]
            done = await every(sessions, state="done", limit=5)
            assert [one.id for one in done] == names[1::2][::-1]
            assert await every(sessions, workspace=str(tmp_path / "work"), state="running") == []
            for nonsense in ("x", "~", "1e400~y~z" * 3):
                if nonsense[0].isdigit():
                    await sessions.list(cursor=nonsense)
                else:
                    await refused(sessions.list(cursor=nonsense), BadRequest)
            await refused(sessions.list(state="asleep"), BadRequest)

    run(story())


def test_thousands_of_sessions_are_listed_without_holding_up_the_others(tmp_path):
    """What is counted is how much is read, and that the event loop goes on meanwhile."""
    for number in range(MANY):
        written(tmp_path, number)

    async def story():
        async with serving(tmp_path, []) as sessions:
            listing = asyncio.ensure_future(sessions.list(limit=50))
            turns = 0
            while not listing.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns > 10  # the loop was free all the while
            page = await listing
            assert len(page.sessions) == 50
            assert len(sessions._list._from_logs) == 51  # only those that are shown were read
            began = time.process_time()
            again = await sessions.list(limit=50)
            assert again == page
            assert time.process_time() - began < 5  # a broken cache would read 5,000 logs
            assert len(sessions._list._from_logs) == 51
            assert (await sessions.pending()).approvals == ()

    run(story())


def test_a_line_is_what_the_session_is_at_this_moment(tmp_path):
    async def story():
        async with serving(tmp_path, ["hello", ASKS, "done"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name, "first words")
            assert (await sessions.info(name)).state == "done"
            await sessions.change(
                name, SessionUpdate(title="  another\n title ", tags=("a", "b")), "ann"
            )
            view = (await sessions.list()).sessions[0]
            assert (view.title, view.tags, view.turn) == ("another title", ("a", "b"), 1)
            assert (view.model, view.agent, view.mode) == ("scripted/scripted", "loop", "ask")
            assert view == await sessions.info(name)
            assert [one.id for one in (await sessions.list(query="ANOTHER")).sessions] == [name]
            await sessions.send(name, PromptRequest("go"), "ann")
            await asked(sessions, name)
            waiting = (await sessions.list(state="waiting")).sessions
            assert [(one.id, one.waiting) for one in waiting] == [(name, 1)]
            live = await sessions.detail(name)
            await sessions.stop(5)
            cold = await sessions.detail(name)
            same = ("title", "tags", "turn", "model", "agent", "state", "cost", "tokens", "pending")
            assert [getattr(cold, one) for one in same] == [getattr(live, one) for one in same]
            assert (cold.holder, live.holder) == ("", "here")

    run(story())


def test_a_log_that_cannot_be_read_is_listed_all_the_same(tmp_path):
    written(tmp_path, 1)
    broken = written(tmp_path, 2)
    log = tmp_path / "state" / "sessions" / broken / "log.jsonl"
    log.write_bytes(b'{"broken":\n' + log.read_bytes()[:-20])

    async def story():
        async with serving(tmp_path, [], workspaces=()) as sessions:
            sessions._scope.workspaces = None  # a private server shows what is in any folder
            assert len((await sessions.list()).sessions) == 2

    run(story())


def test_records_come_as_the_log_has_them_from_either_end(tmp_path):
    async def story():
        async with serving(tmp_path, ["hello there"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
            await sessions.get_open(name).begin()  # everything is on disk
            log = (tmp_path / "state" / "sessions" / name / "log.jsonl").read_bytes()
            lines = [line[: line.rindex(b',"hash"')] + b"}" for line in log.splitlines()]
            count = len(lines)
            whole = await sessions.records(name)
            assert [bytes(one) for one in whole.records] == lines
            assert (whole.next, whole.last) == (0, count)
            first = await sessions.records(name, limit=2)
            assert [bytes(one) for one in first.records] == lines[:2]
            assert (first.next, first.last) == (2, count)
            last = await sessions.records(name, before=count + 1, limit=3)
            assert [bytes(one) for one in last.records] == lines[-3:]
            middle = await sessions.records(name, before=4, limit=2)
            assert [bytes(one) for one in middle.records] == lines[1:3]
            assert (await sessions.records(name, after=count + 5)).records == ()
            await refused(sessions.records(name, after=-1), BadRequest)
            exported = [one async for one in sessions.export(name, "jsonl")]
            assert b"".join(exported) == log
            with pytest.raises(BadRequest):
                sessions.export(name, "pdf")
            messages = (await sessions.history(name)).messages
            assert [(one.role, one.content) for one in messages] == [
                ("user", "go"),
                ("assistant", "hello there"),
            ]

    run(story())


def test_a_page_of_records_ends_where_they_have_become_large(tmp_path):
    """At least one comes, however large; nothing is left out between two pages."""

    async def story():
        async with serving(tmp_path, ["ok"] * 3) as sessions:
            name = await made(sessions)
            for letter in "abc":
                await spoken(sessions, name, letter * 2_500_000)
            await sessions.get_open(name).begin()
            last = sessions.get_open(name).seq
            pages, after = [], 0
            while not pages or after:
                page = await sessions.records(name, after, limit=1000)
                pages.append([bytes(one) for one in page.records])
                after = page.next
            sizes = [sum(map(len, page)) for page in pages]
            assert all(
                size <= 4 << 20 or len(page) == 1 for size, page in zip(sizes, pages, strict=True)
            )
            assert len(pages) > 3
            back, before = [], last + 1
            while before > 1:
                page = [bytes(one) for one in (await sessions.records(name, before=before)).records]
                assert sum(map(len, page)) <= 4 << 20 or len(page) == 1
                back = page + back
                before -= len(page)
            assert back == [line for page in pages for line in page]
            assert len(back) == last

    run(story())
