"""Sessions that another process holds, in a house of our own: watched, answered, steered, stopped.

A12: one that is opened while another process runs it is attached to; nobody's turn is cut short.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from bridle.errors import AgentError, SessionLocked
from bridle.events import ApprovalAsked, PromptReceived, TextDelta, TurnEnded
from bridle.protocols.session import YES
from bridle.runtime.followed_session import FollowedSession
from rig import run
from tui.rig import call, entered, own_house, script

PROGRAM = str(Path(__file__).parent.parent / "server/holder_program.py")
NOTE = {"calls": [{"name": "note", "arguments": {"text": "milk"}}]}


class Other:
    """A process that holds a session."""

    def __init__(self, process):
        self.process = process

    async def tell(self, words):
        self.process.stdin.write(f"{words}\n".encode())
        await self.process.stdin.drain()
        assert await self.process.stdout.readline() == b"sent\n"

    async def end(self):
        self.process.stdin.close()
        await self.process.wait()


@asynccontextmanager
async def held(tmp_path, name, *replies):
    """Another process holds that session."""
    place = [str(tmp_path / "state"), str(tmp_path / "workspace")]
    words = [PROGRAM, *place, name, json.dumps(list(replies)), ""]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe, stdout=pipe)
    other = Other(process)
    try:
        assert await process.stdout.readline() == b"held\n"
        yield other
    finally:
        await other.end()


@asynccontextmanager
async def with_another(tmp_path, *replies, ours=("Hello.", "Back.")):
    """A house whose first session another process holds by now: the house, the process, its id."""
    async with entered(own_house(tmp_path, *ours)) as house:
        name = house.session.id
        await house.session.wait(await house.session.send("begun"))
        await house.renew()
        async with held(tmp_path, name, *replies) as other:
            yield house, other, name


async def until(session, wanted, after=0):
    """The records up to the first whose event is wanted."""
    found = []
    async with asyncio.timeout(240), aclosing(session.subscribe(after)) as records:
        async for record in records:
            found.append(record)
            if wanted(record.event):
                return found
    raise AssertionError(found)


def test_a_session_that_another_process_holds_is_watched_and_answered(tmp_path):
    """A12, S8"""

    async def story():
        async with with_another(tmp_path, NOTE, "Noted it.") as (house, other, name):
            await house.resume(name)
            assert isinstance(house.session, FollowedSession) and house.session.id == name
            assert (house.session.title, house.mode, house.is_begun) == ("begun", "ask", True)
            seq = house.session.seq
            await other.tell("go")
            await until(house.session, lambda event: isinstance(event, ApprovalAsked), seq)
            assert house.session.is_busy and len(house.session.history.pending) == 1
            (asked,) = await house.pending()
            (line,) = [one for one in await house.sessions() if one.id == name]
            assert (line.state, line.waiting) == ("waiting", 1)
            assert line.holder.startswith(f"process {other.process.pid}")
            await house.answer(name, asked.asked, YES)
            with pytest.raises(AgentError):
                await house.answer(name, asked.asked, YES)
            records = await until(
                house.session, lambda event: isinstance(event, TurnEnded) and event.turn == 2
            )
            assert [one.seq for one in records] == list(range(1, len(records) + 1))
            assert any(isinstance(one.event, TextDelta) for one in records)
            assert not house.session.is_busy

    run(story())


def test_it_is_sent_to_queued_for_and_stopped(tmp_path):
    async def story():
        async with with_another(tmp_path, NOTE, "One.", "Two.") as (house, _, name):
            await house.resume(name)
            turn = await house.session.send("go")
            (asked,) = await asked_in(house)
            later = await house.session.send("and then", when="queue")
            assert (turn, later) == (2, 3)
            (waiting,) = house.session.history.waiting.values()
            assert waiting.content == "and then"
            await house.answer(name, asked.asked, YES)
            assert (await house.session.wait(turn)).text == "One."
            assert (await house.session.wait(later)).text == "Two."

    run(story())


async def asked_in(house):
    async with asyncio.timeout(240):
        while not (found := await house.pending()):  # noqa: ASYNC110 - as a person would
            await asyncio.sleep(0.02)
    return found


def test_its_turn_is_stopped_from_here(tmp_path):
    async def story():
        async with with_another(tmp_path, NOTE, "Never.") as (house, _, name):
            await house.resume(name)
            turn = await house.session.send("go")
            await asked_in(house)
            await house.session.interrupt()
            assert (await house.session.wait(turn)).reason == "interrupted"

    run(story())


def test_what_only_its_holder_can_change_is_refused_with_who_that_is(tmp_path):
    async def story():
        async with with_another(tmp_path, "One.") as (house, _, name):
            await house.resume(name)
            for verb in (
                house.change_mode("auto"),
                house.change_model("offline"),
                house.session.compact(),
                house.rename(name, "mine"),
                house.set_budget(1.0),
            ):
                with pytest.raises(SessionLocked) as raised:
                    await verb
                assert raised.value.hint
            assert house.mode == "ask"
            await house.renew()
            with pytest.raises(SessionLocked):
                await house.delete(name)

    run(story())


def test_when_its_holder_ends_the_session_is_taken_up_here_for_the_next_prompt(tmp_path):
    async def story():
        async with with_another(tmp_path, "One.") as (house, other, name):
            await house.resume(name)
            await other.end()
            turn = await house.session.send("are you there?")
            assert (await house.session.wait(turn)).ok
            records = await until(
                house.session, lambda event: isinstance(event, TurnEnded) and event.turn == turn
            )
            prompts = [one.event for one in records if isinstance(one.event, PromptReceived)]
            assert [one.content for one in prompts] == ["begun", "are you there?"]

    run(story())


def test_the_model_that_is_told_is_the_one_that_answers_once_its_holder_is_gone(tmp_path):
    async def story():
        async with entered(own_house(tmp_path, "Hello.")) as before:
            name = before.session.id
            await before.session.wait(await before.session.send("begun"))
        async with (
            held(tmp_path, name, "One.") as other,
            entered(own_house(tmp_path, model="offline")) as house,
        ):
            await house.resume(name)
            assert not house.model.startswith("offline")
            await other.end()
            (tmp_path / "script.json").unlink()  # the model that carried it cannot be had
            turn = await house.session.send("are you there?")
            assert (await house.session.wait(turn)).ok
            assert house.model.startswith("offline")

    run(story())


def test_a_house_can_be_entered_in_a_session_that_another_process_holds(tmp_path):
    async def story():
        async with with_another(tmp_path, "One.") as (house, other, name):
            second = own_house(tmp_path, "never", resume=name)
            async with entered(second):
                assert isinstance(second.session, FollowedSession)
                await other.tell("go")
                await until(second.session, lambda e: isinstance(e, TurnEnded) and e.turn == 2)
            assert house.session.id != name

    run(story())


@pytest.fixture
def background(tmp_path):
    """Starts a prompt in the background, as `bridle run --detach` does; its id."""

    def start(*replies):
        words = [sys.executable, "-m", "bridle", "run", "--detach", "go"]
        model = script(tmp_path, *replies, name="behind")
        done = subprocess.run(
            [*words, "-m", model],
            capture_output=True,
            text=True,
            cwd=tmp_path / "workspace",
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    yield start
    for lock in (tmp_path / "state").glob("background/*/lock"):
        with suppress(OSError, ValueError):
            pid = int(lock.read_text())
            if b"bridle.cli.background_server" in Path("/proc", str(pid), "cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def test_a_background_session_asks_here_and_can_do_everything_when_it_is_opened(
    tmp_path, background
):
    """A12: approvals of background sessions show wherever the person is."""

    async def story():
        async with entered(own_house(tmp_path, "ok")) as house:
            write = call("write", path="a.txt", content="a")
            name = await asyncio.to_thread(background, write, "Written.", "More.")
            (asked,) = await asked_in(house)
            assert asked.session_id == name
            await house.answer(name, asked.asked, YES)
            await house.resume(name)
            assert isinstance(house.session, FollowedSession)
            assert (await house.session.wait(1)).text == "Written."
            assert (tmp_path / "workspace/a.txt").read_text() == "a"
            await house.change_mode("plan")
            await house.rename(name, "in the back")
            assert (house.mode, house.session.title) == ("plan", "in the back")
            turn = await house.session.send("more")
            assert (await house.session.wait(turn)).text == "More."

    run(story())


def test_what_an_attached_session_has_and_may_use_is_told(tmp_path):
    async def story():
        async with with_another(tmp_path, "One.") as (house, _, name):
            await house.resume(name)
            assert "read" in {one.name for one in await house.tools()}
            assert (await house.rules())[0].name == "mode: ask"
            assert await house.mcp() == ()
            assert (await house.budget())[0][::2] == ("money, this session", "no limit")
            assert house.place.workspace == str(tmp_path / "workspace")
            assert house.again() == f"bridle --resume {name}"

    run(story())


def test_an_answer_to_a_session_that_nobody_holds_waits_for_whoever_takes_it_up(tmp_path):
    """A12: it is in the inbox, and the question is not asked again."""

    async def story():
        async with entered(own_house(tmp_path, "ok")) as house:
            name = await asyncio.to_thread(parked, tmp_path)
            (asked,) = await asked_in(house)
            (line,) = [one for one in await house.sessions() if one.id == name]
            assert (line.state, line.waiting, line.holder) == ("waiting", 1, "")
            await house.answer(name, asked.asked, YES)
            assert await house.pending() == ()
            assert not (tmp_path / "workspace/a.txt").exists()
            await house.resume(name)
            result = await house.session.wait(house.session.turn or 1)
            assert result.ok and (tmp_path / "workspace/a.txt").read_text() == "a"

    run(story())


def parked(tmp_path):
    """A session whose turn waits for an answer, with no process; its id."""
    model = script(tmp_path, call("write", path="a.txt", content="a"), "ok", name="behind")
    words = [sys.executable, "-m", "bridle", "run", "go", "--on-ask", "park", "-m", model]
    where = tmp_path / "workspace"
    subprocess.run(words, capture_output=True, cwd=where, timeout=240, stdin=subprocess.DEVNULL)
    (log,) = (tmp_path / "state").glob("sessions/*/log.jsonl")
    return log.parent.name


def test_a_session_of_another_folder_works_there_again(tmp_path):
    async def story():
        other = tmp_path / "other"
        other.mkdir()
        write = call("write", path="a.txt", content="a")
        async with entered(own_house(tmp_path, "One.", workspace=str(other))) as house:
            await house.session.wait(await house.session.send("hi"))
            name = house.session.id
        async with entered(own_house(tmp_path, write, "Two.", mode="edits")) as house:
            first = house.place.workspace
            await house.resume(name)
            assert (house.session.id, house.place.workspace) == (name, str(other))
            await house.session.wait(await house.session.send("go"))
            assert (other / "a.txt").exists() and not (tmp_path / "workspace/a.txt").exists()
            await house.renew()
            assert first != house.place.workspace

    run(story())
