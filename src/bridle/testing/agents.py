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

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from bridle.promises.agent import BaseAgent
from bridle.testing.agent_cases import CASES, Case, Setting
from bridle.testing.agent_script import Act, Fail, Say, Script, Wait, Write, acts_for

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


class AgentConformance:
    """Every case as a test. Subclass it, say `agent_for`, or `setting`."""

    lacks: ClassVar[frozenset[str]] = frozenset()

    def agent_for(self, script: Script) -> BaseAgent:
        """The agent under test, which will do as the script says."""
        raise NotImplementedError

    @asynccontextmanager
    async def setting(self, script: Script) -> AsyncIterator[BaseAgent]:
        """The agent, for as long as a case needs it. Its `shutdown` is the case's own business."""
        yield self.agent_for(script)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if unknown := cls.lacks - CASES.keys():
            raise TypeError(f"{cls.__name__} lacks cases that do not exist: {sorted(unknown)}")
        for name in cls.lacks:
            setattr(cls, f"test_{name}", None)


def _as_test(case: Case) -> Callable[[AgentConformance], None]:
    def test(self: AgentConformance) -> None:
        asyncio.run(case(self.setting))

    test.__doc__ = case.__doc__
    return test


for _name, _case in CASES.items():
    setattr(AgentConformance, f"test_{_name}", _as_test(_case))


async def check_agent(
    agent_for: Callable[[Mapping[str, tuple[Act, ...]]], BaseAgent], *, lacks: Iterable[str] = ()
) -> list[str]:
    """Run every case; the names of those that ran. All that failed is in one AssertionError."""
    left_out = set(lacks)
    ran = [name for name in CASES if name not in left_out]
    failed = []
    for name in ran:
        try:
            await CASES[name](_setting(agent_for))
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:  # the agent under test may raise anything
            failed.append(f"{name}: {error!r} was raised")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {len(ran)} cases failed", *failed]))
    return ran


def _setting(agent_for: Callable[[Script], BaseAgent]) -> Setting:
    @asynccontextmanager
    async def setting(script: Script) -> AsyncIterator[BaseAgent]:
        yield agent_for(script)

    made: Callable[[Script], AbstractAsyncContextManager[BaseAgent]] = setting
    return made
