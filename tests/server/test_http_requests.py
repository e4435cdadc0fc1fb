"""What every request has: a version, an ID, a line in the log; keys that create once; waiting."""

import asyncio
import logging
import re

from rig_openapi import Judged
from rig_server import server, write_note
from sessions_rig import HOLDS, Held

from rig import call, run


def test_the_paths_have_a_version_and_the_old_ones_are_kept(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            made = await there.post("/api/v1/sessions", {})
            for path in ("/api/v1/sessions", "/api/sessions"):
                (one,) = (await there.get(path)).body["sessions"]
                assert one["id"] == made.body["id"]
            assert (await there.get("/api/v1/health", token="")).status == 200
            assert (await there.get("/api/v1/me", token="")).status == 401
            assert (await there.get("/api/v1/nowhere")).code == "not_found"
            assert (await there.get("/api/v2/me")).code == "not_found"

    run(work())


def test_each_response_and_each_problem_has_the_id_of_its_request(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            one, two = await there.get("/api/me"), await there.get("/api/nowhere")
            assert re.fullmatch("[0-9a-f]{16}", one.headers["x-request-id"])
            assert two.body["request"] == two.headers["x-request-id"]
            mine = await there.get("/api/nowhere", headers={"X-Request-ID": "build-7.retry_2"})
            assert mine.headers["x-request-id"] == mine.body["request"] == "build-7.retry_2"
            for given in ("x" * 101, "a b", "<b>"):
                other = await there.get("/api/me", headers={"X-Request-ID": given})
                assert other.headers["x-request-id"] != given

    run(work())


def test_the_access_log_says_who_asked_for_what_and_never_with_which_token(tmp_path, caplog):
    async def work():
        async with server(tmp_path) as there:
            with caplog.at_level(logging.INFO, "bridle.access"):
                found = await there.get(
                    "/api/sessions?query=secret", headers={"X-Request-ID": "r1"}
                )
                assert found.status == 200
                await there.get("/api/me", token="wrong-token")
            first, second = [one.getMessage() for one in caplog.records][-2:]
            assert re.fullmatch(
                r"GET /api/sessions 200 \d+\.\d ms, me at 127\.0\.0\.1, request r1", first
            )
            assert second.startswith("GET /api/me 401 ") and ", nobody at 127.0.0.1" in second
            assert there.token not in caplog.text and "wrong-token" not in caplog.text
            assert "secret" not in caplog.text

    run(work())


def test_a_key_creates_one_session_however_often_it_comes_and_after_a_restart(tmp_path):
    async def work():
        key = {"Idempotency-Key": "build 7"}
        async with server(tmp_path) as there:
            same = [there.post("/api/sessions", {"title": "one"}, headers=key) for _ in range(5)]
            found = await asyncio.gather(*same)
            assert {one.status for one in found} == {201}
            assert len({one.body["id"] for one in found}) == 1
            assert [one.headers.get("idempotent-replayed") for one in found].count("true") == 4
            other = await there.post("/api/sessions", {"title": "two"}, headers=key)
            assert (other.status, other.code) == (409, "idempotency_conflict")
            ann = there.room.door.tokens.add("ann", "drive")
            hers = await there.post("/api/sessions", {"title": "one"}, headers=key, token=ann)
            assert hers.body["id"] != found[0].body["id"]
            session = found[0].body["id"]
            forks = [
                await there.post(f"/api/sessions/{session}/fork", {}, headers=key) for _ in range(2)
            ]
            assert forks[0].body["id"] == forks[1].body["id"] != session
        async with server(tmp_path) as there:
            again = await there.post("/api/sessions", {"title": "one"}, headers=key)
            assert (again.status, again.body["id"]) == (201, session)
            assert len((await there.get("/api/sessions")).body["sessions"]) == 3

    run(work())


def test_a_key_of_a_request_that_was_refused_can_be_used_again(tmp_path):
    async def work():
        key = {"Idempotency-Key": "k"}
        async with server(tmp_path) as there:
            refused = await there.post("/api/sessions", {"workspacePath": "/nowhere"}, headers=key)
            assert refused.status == 403
            assert (await there.post("/api/sessions", {}, headers=key)).status == 201

    run(work())


def test_a_prompt_can_be_waited_for_and_answers_with_its_result(tmp_path):
    async def work():
        script = [{"text": "first"}, call("write_note", text="x"), {"text": "written"}]
        async with server(tmp_path, script, write_note) as there:
            there = await Judged.of(there)
            path = f"/api/sessions/{await there.made()}"
            key = {"Idempotency-Key": "one"}
            for _ in range(2):  # the second time it is over already
                done = await there.post(f"{path}/chat?wait=true", {"prompt": "go"}, headers=key)
                assert (done.status, done.body["reason"], done.body["text"]) == (
                    200,
                    "done",
                    "first",
                )
                assert (done.body["turn"], done.body["approvals"]) == (1, [])
            waits = await there.post(f"{path}/chat?wait=true", {"prompt": "write"})
            assert (waits.body["turn"], waits.body["reason"]) == (2, "parked")
            (asked,) = waits.body["approvals"]
            where = f"{path}/approvals/{asked['callId']}"
            yes = {"allowed": True, "shown": asked["shown"]}
            assert (await there.post(where, yes)).status == 200
            await there.until(f"{path}/stream", lambda e: is_end(e, 2))

    run(work())


def is_end(event, turn):
    return event.name == "completed" and event.data["data"]["turn"] == turn


def test_who_stops_waiting_for_a_prompt_does_not_stop_its_turn(tmp_path):
    async def work():
        held = Held()
        async with server(tmp_path, [HOLDS, "later"], held) as there:
            path = f"/api/sessions/{await there.made()}"
            asking = asyncio.ensure_future(there.post(f"{path}/chat?wait=true", {"prompt": "go"}))
            await held.begun.wait()
            asking.cancel()
            await asyncio.wait([asking])
            held.free.set()
            await there.until(f"{path}/stream", lambda e: is_end(e, 1))

    run(work())
