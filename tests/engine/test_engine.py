"""The engine owns its sessions: it hands them out, takes them up again, and leaves nothing."""

import asyncio
import gc
import os
import threading
import weakref
from pathlib import Path

import pytest

from bridle.errors import SessionBusy, SessionClosed, SessionLocked, UnknownSession
from bridle.events import SessionStarted, TitleChanged, TraceEvent, UsageReported
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from bridle.tools.function import tool
from rig import call, conversation, events, make_engine, run


def handles():
    """What this process has open, by what it points at."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:
            continue  # the handle of the listing itself
    return [place for place in found if "log.jsonl" in place]


def writers():
    return [thread.name for thread in threading.enumerate() if thread.name == "bridle-writer"]


def test_closing_leaves_no_task_no_thread_and_no_file(state):
    """`run` looks for tasks; here are the rest. Also in the middle of a turn."""

    async def story():
        @tool
        async def hang() -> str:
            await asyncio.Event().wait()
            return ""

        engine = make_engine([call("hang")], hang, store=JsonlStore(state), mode="auto")
        for _ in range(3):
            session = await engine.session()
            await session.send("go")
        during = len(handles()), writers()
        await engine.close()
        return during, handles(), writers()

    assert run(story()) == ((3, ["bridle-writer"]), [], [])


def test_a_run_closes_the_session_that_it_opened(state):
    async def story():
        async with make_engine(["ok", "ok"], store=JsonlStore(state)) as engine:
            first = await engine.run("one")
            open_now = handles()
            second = await engine.run("two", session=first.session_id)
            return open_now, second.turn, conversation(engine, first.session_id)

    open_now, turn, said = run(story())
    assert (open_now, turn) == ([], 2)
    assert [words for _, words in said] == ["one", "ok", "two", "ok"]


def test_a_run_leaves_a_session_open_that_was_open_before(state):
    async def story():
        async with make_engine(["a", "b", "c"], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await engine.run("one", session=session)
            await engine.run("two", session=session.id)
            return (await session.wait(await session.send("three"))).text

    assert run(story()) == "c"


def test_a_run_that_comes_too_early_does_not_end_the_one_before(state):
    async def story():
        replies = ["one", {"text": "two", "delay": 0.05}]
        async with make_engine(replies, store=JsonlStore(state)) as engine:
            found = (await engine.run("go")).session_id
            both = [engine.run(word, session=found) for word in ("first", "second")]
            first, second = await asyncio.gather(*both, return_exceptions=True)
            return first.text, type(second), handles()

    assert run(story()) == ("two", SessionBusy, [])


def test_a_run_leaves_a_session_open_that_somebody_took_meanwhile(state):
    async def story():
        replies = ["one", {"text": "two", "delay": 0.05}, "three"]
        async with make_engine(replies, store=JsonlStore(state)) as engine:
            found = (await engine.run("go")).session_id
            running = asyncio.create_task(engine.run("again", session=found))
            await asyncio.sleep(0)
            session = await engine.session(found)
            await running
            return (await session.wait(await session.send("more"))).text

    assert run(story()) == "three"


def test_cancelling_a_run_before_its_prompt_is_on_disk_interrupts_the_turn(state):
    async def story():
        async with make_engine([{"delay": 60.0}], store=JsonlStore(state)) as engine:
            session = await engine.session()
            running = asyncio.create_task(engine.run("go", session=session))
            await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])
            return running.cancelled(), session.is_busy

    assert run(story()) == (True, False)


def test_an_engine_forgets_a_session_that_was_closed_by_hand():
    async def story():
        async with make_engine(["ok"]) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            await session.close()
            gone = weakref.ref(session)
            del session
            gc.collect()
            return gone()

    assert run(story()) is None


def test_the_memory_of_a_closed_session_is_free_without_a_garbage_collection(state):
    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    async def story():
        store = JsonlStore(state)
        async with make_engine([call("look"), "ok"], look, store=store) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            await asyncio.sleep(0)  # the turn's task ends
            await session.close()
            left = [weakref.ref(session), weakref.ref(session.history)]
            del session
            return [reference() for reference in left]

    gc.disable()
    try:
        assert run(story()) == [None, None]
    finally:
        gc.enable()


def test_taking_a_session_up_again_goes_on_where_it_was(state):
    """A8: the same conversation, the next turn, one more session_start."""

    async def story():
        async with make_engine(["first"], store=JsonlStore(state)) as engine:
            found = (await engine.run("one")).session_id
        model = Scripted(["second"])
        async with make_engine(model, store=JsonlStore(state), face="cli") as engine:
            session = await engine.session(found)
            result = await session.wait(await session.send("two"))
            started = events(engine, found, SessionStarted)
            numbers = [record.seq for record in engine.store.read(found)]
        return model, result, started, numbers, session.metrics

    model, result, started, numbers, metrics = run(story())
    sent = [(one.role, one.content) for one in model.requests[0].messages]
    assert sent == [("user", "one"), ("assistant", "first"), ("user", "two")]
    assert (result.turn, result.text, metrics.invocations) == (2, "second", 2)
    assert [(one.mode, one.resumed) for one in started] == [("library", False), ("cli", True)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_prompts_that_were_left_behind_come_before_the_next_one(state):
    """Acknowledged is kept: closed before its turn, a queued prompt is in the next request."""

    async def story():
        async with make_engine([{"delay": 60.0}], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.send("one")
            await session.send("two", when="queue")
        model = Scripted(["ok"])
        async with make_engine(model, store=JsonlStore(state)) as engine:
            again = await engine.session(session.id)
            left = [prompt.content for prompt in again.history.waiting.values()]
            result = await again.wait(await again.send("three"))
            sent = [one.content for one in model.requests[0].messages]
            return left, result.turn, sent, again.history.waiting, again.is_busy

    assert run(story()) == (["two"], 3, ["one", "two", "three"], {}, False)


def test_a_session_that_nobody_spoke_in_leaves_no_file(state):
    async def story():
        async with make_engine([], store=JsonlStore(state)) as engine:
            await engine.session()
        return state.exists()

    assert run(story()) is False


def test_two_who_ask_for_one_session_get_the_same_one(state):
    async def story():
        async with make_engine(["ok"], store=JsonlStore(state)) as engine:
            found = (await engine.run("one")).session_id
            one, two = await asyncio.gather(engine.session(found), engine.session(found))
            return one is two

    assert run(story())


def test_a_session_closed_by_hand_can_be_taken_up_again(state):
    async def story():
        async with make_engine(["a", "b"], store=JsonlStore(state)) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            await session.close()
            again = await engine.session(session.id)
            return again is session, (await again.wait(await again.send("two"))).text

    assert run(story()) == (False, "b")


def test_another_engine_on_the_same_store_is_locked_out(state):
    async def story():
        store = JsonlStore(state)
        async with make_engine(["ok"], store=store) as engine:
            session = await engine.session()
            await session.wait(await session.send("one"))
            other = make_engine(["ok"], store=JsonlStore(state))
            with pytest.raises(SessionLocked, match=f"process {os.getpid()}"):
                await other.session(session.id)
            await other.close()

    run(story())


@pytest.mark.parametrize("name", ["nope", "../../etc", "", "a/b", "x" * 500])
def test_a_session_that_is_not_there_is_unknown(state, name):
    async def story():
        async with make_engine([], store=JsonlStore(state)) as engine:
            with pytest.raises(UnknownSession):
                await engine.session(name)

    run(story())


def test_a_closed_engine_starts_nothing():
    async def story():
        engine = make_engine(["ok"])
        await engine.close()
        await engine.close()
        with pytest.raises(SessionClosed):
            await engine.session()

    run(story())


def test_two_sessions_at_once_do_not_mix(state):
    async def story():
        def answer(request):
            return {"text": f"you said {request.messages[-1].content}", "pause": 0.001}

        async with make_engine(Scripted(answer), store=JsonlStore(state)) as engine:
            words = [f"word{number}" for number in range(20)]
            found = await asyncio.gather(*(engine.run(word) for word in words))
            logs = [conversation(engine, one.session_id) for one in found]
        return words, [one.text for one in found], logs

    words, texts, logs = run(story())
    assert texts == [f"you said {word}" for word in words]
    assert logs == [[("user", word), ("assistant", f"you said {word}")] for word in words]


def test_whatever_fails_on_closing_the_rest_is_closed(state):
    class Rude(Scripted):
        async def close(self):
            raise RuntimeError("no")

    async def story():
        engine = make_engine(Rude(["ok"]), store=JsonlStore(state))
        session = await engine.session()
        await session.wait(await session.send("go"))
        with pytest.raises(RuntimeError):
            await engine.close()
        return handles(), writers()

    assert run(story()) == ([], [])


def test_a_small_model_writes_the_title_and_its_use_is_counted():
    async def story():
        small = Scripted(['"Mend the parser".'], info=ProviderInfo("scripted", "small"))
        async with make_engine([{"text": "ok", "delay": 0.05}], small=small) as engine:
            session = await engine.session()
            await session.wait(await session.send("please mend the parser"))
            return session.title, events(engine, session.id, (TitleChanged, UsageReported))

    title, said = run(story())
    assert title == "Mend the parser"
    assert [getattr(one, "purpose", "") for one in said] == ["title", "", "turn"]


def test_the_small_model_reads_the_prompt_and_not_only_its_first_line():
    prompt = "word " * 60 + "the end"

    async def story():
        small = Scripted(["A title"])
        async with make_engine([{"text": "ok", "delay": 0.05}], small=small) as engine:
            await engine.run(prompt)
        return [one.content for one in small.requests[0].messages]

    assert run(story()) == [prompt]


def test_a_small_model_that_breaks_is_no_harm():
    class Broken(Scripted):
        async def stream(self, request):
            raise KeyError("oops")
            yield

    async def story():
        async with make_engine([{"text": "ok", "delay": 0.05}], small=Broken([])) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("mend it"))
            return result.ok, session.title, events(engine, session.id, TraceEvent)

    ok, title, (trace,) = run(story())
    assert (ok, title, trace.kind) == (True, "mend it", "title")


def test_sessions_in_memory_keep_the_same_promise():
    async def story():
        store = MemoryStore()
        async with make_engine(["a", "b"], store=store) as engine:
            first = await engine.run("one")
            with pytest.raises(UnknownSession):
                await engine.session("nope")
            session = await engine.session(first.session_id)
            with pytest.raises(SessionLocked):
                await store.resume(first.session_id, lambda record: None)
            second = await session.wait(await session.send("two"))
            (shown,) = store.sessions()
            return second.turn, second.text, shown.title

    assert run(story()) == (2, "b", "one")
