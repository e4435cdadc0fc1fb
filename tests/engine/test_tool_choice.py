"""A tool that a turn has to begin with: asked for once, and checked before anything is sent."""

import pytest

from bridle.errors import ConfigError
from bridle.protocols.provider import RequestConfig
from bridle.providers.scripted import Scripted
from bridle.tools.function import tool
from rig import call, make_engine, run


@tool(read_only=True)
async def look() -> str:
    """Look at it."""
    return "seen"


async def asked(script, choice, *prompts, **rest):
    model = Scripted(script)
    async with make_engine(model, look, config=RequestConfig(tool_choice=choice), **rest) as engine:
        session = await engine.session()
        result = None
        for prompt in prompts:
            result = await session.wait(await session.send(prompt))
        return result, [request.config.tool_choice for request in model.requests]


@pytest.mark.parametrize("choice", ["required", "look"])
def test_a_forced_call_is_forced_in_the_first_step_of_each_turn(choice):
    script = [call("look"), call("look"), "one", call("look"), "two"]
    result, choices = run(asked(script, choice, "go", "again"))
    assert (result.reason, result.text) == ("done", "two")
    assert choices == [choice, "", "", choice, ""]


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_choice_that_forces_nothing_stays(choice):
    _, choices = run(asked([call("look"), "ok"], choice, "go"))
    assert choices == [choice, choice]


def test_a_tool_that_is_not_there_is_a_typed_error_and_nothing_is_sent():
    result, choices = run(asked(["never"], "lok", "go"))
    assert (result.reason, type(result.error), choices) == ("failed", ConfigError, [])
    assert result.detail == "tool_choice names 'lok', which is not one of the tools: look"
