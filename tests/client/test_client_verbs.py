"""The session verbs over HTTP, against the real server on loopback (A12)."""

import asyncio
import re
from pathlib import Path

import pytest
from client_rig import NOTE, Place, asked, place

from bridle import errors
from bridle.client import Client
from bridle.engine.history import fold
from bridle.protocols.session import Answer
from bridle.stores.reader import SessionFolder
from rig import run


def test_a_prompt_a_question_and_its_answer_as_with_a_local_session(tmp_path):
    """(A12) Creates a session, parses its stream, answers an approval."""

    async def work():
        async with place(tmp_path, NOTE, "Noted.") as (here, client):
            session = await client.session()
            turn = await session.send("note it")
            assert (turn, session.is_busy, session.turn) == (1, True, 1)
            [question] = await asked(session)
            with pytest.raises(errors.SessionBusy):
                await session.send("more")
            await session.answer(question.call.id, True, shown=question.shown, by="x")
            result = await session.wait(turn)
            assert (result.text, result.reason, result.ok) == ("Noted.", "done", True)
            assert (result.metrics.tool_calls, result.metrics.invocations) == (1, 2)
            assert (session.is_busy, session.turn, session.title) == (False, 0, "note it")
            alike = fold(SessionFolder(here.folder).read(session.id))
            assert list(session.history.transcript) == list(alike.transcript)
            assert session.metrics == alike.metrics

    run(work())


def test_a_session_is_taken_up_again_with_all_of_its_past(tmp_path):
    """(A12)"""

    async def work():
        async with place(tmp_path, "One.", "Two.") as (_, client):
            first = await client.session()
            await first.wait(await first.send("hi"))
            again = await client.session(first.id)
            assert [one.content for one in again.history.transcript] == ["hi", "One."]
            assert (await again.wait(await again.send("go on"))).text == "Two."
            assert [record.seq async for record in until(first, again.seq)] == list(
                range(1, again.seq + 1)
            )

    run(work())


async def until(session, seq):
    records = session.subscribe()
    async for record in records:
        yield record
        if record.seq == seq:
            break
    await records.aclose()


def test_the_first_answer_wins_and_the_second_is_told_whose_it_was(tmp_path):
    async def work():
        async with place(tmp_path, NOTE, "Noted.") as (here, client):
            token = here.door.tokens.add("ann", "answer")
            session = await client.session()
            turn = await session.send("note it")
            [question] = await asked(session)
            async with here.client(token) as other:
                [waiting] = (await other.pending()).approvals
                assert (waiting.call_id, waiting.shown) == (question.call.id, question.shown)
                hers = await other.open(session.id)
                no = Answer(False, word="not now")
                await hers.answer(question.call.id, no, shown=question.shown, by="x")
            with pytest.raises(errors.UnknownApproval) as late:
                await session.answer(question.call.id, True, shown=question.shown, by="x")
            assert late.value.origin == errors.Origin(409, "approval_answered")
            assert "ann" in late.value.message
            await session.wait(turn)

    run(work())


def test_problems_are_our_own_errors_again(tmp_path):
    async def work():
        async with place(tmp_path, "One.") as (here, client):
            session = await client.session()
            for kind, doing in (
                (errors.EmptyPrompt, session.send(" ")),
                (errors.UnknownSession, client.session("20260101-000000-abcdef")),
                (errors.SessionError, client.open("../../etc")),
                (errors.UnknownApproval, session.answer("c1", True, shown="x", by="x")),
                (errors.SessionError, session.resume()),
                (errors.SessionError, session.rewind(999)),
                (errors.SessionError, session.wait(0)),
                (errors.SessionError, client.session(workspace="/")),
            ):
                with pytest.raises(kind) as found:
                    await doing
                assert found.value.message
            async with here.client("wrong-token-wrong-token") as stranger:
                with pytest.raises(errors.ConfigError) as unknown:
                    await stranger.list()
                assert unknown.value.status == 401

    run(work())


def test_where_nobody_listens_is_said_with_what_to_do(tmp_path):
    async def work():
        here = Place(tmp_path)
        async with here.up():
            pass
        async with here.client() as client:
            with pytest.raises(errors.Unreachable) as found:
                await client.list()
        said = f"the server at {here.url} cannot be reached: nobody listens there"
        assert (found.value.message, found.value.retryable) == (said, True)
        assert "bridle serve" in found.value.hint

    run(work())


def test_names_tags_modes_forks_and_the_way_back(tmp_path):
    async def work():
        async with place(tmp_path, "One.", "Two.") as (_, client):
            session = await client.session()
            await session.wait(await session.send("first"))
            place_, messages = session.seq, list(session.history.transcript)
            await session.wait(await session.send("second"))
            await session.rename("A title")
            await session.tag(["a", "b"])
            await session.set_mode("edits")
            assert (session.title, session.history.tags, session.mode) == (
                "A title",
                ("a", "b"),
                "edits",
            )
            await session.rewind(place_)
            assert list(session.history.transcript) == messages
            copy = await client.session((await session.fork(place_)).id)
            assert [one.content for one in copy.history.transcript] == ["first", "One."]
            listed = (await client.list()).sessions
            assert {one.id for one in listed} == {session.id, copy.id}
            assert {hit.session_id for hit in (await client.search("second")).hits} == {session.id}
            await client.delete(copy.id)
            with pytest.raises(errors.UnknownSession):
                await client.detail(copy.id)

    run(work())


def test_an_interrupt_ends_the_turn_and_the_session_is_usable_right_after(tmp_path):
    async def work():
        async with place(tmp_path, NOTE, "Later.") as (_, client):
            session = await client.session()
            turn = await session.send("note it")
            await asked(session)
            await session.interrupt()
            assert (await session.wait(turn)).reason == "interrupted"
            assert (await session.wait(await session.send("again"))).text == "Later."

    run(work())


def test_a_server_that_is_stopped_and_started_again_is_found_again(tmp_path):
    """(A12) The question outlives it, the stream has no gap, and the turn goes on."""

    async def work():
        here = Place(tmp_path, NOTE, "Noted.")
        async with here.up():
            client = here.client()
            session = await client.session()
            turn = await session.send("note it")
            [question] = await asked(session)
        here.replies = ["Noted."]
        async with here.up():
            ending = asyncio.ensure_future(session.wait(turn))
            await session.until(lambda: session.is_parked)
            await session.answer(question.call.id, True, shown=question.shown, by="x")
            assert (await ending).text == "Noted."
            seqs = [record.seq async for record in until(session, session.seq)]
            assert seqs == list(range(1, session.seq + 1))
            await client.__aexit__(None, None, None)
        assert here.told == ["the server is stopping; trying again", "connected again"]

    run(work())


def test_a_unix_socket_will_do(tmp_path):
    async def work():
        async with place(tmp_path, "One.", unix=True) as (_, client):
            session = await client.session()
            assert (await session.wait(await session.send("hi"))).text == "One."

    run(work())


def test_the_address_that_the_server_prints_signs_in_once(tmp_path):
    async def work():
        here = Place(tmp_path, "Two.")
        async with here.up(), Client(f"{here.url}/#code={here.door.code()}") as client:
            assert (await client.me()).role == "admin"
            session = await client.session()
            assert (await session.wait(await session.send("hi"))).text == "Two."

    run(work())


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "server.md"


def test_the_guide_shows_how_a_program_answers_what_waits_in_all_sessions(tmp_path):
    [block] = re.findall(r"```python\n(async def allow_notes.*?)```", GUIDE.read_text(), re.S)
    names = {"Client": Client}
    exec(block, names)

    async def work():
        async with place(tmp_path, NOTE, "Noted.") as (_, client):
            session = await client.session()
            turn = await session.send("note it")
            await asked(session)
            await names["allow_notes"](client)
            assert (await session.wait(turn)).text == "Noted."

    run(work())
