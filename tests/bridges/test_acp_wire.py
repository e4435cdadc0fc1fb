"""An editor's requests, line by line: good ones, bad ones, and the end of the line."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridges.acp_wire import Hosting, opened, wired
from bridle.engine.budget import Limits
from bridle.events import ModeChanged, PromptReceived, TurnEnded, TurnParked
from bridle.protocols.store import InboxMessage
from bridle.runtime import build_engine
from bridle.server.acp import jsonrpc
from bridle.stores.inbox_files import Notifier, send
from rig import call, run

WRITE = call("write", path="a", content="1")


def logged(host, session, kind):
    return [one.event for one in host.folder.read(session) if isinstance(one.event, kind)]


def asking(method, **params):
    return json.dumps({"id": 9, "method": method, "params": params}).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[" * 20_000 + b"\n", -32700),
        (b"x" * 300 + b"\n", -32700),
        (b"[1, 2]\n", -32600),
        (b'{"id": {"a": 1}, "method": "initialize"}\n', -32600),
        (b'{"method": 3}\n', -32600),
        (b'{"hello": 3}\n', -32600),
        (asking("what/ever"), -32601),
        (b'{"id": 9, "method": "session/new"}\n', -32602),
        (b'{"id": 9, "method": "session/new", "params": [1]}\n', -32602),
        (asking("session/new", cwd=3, mcpServers=[]), -32602),
        (asking("session/new", cwd="a", mcpServers=[]), -32602),
        (asking("session/new", cwd="/none/such", mcpServers=[]), -32602),
        (asking("authenticate", methodId="x"), -32602),
        (asking("session/prompt", sessionId="x", prompt=[]), -32002),
        (asking("session/load", sessionId="../../etc", cwd="/", mcpServers=[]), -32002),
    ],
)
def test_what_cannot_be_understood_is_refused_and_the_next_request_works(
    tmp_path, monkeypatch, line, code
):
    monkeypatch.setattr(jsonrpc, "LONGEST", 250 if line.startswith(b"x") else jsonrpc.LONGEST)

    async def story():
        host = Hosting(tmp_path)
        async with wired(host) as wire:
            wire.write(line)
            refused = await wire.read()
            return refused, await wire.ask("initialize", protocolVersion=1)

    refused, hello = run(story())
    assert refused["error"]["code"] == code
    assert refused["error"]["message"]
    assert hello["protocolVersion"] == 1


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "method", "params", "result", "error", "sessionId", "cwd", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
methods = st.sampled_from(
    ["initialize", "session/new", "session/load", "session/prompt", "session/cancel"]
)
requests = st.builds(
    lambda number, method, params: {"id": number, "method": method, "params": params},
    st.none() | st.integers() | st.text(max_size=3),
    methods,
    anything,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.one_of(anything, requests), max_size=6), st.lists(st.binary(max_size=30)))
def test_no_input_ends_it(tmp_path, messages, raw):
    async def story():
        async with wired(Hosting(tmp_path)) as wire:
            for message in messages:
                wire.write(json.dumps(message).encode() + b"\n")
            for line in raw:
                wire.write(line.replace(b"\n", b"") + b"\n")
            wire.say(id="last", method="initialize", params={"protocolVersion": 1})
            return await wire.until(lambda one: one.get("id") == "last")

    assert run(story())["result"]["protocolVersion"] == 1


def test_the_end_of_the_input_parks_what_waits_and_interrupts_what_runs(tmp_path):
    """... and nothing is left running: the rig sees to it that no task is."""

    async def waiting(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            wire.prompt(session, "go")
            await wire.question()
            return session

    async def running(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            wire.prompt(session, "go")
            await wire.until(lambda one: "begun" in json.dumps(one))
            return session

    host = Hosting(tmp_path, WRITE)
    session = run(waiting(host))
    assert [one.turn for one in logged(host, session, TurnParked)] == [1]
    host = Hosting(tmp_path, call("shell", command="echo begun; sleep 1000"), mode="auto")
    host._options["rules"] = ["allow: shell(*)"]
    session = run(running(host))
    assert [one.reason for one in logged(host, session, TurnEnded)] == ["interrupted"]


def test_modes_and_models_are_chosen_and_auto_only_where_it_was_allowed(tmp_path):
    async def story(host):
        async with wired(host) as wire:
            found = await wire.ask("session/new", cwd=str(host.workspace), mcpServers=[])
            session = found["sessionId"]
            await wire.ask("session/set_mode", sessionId=session, modeId="plan")
            wide = await wire.refused("session/set_mode", sessionId=session, modeId="auto")
            model = await wire.ask(
                "session/set_config_option",
                sessionId=session,
                configId="model",
                value="scripted/other",
            )
            odd = await wire.refused(
                "session/set_config_option", sessionId=session, configId="odd", value="x"
            )
            await wire.outcome(wire.prompt(session, "hello"))
            return wire, session, found, wide, model, odd

    host = Hosting(tmp_path, {"text": "never said"})
    wire, session, found, wide, model, odd = run(story(host))
    assert found["modes"]["currentModeId"] == "ask"
    assert [one["id"] for one in found["configOptions"]] == ["mode", "model"]
    assert wide["code"] == odd["code"] == -32602
    assert model["configOptions"][0]["currentValue"] == "plan"
    assert wire.told("current_mode_update")[0]["currentModeId"] == "plan"
    assert wire.said() == "scripted/other speaks."
    assert [one.mode for one in logged(host, session, ModeChanged)] == ["plan"]
    auto = Hosting(tmp_path, modes=("plan", "ask", "edits", "auto"))

    async def allowed():
        async with wired(auto) as wire:
            session = await opened(wire, auto)
            await wire.ask("session/set_mode", sessionId=session, modeId="auto")

    run(allowed())


def test_sessions_are_listed_resumed_forked_closed_and_deleted(tmp_path):
    async def story(host):
        where = {"cwd": str(host.workspace), "mcpServers": []}
        async with wired(host) as wire:
            session = await opened(wire, host)
            await wire.outcome(wire.prompt(session, "hello"))
            fork = (await wire.ask("session/fork", sessionId=session, **where))["sessionId"]
            await wire.ask("session/close", sessionId=session)
            shut = await wire.refused("session/prompt", sessionId=session, prompt=[])
            await wire.ask("session/resume", sessionId=session, **where)
            before = len(wire.seen)
            await wire.outcome(wire.prompt(session, "again"))
            resumed = wire.seen[before:]
            await wire.ask("session/delete", sessionId=fork)
            listed = await wire.ask("session/list", cwd=str(host.workspace))
            elsewhere = await wire.ask("session/list", cwd="/")
            odd = await wire.refused("session/list", cursor="²")
            return session, shut, resumed, listed, elsewhere, odd

    host = Hosting(tmp_path, {"text": "one"}, {"text": "two"})
    session, shut, resumed, listed, elsewhere, odd = run(story(host))
    assert (shut["code"], odd["code"]) == (-32002, -32602)
    assert [one["sessionId"] for one in listed["sessions"]] == [session]
    assert listed["sessions"][0]["cwd"] == str(host.workspace)
    assert elsewhere == {"sessions": []}
    words = [one["params"]["update"].get("content") for one in resumed]
    assert {"type": "text", "text": "one"} not in words
    assert {"type": "text", "text": "two"} in words
    assert len(host.places) == 1  # one engine for the folder


def test_a_session_that_another_process_holds_is_refused_in_words(tmp_path):
    async def story(host):
        engine = build_engine(host.model, workspace=host.workspace, state=host.state)
        async with engine, wired(host) as wire:
            other = await engine.session()
            await other.begin()
            where = {"cwd": str(host.workspace), "mcpServers": []}
            return await wire.refused("session/load", sessionId=other.id, **where)

    refused = run(story(Hosting(tmp_path)))
    assert refused["code"] == -32602
    assert "in use" in refused["message"]
    assert "Close it there" in refused["data"]["hint"]


def test_a_prompt_from_another_process_is_shown_and_two_at_once_wait_for_each_other(tmp_path):
    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            numbers = [wire.prompt(session, "first"), wire.prompt(session, "second")]
            ends = [await wire.outcome(number) for number in numbers]
            letter = InboxMessage("x" * 24, "send", "somebody", "a third")
            send(host.folder.path(session).parent, letter)
            Notifier(host.state).notify()
            await wire.until(lambda one: "three" in json.dumps(one))
            return wire, session, [one["result"]["stopReason"] for one in ends]

    host = Hosting(tmp_path, {"text": "one "}, {"text": "two "}, {"text": "three"})
    wire, session, ends = run(story(host))
    assert ends == ["end_turn", "end_turn"]
    assert wire.said() == "one two "
    assert wire.said("user_message_chunk") == "a third"
    who = [(one.content, one.by) for one in logged(host, session, PromptReceived)]
    assert who == [("first", "tester"), ("second", "tester"), ("a third", "somebody")]


def test_a_turn_that_fails_is_an_error_for_a_person_and_a_limit_is_no_error(tmp_path):
    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            return wire, await wire.outcome(wire.prompt(session, "go"))

    failing = Hosting(tmp_path, {"error": {"status": 401, "message": "bad key"}})
    _, ended = run(story(failing))
    assert ended["error"]["code"] == -32603
    assert ended["error"]["data"]["hint"]
    loops = [call("read", path=str(number)) for number in range(9)]
    limited = Hosting(tmp_path, *loops, limits=Limits(max_steps=2))
    wire, ended = run(story(limited))
    assert ended["result"]["stopReason"] == "max_turn_requests"
    assert "[stopped: " in wire.said()


def test_a_request_that_is_taken_back_stops_its_turn(tmp_path):
    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            number = wire.prompt(session, "go")
            question = await wire.question()
            wire.say(method="$/cancel_request", params={"requestId": number})
            ended = await wire.outcome(number)
            return wire, session, question, ended

    host = Hosting(tmp_path, WRITE)
    _, session, question, ended = run(story(host))
    assert ended["error"]["code"] == -32800
    assert question["params"]["sessionId"] == session
    assert [one.reason for one in logged(host, session, TurnEnded)] == ["interrupted"]


def test_commands_do_what_they_say(tmp_path):
    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            await wire.outcome(wire.prompt(session, "hello"))
            for text in ("/rename a better title", "/compact", "/revoke", "/other thing"):
                await wire.outcome(wire.prompt(session, text))
            return wire

    wire = run(story(Hosting(tmp_path, {"text": "one"}, {"text": "to the model"})))
    assert wire.told("session_info_update")[-1]["title"] == "a better title"
    assert wire.said() == (
        "onerenamedthere is nothing to shortennothing was allowed for longerto the model"
    )
    names = [one["name"] for one in wire.told("available_commands_update")[0]["availableCommands"]]
    assert names == ["compact", "rename", "revoke"]


def test_a_task_asks_at_the_same_editor_and_the_answer_reaches_it(tmp_path):
    """A child session's question; the parent's turn goes on with what the child did."""
    delegate = call("task", description="write", prompt="write it")

    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            number = wire.prompt(session, "go")
            question = await wire.question()
            wire.answer(question, "allow_once")
            return wire, session, question, await wire.outcome(number)

    host = Hosting(tmp_path, delegate, WRITE, {"text": "child done"}, {"text": "Done."})
    wire, session, question, ended = run(story(host))
    assert question["params"]["sessionId"] == session
    assert ended["result"]["stopReason"] == "end_turn"
    assert (host.workspace / "a").read_text() == "1"
    assert len(host.folder.sessions()) == 2
    asked = question["params"]["toolCall"]["toolCallId"]
    states = [one for one in wire.told("tool_call_update") if one["toolCallId"] == asked]
    assert states[-1]["status"] == "completed"


def test_plans_are_agreed_to_and_questions_of_the_models_own_are_answered(tmp_path):
    plan = call("exit_plan_mode", plan="1. write")
    which = call("ask_user", question="Which?", options=["left", "right"])

    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            await wire.ask("session/set_mode", sessionId=session, modeId="plan")
            number = wire.prompt(session, "go")
            agreeing = await wire.question()
            wire.answer(agreeing, "allow_once")
            asking = await wire.question()
            wire.answer(asking, "answer_1")
            return wire, agreeing, await wire.outcome(number)

    host = Hosting(tmp_path, plan, which, {"text": "Done."})
    wire, agreeing, ended = run(story(host))
    assert agreeing["params"]["toolCall"]["content"][0]["content"]["text"] == "1. write"
    modes = [one["currentModeId"] for one in wire.told("current_mode_update")]
    assert modes == ["plan", "plan", "ask"]  # chosen, recorded with the prompt, agreed
    assert "The person answered: right" in json.dumps(wire.told("tool_call_update"))
    assert ended["result"]["stopReason"] == "end_turn"


def test_an_editor_that_does_not_read_has_us_wait_and_loses_nothing(tmp_path, monkeypatch):
    """Little room for what is to be said, and much to say: every word arrives, in order."""
    monkeypatch.setattr(jsonrpc, "_FULL", 1000)
    words = " ".join(str(number) for number in range(60_000))

    async def story(host):
        async with wired(host) as wire:
            session = await opened(wire, host)
            number = wire.prompt(session, "go")
            await wire.outcome(number)
            return wire

    assert run(story(Hosting(tmp_path, {"text": words}))).said() == words


def test_an_editor_that_goes_without_reading_holds_nothing_up(tmp_path, monkeypatch):
    """It asked for much and read none of it: the turn is over, the log is whole, and so are we."""
    monkeypatch.setattr(jsonrpc, "_FULL", 1000)
    monkeypatch.setattr(jsonrpc, "_FAREWELL", 0.1)
    words = " ".join(str(number) for number in range(60_000))
    host = Hosting(tmp_path, {"text": words})

    async def story():
        async with wired(host) as wire:
            session = await opened(wire, host)
            wire.prompt(session, "go")
            await wire.room.full.wait()  # the pipe takes some of it
            return session

    session = run(story())
    assert len(logged(host, session, TurnEnded)) == 1
