"""Sessions that another process holds: verbs go through their inbox, and tell what came of it."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from sessions_rig import ASKS, asked, ended, made, no, refused, seen, serving, spoken, yes

from bridle.errors import SessionBusy, SessionLocked
from bridle.events import ApprovalAsked, PromptReceived, TurnEnded
from bridle.protocols.session_errors import ApprovalTaken, Unavailable
from bridle.protocols.session_values import (
    ForkRequest,
    PromptAccepted,
    PromptRequest,
    SessionUpdate,
)
from rig import run

PROGRAM = str(Path(__file__).with_name("holder_program.py"))


class Other:
    """A process that holds a session, and its log."""

    def __init__(self, process, folder, name):
        self.process, self._folder, self._name = process, folder, name

    async def tell(self, words):
        self.process.stdin.write(f"{words}\n".encode())
        await self.process.stdin.drain()
        assert await self.process.stdout.readline() == b"sent\n"

    async def until(self, kind, count=1):
        """The newest event of that kind, once there are so many."""

        async def look():
            found = [one.event for one in self._folder.read(self._name)]
            return [one for one in found if isinstance(one, kind)]

        return (await seen(look, lambda found: len(found) >= count))[-1]


@asynccontextmanager
async def held(place, sessions, name, replies, deaf=""):
    """Another process holds the session."""
    words = [PROGRAM, str(place / "state"), str(place / "work"), name, json.dumps(replies), deaf]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe, stdout=pipe)
    try:
        assert await process.stdout.readline() == b"held\n"
        yield Other(process, sessions.catalog, name)
    finally:
        process.stdin.close()
        await process.wait()


async def begun(place):
    """A session that nobody holds any more."""
    async with serving(place, ["hello"]) as sessions:
        name = await made(sessions)
        await spoken(sessions, name)
        return name


def test_prompts_answers_and_interrupts_reach_who_holds_the_session(tmp_path):
    async def story():
        name = await begun(tmp_path)
        async with (
            serving(tmp_path, []) as sessions,
            held(tmp_path, sessions, name, [ASKS, "done", ASKS, "never"]) as other,
        ):
            view = await sessions.info(name)
            assert view.holder.startswith(f"process {other.process.pid} (holder_program.py")
            assert await sessions.send(name, PromptRequest("go"), "ann", "key") == PromptAccepted(
                name, 2
            )
            question = await other.until(ApprovalAsked)
            assert (await sessions.info(name)).state == "waiting"
            assert await sessions.send(name, PromptRequest("go"), "ann", "key") == PromptAccepted(
                name, 2
            )
            busy = await refused(sessions.send(name, PromptRequest("more"), "ann"), SessionBusy)
            assert "turn 2" in busy.message
            outcome = await sessions.answer(name, "call_1", yes(question, word="yes!"), "bob")
            assert (outcome.allowed, outcome.by, outcome.word) == (True, "bob", "yes!")
            late = await refused(sessions.answer(name, "call_1", no(question), "cy"), ApprovalTaken)
            assert late.more == {"by": "bob", "allowed": True}
            assert (await other.until(TurnEnded, 2)).reason == "done"
            assert await sessions.send(
                name, PromptRequest("on", queue=True), "ann"
            ) == PromptAccepted(name, 3)
            await other.until(ApprovalAsked, 2)
            await sessions.interrupt(name, "ann")
            assert (await other.until(TurnEnded, 3)).reason == "interrupted"
            assert [one.by for one in _prompts(sessions, name)] == ["ann"] * 3

    run(story())


def _prompts(sessions, name):
    found = (one.event for one in sessions.catalog.read(name))
    return [one for one in found if isinstance(one, PromptReceived)]


def test_what_cannot_be_handed_on_says_who_holds_the_session(tmp_path):
    async def story():
        name = await begun(tmp_path)
        async with serving(tmp_path, []) as sessions, held(tmp_path, sessions, name, []) as other:
            for work in (
                sessions.change(name, SessionUpdate(title="another"), "ann"),
                sessions.delete(name, "ann"),
                sessions.compact(name, "ann"),
            ):
                locked = await refused(work, SessionLocked)
                assert str(other.process.pid) in locked.message or "another" in locked.message
            copy = await sessions.fork(name, ForkRequest(), "ann")  # a copy needs nobody's leave
            assert (await sessions.info(copy.id)).turn == 1

    run(story())


def test_one_who_does_not_listen_is_waited_for_a_while_and_what_was_posted_is_kept(tmp_path):
    async def story():
        name = await begun(tmp_path)
        async with serving(tmp_path, ["taken up"], wait=0.3) as sessions:
            async with held(tmp_path, sessions, name, [], "deaf") as other:
                late = await refused(
                    sessions.send(name, PromptRequest("go"), "ann", "key"), Unavailable
                )
                assert str(other.process.pid) in late.message
                assert (late.status_code, late.more) == (503, {"posted": True})
                again = await refused(
                    sessions.send(name, PromptRequest("go"), "ann", "key"), Unavailable
                )
                assert again.more == {"posted": True}
            assert await sessions.send(name, PromptRequest("go"), "ann", "key") == PromptAccepted(
                name, 2
            )
            assert await ended(sessions, name, 2) == "done"
            assert [one.content for one in _prompts(sessions, name)] == ["go", "go"]

    run(story())


def test_a_session_that_is_let_go_while_a_letter_waits_is_taken_up_here(tmp_path):
    async def story():
        name = await begun(tmp_path)
        async with serving(tmp_path, ["taken up"], wait=20.0) as sessions:
            async with held(tmp_path, sessions, name, [], "deaf"):
                sending = asyncio.ensure_future(sessions.send(name, PromptRequest("go"), "ann"))
                inbox = tmp_path / "state" / "sessions" / name / "inbox"

                async def posted():
                    return list(inbox.glob("*.json")) if inbox.exists() else []

                await seen(posted, bool)
            assert await sending == PromptAccepted(name, 2)
            assert await ended(sessions, name, 2) == "done"

    run(story())


def test_a_session_at_rest_is_let_go_so_that_another_process_can_take_it(tmp_path):
    async def story():
        async with serving(tmp_path, ["hello", ASKS, "done"], rest=0.1) as sessions:
            told = []
            sessions.on_changed(lambda *what: told.append(what))
            name = await made(sessions)
            await spoken(sessions, name)

            async def closings():
                return told.count((name, "closed"))

            assert await seen(closings, bool) == 1
            view = await sessions.info(name)
            assert (view.state, view.holder) == ("done", "")
            async with held(tmp_path, sessions, name, ["from there"]) as other:
                await other.tell("hello?")
                assert (await other.until(TurnEnded, 2)).reason == "done"
            accepted = await sessions.send(name, PromptRequest("and here"), "ann")
            assert accepted.turn == 3
            question, _ = await asked(sessions, name)  # one who waits for an answer does not rest
            for _ in range(5):
                await sessions._sessions.sweep()
            assert sessions.get_open(name) is not None
            await sessions.answer(name, "call_1", yes(question), "ann")
            assert await seen(closings, lambda count: count > 1) == 2

    run(story())


def test_what_another_process_does_is_noticed(tmp_path):
    async def story():
        name = await begun(tmp_path)
        async with serving(tmp_path, []) as sessions:
            told = asyncio.Queue()
            sessions.on_changed(lambda *what: told.put_nowait(what))
            async with held(tmp_path, sessions, name, ["from there"]) as other:
                await sessions._changes.look()
                await other.tell("hello?")
                await other.until(TurnEnded, 2)
                await sessions._changes.look()
                assert (await told.get()) == (name, "changed")
            await sessions.delete(name, "ann")
            while await told.get() != (name, "deleted"):
                pass

    run(story())
