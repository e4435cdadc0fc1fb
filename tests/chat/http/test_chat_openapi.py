"""The chat's description of itself, against what goes over the wire; and schemathesis over it."""

import asyncio
import re
import threading
from contextlib import aclosing, contextmanager

import pytest
import schemathesis
from jsonschema import Draft202012Validator
from rig_chat import Running, chat, token
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished

from bridle.server.chat.context import LIMITS
from bridle.server.chat.problems import CODES
from rig import SOAK

EXAMPLES = 60 if SOAK else 3
UNSAID = {  # what a schema cannot say, and is 400 all the same
    "POST /api/v1/{user_id}/chat": "a message says something, and a time zone has a name",
    "GET /api/v1/{user_id}/conversations": "a cursor is one that was given",
    "GET /api/v1/{user_id}/conversations/{conversation_id}": "a cursor is one that was given",
    "GET /api/v1/{user_id}/tasks": "a cursor is one that was given",
}


class Judged(Running):
    """A client that has every answer and every event compared with the description."""

    @classmethod
    async def of(cls, there):
        found = cls(there.server, there.port, there.client)
        found.description = (await there.get("/api/chat/openapi.json")).body
        found.seen = set()
        return found

    def operation(self, method, path):
        path = path.partition("?")[0].replace("/api/", "/api/v1/", 1)
        shapes = sorted(self.description["paths"], key=lambda one: one.count("{"))
        known = next(one for one in shapes if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", one), path))
        self.seen.add((method, known))
        return self.description["paths"][known][method.lower()]

    def fits(self, schema, value):
        whole = {**schema, "components": self.description["components"]}
        errors = sorted(Draft202012Validator(whole).iter_errors(value), key=str)
        assert not errors, f"{errors[0].message} in {value}"

    async def call(self, method, path, body=None, **rest):
        answer = await super().call(method, path, body, **rest)
        said = self.operation(method, path)["responses"]
        assert str(answer.status) in said, (method, path, answer)
        content = said[str(answer.status)].get("content", {})
        if content:
            kind = answer.headers["content-type"].partition(";")[0]
            self.fits(content[kind]["schema"], answer.body)
        else:
            assert answer.body == b""
        return answer

    async def events(self, path, body=None, **rest):
        method = "GET" if body is None else "POST"
        content = self.operation(method, path)["responses"]["200"]["content"]
        shape = content["text/event-stream"]["x-event-schema"]["$ref"].rpartition("/")[2]
        schemas = self.description["components"]["schemas"]
        known = [schemas[one["$ref"].rpartition("/")[2]] for one in schemas[shape]["oneOf"]]
        async with aclosing(super().events(path, body, **rest)) as events:
            async for event in events:
                [one] = [k for k in known if k["properties"]["event"]["const"] == event.name]
                self.fits(one, {"event": event.name, "data": event.data})
                yield event


def test_a_whole_journey_fits_the_description(sqlite_url):
    """(T6) Every route is asked, every answer and every event is judged."""

    async def work():
        async with chat(sqlite_url) as there:
            there = await Judged.of(there)
            for name in ("health", "ready", "about", "me", "openapi.json"):
                assert (await there.get(f"/api/chat/{name}")).status == 200
            said = await there.say("add buy milk tomorrow at 5pm")
            place = said.body["conversation_id"]
            more = {"message": "show my tasks", "conversation_id": place}
            names = [one.name async for one in there.events("/api/ana/chat", more)]
            assert {"accepted", "text", "done"} == set(names)
            async with aclosing(there.events("/api/ana/tasks/events")) as live:
                assert (await anext(live)).name == "tasks"
            for status in ("all", "open", "done"):
                assert (await there.get(f"/api/ana/tasks?status={status}")).status == 200
            assert (await there.get("/api/ana/conversations")).status == 200
            path = f"/api/ana/conversations/{place}"
            assert (await there.get(path)).status == 200
            for user, status in (("bob", 403), ("ana", 204), ("ana", 404)):
                assert (await there.call("DELETE", path, user=user)).status == status
            assert (await there.say("")).status == 400
            assert (await there.say("hi", bearer="x")).status == 401
            every = {
                (method.upper(), path)
                for path, place in there.description["paths"].items()
                for method in place
            }
            assert there.seen == every

    asyncio.run(work())


def test_every_route_says_what_it_refuses_and_whom_it_answers(sqlite_url):
    async def work():
        async with chat(sqlite_url) as there:
            found = (await there.get("/api/chat/openapi.json")).body
            said = set()
            for path, place in found["paths"].items():
                for operation in place.values():
                    statuses = set(operation["responses"])
                    assert {"400", "403", "413", "421", "429", "500", "503"} <= statuses, path
                    assert ("401" in statuses) == bool(operation["security"])
                    for status, response in operation["responses"].items():
                        if int(status) >= 400:
                            assert response["content"]["application/problem+json"]["schema"]
                            said |= set(response["x-codes"])
            assert said == set(CODES) - {"method_not_allowed"}
            assert list(found["components"]["securitySchemes"]) == ["token"]

    asyncio.run(work())


class Finite:
    """The chat, with streams that end after their first bytes."""

    def __init__(self, app):
        self._app, self.room = app, app.room

    async def __call__(self, scope, receive, send):
        state = {"streams": False, "ended": False}

        async def until_first(message):
            if message["type"] == "http.response.start":
                state["streams"] = any(b"event-stream" in value for _, value in message["headers"])
            elif state["streams"]:
                if state["ended"]:
                    return
                state["ended"], message = True, {**message, "more_body": False}
            await send(message)

        await self._app(scope, receive, until_first)


@contextmanager
def running(url):
    """A chat in a thread of its own."""
    from msgspec.structs import replace

    up, kept = threading.Event(), {}

    async def life():
        kept["stop"], kept["loop"] = asyncio.Event(), asyncio.get_running_loop()
        async with chat(url, around=Finite, limits=replace(LIMITS, rate=0)) as there:
            await there.say("add buy milk")
            kept["url"] = there.url
            kept["description"] = (await there.get("/api/chat/openapi.json")).body
            up.set()
            await kept["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(life()))
    thread.start()
    try:
        assert up.wait(20)
        yield kept
    finally:
        kept["loop"].call_soon_threadsafe(kept["stop"].set)
        thread.join(30)
        assert not thread.is_alive()


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
def test_schemathesis_finds_nothing(sqlite_url):
    """The user in every path is the token's own, so that more is asked than the guard."""
    with running(sqlite_url) as kept:
        for place in kept["description"]["paths"].values():
            for operation in place.values():
                for one in operation["parameters"]:
                    if one["name"] == "user_id":
                        one["schema"] = {"const": "ana"}
        schema = schemathesis.openapi.from_dict(kept["description"])
        headers = {"Authorization": f"Bearer {token()}"}
        schema.config.update(
            base_url=kept["url"],
            headers=headers,
            workers=1,
            continue_on_failure=True,
            request_timeout=240,
        )
        schema.config.phases.update(phases=["examples", "coverage", "fuzzing"])
        schema.config.generation.update(
            max_examples=EXAMPLES, database="none", deterministic=not SOAK
        )
        failures, cases = {}, 0
        for event in from_schema(schema).execute():
            if isinstance(event, NonFatalError | FatalError):
                failures[str(event)] = event
            if isinstance(event, ScenarioFinished):
                cases += len(event.recorder.cases)
                failures |= failed(event.recorder)
    said = "\n\n".join(f"{name}\n{failure}" for name, failure in failures.items())
    assert not failures, said
    assert cases > 40
