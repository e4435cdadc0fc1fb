"""T2: the runner and the task tools with a plain `Callable[[], Session]`."""

import asyncio

import pytest
from sqlmodel import Session, SQLModel, create_engine, select

from bridle.chat import AgentContext, AgentRunner, MCPToolServer
from bridle.chat.db import Task
from bridle.errors import ConfigError
from rig import run


def contexts(user, *messages):
    """Each message with what was said before it."""
    return AgentContext.from_request(user, f"conversation of {user}", list(messages))


async def talk(runner, user, *messages):
    said, replies = [], []
    for message in messages:
        result = await runner.run(contexts(user, *said), message)
        said += [
            {"role": "user", "content": message},
            {"role": "assistant", "content": result.response},
        ]
        replies.append(result.response)
    return replies


def test_T2_a_plain_session_factory_is_enough_for_two_users(database):
    """T2, T3: made as the contract's own example makes it; whose rows they are is kept apart."""
    engine = create_engine(database.url)

    def get_session() -> Session:
        return Session(engine)

    async def work():
        mcp_server = MCPToolServer(get_session)
        agent_runner = AgentRunner(get_session, mcp_server, provider="responder")
        try:
            assert await talk(
                agent_runner, "ana", "Add task buy milk", "delete milk", "yes delete", "list"
            ) == [
                "Got it! Added 'buy milk' to your list. Anything else?",
                "Do you really want to delete 'buy milk'? Reply 'yes delete' to confirm.",
                "I've removed 'buy milk' from your tasks.",
                "Your list is empty. Tell me what to add.",
            ]
            await talk(agent_runner, "ana", "Add task water plants")
            assert await talk(agent_runner, "bob", "list", "complete water plants") == [
                "Your list is empty. Tell me what to add.",
                "I couldn't find a task about 'water plants' in your list.",
            ]
        finally:
            await agent_runner.close()
            await mcp_server.close()

    run(work())
    with database.session_for("ana", reads=True) as session:
        assert [one.title for one in session.exec(select(Task))] == ["water plants"]
    engine.dispose()


def test_T2_tables_that_sqlmodel_made_are_enough(tmp_path):
    """Without a `Database`: the tables are among the metadata of SQLModel."""
    engine = create_engine(f"sqlite:///{tmp_path / 'own.db'}")
    assert Task.__tablename__ in SQLModel.metadata.tables
    SQLModel.metadata.create_all(engine)

    async def work():
        mcp_server = MCPToolServer(lambda: Session(engine))
        runner = AgentRunner(lambda: Session(engine), mcp_server, provider="responder")
        try:
            assert await talk(runner, "ana", "add buy milk", "list") == [
                "Got it! Added 'buy milk' to your list. Anything else?",
                "1. ☐ buy milk",
            ]
        finally:
            await runner.close()
            await mcp_server.close()

    asyncio.run(work())
    engine.dispose()


def yielding():
    yield Session()


async def awaiting():
    return Session()


@pytest.mark.parametrize("factory", [None, "get_session", yielding, awaiting])
@pytest.mark.parametrize("made", [MCPToolServer, lambda factory: AgentRunner(factory, None)])
def test_T2_what_is_no_session_factory_is_refused_at_once_with_what_to_do(factory, made):
    with pytest.raises(ConfigError) as raised:
        made(factory)
    assert "session_factory" in raised.value.message
    assert "Pass " in raised.value.hint
