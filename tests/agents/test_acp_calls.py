"""The life of a call of an ACP agent: asked again, left unsaid, made although it was refused."""

import asyncio

import pytest

from agents.acp_rig import ANSWER, HandMade, acp_engine, one_prompt, opened, started
from bridle.agents.acp.program import environment
from bridle.errors import AgentError
from bridle.events import (
    ApprovalAsked,
    CallIntended,
    ToolOutputDelta,
    TraceEvent,
    TurnParked,
)
from bridle.protocols.agent import Permission
from rig import endings, events, results, run, until

# In the program: ask for leave, as `said`; True where it is given.
ASK = """
def ask(name, **said):
    say(id="q", method="session/request_permission", params={"sessionId": "s",
        "toolCall": {"toolCallId": name, "kind": "execute", **said},
        "options": [{"optionId": "y", "name": "y", "kind": "allow_once"},
                    {"optionId": "n", "name": "n", "kind": "reject_once"}]})
    while True:
        answer = json.loads(sys.stdin.readline())
        if answer.get("id") == "q":
            return answer["result"]["outcome"]
def done(name, status="completed", words=""):
    content = [{"type": "content", "content": {"type": "text", "text": words}}]
    update(sessionUpdate="tool_call_update", toolCallId=name, status=status, content=content)
"""
RUN = {"rawInput": {"command": "touch x"}, "title": "Touch"}


def told(session, kind):
    return [one.detail["message"] for one in session.told(TraceEvent) if one.kind == kind]


def test_a_call_that_is_asked_for_again_is_judged_again(tmp_path):
    """Such as once more without the agent's own sandbox. Each yes has one result."""
    lines = f"{ASK}\nask('c', **{RUN})\nask('c', **{RUN})\ndone('c', words='ok')\n{ANSWER}"
    session = HandMade(tmp_path)
    run(one_prompt(opened(tmp_path, lines), session))
    assert session.asked == [("shell", {"command": "touch x"})] * 2
    again = "the agent asked for the same again before it reported a result"
    assert session.finished == [("c", again, False), ("c-2", "ok", True)]


def test_a_question_comes_after_everything_that_was_said_before_it(tmp_path):
    """Also where somebody takes their time with a result."""
    lines = f"{ASK}\nask('a', **{RUN})\ndone('a')\nfor n in range(5): text(str(n))\n"
    lines += f"ask('b', **{RUN})\n{ANSWER}"
    session, order = HandMade(tmp_path), []

    async def gate(name, arguments, context=None):
        order.append(f"asked {context}")
        return Permission(True, call_id=context)

    async def slowly(call_id, text, **rest):
        for _ in range(100):
            await asyncio.sleep(0)
        order.append(f"finished {call_id}")

    session.finish, session.emit = slowly, lambda event: order.append(event.text)

    async def story():
        async with started(opened(tmp_path, lines)) as agent:
            await agent.execute("go", session, can_use_tool=gate)

    run(story())
    assert order == ["asked a", "finished a", *"01234", "asked b"]


def test_output_is_passed_on_while_it_runs_and_only_what_is_new(tmp_path):
    lines = f"{ASK}\nask('c', **{RUN})\n"
    for words in ("a", "ab", "abc"):
        lines += f"done('c', 'in_progress', {words!r})\n"
    session = HandMade(tmp_path)
    run(one_prompt(opened(tmp_path, f"{lines}done('c', words='abc')\n{ANSWER}"), session))
    assert session.told(ToolOutputDelta) == [ToolOutputDelta("c", one) for one in "abc"]
    assert session.finished == [("c", "abc", True)]


def test_what_was_refused_and_made_all_the_same_is_told_to_the_person(tmp_path):
    lines = f"{ASK}\nask('c', **{RUN})\ndone('c', words='did it')\n{ANSWER}"
    session = HandMade(tmp_path, refuses=("shell",))
    run(one_prompt(opened(tmp_path, lines), session))
    words = "The agent says that it has done `Touch`, although that was refused."
    (said,) = told(session, "ungated")
    assert said.startswith(words)


def test_what_was_begun_without_asking_and_left_unsaid_is_in_the_log(tmp_path):
    lines = "update(sessionUpdate='tool_call', toolCallId='c', title='Run', kind='execute',"
    lines += f" status='in_progress', rawInput={{'command': 'make'}})\n{ANSWER}"
    root = tmp_path / "work"
    root.mkdir()

    async def story():
        async with acp_engine(root, opened(tmp_path, lines)) as engine:
            session = await engine.session()
            await session.wait(await session.send("go"))
            return engine, session.id

    engine, session_id = run(story())
    assert results(engine, session_id) == [("c", "the agent did not report a result", True)]
    assert events(engine, session_id, CallIntended) == []


def test_what_a_hook_changed_is_refused_because_the_agent_cannot_be_told(tmp_path):
    session = HandMade(tmp_path)

    async def gate(name, arguments, context=None):
        return Permission(True, updated_input={"command": "true"}, call_id=context)

    async def story():
        lines = f"{ASK}\ntext(ask('c', **{RUN})['optionId'])\n{ANSWER}"
        async with started(opened(tmp_path, lines)) as agent:
            return await agent.execute("go", session, can_use_tool=gate)

    assert run(story()).content == "n"
    ((_, words, ok),) = session.finished
    assert (words.startswith("not run: a hook changed the call"), ok) == (True, False)


def test_a_gate_that_breaks_is_a_no_and_no_traceback(tmp_path, caplog):
    async def gate(name, arguments, context=None):
        raise ZeroDivisionError

    async def story():
        lines = ASK.replace('["result"]["outcome"]', '["error"]["message"]')
        lines += f"\ntext(ask('c', **{RUN}))\n{ANSWER}"
        async with started(opened(tmp_path, lines)) as agent:
            return await agent.execute("go", HandMade(tmp_path), can_use_tool=gate)

    assert run(story()).content == "ZeroDivisionError on the client's side"
    assert [one for one in caplog.records if one.levelname != "DEBUG"] == []


def test_without_a_gate_nothing_is_allowed(tmp_path):
    async def story():
        lines = f"{ASK}\ntext(ask('c', **{RUN})['optionId'])\n{ANSWER}"
        async with started(opened(tmp_path, lines)) as agent:
            return await agent.execute("go", HandMade(tmp_path))

    assert run(story()).content == "n"


def test_a_session_with_four_things_alone_will_do(tmp_path):
    """(P1) As in somebody else's code: an id, a folder, a mode, and a place for the agent's id."""

    class Plain:
        id, mode, claude_session_id = "p", "ask", None
        working_directory = str(tmp_path)

    chunks, session = [], Plain()

    async def story():
        async def chunk(text):
            chunks.append(text)

        async def yes(name, arguments, context):
            return True

        lines = f"{ASK}\ntext(ask('c', **{RUN})['optionId'])\ndone('c')\n{ANSWER}"
        async with started(opened(tmp_path, lines)) as agent:
            return await agent.execute("go", session, can_use_tool=yes, on_text_chunk=chunk)

    assert run(story()).content == "y"
    assert (chunks, session.claude_session_id) == (["y"], "s")


def test_a_session_that_breaks_ends_the_run_with_its_own_error(tmp_path):
    session = HandMade(tmp_path)

    def broken(event):
        raise AgentError("agent", "the disk is full")

    session.emit = broken
    with pytest.raises(AgentError, match="the disk is full"):
        run(one_prompt(opened(tmp_path, "text('x')\nwhile True: time.sleep(1)"), session))


def test_an_interrupt_takes_back_the_question_that_is_open(tmp_path):
    """The agent hears that it was stopped, and nothing runs."""
    heard = tmp_path / "heard"
    lines = f"{ASK}\nout = ask('c', **{RUN})\n"
    lines += f"open({str(heard)!r}, 'w').write(out['outcome'])\n"
    lines += 'say(id=number, result={"stopReason": "cancelled"})'
    root = tmp_path / "work"
    root.mkdir()

    async def story():
        async with acp_engine(root, opened(tmp_path, lines), on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("go")
            await until(session, lambda event: isinstance(event, ApprovalAsked))
            await session.interrupt()
            await session.wait(turn)
            return engine, session.id

    engine, session_id = run(story())
    assert endings(engine, session_id) == ["interrupted"]
    assert heard.read_text() == "cancelled"
    assert events(engine, session_id, CallIntended) == []


def test_a_stop_does_not_wait_for_a_gate_that_never_answers(tmp_path):
    begun = asyncio.Event()

    async def gate(name, arguments, context=None):
        begun.set()
        await asyncio.Event().wait()

    async def story():
        lines = f"{ASK}\ntext(ask('c', **{RUN})['outcome'])\n{ANSWER}"
        async with started(opened(tmp_path, lines)) as agent:
            session = HandMade(tmp_path)
            running = asyncio.ensure_future(agent.execute("go", session, can_use_tool=gate))
            await begun.wait()
            await agent.cancel(session.id)
            return await running

    assert run(story()).content == "cancelled"


def test_a_turn_that_is_parked_goes_on_with_what_the_person_said(tmp_path):
    """Nobody is there: the agent is stopped; with the answer our shell runs what was shown."""
    root = tmp_path / "work"
    root.mkdir()
    lines = f"{ASK}\nif 'touch' in message['params']['prompt'][0]['text']:\n"
    lines += "    text('I was told: ' + message['params']['prompt'][0]['text'])\n"
    lines += f"else:\n    ask('c', **{RUN})\n{ANSWER}"

    async def story():
        async with acp_engine(root, opened(tmp_path, lines), on_ask="park") as engine:
            session = await engine.session()
            turn = await session.send("go")
            asked = (await until(session, lambda event: isinstance(event, ApprovalAsked))).event
            await until(session, lambda event: isinstance(event, TurnParked))
            assert not (root / "x").exists()
            await session.answer("c", True, shown=asked.shown, by="tester")
            result = await session.wait(turn)
            return engine, session.id, result

    engine, session_id, result = run(story())
    assert (root / "x").exists()
    assert endings(engine, session_id) == ["done"]
    assert result.text.startswith("I was told: ")


def test_keys_reach_their_own_agent_and_nobody_else(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    monkeypatch.setenv("MY_TOKEN", "t")

    def keys(program, *given):
        names = ("GEMINI_API_KEY", "OPENAI_API_KEY", "MY_TOKEN")
        return [name for name in names if name in environment(program, *given)]

    assert keys("/opt/bin/gemini", {}) == ["GEMINI_API_KEY"]
    assert keys("something", {}) == []
    assert environment("goose", {})["GOOSE_MODE"] == "approve"
    assert environment("goose", {"GOOSE_MODE": "auto"})["GOOSE_MODE"] == "auto"
    assert keys("something", {"OPENAI_API_KEY": "x"}, ["MY_TOKEN"]) == [
        "OPENAI_API_KEY",
        "MY_TOKEN",
    ]


def test_a_command_that_was_allowed_is_handed_to_our_shell_as_that_call(tmp_path):
    """As one agent does it: it asks, and then has us run the same in a terminal."""
    session, ids = HandMade(tmp_path), []
    session.call = _noting(session, ids)
    lines = f"""{ASK}
def create(line, **more):
    say(id="t", method="terminal/create", params={{"sessionId": "s", "command": line, **more}})
    return json.loads(sys.stdin.readline())
ask('c', **{RUN})
create("touch x", env=[{{"name": "AGENT_SESSION_ID", "value": "1"}}])
create("touch x")
create("touch y", env=[{{"name": "LD_PRELOAD", "value": "./x.so"}}])
{ANSWER}"""
    run(one_prompt(opened(tmp_path, lines), session))
    assert ids == ["c", "terminal-2", "terminal-3"]
    lines = ["touch x", "touch x", "export LD_PRELOAD=./x.so; touch y"]
    assert [given["command"] for _, given in session.called] == lines


def _noting(session, ids):
    whole = session.call

    async def call(name, arguments, call_id="", **how):
        ids.append(call_id)
        return await whole(name, arguments, call_id, **how)

    return call


def test_a_command_in_a_terminal_can_be_killed_and_its_output_is_cut_at_the_front(tmp_path):
    session = HandMade(tmp_path)
    begun = asyncio.Event()

    async def endless(name, arguments, call_id="", **how):
        begun.set()
        await asyncio.Event().wait()

    session.call = endless
    lines = """
def call(method, **params):
    say(id="t", method=method, params={"sessionId": "s", **params})
    return json.loads(sys.stdin.readline())["result"]
name = call("terminal/create", command="sleep 1000")["terminalId"]
before = call("terminal/output", terminalId=name)
call("terminal/kill", terminalId=name)
after = call("terminal/wait_for_exit", terminalId=name)
call("terminal/release", terminalId=name)
text(json.dumps([before, after]))
"""
    response = run(one_prompt(opened(tmp_path, lines + ANSWER), session))
    assert response.content == '[{"output": "", "truncated": false}, {"signal": "SIGKILL"}]'
    assert begun.is_set()
