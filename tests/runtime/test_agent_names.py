"""Agents by their names: which there are, which model they can be told, what they are made with."""

import pytest

from bridle.agents.acp import AcpAgent
from bridle.agents.claude_code import ClaudeCodeAgent, ClaudeCodeConfig
from bridle.errors import ConfigError
from bridle.runtime.agents import agent_of, check_agent, check_model, is_agent


@pytest.mark.parametrize("name", ["", "loop", " loop "])
def test_our_loop_is_nobody_else(name):
    assert (check_agent(name), agent_of(name)) == ("loop", None)


def test_the_others_are_made_by_name():
    """(P3)"""
    claude, program = agent_of("claude-code", model="opus"), agent_of("acp:gemini --acp")
    assert isinstance(claude, ClaudeCodeAgent)
    assert claude.config == ClaudeCodeConfig(model="opus")
    assert isinstance(program, AcpAgent)
    assert (claude.name, program.name) == ("claude-code", "acp:gemini --acp")
    names = ("claude-code", "acp:x", "loop", "anthropic/m", "")
    assert [is_agent(name) for name in names] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("opus", True, "opus"),
        ("claude-sonnet-5-5", True, "claude-sonnet-5-5"),
        ("anthropic/claude-sonnet-5-5", True, "claude-sonnet-5-5"),
        ("us.anthropic.claude-opus:0", True, "us.anthropic.claude-opus:0"),
        ("arn:aws:bedrock:eu:1:profile/x", True, "arn:aws:bedrock:eu:1:profile/x"),
        ("anthropic/claude-sonnet-5-5", False, "claude-sonnet-5-5"),
        ("claude-opus-5", False, "claude-opus-5"),
        ("openai/gpt-5", False, ""),
        ("scripted:/tmp/x.json", False, ""),
        ("", False, ""),
    ],
)
def test_a_model_that_claude_has_is_told_and_one_of_the_settings_that_it_has_not_is_left(
    model, asked, told
):
    """(P3)"""
    assert check_model("claude-code", model, asked=asked) == told


@pytest.mark.parametrize("model", ["openai/gpt-5", "gpt-5", "ollama/qwen", "offline", "scripted:x"])
@pytest.mark.parametrize("name", ["claude-code", "acp:x"])
def test_a_model_that_an_agent_cannot_have_is_refused_where_it_was_asked_for(name, model):
    with pytest.raises(ConfigError) as caught:
        check_model(name, model, asked=True)
    assert model in caught.value.message and caught.value.hint
    assert check_model(name, model, asked=False) == ""
    assert check_model("loop", model, asked=True) == ""
