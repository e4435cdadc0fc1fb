"""The service and the runner together: what is said is kept, and the next message builds on it."""

import asyncio

import pytest
from runner_rig import call, on_sqlite, scripted

from bridle.chat import AgentRunner, ChatService, MCPToolServer
from bridle.chat.values import ServiceLimits
from rig import run

STORY = [
    ("add Buy milk", "Got it! Added 'Buy milk' to your list. Anything else?"),
    ("add Buy oat milk", "Got it! Added 'Buy oat milk' to your list. Anything else?"),
    (
        "delete milk",
        "I found multiple tasks about 'milk'. Which one: 'Buy milk' or 'Buy oat milk'?",
    ),
    (
        "the second one",
        "Do you really want to delete 'Buy oat milk'? Reply 'yes delete' to confirm.",
    ),
    ("yes delete", "I've removed 'Buy oat milk' from your tasks."),
    ("list", "1. ☐ Buy milk"),
]


class Worker:
    """What one process has: a service, its runner, its tools."""

    def __init__(self, database, provider="responder"):
        self.server = MCPToolServer(database.session_factory)
        factory = database.session_factory
        self.runner = AgentRunner(factory, self.server, provider=provider)
        self.service = ChatService(database, self.runner, ServiceLimits(messages_a_minute=0))

    async def __aenter__(self):
        await self.runner.warm_up()
        return self

    async def __aexit__(self, *_):
        await self.runner.close()
        await self.server.close()


def test_T6_a_conversation_goes_on_in_whichever_worker_is_asked(database):
    async def told():
        async with Worker(database) as one, Worker(database) as other:
            conversation = None
            for number, (message, reply) in enumerate(STORY):
                worker = (one, other)[number % 2]
                said = await worker.service.reply("ana", message, conversation)
                conversation = said.conversation_id
                assert said.response == reply

    run(told())


def test_T6_the_same_key_is_answered_again_and_done_once(database):
    async def told():
        async with Worker(database) as one:
            first = await one.service.reply("ana", "add Buy milk", key="k1")
            again = await one.service.reply("ana", "add Buy milk", key="k1")
            assert (again.response, again.replayed) == (first.response, True)
            listed = await one.service.reply("ana", "list", first.conversation_id)
            assert listed.response == "1. ☐ Buy milk"

    run(told())


def test_T3_many_users_at_once_each_see_their_own(database):
    async def told():
        async with Worker(database) as one:

            async def lives(user):
                conversation = None
                for message in (f"add Plan of {user}", "list", "complete plan", "delete plan"):
                    said = await one.service.reply(user, message, conversation)
                    conversation = said.conversation_id
                    assert f"Plan of {user}" in said.response
                    assert said.response.count("Plan of") == 1
                said = await one.service.reply(user, "yes delete", conversation)
                assert said.response == f"I've removed 'Plan of {user}' from your tasks."

            await asyncio.gather(*(lives(f"user{number}") for number in range(12)))

    run(told())


@on_sqlite
@pytest.mark.parametrize(
    "lie",
    [
        "Got it! Added 'Buy milk' to your list. Anything else?",
        "I've deleted everything you had.",
        "Do you really want to delete 'Buy milk'? Reply 'yes delete' to confirm.",
    ],
)
def test_T5_what_was_not_done_is_not_claimed(database, lie):
    """The model says that it did, and called nothing."""

    async def told():
        async with Worker(database, scripted(lie)) as one:
            said = await one.service.reply("ana", "do the usual for me")
            assert said.response == "Sorry, I didn't quite get that. What would you like to do?"

    run(told())


@on_sqlite
def test_what_a_model_costs_is_told_to_the_service(database):
    from bridle.protocols.provider import ProviderInfo
    from bridle.providers.scripted import Scripted
    from bridle.usage import Price

    async def told():
        used = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
        info = ProviderInfo("scripted", "scripted", price=Price(1, 2))
        asked = {**call("add_task", title="x"), "usage": used}
        model = Scripted([asked, {"text": "ok", "usage": used}], info=info)
        async with Worker(database, model) as one:
            from bridle.chat import AgentContext

            result = await one.runner.run(AgentContext("ana", "c1"), "add x")
            assert result.dollars == pytest.approx(6.0)

    run(told())


@on_sqlite
def test_T4_what_a_model_without_a_price_costs_is_unknown(database):
    from bridle.chat import AgentContext

    async def told():
        async with Worker(database, scripted(call("add_task", title="x"), "ok")) as one:
            result = await one.runner.run(AgentContext("ana", "c1"), "add x")
            assert result.response == "Got it! Added 'x' to your list. Anything else?"
            assert result.dollars is None
        async with Worker(database, "responder") as one:
            assert (await one.runner.run(AgentContext("ana", "c1"), "list")).dollars == 0

    run(told())


@on_sqlite
def test_T4_a_limit_of_money_that_cannot_be_kept_is_refused_at_the_start(database):
    from bridle.chat import ChatApp, ServiceLimits
    from bridle.errors import ConfigError

    limits = ServiceLimits(dollars_a_day=0.5)

    async def told():
        with pytest.raises(
            ConfigError, match=r"price of .* is unknown, so a limit of \$0.50 a day"
        ):
            await ChatApp(database=database, provider=scripted("hi"), service_limits=limits).start()
        async with ChatApp(database=database, provider="responder", service_limits=limits) as app:
            assert (await app.service.reply("ana", "list")).success

    run(told())
