"""The program against the fake vendors' servers: keys, refusals, streams, another model (M9)."""

import asyncio
import json
import subprocess
from typing import Any

import pytest
from cli_program import Program

from bridle.testing import FakeAnthropic, FakeOpenAI

KEY = "key-" + "abcdefghijklmnopqrstuvwxyz"
Done = subprocess.CompletedProcess[str]


def against(
    bridle: Program, server: Any, *arguments: str, **environ: str
) -> tuple[Done, list[Any]]:
    """Run the program while the server serves; what was sent to it."""

    async def both() -> tuple[Done, list[Any]]:
        async with server:
            urls = {"ANTHROPIC_BASE_URL": server.url, "OPENAI_BASE_URL": server.url}
            done = await asyncio.to_thread(bridle.run, *arguments, **(urls | environ))
            return done, list(server.requests)

    return asyncio.run(both())


@pytest.mark.parametrize(
    ("model", "server", "variable", "header"),
    [
        ("anthropic/claude-sonnet-4-5", FakeAnthropic, "ANTHROPIC_API_KEY", "x-api-key"),
        ("openai/gpt-5", FakeOpenAI, "OPENAI_API_KEY", "authorization"),
        ("openai-chat/gpt-5", FakeOpenAI, "OPENAI_API_KEY", "authorization"),
    ],
)
def test_the_vendors_variables_give_key_and_address(
    bridle: Program, model, server, variable, header
):
    """(M9) The key reaches the vendor, and neither the log nor the screen."""
    reply = {"text": "Hello, you.", "usage": {"input_tokens": 10, "output_tokens": 3}}
    done, requests = against(bridle, server([reply]), "run", "hi", "-m", model, **{variable: KEY})
    assert (done.returncode, done.stdout) == (0, "Hello, you.\n"), done.stderr
    assert KEY in requests[0].headers[header]
    assert requests[0].body["model"] == model.partition("/")[2]
    assert KEY not in done.stderr + bridle.logs()[0].read_text()


def test_a_provider_can_be_named_without_a_model(bridle: Program):
    """(A9) Provider and model flags."""
    server = FakeAnthropic(["ok"], loop=True)
    flags = ("--provider", "anthropic")
    done, requests = against(bridle, server, "run", "hi", *flags, ANTHROPIC_API_KEY=KEY)
    assert (done.returncode, requests[0].body["model"][:6]) == (0, "claude"), done.stderr
    done, requests = against(
        bridle, FakeAnthropic(["ok"]), "run", "hi", *flags, "--model", "x", ANTHROPIC_API_KEY=KEY
    )
    assert (done.returncode, requests[0].body["model"]) == (0, "x"), done.stderr


def test_a_key_in_the_file_comes_before_the_environments(bridle: Program):
    """(M9)"""
    file = bridle.home / ".config" / "bridle" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"model: anthropic/claude-x\napi_key: {KEY}\nmax_tokens: 77\n")
    file.chmod(0o600)
    done, requests = against(
        bridle, FakeAnthropic(["ok"]), "run", "hi", "--temperature", "0.5", BRIDLE_API_KEY="other"
    )
    assert (done.returncode, requests[0].headers["x-api-key"]) == (0, KEY), done.stderr
    assert (requests[0].body["max_tokens"], requests[0].body["temperature"]) == (77, 0.5)


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (401, "no such key", "Check the API key"),
        (404, "no such model", "Check the model's name"),
        (400, "no such field", ""),
    ],
)
def test_a_refusal_is_passed_on_in_the_vendors_words(bridle: Program, status, said, advice):
    fault = {"error": {"status": status, "message": said}}
    done, requests = against(
        bridle, FakeAnthropic([fault]), "run", "hi", "-m", "anthropic/x", ANTHROPIC_API_KEY=KEY
    )
    assert (done.returncode, done.stdout, len(requests)) == (1, "", 1)
    assert said in done.stderr and advice in done.stderr
    assert KEY not in done.stderr


def test_an_overloaded_model_is_tried_again_and_then_another_is_asked(bridle: Program):
    def answering(body: Any) -> Any:
        if body["model"] == "a":
            return {"error": {"status": 529, "message": "overloaded"}}
        return "I am b."

    file = bridle.home / "c.yaml"
    file.write_text(f"api_key: {KEY}\nfallback_model: anthropic/b\n")
    done, requests = against(
        bridle,
        FakeAnthropic(answering),
        *("run", "hi", "-m", "anthropic/a"),
        BRIDLE_CONFIG=str(file),
    )
    assert (done.returncode, done.stdout) == (0, "I am b.\n"), done.stderr
    assert [request.body["model"] for request in requests][-1] == "b"
    assert "overloaded. Retrying in " in done.stderr and "asking anthropic/b" in done.stderr


def test_what_fails_for_a_while_is_tried_again_as_long_as_wanted(bridle: Program):
    """Before a reply and in the middle of one: the half is discarded, and every wait is shown."""
    busy = {"error": {"status": 529, "message": "overloaded"}}
    server = FakeAnthropic([busy, {"text": "Half a sen", "cut": True}, "A whole one."])
    flags = ("run", "hi", "-m", "anthropic/x")
    done, requests = against(bridle, server, *flags, ANTHROPIC_API_KEY=KEY)
    assert (done.returncode, done.stdout, len(requests)) == (0, "A whole one.\n", 3), done.stderr
    assert "overloaded. Retrying in " in done.stderr and ", attempt 2…" in done.stderr
    assert "the reply above broke off and is discarded" in done.stderr
    for flag in (("--retries", "0"), ("--retry-seconds", "0")):
        server = FakeAnthropic([busy, "never"])
        done, requests = against(bridle, server, *flags, *flag, ANTHROPIC_API_KEY=KEY)
        assert (done.returncode, len(requests), "Retrying" in done.stderr) == (1, 1, False)
    file = bridle.home / "c.yaml"
    file.write_text("retries: 0\n")
    for environ in (
        {"BRIDLE_RETRIES": "0"},
        {"BRIDLE_RETRY_SECONDS": "0"},
        {"BRIDLE_CONFIG": str(file)},
    ):
        server = FakeAnthropic([busy, "never"])
        done, requests = against(bridle, server, *flags, ANTHROPIC_API_KEY=KEY, **environ)
        assert (done.returncode, len(requests), "Retrying" in done.stderr) == (1, 1, False)


def test_the_conversation_before_is_sent_along_when_it_is_taken_up_again(bridle: Program):
    """(A8) What the model is sent on resume is what was said before, and the new prompt."""
    flags = ("-m", "anthropic/x", "--continue")
    against(bridle, FakeAnthropic(["Noted."]), "run", "42", *flags[:2], ANTHROPIC_API_KEY=KEY)
    done, requests = against(
        bridle, FakeAnthropic(["It was 42."]), "run", "which?", *flags, ANTHROPIC_API_KEY=KEY
    )
    assert done.stdout == "It was 42.\n"
    said = json.dumps(requests[0].body["messages"])
    assert said.index("42") < said.index("Noted.") < said.index("which?")


def test_a_schema_is_asked_of_the_api_where_it_has_a_mode_for_it(bridle: Program):
    (bridle.home / "s.json").write_text('{"type": "object", "properties": {}}')
    done, requests = against(
        bridle,
        FakeAnthropic(["{}"]),
        *("run", "x", "-m", "anthropic/claude-sonnet-4-5"),
        *("--output-schema", str(bridle.home / "s.json")),
        ANTHROPIC_API_KEY=KEY,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {}), done.stderr
    assert '"type": "object"' in json.dumps(requests[0].body)
