"""The agent conformance suite: what every agent has to do that carries turns, run on yours.

A script says what the agent is to do for a prompt: say something, write a file by its own means,
work without end, break. How your agent is brought to do that is yours: a fake server behind it, a
scripted program, or the agent itself. With pytest, a class is enough:

    class TestMine(AgentConformance):
        def agent_for(self, script):
            return Mine(script)

Without pytest: `await check_agent(lambda script: Mine(script))`. An agent that needs something
around it overrides `setting`. `lacks` names the cases that do not apply to it.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from bridle.protocols.agent import BaseAgent
from bridle.testing.agent_cases import CASES, Setting
from bridle.testing.agent_script import Act, Fail, Say, Script, Wait, Write, acts_for
from bridle.testing.cases import Cases, run_cases

__all__ = [
    "CASES",
    "Act",
    "AgentConformance",
    "Fail",
    "Say",
    "Script",
    "Wait",
    "Write",
    "acts_for",
    "check_agent",
]


class AgentConformance(Cases):
    """Every case as a test. Subclass it, say `agent_for`, or `setting`."""

    cases = CASES

    def agent_for(self, script: Script) -> BaseAgent:
        """The agent under test, which will do as the script says."""
        raise NotImplementedError

    @asynccontextmanager
    async def setting(self, script: Script) -> AsyncIterator[BaseAgent]:
        """The agent, for as long as a case needs it. Its `shutdown` is the case's own business."""
        yield self.agent_for(script)


async def check_agent(
    agent_for: Callable[[Mapping[str, tuple[Act, ...]]], BaseAgent], *, lacks: Iterable[str] = ()
) -> list[str]:
    """Run every case; the names of those that ran. All that failed is in one AssertionError."""
    return await run_cases(CASES, lambda: _setting(agent_for), lacks)


def _setting(agent_for: Callable[[Script], BaseAgent]) -> Setting:
    @asynccontextmanager
    async def setting(script: Script) -> AsyncIterator[BaseAgent]:
        yield agent_for(script)

    made: Callable[[Script], AbstractAsyncContextManager[BaseAgent]] = setting
    return made
