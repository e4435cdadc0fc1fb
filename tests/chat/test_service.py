"""The service on both databases: replies, keys, limits, what is kept and in which order."""

import asyncio
from functools import partial

import pytest
from small_runner import SmallRunner
from sqlmodel import select

from bridle.chat import ChatService
from bridle.chat.db import Conversation, StoredMessage, Task, Turn
from bridle.chat.errors import (
    AllowanceSpent,
    ForeignRow,
    KeyReused,
    MessageRefused,
    QueueFull,
    TooManyMessages,
    UnknownConversation,
)
from bridle.chat.values import AgentResult, Locale, ServiceLimits, TurnTimeout
from rig import run


@pytest.fixture
def runner(database):
    return SmallRunner(database)


@pytest.fixture
def service(database, runner):
    return ChatService(database, runner, ServiceLimits(messages_a_minute=0))


def rows(database, user, kind):
    with database.session_for(user, reads=True) as session:
        return session.exec(select(kind)).all()


async def shown(service, user, conversation):
    page = await service.conversation(user, conversation)
    return [(one.role, one.content) for one in page.items]


def test_a_message_is_answered_and_both_are_kept(service):
    """T6: loads, runs, persists, answers."""

    async def story():
        first = await service.reply("ana", "note Buy milk")
        assert (first.response, first.replayed, first.success) == ("Noted 1.", False, True)
        second = await service.reply("ana", "hello", first.conversation_id)
        assert second.response == "hello! I know 2 messages."
        assert await shown(service, "ana", first.conversation_id) == [
            ("user", "note Buy milk"),
            ("assistant", "Noted 1."),
            ("user", "hello"),
            ("assistant", "hello! I know 2 messages."),
        ]
        page = await service.conversation("ana", first.conversation_id)
        call = page.items[1].tool_calls[0]
        assert (call["tool_name"], call["parameters"]) == ("note", {"title": "Buy milk"})
        assert page.items[3].id == second.message_id

    run(story())


def test_another_service_answers_the_next_message(database, service):
    """T6: nothing lives in a process: any other one goes on."""

    async def story():
        first = await service.reply("ana", "one")
        other = ChatService(database, SmallRunner(database))
        second = await other.reply("ana", "two", first.conversation_id)
        assert second.response == "two! I know 2 messages."

    run(story())


def test_the_message_is_on_disk_before_the_run(database, service, runner):
    """T6: and `accepted` is told only then."""

    async def story():
        runner.gates["wait"] = asyncio.Event()
        told = asyncio.Event()
        task = asyncio.create_task(service.reply("ana", "wait", on_accepted=told.set))
        await told.wait()
        assert [one.content for one in rows(database, "ana", StoredMessage)] == ["wait"]
        runner.gates["wait"].set()
        await task

    run(story())


def test_the_same_key_gives_the_same_reply_and_does_nothing_again(database, service, runner):
    async def story():
        first = await service.reply("ana", "note Buy milk", key="k1")
        again = await service.reply("ana", "note Buy milk", key="k1")
        assert (again.response, again.message_id) == (first.response, first.message_id)
        assert (first.replayed, again.replayed) == (False, True)
        assert again.conversation_id == first.conversation_id
        assert runner.ran == ["note Buy milk"]
        assert [one.title for one in rows(database, "ana", Task)] == ["Buy milk"]

    run(story())


def test_the_same_key_with_another_message_is_a_conflict(service):
    async def story():
        await service.reply("ana", "one", key="k1")
        with pytest.raises(KeyReused, match="sent before"):
            await service.reply("ana", "two", key="k1")
        with pytest.raises(KeyReused):
            await service.reply("ana", "one", "another-conversation", key="k1")

    run(story())


def test_the_same_key_of_another_user_is_another_key(service):
    """T3."""

    async def story():
        first = await service.reply("ana", "one", key="k1")
        other = await service.reply("ben", "one", key="k1")
        assert not other.replayed and other.conversation_id != first.conversation_id

    run(story())


def test_a_key_whose_turn_still_runs_waits_for_it(database, service, runner):
    async def story():
        runner.gates["wait"] = asyncio.Event()
        elsewhere = ChatService(database, runner)
        told = asyncio.Queue()
        accepted = partial(told.put_nowait, "accepted")
        calls = [
            asyncio.create_task(one.reply("ana", "wait", key="k1", on_accepted=accepted))
            for one in (service, service, elsewhere, elsewhere)
        ]
        for _ in calls:
            await told.get()
        runner.gates["wait"].set()
        replies = await asyncio.gather(*calls)
        assert len({one.message_id for one in replies}) == 1
        assert sorted(one.replayed for one in replies) == [False, True, True, True]
        assert runner.ran == ["wait"]

    run(story())


def test_a_turn_ends_even_if_its_caller_leaves(database, service, runner):
    async def story():
        runner.gates["wait"] = asyncio.Event()
        told = asyncio.Event()
        task = asyncio.create_task(service.reply("ana", "wait", key="k", on_accepted=told.set))
        await told.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        runner.gates["wait"].set()
        again = await service.reply("ana", "wait", key="k")
        assert again.response == "wait! I know 0 messages." and runner.ran == ["wait"]

    run(story())


@pytest.mark.parametrize("message", ["", "  \n ", "a\x00b", "\x1b[2J", "x" * 10_001, "\u200b"])
def test_what_cannot_be_read_is_refused_and_not_kept(database, service, message):
    async def story():
        with pytest.raises(MessageRefused) as refused:
            await service.reply("ana", message)
        assert refused.value.message[0].isupper()
        assert rows(database, "ana", Conversation) == []

    run(story())


def test_a_foreign_conversation_is_one_that_is_not_there(database, service):
    """T3: not to be written to, read, or deleted, and nobody learns that it exists."""

    async def story():
        hers = await service.reply("ana", "one")
        said = set()
        for conversation in (hers.conversation_id, "nowhere"):
            for attempt in (
                service.reply("ben", "hi", conversation),
                service.conversation("ben", conversation),
                service.about("ben", conversation),
                service.delete("ben", conversation),
            ):
                with pytest.raises(UnknownConversation) as refused:
                    await attempt
                said.add((conversation, refused.value.message))
        assert {words for where, words in said if where == "nowhere"} == {
            words for where, words in said if where != "nowhere"
        }
        assert rows(database, "ben", Turn) == []
        assert len((await service.conversation("ana", hers.conversation_id)).items) == 2

    run(story())


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "é", "x" * 37, "x" * 10_000, "a\nb"])
def test_an_id_that_could_be_none_is_a_conversation_that_is_not_there(service, name):
    """T7: the database never sees it."""

    async def story():
        for attempt in (
            service.reply("ana", "hi", name),
            service.conversation("ana", name),
            service.about("ana", name),
            service.delete("ana", name),
        ):
            with pytest.raises(UnknownConversation):
                await attempt

    run(story())


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "x" * 201])
def test_a_user_without_a_proper_name_is_refused(service, name):
    """T3."""

    async def story():
        with pytest.raises(ForeignRow):
            await service.reply(name, "hi")

    run(story())


def test_a_setting_or_a_key_that_cannot_be_kept_does_no_harm(service):
    async def story():
        odd = Locale("\0" * 3, "x" * 99)
        assert (await service.reply("ana", "hi", locale=odd)).success
        for key in ("x" * 256, "a\0b", "\ud800"):
            with pytest.raises(MessageRefused, match="Idempotency-Key"):
                await service.reply("ana", "hi", key=key)

    run(story())


def test_a_runner_that_breaks_is_answered_with_a_sentence(service, caplog):
    """T7: the details are in no reply, and the conversation goes on."""

    async def story():
        first = await service.reply("ana", "fail")
        assert first.response == "I'm having a bit of trouble right now. Please try again."
        assert not first.success
        second = await service.reply("ana", "hello", first.conversation_id)
        assert second.success
        again = await service.conversation("ana", first.conversation_id)
        assert "secret" not in str(again)

    run(story())
    assert "secret details" not in "".join(one.getMessage() for one in caplog.records)


def test_a_turn_whose_time_is_over_says_what_was_done(database):
    """T4: the TimeoutError carries what happened until then, and it is kept."""

    class Late:
        async def run(self, context, message):
            raise TurnTimeout(AgentResult(False, "I added 'milk', then time was over."))

    async def story():
        service = ChatService(database, Late())
        found = await service.reply("ana", "much")
        assert (found.response, found.success) == ("I added 'milk', then time was over.", False)

    run(story())


def test_the_history_that_a_runner_sees_is_bounded(database, runner):
    async def story():
        limits = ServiceLimits(history=6, messages_a_minute=0)
        service = ChatService(database, runner, limits)
        reply = await service.reply("ana", "m0")
        for number in range(1, 8):
            reply = await service.reply("ana", f"m{number}", reply.conversation_id)
        assert reply.response == "m7! I know 6 messages."

    run(story())


def test_a_user_who_sends_too_fast_is_asked_to_wait(database, runner):
    """T4: by user; a key that was answered costs nothing."""

    async def story():
        service = ChatService(database, runner, ServiceLimits(messages_a_minute=2))
        await service.reply("ana", "one", key="k")
        try:
            await service.reply("ana", "two")
            await service.reply("ana", "three")  # a minute may end between them, once
            await service.reply("ana", "four")
            await service.reply("ana", "five")
        except TooManyMessages as refused:
            assert 0 < refused.retry_after <= 60 and refused.retryable
            assert "wait a moment" in refused.message
        else:
            raise AssertionError("five messages went through")
        assert (await service.reply("ana", "one", key="k")).replayed
        assert (await service.reply("ben", "one")).success

    run(story())


def test_a_user_whose_money_is_spent_is_told_when_to_come_back(database):
    """T4."""

    class Costly:
        async def run(self, context, message):
            return AgentResult(True, "done", dollars=0.6)

    async def story():
        service = ChatService(database, Costly(), ServiceLimits(dollars_a_day=1.0))
        await service.reply("ana", "one")
        await service.reply("ana", "two")
        with pytest.raises(AllowanceSpent, match="come back tomorrow") as refused:
            await service.reply("ana", "three")
        assert 0 < refused.value.retry_after <= 86_400
        assert (await service.reply("ben", "one")).success

    run(story())


def test_T4_a_cost_that_nobody_knows_is_not_zero(database):
    """T4: with a limit of money, nothing is left of the day; without one, nothing is counted."""

    class Unpriced:
        async def run(self, context, message):
            return AgentResult(True, "done", dollars=None)

    async def story():
        service = ChatService(database, Unpriced(), ServiceLimits(dollars_a_day=1.0))
        await service.reply("ana", "one")
        with pytest.raises(AllowanceSpent):
            await service.reply("ana", "two")
        assert (await service.reply("ben", "one")).success
        free = ChatService(database, Unpriced(), ServiceLimits())
        assert (await free.reply("eve", "one")).success
        assert (await free.reply("eve", "two")).success

    run(story())


def test_a_line_that_is_too_long_is_refused(database, runner):
    async def story():
        service = ChatService(database, runner, ServiceLimits(waiting=2))
        first = await service.reply("ana", "one")
        runner.gates["wait"] = asyncio.Event()
        told = asyncio.Queue()
        accepted = partial(told.put_nowait, "accepted")
        there = first.conversation_id
        calls = [
            asyncio.create_task(service.reply("ana", "wait", there, on_accepted=accepted))
            for _ in range(2)
        ]
        for _ in calls:
            await told.get()
        with pytest.raises(QueueFull) as refused:
            await service.reply("ana", "more", there)
        assert refused.value.retry_after > 0
        runner.gates["wait"].set()
        await asyncio.gather(*calls)

    run(story())


def test_the_setting_of_the_user_reaches_the_runner(database):
    seen = []

    class Looking:
        async def run(self, context, message):
            seen.append((context.timezone, context.language, bool(context.turn_id)))
            return AgentResult(True, "ok")

    async def story():
        service = ChatService(database, Looking())
        await service.reply("ana", "hi", locale=Locale("Europe/Rome", "es"))

    run(story())
    assert seen == [("Europe/Rome", "es", True)]
