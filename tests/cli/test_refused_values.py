"""Values that cannot work are refused where they are given, with a word."""

import pytest
from cli_program import Program

import bridle as library


@pytest.mark.parametrize("value", [99, -0.1, float("nan"), float("inf")])
def test_a_temperature_outside_its_range_is_refused(value: float):
    with pytest.raises(library.AgentError, match="temperature"):
        library.SendOptions(temperature=value)
    assert library.SendOptions(temperature=2).temperature == 2


@pytest.mark.parametrize("name", ["scripted:some.json", "offline"])
def test_an_option_that_a_pretended_model_would_ignore_is_refused(name: str):
    with pytest.raises(library.AgentError, match="takes no context_window"):
        library.provider(name, context_window=1000)


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_limit_that_is_no_number_is_refused(bridle: Program, value: str):
    model = bridle.script("ok")
    flag = bridle.run("run", "hi", "--max-cost", value, "-m", model)
    setting = bridle.run("run", "hi", "-m", model, BRIDLE_MAX_DAY_COST=value)
    assert (flag.returncode, setting.returncode, bridle.logs()) == (2, 2, [])


def test_origins_of_settings_stand_in_one_column(bridle: Program):
    shown = bridle.run("config", "show", BRIDLE_MODEL="openai-chat/a-model-with-a-rather-long-name")
    lines = shown.stdout.splitlines()[1:]
    assert len({line.rindex(" ") for line in lines if line.endswith(" default")}) == 1
    named = next(line for line in lines if line.startswith("model "))
    assert named.index("environment") == lines[0].rindex(" ") + 1


def test_an_endless_source_is_no_log_and_leaves_nothing_behind(bridle: Program):
    done = bridle.run("sessions", "import", "/dev/zero")
    assert (done.returncode, done.stdout) == (2, "")
    assert "so nothing was imported" in done.stderr
    assert [path for path in bridle.state.rglob("*") if path.is_file()] == []
