"""What may be chosen over HTTP, and by whom: no program, no file, no other host, no wider mode."""

import asyncio
import json
import os

import pytest
from rig_server import server, write_note
from sessions_rig import ASKS, HOLDS, Held, asked, made, opening, serving, spoken

from bridle.errors import ConfigError, SessionError
from bridle.events import ModeChanged, PromptReceived
from bridle.protocols.session import Answer
from bridle.protocols.session_errors import ForbiddenChoice, Unavailable
from bridle.protocols.session_values import PromptRequest, ResumeOptions, SessionUpdate
from bridle.providers.scripted import Scripted
from bridle.service.choices import AllowedChoices
from bridle.service.engine_pool import EnginePool, EngineSpec
from bridle.service.local_service import LocalService
from bridle.stores.reader import SessionFolder
from bridle.tools.session_tools import ExitPlanMode
from rig import call, run

OFFER = AllowedChoices(
    free=False,
    agents=("loop", "acp:gemini --acp"),
    vendors=frozenset({"offline", "anthropic"}),
    model="scripted:/own.json",
    mode="ask",
)
NOTE = call("write_note", text="hi")


def agui(**wanted):
    """A run of AG-UI that begins a session like that."""
    message = {"id": "m", "role": "user", "content": "hi"}
    props = {"bridle": wanted}
    return {"threadId": "t", "runId": "r", "messages": [message], "forwardedProps": props}


@pytest.mark.parametrize(
    "wanted",
    [
        {"agent": "acp:/bin/sh -c id"},
        {"agent": "acp:gemini --acp --yolo"},
        {"model": "scripted:/etc/passwd"},
        {"provider": "scripted", "model": "/etc/passwd"},
        {"provider": "scripted:/own", "model": ".json"},
        {"provider": "ollama", "model": "x"},
        {"model": "openrouter/x"},
    ],
)
def test_nobody_names_a_program_a_file_or_a_host_over_http(tmp_path, wanted):
    async def work():
        async with server(tmp_path, ["ok"] * 9, offer=OFFER) as there:
            path = f"/api/sessions/{await there.made()}"
            doors = [("POST", "/api/sessions"), ("PATCH", path)]
            if "agent" not in wanted:
                doors.append(("POST", f"{path}/resume"))
            for method, where in doors:  # not even the owner: what is stolen is a token
                no = await there.call(method, where, wanted)
                assert (no.status, no.code) == (403, "forbidden_choice")
            no = await there.post("/api/agui", agui(**wanted))
            assert (no.status, no.code) == (403, "forbidden_choice")

    run(work())


def test_what_the_server_was_started_with_can_be_chosen():
    for agent in ("", "loop", "acp:gemini --acp"):
        OFFER.check_agent(agent)
    for provider, model in (
        ("", ""),
        ("", "scripted:/own.json"),
        ("anthropic", "claude-x"),
        ("", "claude-x"),
        ("anthropic", "anthropic/claude-x"),
        ("offline", ""),
    ):
        OFFER.check_model(provider, model)
    claude = AllowedChoices(free=False, agents=("claude-code", "loop"))
    claude.check_model("", "opus")
    for model in ("--settings", "scripted:/x", "../x"):
        with pytest.raises(ForbiddenChoice):
            claude.check_model("", model)


def test_a_session_goes_on_with_no_agent_that_the_server_does_not_offer(tmp_path):
    async def work():
        async with serving(tmp_path, ["one"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
        log = tmp_path / "state" / "sessions" / name / "log.jsonl"
        log.write_bytes(log.read_bytes().replace(b'"scripted/scripted"', b'"acp:/bin/sh -c id"'))
        engines = EnginePool(opening(str(tmp_path / "state"), ["two"]))
        folder, work = SessionFolder(tmp_path / "state"), str(tmp_path / "work")
        sessions = LocalService(folder.folder, engines, (work,), choices=OFFER)
        with pytest.raises(ForbiddenChoice, match="does not allow the agent"):
            await sessions.send(name, PromptRequest("go"), "ann")
        await sessions.stop(5.0)

    run(work())


def test_a_mode_wider_than_the_server_s_own_is_an_admin_s_at_every_door(tmp_path):
    async def work():
        async with server(tmp_path, ["ok"] * 9, offer=OFFER) as there:
            ann = there.room.door.tokens.add("ann", "drive")
            name = await there.made()
            path = f"/api/sessions/{name}"
            for mode in ("edits", "auto"):
                for method, where, said in (
                    ("POST", "/api/sessions", {"mode": mode}),
                    ("PATCH", path, {"mode": mode}),
                    ("POST", "/api/agui", agui(mode=mode)),
                ):
                    no = await there.call(method, where, said, token=ann)
                    assert (no.status, no.code) == (403, "forbidden_role")
            assert (await there.call("PATCH", path, {"mode": "plan"}, token=ann)).status == 200
            then = (await there.call("PATCH", path, {"mode": "edits"})).body["seq"]
            await there.call("PATCH", path, {"mode": "ask"})
            no = await there.post(f"{path}/fork", {"at": then}, token=ann)
            assert (no.status, no.code) == (403, "forbidden_role")
            assert (await there.post(f"{path}/fork", {"at": 1}, token=ann)).status == 201
            assert (await there.post(f"{path}/fork", {"at": then})).status == 201

    run(work())


def test_a_rule_of_ones_own_is_an_admin_s_and_covers_what_is_asked(tmp_path):
    learnt = []

    async def work():
        keep = {"learn": lambda rule, by: learnt.append((rule, by)), "offer": OFFER}
        async with server(tmp_path, [NOTE, "ok"] * 2, write_note, **keep) as there:
            ann = there.room.door.tokens.add("ann", "drive")
            name = await there.made()
            await there.post(f"/api/sessions/{name}/chat", {"prompt": "go"})
            question = None
            while question is None:
                found = (await there.get("/api/approvals")).body["approvals"]
                question = next(iter(found), None)
            path = f"/api/sessions/{name}/approvals/{question['callId']}"
            said = {"allowed": True, "scope": "rule", "shown": question["shown"]}
            no = await there.post(path, said | {"rule": "allow: *"}, token=ann)
            assert (no.status, no.code) == (403, "forbidden_role")
            place = f"{name}/{question['callId']}/{question['shown']}"
            resume = {"interruptId": place, "status": "resolved"}
            payload = {"allowed": True, "scope": "rule", "rule": "allow: *"}
            wanted = {"threadId": name, "runId": "r", "messages": []}
            wanted["resume"] = [resume | {"payload": payload}]
            no = await there.post("/api/agui", wanted, token=ann)
            assert (no.status, no.code) == (403, "forbidden_role")
            no = await there.post(path, said | {"rule": "allow: other_tool"})
            assert (no.status, no.code) == (400, "invalid_request")
            yes = await there.post(path, said | {"rule": question["asked"]["proposal"]}, token=ann)
            assert yes.status == 200
            assert learnt == [(question["asked"]["proposal"], "ann")]

    run(work())


def test_where_the_server_only_plans_a_plan_is_agreed_to_by_an_admin(tmp_path):
    plan = call("exit_plan_mode", plan="do it")
    how = {"offer": AllowedChoices(free=False, mode="plan"), "mode": "plan"}

    async def work():
        async with server(tmp_path, [plan, "ok"], ExitPlanMode(), **how) as there:
            ann = there.room.door.tokens.add("ann", "drive")
            name = await there.made()
            await there.post(f"/api/sessions/{name}/chat", {"prompt": "go"})
            found = []
            while not found:
                found = (await there.get("/api/approvals")).body["approvals"]
            path = f"/api/sessions/{name}/approvals/{found[0]['callId']}"
            said = {"allowed": True, "shown": found[0]["shown"]}
            no = await there.post(path, said, token=ann)
            assert (no.status, no.code) == (403, "forbidden_role")
            assert (await there.post(path, said)).status == 200

    run(work())


def test_a_pipe_is_no_script_and_nobody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            Scripted.from_file(place)


@pytest.mark.parametrize("mode", ["ask", "plan"])
def test_a_mode_that_was_acknowledged_is_on_disk_whatever_comes_after(tmp_path, mode):
    async def story():
        async with serving(tmp_path, ["one"]) as sessions:
            name = await made(sessions)
            await spoken(sessions, name)
            await sessions.change(name, SessionUpdate(mode="auto"), "me")
        async with serving(tmp_path, ["two"]) as sessions:
            await sessions.change(name, SessionUpdate(mode=mode), "me")
            modes = [
                one.event.mode
                for one in sessions.catalog.read(name)  # as a kill would leave it now
                if isinstance(one.event, ModeChanged)
            ]
            assert modes == ["auto", mode]
        async with serving(tmp_path, ["three"], mode="edits") as sessions:
            assert (await sessions.resume(name, ResumeOptions(), "me")).mode == mode

    run(story())


def test_what_one_server_has_accepted_another_with_other_rules_leaves_alone(tmp_path):
    async def story():
        hold = Held()
        async with serving(tmp_path, [HOLDS, "one", "two"], hold) as sessions:
            name = await made(sessions)
            await sessions.send(name, PromptRequest("first"), "ann")
            await hold.begun.wait()
            await sessions.send(name, PromptRequest("second", queue=True), "ann")
        log = tmp_path / "state" / "sessions" / name / "log.jsonl"
        kept = log.read_bytes()
        prompts = [json.loads(line)["data"] for line in kept.splitlines()]
        assert sum(one["type"] == "user_prompt" for one in prompts) == 2
        folder, place = SessionFolder(tmp_path / "state"), (str(tmp_path / "work"),)
        mark = tmp_path / "state" / "serving" / name
        mark.touch()  # as a kill leaves it
        for face, count in (("server:other", 0), ("server", 1)):
            made_ = []
            parts = {"face": face, "made": made_}
            engines = EnginePool(opening(str(tmp_path / "state"), ["more"], hold, **parts))
            hold.free.set()
            other = LocalService(folder.folder, engines, place, choices=AllowedChoices(face=face))
            await other.start()
            await other.wait_for_recovery()
            assert (len(made_) > 0, face) == (bool(count), face)
            await other.stop(5.0)
            assert (mark.exists(), face) == (not count, face)
        assert log.read_bytes() != kept
        assert [
            one.event.by for one in folder.read(name) if isinstance(one.event, PromptReceived)
        ] == ["ann", "ann"]

    run(story())


def test_engines_that_nobody_uses_are_closed_and_there_are_only_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr("bridle.service.engine_pool._MOST", 3)

    async def story():
        engines = EnginePool(opening(str(tmp_path / "state"), ["one"]))
        work = str(tmp_path)
        used = await engines.engine(EngineSpec(work))
        session = await used.session()
        for model in "ab":
            await engines.engine(EngineSpec(work, model=model))
        with pytest.raises(Unavailable):  # whoever asked for them may be about to use them
            await engines.engine(EngineSpec(work, model="c"))
        await engines.sweep(0.0)
        assert engines.open() == (used,)
        await engines.engine(EngineSpec(work, model="c"))
        await session.close()
        await engines.sweep(0.0)
        assert engines.open() == ()
        await engines.close()

    run(story())


def test_a_rule_that_does_not_cover_the_question_is_no_answer_to_it(tmp_path):
    async def story():
        async with serving(tmp_path, [ASKS, "ok"]) as one:
            name = await made(one)
            await one.send(name, PromptRequest("go"), "ann")
            question, _ = await asked(one, name)
            session = one.get_open(name)
            said = Answer(True, "rule", rule="allow: shell")
            with pytest.raises(SessionError, match="would not allow"):
                await session.answer(question.call.id, said, shown=question.shown, by="me")
            assert list(session.history.pending) == [question.shown]

    run(story())


def test_a_revoked_token_ends_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr("bridle.server.sse._LOOK", 0.05)

    async def work():
        hold = Held()
        async with server(tmp_path, [HOLDS, "ok"], hold) as there:
            ann = there.room.door.tokens.add("ann", "drive")
            async with there.client.post(
                f"{there.url}/api/agui", json=agui(), headers=there.headers(ann)
            ) as got:
                assert got.status == 200
                await hold.begun.wait()
                there.room.door.tokens.revoke("ann")
                await asyncio.wait_for(got.read(), 20)

    run(work())
