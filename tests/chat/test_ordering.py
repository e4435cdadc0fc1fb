"""Many messages at once in one conversation: answered one by one, in their order, none lost."""

import asyncio
from dataclasses import replace

import pytest
from small_runner import SmallRunner, toolbox
from sqlmodel import col, select

from bridle.chat import ChatService
from bridle.chat.db import Spending, StoredMessage, Task, Turn
from bridle.chat.leases import is_dead, worker_name
from bridle.chat.tools.apply_once import ApplyOnce
from bridle.chat.tools.identity import Binding
from bridle.chat.turn_queue import WorkerContext, claim, enqueue, finish, poll, release, renew
from bridle.chat.values import AgentResult, IncomingMessage, ServiceLimits
from bridle.chat.worker import ConversationQueue
from rig import SOAK, run

LIMITS = ServiceLimits(messages_a_minute=0)


def transcript(database, user="ana"):
    with database.session_for(user, reads=True) as session:
        asked = select(StoredMessage).order_by(col(StoredMessage.position))
        return [(one.role, one.content) for one in session.exec(asked)]


@pytest.mark.parametrize(("count", "many"), [(1, 100 if SOAK else 30), (3, 100 if SOAK else 40)])
def test_a_hundred_messages_at_once_are_answered_in_the_order_of_their_arrival(
    database, count, many
):
    """With one service, and with several that share nothing but the database.

    A hundred in a soak, fewer otherwise; a hundred over HTTP are asked in `test_chat_bad_input`.
    """
    running = []

    class Careful(SmallRunner):
        async def run(self, context, message):
            assert running == []  # one at a time
            running.append(message)
            found = await super().run(context, message)
            running.remove(message)
            return found

    async def story():
        services = [ChatService(database, Careful(database), LIMITS) for _ in range(count)]
        first = await services[0].reply("ana", "start")
        replies = await asyncio.gather(
            *(
                services[number % count].reply("ana", f"m{number}", first.conversation_id)
                for number in range(many)
            )
        )
        for service in services:
            await service.close()
        return replies

    replies = run(story())
    said = transcript(database)
    assert [role for role, _ in said] == ["user", "assistant"] * (many + 1)
    asked = [content for role, content in said if role == "user"]
    assert sorted(asked) == sorted(["start", *(f"m{number}" for number in range(many))])
    answered = [content for role, content in said if role == "assistant"]
    assert [one.split("!")[0] for one in answered] == asked
    assert [one.response.split("!")[0] for one in replies] == [f"m{n}" for n in range(many)]
    known = [int(one.split()[-2]) for one in answered]
    assert known == [min(2 * number, LIMITS.history) for number in range(many + 1)]


def test_messages_that_cost_money_do_not_block_one_another(database):
    """Arrivals and endings lock the same rows; nobody waits for somebody who waits for them."""

    class Costly(SmallRunner):
        async def run(self, context, message):
            return replace(await super().run(context, message), dollars=0.01)

    async def story():
        limits = ServiceLimits(messages_a_minute=1000, dollars_a_day=100.0)
        services = [ChatService(database, Costly(database), limits) for _ in range(2)]
        made = [await services[0].reply("ana", "start") for _ in range(3)]
        sent = [
            services[number % 2].reply("ana", f"m{number}", made[number % 3].conversation_id)
            for number in range(36)
        ]
        assert all(one.success for one in await asyncio.gather(*sent))
        for service in services:
            await service.close()

    run(story())
    with database.session_for("ana", reads=True) as session:
        spent = session.exec(select(Spending)).all()
    assert sum(one.messages for one in spent) == 39
    assert round(sum(one.dollars for one in spent), 6) == 0.39


def test_conversations_do_not_wait_for_one_another(database):
    async def story():
        runner = SmallRunner(database)
        runner.gates["wait"] = asyncio.Event()
        service = ChatService(database, runner, LIMITS)
        slow = asyncio.create_task(service.reply("ana", "wait"))
        assert (await service.reply("ana", "quick")).response.startswith("quick!")
        assert (await service.reply("ben", "quick")).response.startswith("quick!")
        runner.gates["wait"].set()
        await slow

    run(story())


@pytest.fixture
def turns(database):
    """The steps of two workers by hand: (step, first place, second place)."""

    def step(what, *rest, worker="w1", now=1000.0):
        desk = WorkerContext(worker, LIMITS, now)
        with database.session_for("ana") as session, session.begin():
            return what(session, *rest, desk)

    first = step(enqueue, IncomingMessage("ana", "one"))
    second = step(enqueue, IncomingMessage("ana", "two", first.conversation_id), worker="w2")
    return step, first, second


def test_who_comes_second_waits_for_the_first(turns):
    step, first, second = turns
    assert first.work is not None and second.work is None
    head = step(poll, second, worker="w2")
    assert (head.turn_id, head.running, head.free) == (first.turn_id, True, False)
    step(lambda session, desk: finish(session, first.work, AgentResult(True, "ok"), desk))
    head = step(poll, second, worker="w2")
    assert (head.turn_id, head.running, head.free) == (second.turn_id, False, True)


def test_a_lease_that_ran_out_is_taken_and_the_late_worker_changes_nothing(database, turns):
    """The fence: the reply of the one who was thought dead is thrown away."""
    step, first, second = turns
    head = step(poll, second, worker="w2", now=1000.0 + LIMITS.lease + 1)
    assert head.free
    with database.session_for("ana") as session, session.begin():
        desk = WorkerContext("w2", LIMITS, 2000.0)
        taken = claim(head, session, desk)
        assert taken.turn_id == first.turn_id and taken.fence > first.work.fence
        assert claim(head, session, desk) is None  # once
    with database.session_for("ana") as session, session.begin():
        desk = WorkerContext("w1", LIMITS, 2000.0)
        assert not renew(session, first.work, desk)
        assert finish(session, first.work, AgentResult(True, "late"), desk) is None
        release(session, first.work)
    with database.session_for("ana") as session, session.begin():
        desk = WorkerContext("w2", LIMITS, 2001.0)
        assert finish(session, taken, AgentResult(True, "in time"), desk).response == "in time"
    assert [content for _, content in transcript(database)] == ["one", "in time", "two"]


def test_a_worker_that_comes_back_after_its_turn_ended_applies_nothing(database, turns):
    """Its operations are refused; those that were applied in time answer as they did."""
    _, first, _ = turns
    apply = ApplyOnce(toolbox, database.session_factory)
    in_time, late = (Binding("ana", operation=f"{first.turn_id}:{number}") for number in (0, 1))
    done = apply("note", {"title": "a"}, in_time)
    with database.session_for("ana") as session, session.begin():
        finish(session, first.work, AgentResult(True, "ok"), WorkerContext("w1", LIMITS, 1000.0))
    assert apply("note", {"title": "a"}, in_time) == done
    assert apply("note", {"title": "b"}, late)["error"]["code"] == "processing_error"
    with database.session_for("ana") as session:
        assert [one.title for one in session.exec(select(Task))] == ["a"]


def test_a_lease_that_is_renewed_is_not_taken(database, turns):
    step, first, second = turns
    assert step(renew, first.work, now=1010.0)
    assert not step(poll, second, worker="w2", now=1000.0 + LIMITS.lease + 1).free


def test_a_lease_that_is_renewed_between_a_look_and_a_claim_is_not_taken(database, turns):
    step, first, second = turns
    late = 1000.0 + LIMITS.lease + 1
    head = step(poll, second, worker="w2", now=late)
    assert head.free and step(renew, first.work, now=late)
    with database.session_for("ana") as session, session.begin():
        assert claim(head, session, WorkerContext("w2", LIMITS, late)) is None


def test_a_turn_that_was_released_can_be_taken_at_once(database, turns):
    step, first, _second = turns
    with database.session_for("ana") as session, session.begin():
        release(session, first.work)
    head = step(poll, first, worker="w3")
    assert head.free and not head.running


def test_a_message_over_which_workers_die_is_given_up_in_the_end(database):
    """The conversation is not held up for ever by one message."""

    async def story():
        service = ChatService(database, SmallRunner(database), ServiceLimits(attempts=2))
        first = await service.reply("ana", "one")
        asked = IncomingMessage("ana", "poison", first.conversation_id)
        with database.session_for("ana") as session, session.begin():
            enqueue(session, asked, WorkerContext("dead", LIMITS, 0.0))
            turn = session.exec(select(Turn).where(Turn.state == "running")).one()
            turn.attempts = 2
        reply = await service.reply("ana", "after", first.conversation_id)
        assert reply.response.startswith("after!")
        page = await service.conversation("ana", first.conversation_id)
        assert "trouble" in page.items[3].content

    run(story())


def test_closing_lets_go_of_turns_so_that_another_goes_on(database):
    async def story():
        runner = SmallRunner(database)
        runner.gates["note a"] = asyncio.Event()
        one, two = ChatService(database, runner), ChatService(database, SmallRunner(database))
        told = asyncio.Event()
        task = asyncio.create_task(one.reply("ana", "note a", key="k", on_accepted=told.set))
        await told.wait()
        await one.close()
        await asyncio.gather(task, return_exceptions=True)
        reply = await two.reply("ana", "note a", key="k")
        assert (reply.response, reply.replayed) == ("Noted 1.", True)
        await two.close()

    run(story())


def test_a_worker_of_this_process_lives_and_one_of_a_process_that_ended_does_not():
    mine = worker_name()
    assert not is_dead(mine)
    machine, pid, _started, rest = mine.split("/")
    assert is_dead("/".join((machine, pid, "1", rest)))  # its number was taken by another
    assert not is_dead("/".join(("another", pid, "1", rest)))  # of whom nothing is known
    assert not is_dead("")
    assert mine != worker_name()


def test_a_line_lets_the_lowest_number_go_first_and_forgets_who_left():
    async def story():
        lines, went, hold = ConversationQueue(), [], asyncio.Event()

        async def stand(number):
            async with lines.wait_turn("c", number):
                if number == 0:
                    await hold.wait()
                went.append(number)

        tasks = {}
        for number in (0, 5, 3, 4, 1):
            tasks[number] = asyncio.create_task(stand(number))
            await asyncio.sleep(0)
        tasks[3].cancel()
        hold.set()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert went == [0, 1, 4, 5] and len(lines) == 0

    run(story())
