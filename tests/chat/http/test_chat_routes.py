"""A walk over the chat's real route table, over real uvicorn: nobody comes in unasked."""

import asyncio

import pytest
from rig_chat import SECRET, chat, token

from bridle.server.app import ROUTES
from bridle.server.auth import PROBES
from bridle.server.chat.app import is_chat
from bridle.server.chat.jwt import RESERVED, is_user

FREE = {  # exactly these need no token
    ("GET", "/"),
    ("GET", "/chat"),
    ("GET", "/chat/favicon.svg"),
    ("GET", "/chat/assets/{name:path}"),
    ("GET", "/api/chat/about"),
    ("GET", "/api/chat/health"),
    ("GET", "/api/chat/ready"),
}
OWN = {  # these are a user's own
    ("POST", "/api/{user_id}/chat"),
    ("GET", "/api/{user_id}/conversations"),
    ("GET", "/api/{user_id}/conversations/{conversation_id}"),
    ("DELETE", "/api/{user_id}/conversations/{conversation_id}"),
    ("GET", "/api/{user_id}/tasks"),
    ("GET", "/api/{user_id}/tasks/events"),
}
ANY = {("GET", "/api/chat/me"), ("GET", "/api/chat/openapi.json")}


def walked(there):
    """Every route: method, declared path, a path to ask for, whether it is free."""
    return [
        (route.method, route.path, _filled(route.path), route.declaration.role is None)
        for route in there.server.routes
    ]


def _filled(path):
    for name, value in (("user_id", "ana"), ("conversation_id", "x")):
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{name:path}", "x")


def test_the_table_is_the_one_that_was_agreed_on(sqlite_url):
    """(T6)"""

    async def work():
        async with chat(sqlite_url) as there:
            found = {(method, path): free for method, path, _, free in walked(there)}
            assert {one for one, free in found.items() if free} == FREE
            assert {one for one, free in found.items() if not free} == OWN | ANY

    asyncio.run(work())


def test_without_a_good_token_every_route_but_the_exact_list_says_401(sqlite_url):
    async def work():
        async with chat(sqlite_url) as there:
            for method, path, ask, _ in walked(there):
                for bearer in ("", "wrong", token(secret=SECRET + "x")):
                    answer = await there.call(method, ask, {}, bearer=bearer)
                    if (method, path) in FREE:
                        assert answer.status in (200, 307, 404), (method, path)
                    else:
                        assert (answer.status, answer.code) == (401, "no_token"), (method, path)
                        assert answer.headers["www-authenticate"].startswith("Bearer")
            for method in ("GET", "POST", "PUT", "OPTIONS", "DELETE", "PATCH"):
                for ask in ("/api/nowhere", "/api/ana/chat", "/api/ana/nothing", "/nowhere"):
                    answer = await there.call(method, ask, bearer="")
                    assert answer.status == 401, (method, ask)

    asyncio.run(work())


def test_another_user_s_token_is_403_on_every_route_of_a_user(sqlite_url):
    """(T3)"""

    async def work():
        async with chat(sqlite_url) as there:
            for method, path, ask, _ in walked(there):
                if (method, path) in OWN:
                    body = {"message": "hi"} if method == "POST" else None
                    answer = await there.call(method, ask, body, user="bob")
                    assert (answer.status, answer.code) == (403, "other_user"), (method, path)
                    assert "ana" not in str(answer.body) and "bob" not in str(answer.body)
            for spelled in ("ANA", "ana%20", "%61na%00", "an%61x"):
                answer = await there.get(f"/api/{spelled}/tasks")
                assert answer.status == 403, spelled

    asyncio.run(work())


def test_a_foreign_host_is_421_and_a_foreign_origin_403_everywhere(sqlite_url):
    async def work():
        async with chat(sqlite_url) as there:
            asks = [(method, ask) for method, _, ask, _ in walked(there)]
            for method, ask in [*asks, ("GET", "/nowhere"), ("OPTIONS", "/api/ana/chat")]:
                foreign = {"Host": "evil.example"}
                if ask not in PROBES:  # load balancers ask under any name
                    answer = await there.call(method, ask, {}, headers=foreign)
                    assert (answer.status, answer.code) == (421, "wrong_host"), (method, ask)
                for origin in ("http://evil.example", "null"):
                    answer = await there.call(method, ask, {}, headers={"Origin": origin})
                    assert (answer.status, answer.code) == (403, "wrong_origin"), (method, ask)
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "unsafe" not in answer.headers["content-security-policy"]
            own = {"Origin": there.url}
            assert (await there.get("/api/chat/me", headers=own)).status == 200

    asyncio.run(work())


def test_methods_that_are_not_there_are_405_and_addresses_404(sqlite_url):
    async def work():
        async with chat(sqlite_url) as there:
            for method, path in (("PUT", "/api/ana/chat"), ("OPTIONS", "/api/ana/tasks")):
                answer = await there.call(method, path)
                assert (answer.status, answer.code) == (405, "method_not_allowed")
                assert answer.headers["allow"]
            answer = await there.get("/api/ana/nothing")
            assert (answer.status, answer.code) == (404, "not_found")
            assert "/api/chat/openapi.json" in answer.body["hint"]

    asyncio.run(work())


def test_no_user_can_have_the_name_of_one_of_the_server_s_own_addresses(sqlite_url):
    """What stands right after /api/ in any route of either server is nobody's name."""
    own = {one.path.split("/")[2] for one in ROUTES if one.path.startswith("/api/")}
    assert own <= RESERVED, own - RESERVED
    assert {"sessions", "chat", "agui", "mcp"} <= RESERVED

    async def work():
        async with chat(sqlite_url) as there:
            for name in ("sessions", "Sessions", "chat", "me", "a/b", "..", " ana", "", "a\nb"):
                assert not is_user(name)
                answer = await there.get("/api/chat/me", bearer=token(name))
                assert (answer.status, answer.code) == (401, "no_token"), name

    asyncio.run(work())


@pytest.mark.parametrize(
    "name", ["ana", "ana@example.org", "auth0|5f7c", "Ana María", "آنا", "x" * 200]
)
def test_users_have_all_kinds_of_names(sqlite_url, name):
    from urllib.parse import quote

    async def work():
        async with chat(sqlite_url) as there:
            place = f"/api/{quote(name, safe='')}/chat"
            said = await there.post(place, {"message": "add buy milk"}, user=name)
            assert said.status == 200, said
            assert (await there.get("/api/chat/me", user=name)).body["user_id"] == name

    asyncio.run(work())


def test_which_addresses_are_the_chat_s_where_both_stand_side_by_side():
    ours = ("/chat", "/chat/assets/x.js", "/api/chat/me", "/api/ana/chat", "/api/ana/tasks/events")
    theirs = ("/", "/api/sessions", "/api/sessions/x/chat", "/api/me", "/api/SESSIONS/chat", "/x")
    assert [one for one in ours if not is_chat(one)] == []
    assert [one for one in (*theirs, "", "chat", "/api", "/api/") if is_chat(one)] == []
