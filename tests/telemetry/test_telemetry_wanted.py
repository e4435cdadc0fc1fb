"""When spans are sent, and that an engine of those who want none knows nothing of it."""

import subprocess
import sys

import pytest
from rig_spans import Collected

from bridle.config.loader import load_settings
from bridle.errors import ConfigError
from bridle.runtime import build_engine
from bridle.runtime.telemetry import is_exporter_named, traced_store
from bridle.runtime.telemetry_spans import TracedStore
from bridle.stores.memory_store import MemoryStore
from rig import run

_OFF = """
import os, sys
for name in list(os.environ):
    if name.startswith("OTEL_"):
        del os.environ[name]
import bridle
engine = bridle.build_engine("offline", state=sys.argv[1])
assert type(engine.store).__name__ == "JsonlStore", engine.store
print([name for name in sys.modules if name.startswith(("opentelemetry", "bridle.engine.trac"))])
"""
_CONFIGURED = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
import bridle
quiet = bridle.build_engine("offline", state=sys.argv[1])
trace.set_tracer_provider(TracerProvider())
heard = bridle.build_engine("offline", state=sys.argv[1])
never = bridle.build_engine("offline", state=sys.argv[1], telemetry=False)
print(*(type(one.store).__name__ for one in (quiet, heard, never)))
"""
_CONSOLE = """
import asyncio, sys
import bridle
async def main():
    async with bridle.build_engine("offline", state=sys.argv[1], workspace=sys.argv[1]) as engine:
        await engine.run("hello")
asyncio.run(main())
"""


def python(code, folder, **environ):
    return program("-c", code, str(folder), cwd=folder, **environ)


def program(*words, cwd, **environ):
    found = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environ, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_an_engine_without_telemetry_imports_nothing_of_it_and_has_a_plain_store(tmp_path):
    assert python(_OFF, tmp_path).strip() == "[]"


def test_a_provider_that_the_process_has_configured_is_used_unless_it_is_forbidden(tmp_path):
    assert python(_CONFIGURED, tmp_path).split() == ["JsonlStore", "TracedStore", "JsonlStore"]


def test_the_environment_alone_can_ask_for_spans_and_they_are_sent_before_the_end(tmp_path):
    said = python(_CONSOLE, tmp_path, OTEL_TRACES_EXPORTER="console")
    assert '"name": "invoke_agent bridle"' in said
    assert '"service.name": "bridle"' in said
    assert "hello" not in said


def test_the_command_line_does_as_the_settings_say(tmp_path):
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "OTEL_TRACES_EXPORTER": "console"}
    for wanted in ("true", "false"):
        run_it = ("-m", "bridle", "run", "--model", "offline", "hello")
        said = program(*run_it, cwd=tmp_path, BRIDLE_TELEMETRY=wanted, **environ)
        assert ('"name": "invoke_agent bridle"' in said) == (wanted == "true")


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_what_the_environment_has_to_say(environ, named):
    assert is_exporter_named(environ) is named


def test_an_exporter_that_is_not_there_is_an_error_only_for_those_who_insist(caplog):
    store, environ = MemoryStore(), {"OTEL_TRACES_EXPORTER": "pigeon"}
    with pytest.raises(ConfigError) as refused:
        traced_store(store, True, environ)
    assert refused.value.message == "there is no exporter 'pigeon' for spans"
    assert "pip install" in refused.value.hint
    assert traced_store(store, None, environ) is store
    assert "no telemetry: there is no exporter 'pigeon' for spans" in caplog.text


def test_without_the_sdk_the_environment_is_not_meant_for_us(monkeypatch, caplog):
    for name in [one for one in sys.modules if one.startswith("opentelemetry.sdk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    store, environ = MemoryStore(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    assert traced_store(store, None, environ) is store
    assert caplog.text == ""
    with pytest.raises(ConfigError) as refused:
        traced_store(store, True, environ)
    assert refused.value.message == "telemetry is wanted, and nothing here sends spans"


def test_without_opentelemetry_those_who_insist_are_told_what_to_install(monkeypatch):
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    store = MemoryStore()
    with pytest.raises(ConfigError) as refused:
        traced_store(store, True, {})
    assert refused.value.hint == "Install it with: pip install 'bridle-agent[telemetry]'"
    assert traced_store(store, None, {"OTEL_TRACES_EXPORTER": "otlp"}) is store


def test_a_provider_of_ones_own_is_handed_in_and_anything_else_is_refused(tmp_path):
    collected = Collected()

    async def story():
        options = {"state": tmp_path, "telemetry": collected.provider}
        async with build_engine("offline", workspace=tmp_path, **options) as engine:
            await engine.run("hello")
            assert isinstance(engine.store, TracedStore)
            assert engine.store.folder == tmp_path  # what a store has beside its promise is there

    run(story())
    assert len(collected.named("session")) == 1
    with pytest.raises(ConfigError) as refused:
        build_engine("offline", state=tmp_path, telemetry="loudly")
    assert refused.value.message == "telemetry is a str"


def test_the_settings_say_whether_and_with_what_and_are_silent_otherwise(tmp_path):
    quiet = load_settings({}, {"HOME": str(tmp_path)}).settings
    assert (quiet.telemetry, quiet.telemetry_content) == (None, False)
    environ = {"HOME": str(tmp_path), "BRIDLE_TELEMETRY": "false"}
    assert load_settings({}, environ).settings.telemetry is False
    with pytest.raises(ConfigError) as refused:
        load_settings({}, environ | {"BRIDLE_TELEMETRY": "perhaps"})
    assert refused.value.hint == "Write true or false."
