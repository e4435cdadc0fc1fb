"""A walk over the real application's route table, over real uvicorn: nobody comes in unasked."""

import pytest
from rig_server import server

from bridle.protocols.session_values import ROLES, Role
from bridle.server.auth import Caller, has_role
from bridle.server.routing import Routes
from rig import run

FREE = {  # exactly these need no token
    ("GET", "/api/health"),
    ("GET", "/api/ready"),
    ("POST", "/api/login"),
    ("GET", "/"),
    ("GET", "/favicon.svg"),
    ("GET", "/assets/{name:path}"),
}
ROLE = {  # whose role each of the others needs
    "watch": {
        ("POST", "/api/logout"),
        ("GET", "/api/me"),
        ("GET", "/api/sessions"),
        ("GET", "/api/sessions/{session_id}"),
        ("GET", "/api/sessions/{session_id}/stream"),
        ("GET", "/api/workspaces/files"),
        ("GET", "/api/events"),
        ("GET", "/api/sessions/{session_id}/records"),
        ("GET", "/api/sessions/{session_id}/history"),
        ("GET", "/api/sessions/{session_id}/export"),
        ("GET", "/api/sessions/{session_id}/budget"),
        ("GET", "/api/sessions/{session_id}/grants"),
        ("GET", "/api/sessions/{session_id}/undo"),
        ("GET", "/api/sessions/{session_id}/files"),
        ("GET", "/api/sessions/{session_id}/tools"),
        ("GET", "/api/approvals"),
        ("GET", "/api/search"),
        ("GET", "/api/models"),
        ("GET", "/api/agents"),
        ("GET", "/api/workspaces"),
        ("GET", "/api/metrics"),
        ("GET", "/api/openapi.json"),
    },
    "answer": {
        ("POST", "/api/sessions/{session_id}/approvals/{call_id}"),
        ("POST", "/api/sessions/{session_id}/preview-rule"),
    },
    "drive": {
        ("POST", "/api/sessions"),
        ("PATCH", "/api/sessions/{session_id}"),
        ("POST", "/api/sessions/{session_id}/resume"),
        ("POST", "/api/sessions/{session_id}/chat"),
        ("POST", "/api/sessions/{session_id}/interrupt"),
        ("DELETE", "/api/sessions/{session_id}/queue/{prompt:int}"),
        ("POST", "/api/sessions/{session_id}/fork"),
        ("POST", "/api/sessions/{session_id}/rewind"),
        ("POST", "/api/sessions/{session_id}/compact"),
        ("PUT", "/api/sessions/{session_id}/budget"),
        ("DELETE", "/api/sessions/{session_id}/grants"),
        ("DELETE", "/api/sessions/{session_id}/grants/{grant}"),
        ("POST", "/api/sessions/{session_id}/undo"),
        ("GET", "/api/sessions/{session_id}/mcp"),
        ("GET", "/api/sessions/{session_id}/rules"),
        ("POST", "/api/agui"),
    },
    "admin": {("DELETE", "/api/sessions/{session_id}"), ("GET", "/api/doctor")},
}
UNUSUAL = ("HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "POST", "GET")


def walked(there):
    """Every route of the real application: method, declared path, a path to ask for, its role."""
    return [
        (route.method, route.path, _filled(route.path), route.declaration.role)
        for route in there.app.routes
    ]


def _filled(path):
    path = path.replace("{prompt:int}", "7")
    for name in ("{session_id}", "{call_id}", "{grant}", "{name:path}"):
        path = path.replace(name, "x")
    return path


def test_the_table_is_the_one_that_was_agreed_on(tmp_path):
    """(A10)"""

    async def work():
        async with server(tmp_path) as there:
            found = {}
            for method, path, _, role in walked(there):
                found.setdefault(role, set()).add((method, path))
            assert found == {None: FREE, **ROLE}

    run(work())


def test_without_a_token_every_route_but_the_exact_list_says_401(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            for method, path, ask, _ in walked(there):
                for token in ("", "wrong", there.token + "x"):
                    answer = await there.call(method, ask, {}, token=token)
                    if (method, path) in FREE:
                        assert answer.status != 403 and answer.status != 421, (method, path)
                    else:
                        assert (answer.status, answer.code) == (401, "no_token"), (method, path)
                        assert answer.headers["www-authenticate"].startswith("Bearer")
            for _, path, ask, role in walked(there):
                for method in UNUSUAL:
                    answer = await there.call(method, ask, token="")
                    if role is not None:
                        assert answer.status == 401, (method, path)
                    sealed(answer)

    run(work())


def sealed(answer):
    """What every answer says to a browser."""
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers


FOREIGN_HOSTS = (
    "evil.example",
    "192.0.2.1:{port}",
    "127.0.0.1:",
    "localhost.evil.example:{port}",
    "",
)
PROBES = ("/api/health", "/api/ready")
FOREIGN_ORIGINS = (
    "http://evil.example",
    "null",
    "http://127.0.0.1:1",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "file://",
    "",
)


def test_a_foreign_host_is_421_and_a_foreign_origin_403_on_every_route_and_nowhere(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            asks = [(method, ask) for method, _, ask, _ in walked(there) if ask not in PROBES]
            asks += [("GET", "/nowhere"), ("POST", "/api/nowhere"), ("OPTIONS", "/api/me")]
            for method, ask in asks:
                for host in FOREIGN_HOSTS[: 5 if ask == "/api/me" else 1]:
                    headers = {"Host": host.format(port=there.port)}
                    answer = await there.call(method, ask, {}, headers=headers)
                    assert (answer.status, answer.code) == (421, "wrong_host"), (method, ask, host)
                    sealed(answer)
                for origin in FOREIGN_ORIGINS[: 7 if ask == "/api/me" else 1]:
                    headers = {"Origin": origin.format(port=there.port)}
                    answer = await there.call(method, ask, {}, headers=headers)
                    assert (answer.status, answer.code) == (403, "wrong_origin"), (method, ask)
            for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
                headers = {"Host": f"{host}:{there.port}", "Origin": f"http://{host}:{there.port}"}
                assert (await there.get("/api/me", headers=headers)).status == 200, host

    run(work())


def test_probes_are_answered_under_any_host_and_loopback_names_at_any_port(tmp_path):
    """Load balancers ask by address, and a tunnel or a container forwards another port."""

    async def work():
        async with server(tmp_path) as there:
            for path in PROBES:
                answer = await there.get(path, token="", headers={"Host": "10.2.3.4:8420"})
                assert answer.status == 200, path
                other = {"Host": "10.2.3.4", "Origin": "http://evil.example"}
                assert (await there.get(path, token="", headers=other)).status == 403
            cases = {
                ("127.0.0.1", ""): 200,
                ("localhost:9000", "http://localhost:9000"): 200,
                ("[::1]:9000", "https://[::1]:9000"): 200,
                ("localhost:9000", "http://localhost:9001"): 403,
                ("localhost:9000", "http://127.0.0.1:9000"): 403,
                ("127.0.0.1:{port}", "http://127.0.0.1:9000"): 403,
                ("127.0.0.1:{port}", "http://127.0.0.1"): 403,
            }
            for (host, origin), status in cases.items():
                headers = {"Host": host.format(port=there.port)}
                headers |= {"Origin": origin} if origin else {}
                assert (await there.get("/api/me", headers=headers)).status == status, (
                    host,
                    origin,
                )

    run(work())


def test_a_browser_under_a_wrong_host_name_gets_a_page_that_says_what_to_do(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            headers = {"Host": "<b>.example", "Accept": "text/html,*/*"}
            answer = await there.get("/", token="", headers=headers)
            assert answer.status == 421
            assert answer.headers["content-type"].startswith("text/html")
            assert b"--allow-host &lt;b&gt;.example" in answer.body
            sealed(answer)

    run(work())


def test_a_role_that_is_too_low_is_403_on_every_route(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            tokens = {
                role: there.room.door.tokens.add(f"a-{role}", role)
                for role in ("watch", "answer", "drive")
            }
            for method, path, ask, needed in walked(there):
                for role, token in tokens.items():
                    if needed is None or has_role(Caller("x", role), needed):
                        continue
                    answer = await there.call(method, ask, {}, token=token)
                    assert (answer.status, answer.code) == (403, "forbidden_role"), (method, path)
                    assert needed in answer.body["detail"] and answer.body["hint"]

    run(work())


def test_a_session_that_asks_nobody_is_the_admin_s_to_make(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            token = there.room.door.tokens.add("ann", "drive")
            path = f"/api/sessions/{await there.made()}"
            for method, where in (("POST", "/api/sessions"), ("PATCH", path)):
                low = await there.call(method, where, {"mode": "auto"}, token=token)
                assert (low.status, low.code) == (403, "forbidden_role")
                assert (await there.call(method, where, {"mode": "plan"}, token=token)).status < 300
                assert (await there.call(method, where, {"mode": "auto"})).status < 300

    run(work())


def test_a_route_that_does_not_say_whom_it_answers_is_an_error():
    async def get_secret() -> Role:
        raise AssertionError

    with pytest.raises(TypeError, match="role"):
        Routes("Secret").get("/api/secret")(get_secret)


def test_roles_are_known_by_these_names_alone():
    assert tuple(ROLE) == ROLES


def test_a_query_parameter_that_a_route_does_not_have_is_refused_as_fields_of_a_body_are(tmp_path):
    async def work():
        async with server(tmp_path) as there:
            for method, path in (
                ("POST", "/api/sessions?title=x"),
                ("GET", "/api/sessions?page=2"),
            ):
                answer = await there.call(method, path, {})
                assert (answer.status, answer.code) == (400, "invalid_request"), path
            assert "cursor, limit, query, state, workspace" in answer.body["hint"]
            assert (await there.get("/api/sessions?limit=2&query=")).status == 200
            assert (await there.get("/api/health?now=1", token="")).status == 200

    run(work())
