"""The settings: four layers, each value with its origin, and errors that name the line (M9)."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.config.loader import load_settings
from bridle.config.paths import config_file, state_folder
from bridle.config.settings import LimitSettings, Settings, mask, vendor_of
from bridle.errors import ConfigError

KEY = "sk-" + "abcdefghijklmnopqrstuvwxyz"
NOWHERE = {"HOME": "/nonexistent"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def write(file: Path, text: str | bytes) -> Path:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(0o600)
    return file


def complaint(file: Path, text: str | bytes) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        load_settings({}, NOWHERE, write(file, text))
    return caught.value.message.replace(str(file), "FILE"), caught.value.hint


def test_without_anything_every_setting_is_its_default():
    loaded = load_settings({}, NOWHERE)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.warnings == ()


def test_the_later_layer_wins_and_each_value_knows_where_it_came_from(file: Path):
    """File, then environment, then flag (M9)."""
    write(file, "model: anthropic/from-file\nmax_tokens: 10\ntemperature: 0.5\neffort: low\n")
    environ = NOWHERE | {"BRIDLE_MAX_TOKENS": "20", "BRIDLE_TEMPERATURE": "0.7"}
    loaded = load_settings({"temperature": 0.9, "mode": None}, environ, file)
    assert loaded.settings == Settings(
        model="anthropic/from-file", max_tokens=20, temperature=0.9, effort="low"
    )
    assert {key: origin for key, origin in loaded.origins.items() if origin != "default"} == {
        "model": f"file {file}:1",
        "max_tokens": "environment BRIDLE_MAX_TOKENS",
        "temperature": "flag --temperature",
        "effort": f"file {file}:4",
    }


def test_all_the_settings_of_m9_can_be_set_in_the_file(file: Path):
    """Provider, model, max_tokens, temperature, request timeout, api key (M9)."""
    write(
        file,
        "provider: anthropic\nmodel: claude-x\nmax_tokens: 4096\ntemperature: 1\n"
        f"request_timeout: 30\napi_key: {KEY}\nlimits:\n  max_steps: 5\n  max_cost: 0.25\n",
    )
    settings = load_settings({}, NOWHERE, file).settings
    assert settings == Settings(
        provider="anthropic",
        model="claude-x",
        max_tokens=4096,
        temperature=1.0,
        request_timeout=30.0,
        api_key=KEY,
        limits=LimitSettings(max_steps=5, max_cost=0.25),
    )
    assert (settings.name, settings.vendor) == ("anthropic/claude-x", "anthropic")


@pytest.mark.parametrize(
    ("in_file", "environ", "found", "origin"),
    [
        ("file-key", {"BRIDLE_API_KEY": "b", "ANTHROPIC_API_KEY": "v"}, "file-key", "file"),
        ("", {"BRIDLE_API_KEY": "b", "ANTHROPIC_API_KEY": "v"}, "b", "environment BRIDLE_API_KEY"),
        ("", {"ANTHROPIC_API_KEY": "v"}, "v", "environment ANTHROPIC_API_KEY"),
        ("", {"BRIDLE_API_KEY": "", "ANTHROPIC_API_KEY": " v\n"}, "v", "environment ANTHROPIC"),
        ("", {"OPENAI_API_KEY": "o"}, "", "default"),
        ("", {}, "", "default"),
    ],
)
def test_a_key_is_the_files_else_bridles_else_the_vendors(file, in_file, environ, found, origin):
    """M9, the order of the keys."""
    write(file, f"model: anthropic/x\napi_key: {in_file}\n")
    loaded = load_settings({}, NOWHERE | environ, file)
    assert loaded.settings.api_key == found
    assert loaded.origins["api_key"].startswith(origin)


def test_the_files_key_and_address_are_never_handed_to_another_vendor(file: Path):
    write(file, f"model: anthropic/x\napi_key: {KEY}\nbase_url: http://127.0.0.1:1\n")
    elsewhere = load_settings({"model": "openai/y"}, NOWHERE | {"OPENAI_API_KEY": "o"}, file)
    assert (elsewhere.settings.api_key, elsewhere.settings.base_url) == ("o", "")
    for model in ("anthropic/z", "claude-z"):
        same = load_settings({"model": model}, NOWHERE, file)
        assert (same.settings.api_key, same.settings.base_url) == (KEY, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("model", "environ", "url"),
    [
        ("openai/x", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, "http://127.0.0.1:1"),
        ("openai-chat/x", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, "http://127.0.0.1:1"),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:2"}, "http://127.0.0.1:2"),
        ("anthropic/x", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, ""),
        ("openai/x", {"OPENAI_BASE_URL": "http://a", "BRIDLE_BASE_URL": "http://b"}, "http://b"),
    ],
)
def test_a_vendors_own_variable_sets_its_address(model, environ, url):
    assert load_settings({"model": model}, NOWHERE | environ).settings.base_url == url


@pytest.mark.parametrize(
    ("text", "flags", "name"),
    [
        ("provider: anthropic\nmodel: a\n", {"model": "openai/b"}, "openai/b"),
        ("provider: anthropic\nmodel: a\n", {"model": "b"}, "anthropic/b"),
        ("model: anthropic/a\n", {"provider": "offline"}, "offline"),
        ("provider: openai-chat\nmodel: anthropic/a\n", {}, "openai-chat/anthropic/a"),
        ("provider: anthropic\nmodel: anthropic/a\n", {}, "anthropic/a"),
        ("model: scripted:x.json\n", {}, "scripted:x.json"),
    ],
)
def test_provider_and_model_make_one_name(file, text, flags, name):
    assert load_settings(flags, NOWHERE, write(file, text)).settings.name == name


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("model: x\na: [\n", "FILE:3: this is not YAML", "Correct that line"),
        ("model: x\n\tmode: ask\n", "FILE:2: this is not YAML", "Correct that line"),
        ("a\x00b", "FILE:1: this is not YAML", "Correct that line"),
        ("model: x\nmodell: y\n", "FILE:2: there is no setting `modell`", "Did you mean `model`?"),
        (
            "limits:\n  max_step: 5\n",
            "FILE:2: there is no setting `limits.max_step`",
            "`limits.max_steps`",
        ),
        ("zzz: 1\n", "FILE:1: there is no setting `zzz`", "There are: provider, model"),
        ("? [a, b]\n: c\n", "FILE:1: there is no setting `…`", "There are: "),
        ("model: x\nmodel: y\n", "FILE:2: `model` is set twice", "Keep one"),
        ("max_tokens: many\n", "FILE:1: `max_tokens` should be a whole number, not text", "plain"),
        ("max_tokens: -1\n", "FILE:1: `max_tokens` should be a whole number of at least 0", ""),
        ("temperature: 3\n", "FILE:1: `temperature` should be a number of at most 2.0", ""),
        (
            "limits:\n\n  max_cost: 0\n",
            "FILE:3: `limits.max_cost` should be a number above 0.0",
            "",
        ),
        ("mode: yolo\n", "FILE:1: `mode` has a value", "Choose one of plan, ask, edits, auto."),
        ("model: 5\n", "FILE:1: `model` should be text, not a whole number", "needs quotes"),
        ("model: [a]\n", "FILE:1: `model` should be text, not a list", ""),
        ("limits: 5\n", "FILE:1: `limits` has to hold `key: value` lines", "max_steps: 50"),
        ("- a\n", "FILE:1: the file has to hold `key: value` lines", "For example"),
        ("base_url: here\n", "file FILE:1: the base URL has to begin", "http://127.0.0.1"),
        ("api_key: a b\n", "file FILE:1: the API key has characters", "Copy the key again"),
        ('model: "a\\x1bb"\n', "FILE:1: `model` has characters that cannot be shown", "again"),
        ("model: !!python/name:os.system\n", "FILE:1: this is not YAML", ""),
        (b"model: x\neffort: \xff\n", "FILE:2: this line is not valid UTF-8", "UTF-8"),
        (b"#" * 1_000_001, "FILE: too large for a settings file", "right file"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(file, text, message, hint):
    said, advice = complaint(file, text)
    assert said.startswith(message)
    assert hint in advice


def test_a_key_of_the_wrong_type_is_not_repeated_in_the_error(file: Path):
    said, advice = complaint(file, "api_key: 12345678901234567890\n")
    assert "1234" not in said + advice


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"BRIDLE_TEMPERATURE": "hot"}, "BRIDLE_TEMPERATURE: `temperature` should be a number"),
        ({"BRIDLE_MODE": "yolo"}, "BRIDLE_MODE: `mode` has a value"),
        (
            {"BRIDLE_MAX_STEPS": "0"},
            "BRIDLE_MAX_STEPS: `limits.max_steps` should be a whole number",
        ),
        ({"BRIDLE_MODEL": "a\udcff"}, "BRIDLE_MODEL: `model` has characters that cannot be shown"),
        ({"BRIDLE_CONFIG": "/nonexistent/c.yaml"}, "/nonexistent/c.yaml: there is no such file"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(environ, message):
    with pytest.raises(ConfigError) as caught:
        load_settings({}, NOWHERE | environ)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_a_mistake_in_a_flag_names_the_flag():
    with pytest.raises(ConfigError, match=r"^--max-steps should be a whole number of at least 1$"):
        load_settings({"limits.max_steps": 0}, NOWHERE)
    with pytest.raises(ConfigError, match=r"there is no setting `limits\.step`"):
        load_settings({"limits.step": 1}, NOWHERE)


def test_a_folder_in_the_place_of_the_file_is_said(tmp_path: Path):
    with pytest.raises(ConfigError, match="the settings cannot be read"):
        load_settings({}, NOWHERE, tmp_path)


def test_a_key_that_others_can_read_is_warned_about(file: Path):
    write(file, f"api_key: {KEY}\n")
    assert load_settings({}, NOWHERE, file).warnings == ()
    file.chmod(0o644)
    assert load_settings({}, NOWHERE, file).warnings == (
        f"{file} holds an API key and others can read it: chmod 600 {file}",
    )
    file.write_text("model: x\n")
    assert load_settings({}, NOWHERE, file).warnings == ()


def test_a_key_is_never_shown(file: Path):
    loaded = load_settings({}, NOWHERE, write(file, f"api_key: {KEY}\n"))
    assert KEY not in repr(loaded) + str(loaded.settings) + str(list(loaded.rows()))
    assert {item.key: item.value for item in loaded.rows()}["api_key"] == "sk-…wxyz"


@given(st.text(max_size=60))
def test_a_mask_never_gives_away_more_than_seven_characters(secret: str):
    shown = mask(secret)
    assert len(shown) <= 8
    assert bool(shown) == bool(secret)
    if len(secret) < 20:
        assert shown in ("", "…")


@pytest.mark.parametrize(
    ("environ", "config", "state"),
    [
        ({"HOME": "/h"}, "/h/.config/bridle/config.yaml", "/h/.local/state/bridle"),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"},
            "/c/bridle/config.yaml",
            "/s/bridle",
        ),
        ({"HOME": "/h", "BRIDLE_CONFIG": "/c.yaml", "BRIDLE_STATE": "/s"}, "/c.yaml", "/s"),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "here", "XDG_STATE_HOME": "there"},
            "/h/.config/bridle/config.yaml",
            "/h/.local/state/bridle",
        ),
    ],
)
def test_the_places_follow_the_environment(environ, config, state):
    assert (str(config_file(environ)), str(state_folder(environ))) == (config, state)


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("anthropic/a/b", "anthropic"),
        ("claude-x", "anthropic"),
        ("gpt-x", "openai"),
        ("openrouter/gpt-x", "openrouter"),
        ("scripted:a/b", "scripted"),
        ("offline", "offline"),
    ],
)
def test_the_vendor_is_what_stands_before_the_model(name, vendor):
    assert vendor_of(name) == vendor


def test_yaml_is_imported_only_for_a_file_and_a_place_needs_no_msgspec():
    program = (
        "import sys, bridle.config.paths; bridle.config.paths.state_folder({'HOME': '/h'})\n"
        "assert 'msgspec' not in sys.modules\n"
        "import bridle.config.loader\n"
        "bridle.config.loader.load_settings({}, {'HOME': '/nonexistent'})\n"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("redact:\n- abc\n- '('\n", "FILE:3: the pattern is not a regular expression", "Correct"),
        ("redact:\n- 'x*'\n", "FILE:2: the pattern matches an empty text", "+ inst"),
        ("model: x\nredact:\n- '(a+)+$'\n", "FILE:3: the pattern may take for ever", "at most"),
        ("redact: ['secret=(\\w+)+;']\n", "FILE:1: the pattern may take for ever", "at most"),
        ("redact: ['\\w+@corp']\n", "FILE:1: the pattern may take for ever", "{1,64}"),
        ("redact:\n- [A-Z]\n", "FILE:2: `redact` should hold text, not list", "single quotes"),
        ("redact: abc\n", "FILE:1: `redact` should be a list, not text", "one pattern a line"),
        (f"redact: [{'a' * 1001}]\n", "FILE:1: the pattern is too long", "several"),
        ("redact_tokens: 3\n", "FILE:1: `redact_tokens` should be true or false", "true or false"),
        (
            "limits:\n  max_day_cost: 0\n",
            "FILE:2: `limits.max_day_cost` should be a number above",
            "",
        ),
    ],
)
def test_what_cannot_be_kept_out_or_limited_is_named_with_its_line(file, text, message, hint):
    said, advice = complaint(file, text)
    assert said.startswith(message)
    assert hint in advice


@pytest.mark.parametrize("pattern", [r"ACME-\d{6}", r"(?i)project\s+tulip", r"\w{1,64}@corp\.com"])
def test_a_sane_pattern_is_taken_as_it_is(file, pattern):
    loaded = load_settings({}, NOWHERE, write(file, f"redact: ['{pattern}']\n"))
    assert loaded.settings.redact == (pattern,)
    assert {item.key: item.value for item in loaded.rows()}["redact"] == [pattern]


def test_limits_that_last_can_be_set_everywhere(file: Path):
    write(file, "limits:\n  max_session_tokens: 5\n  max_day_tokens: 7\nredact_tokens: false\n")
    environ = NOWHERE | {"BRIDLE_MAX_DAY_TOKENS": "8", "BRIDLE_MAX_SESSION_COST": "1.5"}
    loaded = load_settings({"limits.max_day_cost": 2.5}, environ, file)
    assert loaded.settings == Settings(
        limits=LimitSettings(
            max_session_tokens=5, max_session_cost=1.5, max_day_tokens=8, max_day_cost=2.5
        ),
        redact_tokens=False,
    )
    assert loaded.origins["limits.max_day_cost"] == "flag --max-day-cost"
    tokens = load_settings({}, NOWHERE | {"BRIDLE_REDACT_TOKENS": "false"}).settings.redact_tokens
    assert tokens is False
