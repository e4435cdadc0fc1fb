"""The description of the API as a judge of what goes over the wire."""

import re
from contextlib import aclosing

from jsonschema import Draft202012Validator
from rig_server import Running


class Judge:
    """Says whether an answer, or an event of a stream, is what the description promises."""

    def __init__(self, description):
        self.description = description
        self.seen = set()  # (method, path, status)
        self.events = set()  # (path, name)
        self._paths = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), path)
            for path in description["paths"]
        ]

    def operation(self, method, path):
        path = versioned(path.partition("?")[0])
        found = [known for shape, known in self._paths if shape.match(path)]
        assert found, f"{path} is not described"
        exact = [one for one in found if "{" not in one] or found
        return exact[0], self.description["paths"][exact[0]][method.lower()]

    def answer(self, method, path, answer):
        known, operation = self.operation(method, path)
        described = operation["responses"].get(str(answer.status))
        assert described, f"{method} {known} answered {answer.status}: {answer.body}"
        self.seen.add((method, known, answer.status))
        content = described.get("content")
        if not content:
            assert answer.body == b"", answer
            return
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in content, f"{known}: {kind}"
        if "json" in kind and "ndjson" not in kind:
            self.fits(content[kind]["schema"], answer.body)
        if "problem" in kind:
            assert answer.body["code"] in described["x-codes"], answer

    def event(self, path, event):
        known, operation = self.operation("GET", path)
        media = operation["responses"]["200"]["content"]["text/event-stream"]
        shapes = map(self._resolved, self._resolved(media["x-event-schema"])["oneOf"])
        named = [one for one in shapes if one["properties"]["event"]["const"] == event.name]
        assert len(named) == 1, f"{event.name} is not described for {known}"
        said = {"event": event.name, "data": event.data}
        self.fits(media["x-event-schema"], said | ({"id": event.id} if event.id else {}))
        self.events.add((known, event.name))

    def fits(self, schema, value):
        whole = {**schema, "components": self.description["components"]}
        errors = sorted(Draft202012Validator(whole).iter_errors(value), key=str)
        assert not errors, f"{errors[0].message} in {value}"

    def _resolved(self, schema):
        if "$ref" not in schema:
            return schema
        return self.description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def versioned(path):
    """The path as the description has it."""
    return path if path.startswith("/api/v1/") else path.replace("/api/", "/api/v1/", 1)


class Judged(Running):
    """A client that has every answer and every event judged."""

    @classmethod
    async def of(cls, there):
        judged = cls(there.app, there.port, there.client, there.serving)
        answer = await there.get("/api/openapi.json")
        judged.judge = Judge(answer.body)
        return judged

    async def call(self, method, path, body=None, **rest):
        answer = await super().call(method, path, body, **rest)
        self.judge.answer(method, path, answer)
        return answer

    async def events(self, path, **rest):
        async with aclosing(super().events(path, **rest)) as events:
            async for event in events:
                self.judge.event(path, event)
                yield event
