"""schemathesis over the whole description, against the real server: no failure anywhere."""

import asyncio
import threading
from contextlib import contextmanager

import pytest
from rig_server import server

from rig import SOAK, Later

pytestmark = pytest.mark.slow

schemathesis = Later("schemathesis")
engine = Later("schemathesis.engine")
events = Later("schemathesis.engine.events")

UNSAID = {  # what a schema cannot say, and is 400 all the same
    "POST /api/v1/agui": "there has to be something to do",
    "POST /api/v1/sessions": "models, agents and providers have names",
    "PATCH /api/v1/sessions/{id}": "models, agents and providers have names",
    "POST /api/v1/sessions/{id}/resume": "models and providers have names",
    "POST /api/v1/sessions/{id}/chat": "a prompt says something",
    "POST /api/v1/sessions/{id}/fork": "the record has to be there",
    "POST /api/v1/sessions/{id}/rewind": "the record has to be there",
    "PUT /api/v1/sessions/{id}/budget": "a limit is narrower than the one before",
    "POST /api/v1/sessions/{id}/preview-rule": "a rule has a grammar",
    "GET /api/v1/sessions": "a cursor is one that was given",
    "POST /api/v1/login": "it is a code or a token, and not both",
}
EXAMPLES = 100 if SOAK else 4


class Finite:
    """The application, with streams that end after their first bytes."""

    def __init__(self, app):
        self._app = app
        self.room = app.room

    async def __call__(self, scope, receive, send):
        ended = False

        async def until_first(message):
            nonlocal ended
            if message["type"] == "http.response.start":
                kinds = [value for name, value in message["headers"] if name == b"content-type"]
                until_first.streams = kinds[:1] == [b"text/event-stream; charset=utf-8"]
            elif until_first.streams:
                if ended:
                    return
                ended, message = True, {**message, "more_body": False}
            await send(message)

        until_first.streams = False
        await self._app(scope, receive, until_first)


@contextmanager
def running(tmp_path):
    """A server in a thread of its own."""
    up, stop, found = threading.Event(), None, None

    async def life():
        nonlocal stop, found
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with server(tmp_path, [{"text": "hi"}] * 10_000, around=Finite) as there:
            await there.made(title="one")
            description = (await there.get("/api/openapi.json")).body
            found = there.url, there.token, description, lambda: loop.call_soon_threadsafe(stop.set)
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(life()))
    thread.start()
    try:
        assert up.wait(20)
        yield found
    finally:
        found[3]()
        thread.join(30)
        assert not thread.is_alive()


def judged(url, token, description):
    schema = schemathesis.openapi.from_dict(description)
    schema.config.update(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"},
        workers=1,
        continue_on_failure=True,
        request_timeout=240,
    )
    schema.config.phases.update(phases=["examples", "coverage", "fuzzing"])
    schema.config.generation.update(max_examples=EXAMPLES, database="none", deterministic=not SOAK)
    failures, cases = {}, 0
    for event in engine.from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            failures[str(event)] = event
        if isinstance(event, events.ScenarioFinished):
            cases += len(event.recorder.cases)
            failures |= failed(event.recorder)
    return failures, cases


def failed(recorder):
    """The checks that found something, but for what a schema cannot say."""
    return {
        f"{recorder.label}: {found.failure.title}": f"{found.failure.message}\n{found.code_sample}"
        for checks in recorder.checks.values()
        for check in checks
        if (found := check.failure_info) is not None
        and not (check.name == "positive_data_acceptance" and recorder.label in UNSAID)
    }


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path):
    """(A10)"""
    with running(tmp_path) as (url, token, description, _):
        failures, cases = judged(url, token, description)
    said = "\n\n".join(f"{name}\n{failure}" for name, failure in failures.items())
    assert not failures, said
    assert cases > 100
