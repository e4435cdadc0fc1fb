"""One turn of the chat as its statements: written down once, and said again by a bare handler.

Every statement that the engine sends is kept, with where its transactions begin and end and which
of them belong to a tool's call. What differs from turn to turn (whose it is, fresh ids, places in
the conversation, the time) is marked, so that the same turn can be said for anybody.
"""

import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from psycopg.types.json import Json
from sqlalchemy import event

ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(.*)", re.DOTALL)
Marked = list[Any]  # a kind, and what belongs to it
Step = dict[str, Any]


class Recorder:
    """Listens to an application's database and to its tools."""

    def __init__(self, app: Any) -> None:
        self._steps: list[Step] = []
        self._open: dict[str, Step] = {}  # by thread: its transaction
        self._call: Step | None = None
        self._engine, self._tools, self._real = app.database.engine, app.tools, app.tools.call
        event.listen(self._engine, "begin", self._begun)
        event.listen(self._engine, "before_cursor_execute", self._said)
        event.listen(self._engine, "commit", lambda _: self._ended("commit"))
        event.listen(self._engine, "rollback", lambda _: self._ended("rollback"))
        app.tools.call = self._called

    def take(self, user: str, conversation: str, message: str) -> Step:
        """What was heard since the last time, marked."""
        steps, self._steps = self._steps, []
        return Marking(user, conversation, message).script(steps)

    def _begun(self, connection: Any) -> None:
        step: Step = {"said": []}
        self._open[threading.current_thread().name] = step
        (self._steps if self._call is None else self._call["steps"]).append(step)

    def _said(self, _: Any, cursor: Any, sql: str, given: Any, context: Any, many: bool) -> None:
        if many:
            raise RuntimeError("a statement for many rows cannot be said again")
        self._open[threading.current_thread().name]["said"].append((sql, dict(given)))

    def _ended(self, how: str) -> None:
        self._open[threading.current_thread().name]["end"] = how

    async def _called(self, name: str, arguments: dict[str, Any], binding: Any) -> dict[str, Any]:
        self._call = {"call": name, "arguments": arguments, "steps": []}
        self._steps.append(self._call)
        try:
            found: dict[str, Any] = await self._real(name, arguments, binding)
            self._call["result"] = found
            return found
        finally:
            self._call = None


class Marking:
    """Marks the values of a turn that are other ones in the next."""

    def __init__(self, user: str, conversation: str, message: str) -> None:
        self._known = {user: ["user"], conversation: ["conversation"], message: ["message"]}
        self._ids: dict[str, int] = {}
        self._arrival = 0

    def script(self, steps: list[Step]) -> Step:
        """All of it, as JSON can say it."""
        said = [one for step in steps for one in (*step.get("said", ()), *_inner(step))]
        self._arrival = next(given["arrival"] for _, given in said if "arrival" in given)
        return {
            "steps": [self._step(one) for one in steps],
            "statements": len(said),
            "calls": sum("call" in one for one in steps),
            "period": next(v for _, g in said for v in g.values() if str(v).startswith("minute:")),
        }

    def _step(self, step: Step) -> Step:
        if "call" in step:
            return step | {"steps": [self._step(one) for one in step["steps"]]}
        said = [
            (sql, {k: self._mark(k, v) for k, v in given.items()}) for sql, given in step["said"]
        ]
        return {"said": said, "end": step["end"]}

    def _mark(self, name: str, value: Any) -> Marked:
        if isinstance(value, Json):
            return ["json", value.obj]
        if isinstance(value, datetime):
            return ["now"]
        if name == "arrival":
            return ["arrival", value - self._arrival]
        if name.startswith("position"):
            return ["position", value - 2 * self._arrival]
        if isinstance(value, str):
            return self._word(value)
        return ["is", value]

    def _word(self, value: str) -> Marked:
        if value in self._known:
            return self._known[value]
        if found := ID.fullmatch(value):
            return ["id", self._ids.setdefault(found[1], len(self._ids)), found[2]]
        return ["is", value]


def _inner(step: Step) -> list[Any]:
    return [one for inner in step.get("steps", ()) for one in inner["said"]]


class Telling:
    """One turn for somebody: what stands in the place of each mark."""

    def __init__(self, user: str, conversation: str, message: str) -> None:
        self.user, self._conversation, self._message = user, conversation, message
        self._ids: dict[int, str] = {}
        self._arrival = 0

    def values(self, marked: Mapping[str, Marked]) -> dict[str, Any]:
        """The values of a statement."""
        return {name: self._value(*mark) for name, mark in marked.items()}

    def heard(self, names: list[str], rows: list[Any]) -> None:
        """What a statement found: of a conversation, how far it is."""
        if rows and "arrivals" in names:
            self._arrival = rows[0][names.index("arrivals")] - 1  # its own is counted already

    def _value(self, kind: str, *more: Any) -> Any:
        if kind == "is":
            return more[0]
        if kind == "id":
            return self._ids.setdefault(more[0], str(uuid4())) + more[1]
        if kind in ("arrival", "position"):
            return self._arrival * (2 if kind == "position" else 1) + more[0]
        if kind == "json":
            return Json(more[0])
        if kind == "now":
            return datetime.now(UTC)
        return {
            "user": self.user,
            "conversation": self._conversation,
            "message": self._message,
        }[kind]
