"""The tools over a user's tasks, through a real MCP server and a real database."""

import asyncio

import pytest
from tool_names import ALL

from bridle.chat.db import Database
from bridle.chat.tasks.tools import MCPToolServer
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.source import is_result


def test_T2_a_task_is_added_with_everything_that_was_said(tools):
    found = tools.data(
        "add_task",
        title="  Buy   milk ",
        notes="two\nbottles",
        priority="urgent",
        due="next Friday 5pm",
        tags=["#Shop", "shop", "Food"],
        zone="Europe/Berlin",
    )
    created = found.pop("created_at")
    assert created.endswith(("+01:00", "+02:00"))
    assert found == {
        "id": 1,
        "title": "Buy milk",
        "notes": "two\nbottles",
        "priority": "High",
        "due": "2026-04-03T17:00:00+02:00",
        "tags": ["shop", "food"],
        "completed": False,
        "completed_at": None,
    }


def test_T2_add_list_complete_update_delete_in_a_row(tools):
    one = tools.data("add_task", title="One")["id"]
    two = tools.data("add_task", title="Two")["id"]
    assert tools.titles() == ["One", "Two"]
    assert tools.data("complete_task", task_id=one)["completed"] is True
    assert tools.titles(status="open") == ["Two"]
    changed = tools.data("update_task", task_id=two, title="Zwei", priority="low")
    assert (changed["title"], changed["changed"]) == ("Zwei", ["title", "priority"])
    assert tools.data("delete_task", task_id=one)["title"] == "One"
    assert tools.titles() == ["Zwei"]
    assert tools.code("delete_task", task_id=one) == "not_found"


def test_T2_completing_again_changes_nothing_and_is_no_error(tools):
    one = tools.data("add_task", title="One")["id"]
    first = tools.data("complete_task", task_id=one)
    assert tools.data("complete_task", task_id=one) == first
    assert tools.data("reopen_task", task_id=one)["completed_at"] is None
    assert tools.data("reopen_task", task_id=one)["completed"] is False


def test_a_day_stays_that_day_wherever_its_user_goes(tools):
    one = tools.data("add_task", title="One", due="tomorrow", zone="Pacific/Auckland")
    assert one["due"] == "2026-03-27"
    for zone in ("UTC", "America/Los_Angeles", "Pacific/Kiritimati"):
        (seen,) = tools.data("list_tasks", zone=zone)["tasks"]
        assert seen["due"] == "2026-03-27"


def test_the_list_is_filtered_by_what_is_due(tools):
    for title, due in [
        ("late", "yesterday"),
        ("earlier", "today at 9am"),
        ("now", "today"),
        ("soon", "today at 20:00"),
        ("week", "saturday"),
        ("far", "in a month"),
        ("no", ""),
    ]:
        tools.data("add_task", title=title, due=due)
    assert tools.titles(due="overdue") == ["late", "earlier"]
    assert tools.titles(due="today") == ["earlier", "now", "soon"]
    assert tools.titles(due="this_week") == ["earlier", "now", "soon", "week"]
    assert tools.titles(due="none") == ["no"]


def test_the_list_is_cut_and_says_how_many_there_are(tools):
    for number in range(7):
        tools.data("add_task", title=f"t{number}", tags=["odd"] if number % 2 else [])
    found = tools.data("list_tasks", limit=2)
    assert ([one["title"] for one in found["tasks"]], found["total"]) == (["t0", "t1"], 7)
    found = tools.data("list_tasks", tag="ODD", limit=2)
    assert ([one["title"] for one in found["tasks"]], found["total"]) == (["t1", "t3"], 3)


def test_words_are_found_in_any_case_and_any_script(tools):
    tools.data("add_task", title="Купить МОЛОКО")
    tools.data("add_task", title="Straße fegen", tags=["haus"])
    tools.data("add_task", title="100% done_ish", notes="see Anna")
    found = {
        query: [one["title"] for one in tools.data("search_tasks", query=query)["tasks"]]
        for query in ("молоко", "STRASSE", "anna", "%", "_", "HAUS fegen", "nothing")
    }
    assert found == {
        "молоко": ["Купить МОЛОКО"],
        "STRASSE": ["Straße fegen"],
        "anna": ["100% done_ish"],
        "%": ["100% done_ish"],
        "_": ["100% done_ish"],
        "HAUS fegen": ["Straße fegen"],
        "nothing": [],
    }


def test_many_tasks_change_together_or_not_at_all(tools):
    ids = [tools.data("add_task", title=f"t{n}")["id"] for n in range(4)]
    assert tools.code("bulk_complete", task_ids=[*ids, 999]) == "not_found"
    assert tools.titles(status="done") == []
    assert tools.data("bulk_complete", task_ids=ids)["count"] == 4
    assert tools.titles(status="open") == []
    assert tools.data("bulk_reopen", task_ids=ids[:2])["count"] == 2
    assert tools.titles(status="open") == ["t0", "t1"]
    found = tools.data("bulk_update", task_ids=ids, priority="high", due="2026-05-01")
    assert {(one["priority"], one["due"]) for one in found["tasks"]} == {("High", "2026-05-01")}
    gone = tools.data("bulk_delete", task_ids=ids[1:])
    assert [one["title"] for one in gone["tasks"]] == ["t1", "t2", "t3"]
    assert tools.titles() == ["t0"]


def test_what_is_cleared_is_gone(tools):
    one = tools.data("add_task", title="One", due="tomorrow", notes="x", tags=["a"])["id"]
    found = tools.data("update_task", task_id=one, due="none", notes="", tags=[])
    assert (found["due"], found["notes"], found["tags"]) == (None, "", [])


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("add_task", {}, "invalid_input"),
        ("add_task", {"title": ""}, "invalid_input"),
        ("add_task", {"title": " \x00\u200b\n "}, "invalid_input"),
        ("add_task", {"title": "x" * 201}, "invalid_input"),
        ("add_task", {"title": "x", "notes": "n" * 4001}, "invalid_input"),
        ("add_task", {"title": "x", "tags": [str(n) for n in range(21)]}, "invalid_input"),
        ("add_task", {"title": "x", "tags": ["t" * 51]}, "invalid_input"),
        ("add_task", {"title": 7}, "invalid_input"),
        ("add_task", {"title": "x", "colour": "red"}, "invalid_input"),
        ("add_task", {"title": "x", "priority": "Purple"}, "invalid_priority"),
        ("add_task", {"title": "x", "priority": ""}, "invalid_priority"),
        ("add_task", {"title": "x", "due": "whenever"}, "invalid_date"),
        ("add_task", {"title": "x", "due": "3/4"}, "invalid_date"),
        ("add_task", {"title": "x", "due": "2026-02-30"}, "invalid_date"),
        ("list_tasks", {"status": "sideways"}, "invalid_input"),
        ("list_tasks", {"limit": 0}, "invalid_input"),
        ("list_tasks", {"priority": "Purple"}, "invalid_priority"),
        ("search_tasks", {"query": "  "}, "invalid_input"),
        ("complete_task", {"task_id": 1}, "not_found"),
        ("complete_task", {"task_id": 0}, "not_found"),
        ("complete_task", {"task_id": -1}, "not_found"),
        ("complete_task", {"task_id": 2**31}, "not_found"),
        ("complete_task", {"task_id": 10**30}, "not_found"),
        ("complete_task", {"task_id": "one"}, "invalid_input"),
        ("bulk_delete", {"task_ids": []}, "invalid_input"),
        ("bulk_delete", {"task_ids": [2**70]}, "not_found"),
        ("complete_task", {"task_id": "\ud800"}, "invalid_input"),
        ("bulk_delete", {"task_ids": ["\ud800"]}, "invalid_input"),
        ("add_task", {"title": "x", "due": "3 days from \ud800"}, "invalid_date"),
        ("add_task", {"title": "x", "\ud800": 1}, "invalid_input"),
        ("add_task", {"title": "x", "notes": float("nan")}, "invalid_input"),
        ("no_such_tool", {}, "invalid_input"),
    ],
)
def test_T2_every_bad_argument_has_its_code_and_a_sentence(tools, name, arguments, code):
    found = tools.call_with(name, arguments)
    assert is_result(found)
    assert found["error"]["code"] == code
    assert found["error"]["message"].endswith((".", "?"))
    assert tools.titles() == []


def test_an_update_that_says_nothing_asks_what(tools):
    one = tools.data("add_task", title="One")["id"]
    assert tools.code("update_task", task_id=one) == "invalid_input"


def test_a_title_is_one_line_without_anything_unseen(tools):
    found = tools.data(
        "add_task", title="a\x1b[31mb\r\n\u202ec\u200b \U000e0041d\ud800 👩‍💻 می‌خواهم"
    )
    assert found["title"] == "a[31mb c d 👩‍💻 می‌خواهم"


def test_the_tools_are_listed_with_what_they_do(tools):
    infos = {one.name: one for one in tools.run(tools.server.list())}
    assert list(infos) == ALL
    assert {name for name, one in infos.items() if one.reads} == {"list_tasks", "search_tasks"}
    assert {name for name, one in infos.items() if one.deletes} == {"delete_task", "bulk_delete"}
    assert all(one.description for one in infos.values())
    assert all(one.parameters["additionalProperties"] is False for one in infos.values())


def test_many_calls_at_once_are_all_answered_to_the_right_user(tools):
    async def work():
        def one(number):
            user = f"user{number % 5}"
            return tools.server.call("add_task", {"title": f"{user} {number}"}, Binding(user))

        return await asyncio.gather(*(one(number) for number in range(40)))

    assert all(found["success"] for found in tools.run(work()))
    for number in range(5):
        titles = tools.titles(f"user{number}")
        assert len(titles) == 8
        assert all(title.startswith(f"user{number} ") for title in titles)


def test_a_server_object_serves_one_event_loop_after_the_other(sqlite_url):
    """T6: nothing of a call lives on in the process, not even the loop that it came from."""
    database = Database(sqlite_url)
    server = MCPToolServer(database.session_factory)

    async def work(number):
        return await server.call("add_task", {"title": f"t{number}"}, Binding("ana"))

    async def last():
        found = await server.call("list_tasks", {}, Binding("ana"))
        await server.close()
        return found

    assert [asyncio.run(work(number))["success"] for number in range(3)] == [True] * 3
    assert asyncio.run(last())["data"]["total"] == 3
    database.close()


def test_a_server_that_was_closed_can_be_used_again(sqlite_tools):
    sqlite_tools.data("add_task", title="One")
    sqlite_tools.run(sqlite_tools.server.close())
    assert sqlite_tools.titles() == ["One"]


def test_a_caller_who_leaves_takes_nobody_with_them(sqlite_tools):
    """A call that is cancelled leaves the connection to the others."""
    server = sqlite_tools.server

    async def work():
        calls = [
            asyncio.ensure_future(server.call("add_task", {"title": f"t{n}"}, Binding("ana")))
            for n in range(10)
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for one in calls[5:]:
            one.cancel()
        await asyncio.wait(calls)
        return [one.result()["success"] for one in calls[:5]]

    assert sqlite_tools.run(work()) == [True] * 5
    assert sqlite_tools.data("add_task", title="after")["title"] == "after"
