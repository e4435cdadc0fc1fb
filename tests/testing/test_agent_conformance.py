"""The agent conformance suite, on agents that keep the promise, and on some that do not."""

import asyncio
import itertools
from pathlib import Path

import pytest

from bridle.agents.base import AgentResponse
from bridle.engine.foreign import turn as foreign_turn
from bridle.testing import AgentConformance, check_agent
from bridle.testing.agents import CASES, Fail, Say, Wait, Write, acts_for


def put(session, path, content):
    Path(session.working_directory, path).write_text(content)


class Fifteen:
    """An agent of a few lines that does as the script says (P8)."""

    name = "fifteen"

    def __init__(self, script):
        self.script = script
        self.numbers = itertools.count(1)
        self.running = {}

    async def execute(
        self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None
    ):
        session.claude_session_id = session.claude_session_id or f"conv-{next(self.numbers)}"
        stop = self.running[session.id] = asyncio.Event()
        text = ""
        for act in acts_for(self.script, prompt):
            match act:
                case Say(words):
                    text += words
                    await on_text_chunk(words)
                case Write(path, content):
                    await self.write(session, can_use_tool, path, content)
                case Wait():
                    await stop.wait()
                case Fail():
                    raise RuntimeError("something is wrong here")
        return AgentResponse(text, session.claude_session_id)

    async def write(self, session, can_use_tool, path, content):
        asked = await can_use_tool("write", {"path": path, "content": content})
        if asked:
            put(session, path, content)
            await session.finish(asked.call_id, "written")

    async def cancel(self, session_id):
        self.running[session_id].set()

    async def shutdown(self):
        pass


class TestFifteen(AgentConformance):
    def agent_for(self, script):
        return Fifteen(script)


class Ours(Fifteen):
    """The same, which has our own tool write."""

    async def write(self, session, can_use_tool, path, content):
        await session.call("write", {"path": path, "content": content})


class TestOurs(AgentConformance):
    def agent_for(self, script):
        return Ours(script)


class Abrupt(Fifteen):
    """The same, whose `cancel` cancels the task that it runs in: it raises, and does not return."""

    async def execute(self, prompt, session, **callbacks):
        self.task = asyncio.current_task()
        return await super().execute(prompt, session, **callbacks)

    async def cancel(self, session_id):
        self.task.cancel()


def test_an_agent_may_end_a_run_by_cancelling_its_own_task():
    lacks = CASES.keys() - {"cancel_is_prompt_and_clean"}
    assert asyncio.run(check_agent(Abrupt, lacks=lacks)) == ["cancel_is_prompt_and_clean"]


class Ungated(Fifteen):
    async def write(self, session, can_use_tool, path, content):
        put(session, path, content)


class Deaf(Fifteen):
    async def cancel(self, session_id):
        pass


class Silent(Fifteen):
    async def execute(self, prompt, session, *, on_text_chunk=None, **rest):
        async def nothing(text):
            pass

        return await super().execute(prompt, session, on_text_chunk=nothing, **rest)


class Forgetful(Fifteen):
    async def execute(self, prompt, session, **callbacks):
        class Bare:
            claude_session_id = None

            def __getattr__(self, name):
                return getattr(session, name)

        found = await super().execute(prompt, Bare(), **callbacks)
        return AgentResponse(found.content)


class Leaving(Fifteen):
    async def execute(self, prompt, session, **callbacks):
        self.left = asyncio.ensure_future(asyncio.sleep(0.2))
        return await super().execute(prompt, session, **callbacks)


class Mixing(Fifteen):
    words = ""

    async def execute(self, prompt, session, **callbacks):
        type(self).words += prompt
        await asyncio.sleep(0)
        return await super().execute(self.words, session, **callbacks)


class Quiet(Fifteen):
    async def execute(self, prompt, session, **callbacks):
        try:
            return await super().execute(prompt, session, **callbacks)
        except RuntimeError:
            return AgentResponse("")


@pytest.mark.parametrize(
    ("agent", "case"),
    [
        (Ungated, "an_allowed_effect_happens_after_its_intent"),
        (Ungated, "a_denied_effect_does_not_happen"),
        (Deaf, "cancel_is_prompt_and_clean"),
        (Silent, "text_is_streamed"),
        (Forgetful, "its_session_id_is_recorded_and_found_again"),
        (Leaving, "shutdown_leaves_nothing"),
        (Mixing, "two_sessions_do_not_mix"),
        (Quiet, "an_exception_becomes_an_error_response"),
    ],
)
def test_an_agent_that_breaks_the_promise_fails_the_case(agent, case, monkeypatch):
    monkeypatch.setattr(foreign_turn, "CANCEL_SECONDS", 0.1)
    lacks = CASES.keys() - {case}
    with pytest.raises(AssertionError, match=f"1 of 1 cases failed\n{case}"):
        asyncio.run(check_agent(agent, lacks=lacks))


def test_the_suite_runs_without_pytest_and_says_what_ran():
    ran = asyncio.run(check_agent(Fifteen, lacks={"two_sessions_do_not_mix"}))
    assert ran == [name for name in CASES if name != "two_sessions_do_not_mix"]


def test_a_case_that_does_not_exist_cannot_be_left_out():
    with pytest.raises(TypeError, match="nonsense"):
        type("TestOdd", (AgentConformance,), {"lacks": frozenset({"nonsense"})})
