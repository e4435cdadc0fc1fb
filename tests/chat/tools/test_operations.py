"""An operation is applied once: asked again it answers the same, whoever asks, whenever."""

import asyncio
import threading

from sqlmodel import select

from bridle.chat.db import Database, Operation
from bridle.chat.errors import TROUBLE
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.mcp_server import ToolServer
from bridle.chat.tools.toolbox import Call, Toolbox, ToolFailed


def test_T2_the_same_operation_is_applied_once_and_answers_the_same(tools):
    first = tools.call("add_task", operation="turn:1", title="Milk")
    assert tools.call("add_task", operation="turn:1", title="Milk") == first
    assert tools.titles() == ["Milk"]
    assert tools.call("add_task", operation="turn:2", title="Milk") != first
    assert tools.titles() == ["Milk", "Milk"]


def test_a_delete_that_is_asked_again_says_what_it_said(tools):
    one = tools.data("add_task", title="Milk")["id"]
    first = tools.call("delete_task", operation="turn:1", task_id=one)
    assert first["success"]
    assert tools.call("delete_task", operation="turn:1", task_id=one) == first
    assert tools.code("delete_task", operation="turn:2", task_id=one) == "not_found"


def test_a_failure_is_remembered_too(tools):
    first = tools.call("complete_task", operation="turn:1", task_id=1)
    assert first["error"]["code"] == "not_found"
    tools.data("add_task", title="Milk")
    assert tools.call("complete_task", operation="turn:1", task_id=1) == first


def test_an_operation_that_comes_again_as_another_call_is_refused(tools):
    tools.data("add_task", operation="turn:1", title="Milk")
    assert tools.code("add_task", operation="turn:1", title="Bread") == "invalid_input"
    assert tools.code("delete_task", operation="turn:1", task_id=1) == "invalid_input"
    assert tools.titles() == ["Milk"]


def test_two_users_may_have_operations_of_the_same_name(tools):
    assert tools.data("add_task", "ana", operation="turn:1", title="A")["title"] == "A"
    assert tools.data("add_task", "bob", operation="turn:1", title="B")["title"] == "B"


def test_the_same_operation_from_many_workers_at_once_is_applied_once(tools):
    async def work():
        bound = Binding("ana", "talk", "turn:1")
        calls = (tools.server.call("add_task", {"title": "Milk"}, bound) for _ in range(12))
        return await asyncio.gather(*calls)

    found = tools.run(work())
    assert all(one == found[0] for one in found)
    assert found[0]["success"]
    assert tools.titles() == ["Milk"]


def rows(database, user="ana"):
    with database.session_for(user, reads=True) as session:
        return list(session.exec(select(Operation)))


def broken_box():
    box = Toolbox("broken")

    @box.tool
    def half(call: Call, how: str) -> dict:
        """Write, then break."""
        from bridle.chat.db import Task

        call.session.add(Task(title="half"))
        call.session.flush()
        if how == "says":
            raise ToolFailed("not_found", "It is not there.")
        if how == "odd":
            return {"a": object()}
        raise RuntimeError("secret detail /etc/passwd")

    return box


def test_a_tool_that_breaks_leaves_nothing_half_done(database):
    server = ToolServer(broken_box(), database.session_factory)
    tasks = MCPToolServer(database.session_factory)

    async def work():
        bound = Binding("ana", "talk", "turn:1")
        found = [
            await server.call("half", {"how": how}, Binding("ana", "talk", f"turn:{how}"))
            for how in ("breaks", "odd", "says")
        ]
        left = await tasks.call("list_tasks", {}, bound)
        await server.close()
        await tasks.close()
        return found, left

    (breaks, odd, says), left = asyncio.run(work())
    assert breaks["error"] == odd["error"] == {"code": "processing_error", "message": TROUBLE}
    assert says["error"]["code"] == "not_found"
    assert left["data"]["total"] == 0
    assert [row.key for row in rows(database)] == ["turn:says"]  # what broke may be tried again


def test_T7_a_database_that_is_away_is_a_friendly_sentence_and_comes_back(tmp_path, sqlite_url):
    database = Database(sqlite_url, patience=0.2)
    server = MCPToolServer(database.session_factory)
    path = database.url.database
    held, release = threading.Event(), threading.Event()

    def hold():
        other = Database(path)
        with other.session_for("bob") as session, session.begin():
            session.bare()
            held.set()
            release.wait(30)
        other.close()

    holding = threading.Thread(target=hold)

    async def work():
        bound = Binding("ana", "talk", "turn:1")
        holding.start()
        await asyncio.to_thread(held.wait)
        away = await server.call("add_task", {"title": "Milk"}, bound)
        release.set()
        await asyncio.to_thread(holding.join)
        back = await server.call("add_task", {"title": "Milk"}, bound)
        await server.close()
        return away, back

    away, back = asyncio.run(work())
    assert away["error"] == {"code": "processing_error", "message": TROUBLE}
    assert back["success"]
    database.close()
