"""Turns under attack: taken over half way, ended between two looks, deleted under their worker."""

import asyncio
from dataclasses import replace

from runner_rig import call, on_sqlite, scripted
from small_runner import SmallRunner
from sqlmodel import select

from bridle.chat import ChatService
from bridle.chat.app import ChatApp
from bridle.chat.db import Task, Turn
from bridle.chat.errors import QueueFull, UnknownConversation
from bridle.chat.turn_queue import WorkerContext, poll
from bridle.chat.values import AgentResult, ServiceLimits
from rig import run

FREE = ServiceLimits(messages_a_minute=0)


class Fading(SmallRunner):
    """Keeps the contexts that it was handed; the first attempt at a message never ends."""

    def __init__(self, database):
        super().__init__(database)
        self.contexts = []
        self.begun = asyncio.Event()

    async def run(self, context, message):
        self.contexts.append(context)
        if len(self.contexts) == 1:
            self.begun.set()
            await asyncio.Event().wait()
        return AgentResult(True, "Done.")


@on_sqlite
def test_T6_who_takes_a_turn_over_is_told_that_it_was_begun_before(database):
    """Only then is it looked up what the first attempt has changed."""

    async def story():
        runner = Fading(database)
        first = ChatService(database, runner, FREE)
        asked = asyncio.create_task(first.reply("ana", "add milk", key="k"))
        await runner.begun.wait()
        await first.close()
        await asyncio.gather(asked, return_exceptions=True)
        second = ChatService(database, runner, FREE)
        await second.reply("ana", "add milk", key="k")
        assert [one.retried for one in runner.contexts] == [False, True]
        assert len({one.turn_id for one in runner.contexts}) == 1

    run(story())


@on_sqlite
def test_T6_a_model_that_changes_its_mind_after_a_crash_repeats_nothing(database):
    """The first worker adds a task and dies before it says so; the second one's model asks anew."""

    async def story():
        held = asyncio.Event()
        sure = asyncio.Event()

        async def never(request):
            sure.set()
            await held.wait()

        class Stuck:
            """Asks for a task, and hangs after it was added."""

            def __init__(self):
                self._inner = scripted(call("add_task", title="Buy milk"), "ok")
                self.info = self._inner.info
                self.asked = 0

            async def stream(self, request):
                self.asked += 1
                if self.asked > 1:
                    await never(request)
                async for event in self._inner.stream(request):
                    yield event

            async def close(self):
                pass

        first = ChatApp(None, None, database, provider=Stuck(), service_limits=FREE)
        asked = asyncio.create_task(first.service.reply("ana", "milk please", key="k"))
        await sure.wait()
        await first.close()
        await asyncio.gather(asked, return_exceptions=True)
        model = scripted(call("list_tasks"), call("add_task", title="MILK"), "ok")
        second = ChatApp(None, None, database, provider=model, service_limits=FREE)
        reply = await second.service.reply("ana", "milk please", key="k")
        await second.close()
        assert reply.response == "Got it! Added 'Buy milk' to your list. Anything else?"
        with database.session_for("ana", reads=True) as session:
            assert [one.title for one in session.exec(select(Task))] == ["Buy milk"]

    run(story())


def test_a_turn_that_another_worker_ends_between_two_looks_is_found_ended(database):
    """On PostgreSQL each query of a transaction sees what was committed until then."""

    async def story():
        service = ChatService(database, SmallRunner(database), FREE)
        place = await service._arrive(_asked("hello"))
        desk = WorkerContext("somebody", FREE, 0.0)
        with database.session_for("ana", reads=True) as session, session.begin():
            stale = session.get(Turn, place.turn_id)
            assert stale.state == "running"
            await service._worker.run_turn(place.work)
            found = poll(session, place, desk) if database.is_postgres else None
        with database.session_for("ana", reads=True) as session, session.begin():
            found = found or poll(session, place, desk)
        assert found.response == "hello! I know 0 messages."

    run(story())


def _asked(message):
    from bridle.chat.values import IncomingMessage

    return IncomingMessage("ana", message)


def test_a_conversation_deleted_again_and_again_under_its_workers_says_so_in_a_sentence(database):
    """Whoever waits hears that it is gone; whoever deletes is not turned away."""

    async def story():
        service = ChatService(database, SmallRunner(database), FREE)
        for _ in range(8):
            first = await service.reply("ana", "hello")
            here = first.conversation_id
            waiting = [service.reply("ana", f"note {n}", here) for n in range(6)]
            ends = await asyncio.gather(
                *waiting, service.delete("ana", here), return_exceptions=True
            )
            assert ends[-1] is None
            for one in ends[:-1]:
                assert isinstance(one, UnknownConversation) or one.success, one
        await service.close()

    run(story())


@on_sqlite
def test_one_user_does_not_fill_the_house_for_the_others(database):
    """Many that wait for the same key cost nothing, and still leave room for everybody else."""

    async def story():
        runner = SmallRunner(database)
        runner.gates["wait"] = asyncio.Event()
        service = ChatService(database, runner, replace(FREE, accepted=16))
        one = [asyncio.create_task(service.reply("ana", "wait", key="k")) for _ in range(16)]
        await asyncio.sleep(0)
        other = await service.reply("ben", "hello")
        assert other.response == "hello! I know 0 messages."
        runner.gates["wait"].set()
        ends = await asyncio.gather(*one, return_exceptions=True)
        assert any(isinstance(end, QueueFull) for end in ends)
        assert {end.response for end in ends if not isinstance(end, QueueFull)} == {
            "wait! I know 0 messages."
        }

    run(story())


@on_sqlite
def test_one_users_slow_turns_do_not_hold_up_another_user(database):
    async def story():
        runner = SmallRunner(database)
        runner.gates["wait"] = asyncio.Event()
        service = ChatService(database, runner, replace(FREE, at_once=4))
        slow = [asyncio.create_task(service.reply("ana", "wait")) for _ in range(8)]
        async with asyncio.timeout(240):
            while not runner.ran:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with asyncio.timeout(240):
            other = await service.reply("ben", "hello")
        assert other.response == "hello! I know 0 messages."
        runner.gates["wait"].set()
        assert len(await asyncio.gather(*slow)) == 8

    run(story())
