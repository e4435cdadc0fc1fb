"""Another agent's turn under the limits of a day, with the real account."""

from acting import Acting, acting_engine

from bridle.agents.base import AgentResponse
from bridle.engine.budget import Limits
from bridle.events import UsageReported
from bridle.stores.day_budget import DayBudget
from bridle.stores.jsonl import JsonlStore
from bridle.usage import Usage
from rig import run


def test_what_an_agent_used_today_counts_and_another_turn_finds_the_day_used_up(tmp_path):
    ran = []

    async def act(prompt, session, can_use_tool):
        ran.append(prompt)
        session.emit(UsageReported(Usage(60, 40), "m", 0.01))
        await session.finish("nothing", "there is such a call nowhere")
        return AgentResponse("ok")

    async def story():
        limits, store = Limits(max_day_tokens=150), JsonlStore(tmp_path)
        day = DayBudget(tmp_path)
        async with acting_engine(Acting(act), store=store, limits=limits, day=day) as engine:
            found = []
            for word in ("one", "two", "three"):
                session = await engine.session()
                found.append((await session.wait(await session.send(word))).reason)
            return found

    assert run(story()) == ["done", "budget", "budget"]
    assert ran == ["one", "two"]  # the third has nothing left to begin with
