"""An engine whose answers have to fit a JSON Schema: checked, sent back once, else a failure."""

import pytest

import bridle
from bridle.agents.base import AgentResponse
from bridle.errors import BadReply, ConfigError
from bridle.protocols.provider import ProviderInfo, RequestConfig
from bridle.testing import Scripted
from rig import call, is_valid, run

TICKET = {
    "type": "object",
    "properties": {"urgency": {"enum": ["low", "high"]}, "title": {"type": "string"}},
    "required": ["urgency", "title"],
}
GOOD = '{"urgency": "high", "title": "It burns"}'
NATIVE = ProviderInfo("scripted", "m", native_schema=True)


@bridle.tool(read_only=True)
def look() -> str:
    """Look."""
    return "smoke"


def asked(tmp_path, replies, info=None, **options):
    """The result of one prompt, the requests it took, and the conversation."""
    model = Scripted(replies, info=info)
    config = RequestConfig(output_schema=TICKET)

    async def story():
        given = {"tools": [look], "state": tmp_path, "config": config, **options}
        async with bridle.build_engine(model, **given) as engine:
            session = await engine.session()
            result = await engine.run("what is it?", session=session)
            return result, session.history.transcript

    result, transcript = run(story())
    return result, model.requests, transcript


def test_an_answer_that_fits_needs_no_second_request(tmp_path):
    result, requests, _ = asked(tmp_path, [call("look"), GOOD])
    assert (result.ok, result.text, len(requests)) == (True, GOOD, 2)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ('{"urgency": "high"}', "`title`"),
        ('{"urgency": "urgent", "title": "x"}', "`urgency`"),
        ("It burns!", "it is not JSON"),
    ],
)
def test_one_that_does_not_is_sent_back_once_with_what_is_wrong(tmp_path, bad, why):
    result, requests, transcript = asked(tmp_path, [call("look"), bad, GOOD])
    assert (result.ok, result.text, len(requests)) == (True, GOOD, 3)
    assert bad in requests[-1].messages[-2].content
    assert why in requests[-1].messages[-1].content
    assert is_valid(transcript)


def test_a_model_that_does_not_get_it_right_ends_in_a_typed_failure(tmp_path):
    result, requests, _ = asked(tmp_path, ["{}", "{}", GOOD])
    assert (result.ok, result.reason, len(requests)) == (False, "failed", 2)
    assert isinstance(result.error, BadReply)
    assert "the answer does not fit the schema" in result.detail


def test_the_model_is_told_of_the_schema_unless_its_api_is(tmp_path):
    _, (told,), _ = asked(tmp_path, [GOOD], system="Be brief.")
    assert told.system.startswith("Be brief.\n\nYour last message")
    assert '"urgency"' in told.system
    _, (native,), _ = asked(tmp_path, [GOOD], info=NATIVE, system="Be brief.")
    assert native.system == "Be brief."


class Answering:
    """An agent that gives these answers, one a run, each for a dollar."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    async def execute(
        self, prompt, session, *, can_use_tool=None, on_text_chunk=None, on_tool_activity=None
    ):
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, AgentResponse):
            return answer
        return AgentResponse(answer, cost=1.0)

    async def cancel(self, session_id):
        pass

    async def shutdown(self):
        pass


def answered(tmp_path, *answers):
    """The agent, the result of one prompt, and the conversation."""
    agent = Answering(*answers)
    config = RequestConfig(output_schema=TICKET)

    async def story():
        async with bridle.build_engine(agent=agent, state=tmp_path, config=config) as engine:
            session = await engine.session()
            result = await engine.run("what is it?", session=session)
            return result, session.history.transcript

    result, transcript = run(story())
    assert is_valid(transcript)
    return agent, result, [(one.role, one.content) for one in transcript]


def test_another_agent_is_told_of_the_schema_and_one_answer_that_fits_is_enough(tmp_path):
    agent, result, conversation = answered(tmp_path, GOOD)
    assert (result.ok, result.text) == (True, GOOD)
    (prompt,) = agent.prompts
    assert prompt.startswith("what is it?\n\nYour last message")
    assert conversation == [("user", "what is it?"), ("assistant", GOOD)]


@pytest.mark.parametrize("bad", ['{"urgency": "high"}', "It burns!"])
def test_another_agents_answer_that_does_not_fit_is_sent_back_once(tmp_path, bad):
    agent, result, conversation = answered(tmp_path, bad, GOOD)
    assert (result.ok, result.text, result.metrics.cost) == (True, GOOD, 2.0)
    assert "does not fit" in agent.prompts[1]
    assert conversation == [
        ("user", "what is it?"),
        ("assistant", bad),
        ("user", agent.prompts[1]),
        ("assistant", GOOD),
    ]


def test_another_agent_that_does_not_get_it_right_ends_in_a_typed_failure(tmp_path):
    agent, result, conversation = answered(tmp_path, "{}", "{}", GOOD)
    assert (result.ok, result.reason, len(agent.prompts)) == (False, "failed", 2)
    assert isinstance(result.error, BadReply)
    assert [content for role, content in conversation if role == "assistant"] == ["{}", "{}"]


def test_another_agents_error_is_not_taken_for_an_answer(tmp_path):
    agent, result, _ = answered(tmp_path, AgentResponse("it is late", is_error=True))
    assert (result.ok, result.detail, len(agent.prompts)) == (False, "it is late", 1)


def test_a_broken_schema_is_refused_when_the_engine_is_built(tmp_path):
    with pytest.raises(ConfigError, match="output_schema"):
        bridle.build_engine(
            Scripted([]),
            tools=[],
            state=tmp_path,
            config=RequestConfig(output_schema={"type": "nonsense"}),
        )
