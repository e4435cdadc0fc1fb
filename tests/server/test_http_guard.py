"""The guard over a real server: names, origins, tokens, cookies; roles on every route."""

from rig_server import server

from rig import run


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
