"""Building an engine: what is put together, what is refused, and which model is found."""

import sys
from pathlib import Path

import pytest

import bridle
from bridle.config.settings import Settings
from bridle.engine.budget import Limits
from bridle.errors import ConfigError, MissingExtra, MissingKey, MissingModel, RateLimited
from bridle.events import SessionStarted, TraceEvent
from bridle.policy import Rule
from bridle.providers.offline import Offline
from bridle.providers.retry import Retrying, RetryPolicy
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine, find_provider
from bridle.stores.memory_store import MemoryStore
from rig import run


def nothing():
    return []


def test_a_real_turn_through_the_front_door(state, tmp_path):
    """Built-in tools, a workspace, a log on disk."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text("forty-two\n")
    script = [{"calls": [{"name": "read", "arguments": {"path": "note.txt"}}]}, "it says 42"]

    async def story():
        model = Scripted(script)
        async with build_engine(model, workspace=tmp_path / "work", state=state) as engine:
            result = await engine.run("what does it say?")
            records = list(engine.store.read(result.session_id))
        return model, result, records

    model, result, records = run(story())
    assert result.text == "it says 42"
    assert "forty-two" in model.requests[1].messages[2].tool_results[0].text
    assert model.requests[0].system
    start = records[0].event
    assert isinstance(start, SessionStarted)
    assert (start.mode, start.workspace) == ("library", str(tmp_path / "work"))
    assert start.version == bridle.__version__
    assert [path.name for path in (state / "sessions").iterdir()] == [result.session_id]


def test_the_state_folder_is_the_users_where_none_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))

    async def story():
        async with build_engine(Scripted(["ok"]), workspace=tmp_path) as engine:
            await engine.run("go")

    run(story())
    assert len(list((tmp_path / "xdg").rglob("log.jsonl"))) == 1


def test_options_reach_the_engine(tmp_path):
    async def story():
        @bridle.tool
        def change() -> str:
            """Change it."""
            return "k"

        script = [{"calls": [{"name": "change"}]}, "ok"]
        engine = build_engine(
            Scripted(script),
            tools=[change],
            workspace=tmp_path,
            store=MemoryStore(),
            rules=[Rule("deny", "change")],
            system="be brief",
            limits=Limits(max_steps=1),
            mode="auto",
            face="test",
        )
        async with engine:
            result = await engine.run("go")
            return engine, result

    engine, result = run(story())
    request = engine.provider.requests[0]
    assert (request.system, [tool.name for tool in request.tools]) == ("be brief", ["change"])
    assert (result.reason, result.detail) == ("budget", "the limit of 1 step is reached")


def test_an_option_that_is_not_there_is_a_type_error():
    with pytest.raises(TypeError, match="build_engine has no option colour, modee"):
        build_engine(Scripted([]), modee="ask", colour=1)


@pytest.mark.parametrize(
    ("option", "value"), [("mode", "yolo"), ("on_ask", "maybe"), ("durability", "never")]
)
def test_a_choice_that_is_not_there_names_those_that_are(option, value):
    with pytest.raises(ConfigError) as caught:
        build_engine(Scripted([]), **{option: value})
    assert caught.value.message == f"there is no {option} {value!r}"
    assert caught.value.hint.startswith("Choose ")


def test_two_tools_of_one_name_are_refused():
    def look() -> str:
        """Look."""
        return ""

    with pytest.raises(ConfigError, match="two tools are named 'look'"):
        build_engine(Scripted([]), tools=[look, bridle.tool(look)])


def test_a_workspace_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError):
        build_engine(Scripted([]), workspace=tmp_path / "none")


def test_a_fallback_answers_when_the_first_is_limited(tmp_path):
    async def story():
        first = Scripted([{"error": {"status": 429}}])
        second = Scripted(["from the second"])
        engine = build_engine(first, fallback=second, workspace=tmp_path, store=MemoryStore())
        async with engine:
            result = await engine.run("go")
            said = [
                record.event.kind
                for record in engine.store.read(result.session_id)
                if isinstance(record.event, TraceEvent)
            ]
            return result.text, said

    assert run(story()) == ("from the second", ["fallback"])
    assert RateLimited("x").retryable


def test_a_named_model_is_used_whatever_else_is_there():
    """Flag and configuration first; a vendor without a model gets its default."""
    environ = {"OPENAI_API_KEY": "k"}
    found = find_provider(Settings(model="ollama/llama"), environ, nothing)
    assert (found.name, found.why) == ("ollama/llama", "it was named")
    assert find_provider(Settings(provider="anthropic"), {}, nothing).name.startswith("anthropic/c")
    assert find_provider(Settings(model="claude-x"), {}, nothing).name == "anthropic/claude-x"
    assert [one.used for one in found.considered] == [True]


def test_then_the_keys_in_the_environment():
    theirs = {"OPENAI_API_KEY": "k"}
    found = find_provider(Settings(), theirs, nothing)
    assert found.name.startswith("openai/gpt-")
    assert found.why == "OPENAI_API_KEY is set"
    assert [one.place for one in found.considered] == [
        "flag or configuration",
        "key for anthropic",
        "key for openai",
    ]
    both = {**theirs, "ANTHROPIC_API_KEY": "k"}
    assert find_provider(Settings(), both, nothing).name.startswith("anthropic/")
    assert find_provider(Settings(api_key="k"), {}, nothing).name.startswith("anthropic/")


def test_then_a_local_server_that_answers_and_offline_only_if_it_is_named():
    def probe():
        return [("llamacpp", "http://127.0.0.1:8080/v1", "smol"), ("ollama", "u", "m")]

    found = find_provider(Settings(), {}, probe)
    assert (found.name, found.base_url) == ("llamacpp/smol", "http://127.0.0.1:8080/v1")
    assert found.provider().info.local
    last = find_provider(Settings(), {}, nothing)
    assert last.name == ""
    with pytest.raises(MissingModel, match="no key was found, and no local server answers"):
        last.provider()
    assert isinstance(find_provider(Settings(model="offline"), {}, nothing).provider(), Offline)
    assert [(one.place, one.used) for one in last.considered] == [
        ("flag or configuration", False),
        ("key for anthropic", False),
        ("key for openai", False),
        ("key for openrouter", False),
        ("local servers", False),
    ]


def test_a_key_that_says_nothing_of_a_model_is_named_as_such():
    """The vendor's own model is not asked for at somebody else's address."""
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://me:secret@llm.example/v1"}
    environ["OPENROUTER_API_KEY"] = "k"
    found = find_provider(Settings(), environ, nothing)
    with pytest.raises(MissingModel) as refused:
        found.provider()
    assert "Name a model: openai-chat/MODEL.; OPENROUTER_API_KEY is set" in refused.value.hint
    assert found.why.startswith("no model is named, and no local server answers")
    assert [(one.found, one.lacks) for one in found.considered if one.lacks] == [
        (
            "OPENAI_API_KEY is set, and the base URL is at llm.example, but no model is named",
            "Name a model: openai-chat/MODEL.",
        ),
        ("OPENROUTER_API_KEY is set, but no model is named", "Name a model: openrouter/MODEL."),
    ]
    own = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://eu.api.openai.com/v1"}
    assert find_provider(Settings(), own, nothing).name.startswith("openai/")


def test_the_network_is_not_asked_when_a_key_is_there():
    def probe():
        raise AssertionError("asked")

    find_provider(Settings(), {"OPENAI_API_KEY": "k"}, probe)


def test_a_choice_without_its_key_says_so(monkeypatch):
    with pytest.raises(MissingKey):
        find_provider(Settings(model="anthropic/m"), {}, nothing).provider()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert find_provider(Settings(model="anthropic/m"), {}, nothing).provider().info


def test_a_broken_settings_file_stops_the_engine_before_it_starts(monkeypatch, tmp_path):
    settings = Path(tmp_path / "config.yaml")
    settings.write_text("model: [")
    monkeypatch.setenv("BRIDLE_CONFIG", str(settings))
    with pytest.raises(ConfigError, match=r"config\.yaml:1"):
        build_engine()


def test_patterns_of_ones_own_are_kept_out_of_a_turn(tmp_path):
    model = Scripted(["ACME-123456 it is"])

    async def story():
        engine = build_engine(
            model, tools=[], workspace=tmp_path, store=MemoryStore(), redact=[r"ACME-\d{6}"]
        )
        async with engine:
            return await engine.run("what of ACME-123456?")

    assert run(story()).text == "[redacted] it is"
    assert model.requests[0].messages[0].content == "what of [redacted]?"


def test_a_pattern_that_cannot_work_is_refused_at_once():
    with pytest.raises(ConfigError) as caught:
        build_engine(Scripted([]), store=MemoryStore(), redact=["fine", "(a+)+$"])
    assert caught.value.message == "redact, pattern 2: the pattern may take for ever on some texts"


def test_a_limit_of_a_day_needs_somebody_to_keep_its_account():
    with pytest.raises(ConfigError) as caught:
        build_engine(Scripted([]), store=MemoryStore(), limits=Limits(max_day_tokens=1))
    assert caught.value.message.startswith("a limit of a day needs the day's sessions")
    assert caught.value.hint == "Hand in who keeps its account (day=…), or drop the limit."


def test_a_turn_may_be_parked(tmp_path):
    engine = build_engine(Scripted([]), store=MemoryStore(), workspace=tmp_path, on_ask="park")
    run(engine.close())


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("approver", "x"),
        ("system", 5),
        ("instructions", ["be kind"]),
        ("limits", {"steps": 1}),
        ("config", {"max_tokens": 1}),
        ("policy", lambda tool, arguments: "allowed"),
        ("learn", "rules.yaml"),
        ("ask_seconds", "60"),
        ("undo", "no"),
        ("face", 1),
    ],
)
def test_an_option_of_another_type_is_refused_with_what_would_do(tmp_path, option, value):
    with pytest.raises(ConfigError, match=f"{option} cannot be a value of type") as refused:
        build_engine(Scripted([]), tools=[], state=tmp_path, **{option: value})
    assert refused.value.hint


@pytest.mark.parametrize(
    ("options", "asked"),
    [({}, 1), ({"retries": 0}, 1), ({"retry_seconds": 0}, 1), ({"retries": 1}, 2)],
)
def test_a_provider_of_ones_own_is_asked_again_only_if_that_was_asked_for(
    state, tmp_path, options, asked
):
    model = Scripted([{"error": {"status": 529, "message": "busy"}}] * 3)

    async def scenario():
        async with build_engine(model, tools=[], state=state, **options) as engine:
            return await engine.run("go")

    assert run(scenario()).reason == "failed"
    assert len(model.requests) == asked


def test_the_retries_of_an_engine_take_the_place_of_the_providers_own(state):
    model = Scripted([{"error": {"status": 529, "message": "busy"}}] * 3)
    provider = Retrying(model, RetryPolicy(retries=2))

    async def scenario():
        async with build_engine(provider, tools=[], state=state, retries=0) as engine:
            return await engine.run("go")

    assert run(scenario()).reason == "failed"
    assert len(model.requests) == 1


def test_what_is_no_provider_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="dict is not a provider: it has no info, stream, close"):
        build_engine({"model": "x"}, tools=[], state=tmp_path)


def test_an_agent_whose_library_is_missing_is_refused_with_the_line_that_installs_it(
    tmp_path, monkeypatch
):
    """When the engine is built, and not in the middle of a run."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(MissingExtra) as refused:
        build_engine(agent="claude-code", workspace=tmp_path, state=tmp_path)
    assert "pip install 'bridle-agent[claude]'" in str(refused.value)
