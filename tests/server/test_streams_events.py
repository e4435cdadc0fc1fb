"""The one stream of all sessions: a snapshot, every line as it changes, every question."""

import asyncio
from contextlib import aclosing

from rig_server import server, write_note

from bridle.events import PromptReceived
from bridle.stores.jsonl import JsonlStore
from rig import call, run


class Listener:
    """Hears the stream of all sessions, and can be asked for what comes next."""

    def __init__(self, running):
        self._events = running.events("/api/events")

    async def next(self, wanted):
        """The first event from here on for which that holds."""
        async for event in self._events:
            if wanted(event):
                return event
        raise AssertionError("the stream has ended")

    async def line(self, session_id, **wanted):
        """The next line of a session that says this."""

        def fits(event):
            if event.name != "session" or event.data["session"]["id"] != session_id:
                return False
            line = event.data["session"] | {"how": event.data["how"]}
            return all(line[name] == value for name, value in wanted.items())

        return (await self.next(fits)).data["session"]

    async def aclose(self):
        await self._events.aclose()


async def view(running, session_id):
    return (await running.get(f"/api/sessions/{session_id}")).body


def test_one_who_comes_gets_the_list_and_then_each_line_as_it_changes(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            first = await running.made(title="one")
            async with aclosing(Listener(running)) as listener:
                snapshot = await listener.next(lambda event: True)
                assert (snapshot.name, snapshot.id) == ("sessions", "")
                assert [one["id"] for one in snapshot.data["sessions"]] == [first]
                second = await running.made(title="two")
                line = await listener.line(second, title="two")
                assert line == {name: (await view(running, second))[name] for name in line}
                await running.post(f"/api/sessions/{first}/chat", {"prompt": "go"})
                done = await listener.line(first, state="done")
                assert (done["turn"], done["reason"], done["holder"]) == (1, "done", "here")
                await running.call("DELETE", f"/api/sessions/{second}")
                gone = await listener.line(second, how="deleted")
                assert (gone["id"], gone["title"]) == (second, "")

    run(work())


def test_a_question_is_told_to_everybody_and_so_is_who_settled_it(tmp_path):
    """(A11) asked here, answered elsewhere: whoever listens knows both."""

    async def work():
        replies = [call("write_note", text="a"), "done"]
        async with server(tmp_path, replies, write_note) as running:
            session_id = await running.made()
            async with aclosing(Listener(running)) as listener:
                await listener.next(lambda event: event.name == "sessions")
                await running.post(f"/api/sessions/{session_id}/chat", {"prompt": "go"})
                asked = await listener.next(lambda event: event.name == "approval_required")
                listed = (await running.get("/api/approvals")).body["approvals"]
                assert [asked.data] == listed
                answer = {"allowed": True, "shown": asked.data["shown"], "word": "fine"}
                path = f"/api/sessions/{session_id}/approvals/{asked.data['callId']}"
                assert (await running.post(path, answer)).status == 200
                settled = await listener.next(lambda event: event.name == "approval_answered")
                found = settled.data.pop("answered")
                assert settled.data == {
                    "sessionId": session_id,
                    "callId": asked.data["callId"],
                    "shown": asked.data["shown"],
                }
                assert found.pop("cwd")
                assert found == {
                    "type": "approval_answered",
                    "callId": asked.data["callId"],
                    "allowed": True,
                    "word": "fine",
                    "shown": asked.data["shown"],
                }

    run(work())


def test_a_question_that_nobody_answers_is_told_as_settled_by_nobody(tmp_path):
    async def work():
        replies = [call("write_note", text="a"), "done"]
        async with server(tmp_path, replies, write_note) as running:
            session_id = await running.made()
            await running.post(f"/api/sessions/{session_id}/chat", {"prompt": "go"})
            path = f"/api/sessions/{session_id}/stream"
            await running.until(path, lambda event: event.name == "approval_required")
            async with aclosing(Listener(running)) as listener:  # it was asked before
                await listener.next(lambda event: event.name == "sessions")
                await settled_start(running)
                await running.post(f"/api/sessions/{session_id}/interrupt")
                settled = await listener.next(lambda event: event.name.startswith("approval_"))
                assert settled.name == "approval_answered"
                assert settled.data["answered"] == {}

    run(work())


async def settled_start(running):
    """Until what was asked before is known to the one who watches."""
    while not running.room.streams._notices._pending:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)


def test_what_another_process_does_to_a_session_is_told_too(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            session_id = await running.made(title="mine")
            await running.room.sessions._sessions.close_one(session_id)
            elsewhere = JsonlStore(tmp_path / "sessions")
            async with aclosing(Listener(running)) as listener:
                await listener.next(lambda event: event.name == "sessions")
                log = await elsewhere.resume(session_id, lambda record: None)
                log.append(PromptReceived("more", 1, when="queue"))
                await log.close()
                line = await listener.line(session_id, turn=1)
                assert line["seq"] == log.seq
            elsewhere.close()

    run(work())


def test_when_nobody_listens_nobody_looks(tmp_path):
    async def work():
        async with server(tmp_path, ["yes"]) as running:
            streams = running.room.streams
            for _ in range(3):
                listeners = [streams.events() for _ in range(2)]
                for one in listeners:
                    assert b"event: sessions\n" in await anext(one)
                tasks = len(asyncio.all_tasks())
                for one in listeners:
                    await one.aclose()
                assert (streams._notices, len(streams)) == (None, 0)
                assert len(asyncio.all_tasks()) == tasks - 1

    run(work())
