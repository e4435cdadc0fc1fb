"""AG-UI at its real client: `HttpAgent` in Node.js against a real uvicorn on loopback."""

import asyncio

from bridges.front_rig import front
from bridle.events import ApprovalAnswered, PromptReceived, TurnEnded
from bridle.tools.function import tool
from rig import call, run, until
from server.rig_server import server, write_note

NOTE = call("write_note", text="hi")


def kinds(events):
    return [one["type"] for one in events]


def logged(there, session, kind):
    found = there.room.sessions.catalog.read(session)
    return [one.event for one in found if isinstance(one.event, kind)]


def test_text_thoughts_and_tools_arrive_as_one_conversation(tmp_path):
    @tool(read_only=True)
    def look(place: str) -> str:
        """Look at a place."""
        return f"{place}: two files"

    replies = [
        {"thinking": "hm", "text": "I look.", **call("look", place="here")},
        {"text": "There are two.", "usage": {"inputTokens": 9, "outputTokens": 2}},
    ]

    async def story():
        async with server(tmp_path, replies, look) as there, front(there) as one:
            events, found = await one.run("what is here?")
            listed = (await there.get("/api/sessions")).body["sessions"]
            return events, found, listed

    events, found, listed = run(story())
    assert "error" not in found
    assert kinds(events)[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert kinds(events)[-1] == "RUN_FINISHED"
    order = [kind for kind in dict.fromkeys(kinds(events)) if "STATE" not in kind]
    assert order == [
        *("RUN_STARTED", "REASONING_START", "REASONING_MESSAGE_START"),
        *("REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
        "RUN_FINISHED",
    ]
    said = [(one["role"], one.get("content")) for one in found["messages"]]
    assert said == [
        ("user", "what is here?"),
        ("reasoning", "hm"),
        ("assistant", "I look."),
        ("tool", "here: two files"),
        ("assistant", "There are two."),
    ]
    (made,) = found["messages"][2]["toolCalls"]
    assert made["function"] == {"name": "look", "arguments": '{"place":"here"}'}
    assert [one["tags"] for one in listed] == [["agui:thread-1"]]
    assert found["state"]["sessionId"] == listed[0]["id"]
    assert found["state"]["usage"]["tokens"] == listed[0]["tokens"] > 0


def test_an_approval_is_an_interrupt_and_its_answer_resumes_the_run(tmp_path):
    replies = [{"text": "I write.", **NOTE}, {"text": "Done."}, NOTE, {"text": "Not done."}]

    async def story():
        async with server(tmp_path, replies, write_note) as there, front(there) as one:
            first, _ = await one.run("write")
            (asked,) = first[-1]["outcome"]["interrupts"]
            yes = {"interruptId": asked["id"], "status": "resolved", "payload": {"allowed": True}}
            second, _ = await one.run(resume=[yes])
            third, _ = await one.run("again")
            (again,) = third[-1]["outcome"]["interrupts"]
            no = {"interruptId": again["id"], "status": "cancelled"}
            fourth, found = await one.run(resume=[no])
            session = found["state"]["sessionId"]
            return asked, first, second, fourth, found, logged(there, session, ApprovalAnswered)

    asked, first, second, fourth, found, answers = run(story())
    assert asked["reason"] == "approval"
    assert asked["toolCallId"] == first[-1]["outcome"]["interrupts"][0]["toolCallId"]
    assert asked["metadata"]["asked"]["call"]["arguments"] == {"text": "hi"}
    assert asked["id"].endswith(answers[0].shown)
    assert [one["content"] for one in second if one["type"] == "TOOL_CALL_RESULT"] == ["wrote hi"]
    assert kinds(second)[-1] == kinds(fourth)[-1] == "RUN_FINISHED"
    assert [(one.allowed, one.by) for one in answers] == [(True, "me"), (False, "me")]
    texts = [one.get("content") for one in found["messages"] if one["role"] == "assistant"]
    assert [one for one in texts if one] == ["I write.", "Done.", "Not done."]


def test_a_question_that_was_answered_elsewhere_is_no_hindrance(tmp_path):
    """First answer wins: the page says no, the front end's yes comes late, and the run goes on."""

    async def story():
        replies = [NOTE, {"text": "Well then."}]
        async with server(tmp_path, replies, write_note) as there, front(there) as one:
            first, found = await one.run("write")
            (asked,) = first[-1]["outcome"]["interrupts"]
            session, call_id, shown = asked["id"].split("/")
            answer = await there.post(
                f"/api/sessions/{session}/approvals/{call_id}", {"allowed": False, "shown": shown}
            )
            assert answer.status == 200
            yes = {"interruptId": asked["id"], "status": "resolved", "payload": True}
            second, found = await one.run(resume=[yes])
            return second, found

    second, found = run(story())
    (told,) = [one for one in second if one.get("name") == "approval_answered"]
    assert told["value"]["allowed"] is False
    assert found["messages"][-1]["content"] == "Well then."


def test_what_goes_wrong_is_a_sentence_and_the_thread_goes_on(tmp_path):
    fault = {"error": {"status": 401, "message": "bad key"}}

    async def story():
        async with server(tmp_path, [fault, "Better."]) as there, front(there) as one:
            failed, _ = await one.run("go")
            tool = {"name": "paint", "description": "d", "parameters": {}}
            _, refused = await one.run("with tools", tools=[tool])
            fine, found = await one.run("again")
            return failed, refused, fine, found

    failed, refused, fine, found = run(story())
    assert (failed[-1]["type"], failed[-1]["code"]) == ("RUN_ERROR", "invalid")
    assert failed[-1]["message"]
    assert "HTTP 400" in refused["error"]
    assert "not offered to the model here: paint" in refused["error"]
    assert kinds(fine)[-1] == "RUN_FINISHED"
    assert found["messages"][-1]["content"] == "Better."


def test_a_run_that_is_aborted_stops_its_turn(tmp_path):
    async def story():
        started, never = asyncio.Event(), asyncio.Event()

        @tool(read_only=True)
        async def wait() -> str:
            """Wait."""
            started.set()
            await never.wait()
            return "never"

        replies = [call("wait"), "Again."]
        async with server(tmp_path, replies, wait) as there, front(there) as one:
            aborted = one.begin(say="go")
            await started.wait()
            await one.until(lambda: len(one.events) > 1)
            one.abort()
            await aborted
            state = one.events[1]["snapshot"]
            session = there.room.sessions.get_open(state["sessionId"])
            await until(session, lambda event: isinstance(event, TurnEnded))
            _, found = await one.run("again")
            ends = logged(there, session.id, TurnEnded)
            return [end.reason for end in ends], found

    ends, found = run(story())
    assert ends == ["interrupted", "done"]
    assert found["messages"][-1]["content"] == "Again."


def test_a_thread_is_the_same_session_after_a_restart_and_history_is_not_believed(tmp_path):
    """Another server over the same folder finds it; what a client makes up is never sent."""

    async def once(say, replies):
        async with server(tmp_path, replies) as there, front(there, "my/thread é") as one:
            _, found = await one.run(say)
            session = found["state"]["sessionId"]
            prompts = [one.content for one in logged(there, session, PromptReceived)]
            return session, prompts

    first, _ = run(once("one", ["1"]))
    second, prompts = run(once("two", ["2"]))
    assert first == second
    assert prompts == ["one", "two"]


def test_a_session_that_is_there_can_be_gone_on_with_by_its_id(tmp_path):
    async def story():
        async with server(tmp_path, ["Here."]) as there:
            session = await there.made(title="mine")
            async with front(there, session) as one:
                _, found = await one.run("hello")
            return session, found

    session, found = run(story())
    assert found["state"]["sessionId"] == session
    assert found["state"]["title"] == "mine"
