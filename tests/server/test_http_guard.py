"""Coming in over a real server: tokens, one-time codes, cookies, names, the page's own files."""

import asyncio
from contextlib import aclosing

from msgspec.structs import replace
from rig_raw import head, said
from rig_server import LIMITS, server

from bridle.server.auth import AllowedHosts
from bridle.server.page_files import Page
from rig import run


def cookie_of(answer):
    """The cookie that an answer sets, and how."""
    value, *how = answer.headers["set-cookie"].split("; ")
    return value, sorted(how)


async def signed_in(there):
    """The headers of a page that is signed in."""
    answer = await there.post("/api/login", {"code": there.room.door.code()}, token="")
    assert answer.status == 200
    return {"Cookie": cookie_of(answer)[0], "X-Bridle-Key": answer.body["key"]}


def test_health_needs_no_token_and_everything_else_does(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            health = await there.get("/api/health", token="")
            assert (health.status, health.body) == (200, {"status": "ok"})
            for path in ("/api/me", "/api/nowhere", "/nowhere", "/api/health/", "//api/health"):
                answer = await there.get(path, token="")
                assert (answer.status, answer.code) == (401, "no_token"), path
            me = await there.get("/api/me")
            assert (me.status, me.body["name"], me.body["role"]) == (200, "me", "admin")
            lost = await there.get("/api/nowhere")
            assert (lost.status, lost.code) == (404, "not_found")
            wrong = await there.call("PUT", "/api/me", {})
            assert (wrong.status, wrong.code) == (405, "method_not_allowed")
            assert wrong.headers["allow"]

    run(work())


def test_a_code_signs_a_browser_in_once_and_the_cookie_is_for_this_page_alone(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            code = there.room.door.code()
            answer = await there.post("/api/login", {"code": code}, token="")
            assert (answer.status, set(answer.body)) == (200, {"key"})
            value, how = cookie_of(answer)
            assert value.startswith(f"bridle_{there.port}=")
            assert [one.lower() for one in how] == [
                "httponly",
                "max-age=2592000",
                "path=/",
                "samesite=strict",
            ]
            again = await there.post("/api/login", {"code": code}, token="")
            assert (again.status, again.code) == (401, "no_token")
            halves = {"Cookie": value, "X-Bridle-Key": answer.body["key"]}
            me = await there.get("/api/me", token="", headers=halves)
            assert (me.status, me.body["name"]) == (200, "me")
            for half in halves:  # whoever sits on another port of the host gets the cookie alone
                alone = await there.get("/api/me", token="", headers={half: halves[half]})
                assert (alone.status, alone.code) == (401, "no_token"), half

    run(work())


def test_signing_in_takes_a_code_or_a_token_by_its_name_and_the_right_one_always(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            door = there.room.door
            cases = [
                ({"code": there.token}, 401),
                ({"token": door.code()}, 401),
                ({}, 400),
                ({"code": door.code(), "token": there.token}, 400),
                ({"code": door.code(), "only": "ann"}, 409),
                ({"token": there.token}, 200),
                ({"code": door.code(), "only": "me"}, 200),
            ]
            guess = {"code": "guess"}
            guesses = [there.post("/api/login", guess, token="") for _ in range(60)]
            assert {one.status for one in await asyncio.gather(*guesses)} == {401, 429}
            cases = [(body, {401, 429} if status == 401 else {status}) for body, status in cases]
            for body, statuses in cases:
                assert (await there.post("/api/login", body, token="")).status in statuses, body

    run(work())


def test_signing_out_ends_the_streams_of_that_sign_in_at_once_and_no_others(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            path = f"/api/sessions/{await there.made()}/stream"
            one, two = await signed_in(there), await signed_in(there)
            async with (
                aclosing(there.events(path, token="", headers=one)) as mine,
                aclosing(there.events(path, token="", headers=two)) as others,
            ):
                await anext(mine)
                await anext(others)
                out = one | {"Origin": there.url}
                assert (await there.post("/api/logout", token="", headers=out)).status == 204
                assert [event async for event in mine] == []
                assert len(there.room.streams) == 1

    run(work())


def test_with_a_cookie_whatever_changes_something_needs_our_own_origin(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            cookie = await signed_in(there)
            ours = cookie | {"Origin": there.url}
            bare = await there.post("/api/sessions", {}, token="", headers=cookie)
            assert (bare.status, bare.code) == (403, "wrong_origin")
            assert (await there.post("/api/sessions", {}, token="", headers=ours)).status == 201
            elsewhere = cookie | {"Origin": "http://evil.example"}
            answer = await there.post("/api/sessions", {}, token="", headers=elsewhere)
            assert (answer.status, answer.code) == (403, "wrong_origin")
            assert (await there.post("/api/logout", token="", headers=ours)).status == 204
            assert (await there.get("/api/me", token="", headers=cookie)).status == 401

    run(work())


def test_a_restart_signs_nobody_out(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            halves, port = await signed_in(there), there.port
        async with server(tmp_path) as there:
            halves["Cookie"] = halves["Cookie"].replace(str(port), str(there.port))
            answer = await there.get("/api/me", token="", headers=halves)
            assert answer.status == 200

    run(work())


def test_a_revoked_token_ends_at_once(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            token = there.room.door.tokens.add("ann", "watch")
            assert (await there.get("/api/me", token=token)).body["name"] == "ann"
            there.room.door.tokens.revoke("ann")
            assert (await there.get("/api/me", token=token)).status == 401

    run(work())


def test_a_revoked_token_ends_the_streams_of_its_name_and_no_others(tmp_path):
    async def work():
        limits = replace(LIMITS, stalled_seconds=0.2)
        async with server(tmp_path, limits=limits) as there:
            token = there.room.door.tokens.add("ann", "watch")
            path = f"/api/sessions/{await there.made()}/stream"
            async with aclosing(there.events(path)) as mine:
                await anext(mine)
                async with aclosing(there.events(path, token=token)) as theirs:
                    await anext(theirs)
                    there.room.door.tokens.revoke("ann")
                    assert [event async for event in theirs] == []
                assert len(there.room.streams) == 1

    run(work())


def test_two_of_a_header_that_says_who_asks_are_none(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            mine, halves = f"Authorization: Bearer {there.token}", await signed_in(there)
            cookie, key = halves["Cookie"], f"X-Bridle-Key: {halves['X-Bridle-Key']}"
            cases = {
                401: [
                    [mine, "Authorization: Bearer x"],
                    ["Authorization: Basic eDp5"],
                    [f"Authorization: Bearer{there.token}"],
                    [f"Cookie: {cookie}", key, "Authorization: Bearer x"],
                    [f"Cookie: {cookie}", f"Cookie: {cookie}x", key],
                    [f"Cookie: {cookie}", key, key],
                    [f"Cookie: {cookie}", f"{key}x"],
                    [f"Cookie: bridle_{there.port}=", key],
                    [f'Cookie: bridle_{there.port}="\\', key],
                ],
                421: [[mine, "Host: evil.example"]],
                200: [
                    [mine],
                    [f"authorization:  bearer   {there.token}  "],
                    [f"Cookie: {cookie}", key],
                ],
            }
            for status, headers in cases.items():
                for more in headers:
                    found = await said(there, head(there, "GET", "/api/me", *more, token=""))
                    assert found.status == status, more

    run(work())


def test_another_name_is_answered_to_where_it_was_allowed(tmp_path):
    async def work():
        async with server(tmp_path, allowed=("Bridle.example", "other.example:8443")) as there:
            cases = {
                ("bridle.example", "https://bridle.example"): 200,
                ("bridle.example:8443", "https://bridle.example:8443"): 200,
                ("other.example:8443", "https://other.example:8443"): 200,
                ("other.example", "https://other.example"): 421,
                ("x.bridle.example", ""): 421,
                ("bridle.example", "https://evil.example"): 403,
            }
            for (host, origin), status in cases.items():
                headers = {"Host": host} | ({"Origin": origin} if origin else {})
                assert (await there.get("/api/me", headers=headers)).status == status, host
            named = {"Host": "bridle.example", "Origin": "https://bridle.example"}
            code = {"code": there.room.door.code()}
            answer = await there.post("/api/login", code, token="", headers=named)
            assert "Secure" in cookie_of(answer)[1]  # somebody ends TLS in front of us

    run(work())


def test_names_are_compared_whole():
    names = AllowedHosts(8000, "192.168.1.5", ())
    hosts = {
        b"127.0.0.1:8000": True,
        b"192.168.1.5:8000": True,
        b"[::1]:8000": True,
        b"127.0.0.1:80000": True,  # of a loopback name any port: a tunnel may forward it
        b"127.0.0.1": True,
        b"192.168.1.5:80000": False,
        b"192.168.1.5": False,
        b"x127.0.0.1:8000": False,
        b"localhost:8000\x00": False,
        b"": False,
    }
    assert {host: names.host([(b"host", host)]) for host in hosts} == hosts
    assert not names.host([]) and not names.host([(b"host", b"127.0.0.1:8000")] * 2)
    assert AllowedHosts(80).host([(b"host", b"localhost")])
    assert AllowedHosts(None).host([(b"host", b"localhost")])
    assert not AllowedHosts(None).host([(b"host", b"evil.example")])


def test_the_page_is_found_by_exact_names_and_kept_as_long_as_it_may_be(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>" + " " * 500)
    (tmp_path / "assets" / "index-Ab3dEf9h.js").write_text("1;" * 500)
    (tmp_path / "secret").write_text("no")
    page = Page(tmp_path)
    index, script = page.leaf("/"), page.leaf("/assets/index-Ab3dEf9h.js")
    assert index.cache == "no-cache" and index.media.startswith("text/html")
    assert script.cache.endswith("immutable") and len(script.packed) < len(script.plain)
    for path in ("/secret", "/assets/../secret", "/assets/", "/assets/index-Ab3dEf9h.js/", ""):
        assert page.leaf(path) is None
    assert Page(tmp_path / "none").leaf("/") is None


def test_the_page_and_its_files_come_without_a_token_and_nothing_else_does(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            index = await there.get("/", token="")
            assert index.status == 200 and index.headers["cache-control"] == "no-cache"
            tag = {"If-None-Match": index.headers["etag"]}
            assert (await there.get("/", token="", headers=tag)).status == 304
            for path in ("/assets/../../../etc/passwd", "/assets/%2e%2e/index.html", "/assets/x"):
                found = await said(there, head(there, "GET", path, token=""))
                assert found.status == 404, path

    run(work())
