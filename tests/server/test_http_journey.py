"""The HTTP lines of the contract over a real server; the description judges each answer."""

import asyncio

from rig_openapi import Judged
from rig_server import server, write_note

from rig import call, run

SAYS = [{"text": "hello", "usage": {"input": 10, "output": 5}}]
ASKS = [call("write_note", text="one"), {"text": "done"}]


def named(name):
    return lambda event: event.name == name


async def asked(there, session_id):
    """The question that a session waits with."""
    stream = f"/api/sessions/{session_id}/stream"
    found = await there.until(stream, named("approval_required"))
    return found[-1].data["data"]


def answer_to(question, allowed=True, **more):
    return {"allowed": allowed, "shown": question["shown"], **more}


def test_create_stream_chat_and_completed_with_the_names_of_the_contract(tmp_path):
    """(A10) POST /api/sessions, GET …/stream, POST …/chat; text_delta and completed."""

    async def work():
        async with server(tmp_path, SAYS) as there:
            there = await Judged.of(there)
            made = await there.post("/api/sessions", {"title": "a talk"})
            assert made.status == 201 and made.body["state"] == "idle"
            path = f"/api/sessions/{made.body['id']}"
            watching = asyncio.ensure_future(there.until(f"{path}/stream", named("completed")))
            sent = await there.post(f"{path}/chat", {"prompt": "hi"})
            assert (sent.status, sent.body) == (202, {"sessionId": made.body["id"], "turn": 1})
            events = await watching
            assert "".join(e.data["data"]["text"] for e in events if e.name == "text_delta")
            seqs = [event.data["seq"] for event in events]
            assert seqs == list(range(1, len(seqs) + 1))
            detail = await there.get(path)
            assert (detail.body["state"], detail.body["title"]) == ("done", "a talk")
            history = await there.get(f"{path}/history")
            roles = [message["role"] for message in history.body["messages"]]
            assert roles == ["user", "assistant"]
            again = await there.until(f"{path}/stream?after=2", named("completed"))
            assert [event.data for event in again] == [event.data for event in events[2:]]
            resumed = {"Last-Event-ID": "3"}
            later = await there.until(f"{path}/stream", named("completed"), headers=resumed)
            assert [event.data for event in later] == [event.data for event in events[3:]]

    run(work())


def test_an_approval_over_http_is_answered_once_and_the_server_goes_on_meanwhile(tmp_path):
    """(A10, A11) POST …/approvals/{callId}; tool_call, approval_required, tool_result."""

    async def work():
        async with server(tmp_path, ASKS, write_note) as there:
            there = await Judged.of(there)
            ann = there.room.door.tokens.add("ann", "answer")
            session_id = await there.made()
            path = f"/api/sessions/{session_id}"
            await there.post(f"{path}/chat", {"prompt": "write it"})
            question = await asked(there, session_id)
            pending = await there.get("/api/approvals")
            shown = [(one["callId"], one["shown"]) for one in pending.body["approvals"]]
            assert shown == [(question["call"]["id"], question["shown"])]
            assert (await there.get("/api/me")).status == 200  # nobody is kept waiting
            busy = await there.post(f"{path}/chat", {"prompt": "more"})
            assert (busy.status, busy.code) == (409, "session_busy")
            where = f"{path}/approvals/{question['call']['id']}"
            other = await there.post(where, {"allowed": True, "shown": "other"})
            assert (other.status, other.code) == (409, "approval_changed")
            as_rule = answer_to(question, scope="rule", rule="allow: write_note")
            low = await there.post(where, as_rule, token=ann)
            assert (low.status, low.code) == (403, "forbidden_role")
            won = await there.post(where, answer_to(question, word="fine"), token=ann)
            assert won.status == 200
            assert (won.body["by"], won.body["allowed"], won.body["word"]) == ("ann", True, "fine")
            late = await there.post(where, answer_to(question, allowed=False))
            assert (late.status, late.code) == (409, "approval_answered")
            assert (late.body["by"], late.body["allowed"]) == ("ann", True)
            events = await there.until(f"{path}/stream", named("completed"))
            names = {event.name for event in events}
            assert names >= {"tool_call", "approval_required", "tool_result", "completed", "trace"}
            unknown = await there.post(f"{path}/approvals/none", answer_to(question))
            assert (unknown.status, unknown.code) == (404, "unknown_approval")

    run(work())


def test_two_answers_at_once_have_one_winner_and_both_are_told_whose_it_was(tmp_path):
    """(A11)"""

    async def work():
        async with server(tmp_path, ASKS, write_note) as there:
            there = await Judged.of(there)
            session_id = await there.made()
            await there.post(f"/api/sessions/{session_id}/chat", {"prompt": "write it"})
            question = await asked(there, session_id)
            where = f"/api/sessions/{session_id}/approvals/{question['call']['id']}"
            tokens = [there.room.door.tokens.add(name, "answer") for name in ("ann", "bob")]
            found = await asyncio.gather(
                *(there.post(where, answer_to(question), token=token) for token in tokens)
            )
            assert sorted(one.status for one in found) == [200, 409]
            assert found[0].body["by"] == found[1].body["by"]

    run(work())


def test_resume_takes_a_session_up_in_a_new_server(tmp_path):
    """(A10) POST /api/sessions/{id}/resume with workspacePath, provider and model."""

    async def work():
        async with server(tmp_path, SAYS) as there:
            session_id = await there.made(title="kept")
            await there.post(f"/api/sessions/{session_id}/chat", {"prompt": "one"})
            await there.until(f"/api/sessions/{session_id}/stream", named("completed"))
        async with server(tmp_path, SAYS) as there:
            there = await Judged.of(there)
            path = f"/api/sessions/{session_id}"
            wanted = {"workspacePath": str(tmp_path / "workspace")}
            taken = await there.post(f"{path}/resume", wanted)
            assert (taken.status, taken.body["title"]) == (200, "kept")
            elsewhere = await there.post(f"{path}/resume", {"workspacePath": "/"})
            assert (elsewhere.status, elsewhere.code) == (403, "unknown_workspace")
            await there.post(f"{path}/chat", {"prompt": "two"})
            done = await there.until(f"{path}/stream", lambda e: e.data["data"].get("turn") == 2)
            assert done

    run(work())


def test_an_idempotency_key_makes_one_prompt_of_many_tries(tmp_path):
    async def work():
        async with server(tmp_path, SAYS * 2) as there:
            there = await Judged.of(there)
            path = f"/api/sessions/{await there.made()}"
            keyed = {"Idempotency-Key": "k-1"}
            first = await there.post(f"{path}/chat", {"prompt": "hi"}, headers=keyed)
            await there.until(f"{path}/stream", named("completed"))
            again = await there.post(f"{path}/chat", {"prompt": "hi"}, headers=keyed)
            assert (again.status, again.body) == (202, first.body)
            other = await there.post(f"{path}/chat", {"prompt": "ho"}, headers=keyed)
            assert (other.status, other.code) == (409, "idempotency_conflict")
            assert (await there.get(path)).body["turn"] == 1

    run(work())


def test_a_failing_model_is_an_error_event(tmp_path):
    """(A10) error."""

    async def work():
        async with server(tmp_path, [{"error": {"status": 400, "message": "no"}}]) as there:
            there = await Judged.of(there)
            path = f"/api/sessions/{await there.made()}"
            await there.post(f"{path}/chat", {"prompt": "hi"})
            found = await there.until(f"{path}/stream", named("error"))
            assert found[-1].data["data"]["reason"] == "failed"
            assert (await there.get(path)).body["state"] == "failed"

    run(work())


def test_an_interrupt_ends_the_turn_and_a_queued_prompt_follows(tmp_path):
    async def work():
        async with server(tmp_path, [*ASKS, *SAYS], write_note) as there:
            there = await Judged.of(there)
            session_id = await there.made()
            path = f"/api/sessions/{session_id}"
            await there.post(f"{path}/chat", {"prompt": "write it"})
            await asked(there, session_id)
            queued = await there.post(f"{path}/chat", {"prompt": "next", "queue": True})
            assert (queued.status, queued.body["turn"]) == (202, 2)
            waiting = (await there.get(path)).body["queued"]
            assert [one["prompt"] for one in waiting] == ["next"]
            told = await there.post(f"{path}/interrupt")
            assert (told.status, told.body) == (202, {"sessionId": session_id})
            events = await there.until(f"{path}/stream", named("completed"))
            assert [e.data["data"]["turn"] for e in events if e.name == "completed"] == [2]

    run(work())
