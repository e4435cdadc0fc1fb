"""Conversations read back page by page, and deleted; T6."""

import asyncio
from datetime import timedelta

import pytest
from small_runner import SmallRunner
from sqlmodel import select

from bridle.chat import ChatService
from bridle.chat.db import Operation, PendingConfirmation, StoredMessage, Task, Turn, utc_now
from bridle.chat.errors import MessageRefused, UnknownConversation
from bridle.chat.values import ServiceLimits
from rig import run


@pytest.fixture
def service(database):
    limits = ServiceLimits(messages_a_minute=0, page=10)
    return ChatService(database, SmallRunner(database), limits)


async def every(pages):
    """All items of all pages, and how many each held."""
    found, sizes, cursor = [], [], ""
    while True:
        page = await pages(cursor)
        found.append(page.items)
        sizes.append(len(page.items))
        if not page.next:
            return found, sizes
        cursor = page.next


def test_every_conversation_is_on_exactly_one_page_the_newest_first(service):
    async def story():
        made = [(await service.reply("ana", f"talk {n}")).conversation_id for n in range(7)]
        await service.reply("ben", "mine")
        await service.reply("ana", "again", made[0])
        pages, sizes = await every(lambda cursor: service.conversations("ana", cursor, 3))
        found = [one for page in pages for one in page]
        assert sizes == [3, 3, 1]
        assert [one.id for one in found] == [made[0], *made[:0:-1]]
        assert found[1].title == "talk 6"

    run(story())


def test_messages_come_the_last_ones_first_and_each_page_in_its_order(service):
    async def story():
        reply = await service.reply("ana", "m0")
        for number in range(1, 4):
            reply = await service.reply("ana", f"m{number}", reply.conversation_id)
        there = reply.conversation_id
        pages, sizes = await every(lambda cursor: service.conversation("ana", there, cursor, 3))
        assert sizes == [3, 3, 2]
        whole = [one.content for page in reversed(pages) for one in page]
        assert [one for one in whole if "!" not in one] == ["m0", "m1", "m2", "m3"]
        assert whole[-1] == "m3! I know 6 messages."

    run(story())


def test_a_page_is_never_larger_than_allowed(service):
    async def story():
        for number in range(12):
            await service.reply("ana", f"talk {number}")
        assert len((await service.conversations("ana", limit=10**9)).items) == 10
        assert len((await service.conversations("ana", limit=-1)).items) == 1

    run(story())


@pytest.mark.parametrize("cursor", ["!", "eA", "\0", "é", "OTk5OTk5OTk5OTk5OTk", "A" * 5000])
def test_a_cursor_that_cannot_be_read_is_refused(service, cursor):
    async def story():
        reply = await service.reply("ana", "hi")
        for attempt in (
            service.conversations("ana", cursor),
            service.conversation("ana", reply.conversation_id, cursor),
        ):
            with pytest.raises(MessageRefused, match="first one"):
                await attempt

    run(story())


def test_a_deleted_conversation_is_gone_with_everything_in_it_but_what_it_did(database, service):
    async def story():
        reply = await service.reply("ana", "note milk")
        there = reply.conversation_id
        kept = await service.reply("ana", "other")
        with database.session_for("ana") as session, session.begin():
            later = utc_now() + timedelta(minutes=5)
            session.add(
                PendingConfirmation(
                    conversation_id=there, action="x", phrase="yes delete", expires_at=later
                )
            )
        await service.delete("ana", there)
        for attempt in (
            service.delete("ana", there),
            service.conversation("ana", there),
            service.reply("ana", "hi", there),
        ):
            with pytest.raises(UnknownConversation):
                await attempt
        with database.session_for("ana", reads=True) as session:
            for kind in (Turn, StoredMessage):
                places = {one.conversation_id for one in session.exec(select(kind))}
                assert places == {kept.conversation_id}
            assert session.exec(select(PendingConfirmation)).all() == []
            assert len(session.exec(select(Task)).all()) == 1
            assert len(session.exec(select(Operation)).all()) == 1

    run(story())


def test_a_conversation_that_is_deleted_while_it_is_answered_says_so(database):
    async def story():
        runner = SmallRunner(database)
        runner.gates["wait"] = asyncio.Event()
        service = ChatService(database, runner)
        first = await service.reply("ana", "one")
        told = asyncio.Event()
        task = asyncio.create_task(
            service.reply("ana", "wait", first.conversation_id, on_accepted=told.set)
        )
        await told.wait()
        await service.delete("ana", first.conversation_id)
        runner.gates["wait"].set()
        with pytest.raises(UnknownConversation):
            await task

    run(story())
