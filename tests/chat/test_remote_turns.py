"""Whole turns over tools of another process; when it dies, a person reads a sentence."""

import asyncio
import signal

import pytest
from chat_tools_rig import PATIENCE, SECRET, Served

from bridle.chat import AgentContext, AgentRunner, Database, RemoteTools
from bridle.chat.errors import TROUBLE


@pytest.mark.timeout(300)
def test_T2_T7_a_turn_goes_through_remote_tools_and_survives_their_death(sqlite_url, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    database = Database(sqlite_url)

    async def work(served):
        tools = RemoteTools(served.url, SECRET, timeout=PATIENCE)
        runner = AgentRunner(database.session_factory, tools, provider=None)
        context = AgentContext("ana", "talk")
        said = [await runner.run(context, "Add task buy milk")]
        await asyncio.to_thread(served.end, signal.SIGKILL)
        said.append(await runner.run(context, "Add task buy bread"))
        await asyncio.to_thread(served.start)
        said.append(await runner.run(context, "Add task buy bread"))
        said.append(await runner.run(context, "Show my tasks"))
        await runner.close()
        await tools.close()
        return said

    with Served(sqlite_url) as served:
        first, away, back, listed = asyncio.run(work(served))
    database.close()
    assert first.response == "Got it! Added 'buy milk' to your list. Anything else?"
    assert (away.success, away.response) == (False, TROUBLE)
    assert back.response == "Got it! Added 'buy bread' to your list. Anything else?"
    assert "buy milk" in listed.response
    assert "buy bread" in listed.response
