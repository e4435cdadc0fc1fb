"""Talking over HTTP: replies, streams, keys, limits, pages; on SQLite and on PostgreSQL."""

import asyncio
from contextlib import aclosing

from rig_chat import chat

from bridle.chat import ChatApp, Profile, Toolbox
from bridle.providers.scripted import Scripted
from bridle.server.chat.context import LIMITS


def test_a_message_is_answered_and_the_conversation_goes_on(database_url):
    """(T6) `{response, conversation_id}`, and any number of messages after it."""

    async def work():
        async with chat(database_url) as there:
            first = await there.say("add buy milk")
            assert (first.status, set(first.body)) == (200, {"response", "conversation_id"})
            assert first.body["response"] == (
                "Got it! Added 'buy milk' to your list. Anything else?"
            )
            place = first.body["conversation_id"]
            second = await there.say("delete buy milk", place)
            assert "Reply 'yes delete' to confirm." in second.body["response"]
            third = await there.say("yes delete", place)
            assert third.body == {
                "response": "I've removed 'buy milk' from your tasks.",
                "conversation_id": place,
            }
            assert (await there.get("/api/ana/tasks")).body["tasks"] == []

    asyncio.run(work())


def test_the_same_key_is_answered_again_and_does_nothing_twice(database_url):
    async def work():
        async with chat(database_url) as there:
            first = await there.say("add buy milk", key="k1")
            again = await there.say("add buy milk", key="k1")
            assert (again.status, again.body) == (200, first.body)
            assert "idempotent-replayed" not in first.headers
            assert again.headers["idempotent-replayed"] == "true"
            assert len((await there.get("/api/ana/tasks")).body["tasks"]) == 1
            other = await there.say("add something else", key="k1")
            assert (other.status, other.code) == (409, "idempotency_conflict")
            bob = await there.say("add something else", user="bob", key="k1")
            assert bob.status == 200

    asyncio.run(work())


def test_a_reply_comes_as_a_stream_for_those_who_ask_for_one(database_url):
    async def work():
        async with chat(database_url) as there:
            found = [
                one async for one in there.events("/api/ana/chat", {"message": "add buy milk"})
            ]
            assert found[0].name == "accepted" and found[-1].name == "done"
            said = "".join(one.data["text"] for one in found if one.name == "text")
            assert said == found[-1].data["response"]
            place = found[-1].data["conversation_id"]
            page = (await there.get(f"/api/ana/conversations/{place}")).body
            assert [one["content"] for one in page["messages"]] == ["add buy milk", said]
            refused = await there.say("")
            assert refused.status == 400
            streamed = await there.post(
                "/api/ana/chat", {"message": " "}, headers={"Accept": "text/event-stream"}
            )
            assert (streamed.status, streamed.code) == (400, "message_refused")

    asyncio.run(work())


def test_conversations_are_listed_read_and_deleted_page_by_page(database_url):
    async def work():
        async with chat(database_url) as there:
            places = []
            for number in range(5):
                said = await there.say(f"add task number {number}")
                places.append(said.body["conversation_id"])
            first = (await there.get("/api/ana/conversations?limit=3")).body
            rest = (await there.get(f"/api/ana/conversations?limit=3&cursor={first['next']}")).body
            listed = [one["id"] for one in (*first["conversations"], *rest["conversations"])]
            assert (listed, rest["next"]) == (places[::-1], "")
            for number in range(3):
                await there.say(f"add again {number}", places[0])
            path = f"/api/ana/conversations/{places[0]}"
            newest = (await there.get(f"{path}?limit=5")).body
            older = (await there.get(f"{path}?limit=5&cursor={newest['next']}")).body
            whole = [one["content"] for one in (*older["messages"], *newest["messages"])]
            assert len(whole) == 8 and whole[0] == "add task number 0"
            used = newest["messages"][-1]["tool_calls"]
            assert [(one["tool_name"], one["success"]) for one in used] == [("add_task", True)]
            for user, status in (("bob", 404), ("ana", 204), ("ana", 404)):
                place = path.replace("ana", user)
                assert (await there.call("DELETE", place, user=user)).status == status
            assert (await there.get(path)).code == "unknown_conversation"
            assert (await there.say("hi", places[0])).code == "unknown_conversation"
            for cursor in ("x", "%00", "é", "MQ", "9" * 400):
                answer = await there.get(f"/api/ana/conversations?cursor={cursor}")
                assert answer.status == 400, cursor

    asyncio.run(work())


NAMES = ("apples", "bread", "cherries", "dates", "eggs")


def test_tasks_are_listed_page_by_page(database_url):
    async def work():
        async with chat(database_url) as there:
            for name in NAMES:
                await there.say(f"add {name}")
            await there.say("complete dates")
            found = (await there.get("/api/ana/tasks?limit=2")).body
            assert (found["open"], found["done"], len(found["tasks"])) == (4, 1, 2)
            titles = [one["title"] for one in found["tasks"]]
            while found["next"]:
                where = f"/api/ana/tasks?limit=2&cursor={found['next']}"
                found = (await there.get(where)).body
                titles += [one["title"] for one in found["tasks"]]
            assert titles == list(NAMES)
            done = (await there.get("/api/ana/tasks?status=done")).body["tasks"]
            assert [(one["title"], one["completed"]) for one in done] == [("dates", True)]
            for wrong in ("status=some", "limit=0", "limit=101", "cursor=x", "cursor=%2B"):
                assert (await there.get(f"/api/ana/tasks?{wrong}")).status == 400, wrong
            assert (await there.get("/api/bob/tasks", user="bob")).body["tasks"] == []

    asyncio.run(work())


def test_the_list_is_told_live_and_to_its_owner_alone(database_url):
    async def work():
        async with chat(database_url) as there, chat(database_url) as elsewhere:
            async with (
                aclosing(there.events("/api/ana/tasks/events")) as ana,
                aclosing(there.events("/api/bob/tasks/events", user="bob")) as bob,
            ):
                assert (await anext(ana)).data["tasks"] == []
                assert (await anext(bob)).data["tasks"] == []
                await there.say("add buy milk")
                assert titles(await anext(ana)) == ["buy milk"]
                await elsewhere.say("add call Bob")  # another process, another server
                assert titles(await anext(ana)) == ["buy milk", "call Bob"]
                await elsewhere.say("complete buy milk")
                told = await anext(ana)
                assert (told.data["open"], told.data["done"]) == (1, 1)
                await there.say("add bob's thing", user="bob")
                assert titles(await anext(bob)) == ["bob's thing"]
                there.room.stop()
                assert [(await anext(one)).name for one in (ana, bob)] == ["stopping"] * 2
            refused = await there.say("hi")
            assert (refused.status, refused.code) == (503, "server_stopping")

    asyncio.run(work())


def titles(event):
    return [one["title"] for one in event.data["tasks"]]


def test_too_many_messages_are_429_and_say_when_to_come_back(database_url):
    """(T4)"""

    async def work():
        async with chat(database_url, messages_a_minute=2) as there:
            # a minute may end between them, once: three of five are in one minute all the same
            answers = [await there.say(f"add task {number}") for number in range(5)]
            assert answers[0].status == 200
            refused = next(one for one in answers if one.status != 200)
            assert (refused.status, refused.code) == (429, "rate_limited")
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert "Please wait a moment" in refused.body["detail"]
            assert (await there.say("add buy milk", user="bob")).status == 200

    asyncio.run(work())


def test_too_many_requests_and_streams_are_429(sqlite_url):
    from msgspec.structs import replace

    async def work():
        async with chat(sqlite_url, limits=replace(LIMITS, rate=0.01, burst=3)) as there:
            answers = [await there.get("/api/ana/tasks") for _ in range(4)]
            assert [one.status for one in answers] == [200, 200, 200, 429]
            assert int(answers[-1].headers["retry-after"]) > 1
            assert (await there.get("/api/bob/tasks", user="bob")).status == 200
        async with chat(sqlite_url) as there:
            streams = [there.events("/api/ana/tasks/events") for _ in range(10)]
            for one in streams:
                await anext(one)
            refused = await there.get("/api/ana/tasks/events")
            assert (refused.status, refused.code) == (429, "too_many_streams")
            for one in streams:
                await one.aclose()

    asyncio.run(work())


def test_bad_bodies_are_friendly_problems(sqlite_url):
    """(T7)"""
    bad = {
        "{": 400,
        "[]": 400,
        '{"message": 7}': 400,
        "{}": 400,
        '{"message": "hi", "user_id": "bob"}': 400,
        '{"message": "hi", "timezone": "Mars/Base"}': 400,
        '{"message": "hi", "timezone": "../../etc/passwd"}': 400,
        '{"message": "hi", "language": "a b"}': 400,
        '{"message": "hi", "conversation_id": "nowhere"}': 404,
        '{"message": "\\u0000"}': 400,
        '{"message": "\\ud800"}': 400,
        '{"message": "' + "x" * 10_001 + '"}': 400,
        '{"message": "' + "x" * 300_000 + '"}': 413,
        "[" * 100: 400,
    }

    async def work():
        async with chat(sqlite_url) as there:
            kind = {"Content-Type": "application/json"}
            for body, status in bad.items():
                answer = await there.call("POST", "/api/ana/chat", data=body, headers=kind)
                assert answer.status == status, (body[:60], answer.body)
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.body["detail"] and "Traceback" not in str(answer.body)
            answer = await there.call("POST", "/api/ana/chat", data="message=hi")
            assert (answer.status, answer.code) == (415, "unsupported_media")
            long = await there.say("hi", key="k" * 256)
            assert long.status == 400

    asyncio.run(work())


def test_a_database_that_is_away_is_503_and_a_friendly_sentence(sqlite_url):
    """(T7)"""

    async def work():
        async with chat(sqlite_url) as there:
            there.room.app.database.engine.dispose()
            path = sqlite_url.removeprefix("sqlite:///")
            with open(path, "r+b") as file:  # noqa: ASYNC230, PTH123 - the file is what breaks
                file.write(b"no database any more" * 400)
            answer = await there.say("add buy milk")
            assert (answer.status, answer.code) == (503, "unavailable")
            assert answer.body["detail"].startswith("I'm having a bit of trouble")
            assert (await there.get("/api/chat/ready", bearer="")).status == 503
            assert (await there.get("/api/chat/health", bearer="")).status == 200

    asyncio.run(work())


def test_an_assistant_of_one_s_own_has_no_list_beside_it(sqlite_url):
    async def work():
        model = Scripted([{"text": "You spent nothing yet."}])
        app = ChatApp(
            Profile("expenses", "You count."), Toolbox("expenses"), sqlite_url, provider=model
        )
        async with chat(None, app=app) as there:
            me = (await there.get("/api/chat/me")).body
            assert (me["assistant"], me["tasks"]) == ("expenses", False)
            assert (await there.get("/api/ana/tasks")).code == "not_found"
            assert (await there.get("/api/ana/tasks/events")).code == "not_found"
            assert (await there.say("how much?")).body["response"] == "You spent nothing yet."

    asyncio.run(work())
