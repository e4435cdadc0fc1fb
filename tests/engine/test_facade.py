"""One object and callbacks: the same stream, played to those who want to be called."""

import asyncio
import logging

import pytest

from bridle.engine.assistant import Assistant, SendOptions, StreamCallbacks
from bridle.engine.budget import Limits
from bridle.engine.stream import Channel
from bridle.errors import (
    BudgetReached,
    EmptyPrompt,
    Overloaded,
    SessionBusy,
    SessionError,
    UnknownSession,
)
from bridle.events import TraceEvent
from bridle.protocols.provider import RequestConfig
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.tools.function import tool
from rig import call, conversation, events, is_valid, make_engine, run


@tool(read_only=True)
async def look(n: int) -> str:
    """Look."""
    return "k" * n


class Heard(list):
    """Callbacks that write down what they are called with, in order."""

    def callbacks(self, **others):
        return StreamCallbacks(
            **{
                "on_text_delta": lambda text: self.append(("text", text)),
                "on_tool_call": lambda call: self.append(("call", call.name, call.arguments)),
                "on_tool_result": lambda output: self.append(("result", output.text)),
                "on_complete": lambda: self.append(("complete",)),
                "on_error": lambda error: self.append(("error", str(error))),
                **others,
            }
        )


class Hanging:
    """A tool that runs until it is interrupted."""

    def __init__(self):
        self.there = asyncio.Event()

        @tool(read_only=True)
        async def hang() -> str:
            self.there.set()
            await asyncio.Event().wait()
            return ""

        self.tool = hang


def test_a_turn_is_called_back_in_order_and_its_result_returned(tmp_path):
    """S1, S4: send with callbacks; the end is told last, and once."""

    async def story():
        replies = [{"text": "I look.", **call("look", n=2)}, "Two."]
        async with make_engine(replies, look, store=JsonlStore(tmp_path)) as engine:
            heard = Heard()
            result = await Assistant(engine).send("go", callbacks=heard.callbacks())
            return heard, result.text, result.reason

    heard, text, reason = run(story())
    assert (text, reason) == ("Two.", "done")
    assert heard == [
        ("text", "I look."),
        ("call", "look", {"n": 2}),
        ("result", "kk"),
        ("text", "Two."),
        ("complete",),
    ]


def test_coroutines_are_awaited_and_a_callback_that_raises_ends_nothing(tmp_path, caplog):
    """S4: neither the turn nor the other callbacks; it is logged."""

    async def story():
        async with make_engine(
            [call("look", n=1), "x"], look, store=JsonlStore(tmp_path)
        ) as engine:
            heard = Heard()

            async def on_call(call):
                await asyncio.sleep(0)
                heard.append(("call", call.name))

            def broken(text):
                raise RuntimeError("mine")

            callbacks = heard.callbacks(on_tool_call=on_call, on_text_delta=broken)
            result = await Assistant(engine).send("go", callbacks=callbacks)
            return heard, result.reason

    with caplog.at_level(logging.WARNING):
        heard, reason = run(story())
    assert (heard, reason) == ([("call", "look"), ("result", "k"), ("complete",)], "done")
    assert [record.exc_info[0] for record in caplog.records] == [RuntimeError]


def test_a_failing_turn_is_told_and_raised_and_the_session_goes_on():
    """S4: errors go to on_error, and to the caller."""

    async def story():
        replies = [{"text": "so", "error": {"message": "too busy", "status": 503}}, "better"]
        async with make_engine(replies) as engine:
            assistant, heard = Assistant(engine), Heard()
            with pytest.raises(Overloaded) as raised:
                await assistant.send("go", callbacks=heard.callbacks())
            again = await assistant.send("again", callbacks=heard.callbacks())
            return str(raised.value), heard, again.text

    message, heard, again = run(story())
    assert heard == [("text", "so"), ("error", message), ("text", "better"), ("complete",)]
    assert again == "better"


def test_a_limit_that_ends_a_turn_is_an_error():
    """S4, A1: also max iterations."""

    async def story():
        async with make_engine([call("look", n=1)] * 9, look, limits=Limits(max_steps=2)) as engine:
            heard = Heard()
            with pytest.raises(BudgetReached):
                await Assistant(engine).send("go", callbacks=heard.callbacks())
            return [one[0] for one in heard]

    assert run(story()) == ["call", "result", "call", "result", "error"]


def test_an_empty_prompt_and_a_busy_session_are_refused_before_anything_is_recorded(tmp_path):
    """S4: EmptyPrompt, SessionBusy; nobody is called back for a turn that never was."""

    async def story():
        hanging = Hanging()
        store = JsonlStore(tmp_path)
        async with make_engine([call("hang"), "ok"], hanging.tool, store=store) as engine:
            assistant, heard = Assistant(engine), Heard()
            with pytest.raises(EmptyPrompt):
                await assistant.send("  \n", callbacks=heard.callbacks())
            nothing = assistant.sessions.current_id, engine.summaries()
            running = asyncio.create_task(assistant.send("go"))
            await hanging.there.wait()
            busy, seq = assistant.is_busy(), (await assistant.sessions.current()).seq
            with pytest.raises(SessionBusy):
                await assistant.send("me, too", callbacks=heard.callbacks())
            grown = (await assistant.sessions.current()).seq - seq
            await assistant.cancel()
            return nothing, busy, grown, heard, (await running).reason, assistant.is_busy()

    assert run(story()) == (("", []), True, 0, [], "interrupted", False)


def test_a_prompt_can_wait_for_the_turn_that_runs_and_hears_only_its_own(tmp_path):
    """S1: queueing while busy."""

    async def story():
        go_on, there = asyncio.Event(), asyncio.Event()

        @tool(read_only=True)
        async def wait() -> str:
            there.set()
            await go_on.wait()
            return "waited"

        replies = [call("wait"), "first", "second", "third"]
        async with make_engine(replies, wait, store=JsonlStore(tmp_path)) as engine:
            assistant, heard = Assistant(engine), [Heard(), Heard(), Heard()]
            first = asyncio.create_task(assistant.send("1", callbacks=heard[0].callbacks()))
            await there.wait()
            rest = [
                asyncio.create_task(assistant.send(name, callbacks=mine.callbacks(), queue=True))
                for name, mine in (("2", heard[1]), ("3", heard[2]))
            ]
            await asyncio.sleep(0)
            go_on.set()
            results = await asyncio.gather(first, *rest)
            return [one.text for one in results], heard

    texts, heard = run(story())
    assert texts == ["first", "second", "third"]
    assert heard == [
        [("call", "wait", {}), ("result", "waited"), ("text", "first"), ("complete",)],
        [("text", "second"), ("complete",)],
        [("text", "third"), ("complete",)],
    ]


def test_a_cancelled_turn_is_told_and_the_session_is_usable_right_after():
    """S9: cancellation in flight."""

    async def story():
        hanging = Hanging()
        async with make_engine([call("hang"), "fine"], hanging.tool) as engine:
            assistant, heard = Assistant(engine), Heard()
            sending = asyncio.create_task(assistant.send("go", callbacks=heard.callbacks()))
            await hanging.there.wait()
            await assistant.cancel()
            after = await assistant.send("again")
            cancelled = await sending
            history = await assistant.history()
            return cancelled.reason, [one[0] for one in heard], after.text, is_valid(history)

    assert run(story()) == ("interrupted", ["call", "result", "error"], "fine", True)


def test_a_callback_may_cancel_the_turn_that_calls_it():
    """S9."""

    async def story():
        async with make_engine(
            [{"text": "word " * 400, "pause": 0.001, "chunk": 5}, "ok"]
        ) as engine:
            assistant, heard = Assistant(engine), Heard()

            async def stop(text):
                await assistant.cancel()

            result = await assistant.send("go", callbacks=heard.callbacks(on_text_delta=stop))
            return result.reason, heard, (await assistant.send("again")).text

    reason, heard, again = run(story())
    assert (reason, again) == ("interrupted", "ok")
    assert heard == [("error", "the turn was interrupted")]


def test_cancelling_the_call_interrupts_its_turn_and_no_other():
    """S9: a prompt that still waits stays in line, and the turn before it goes on."""

    async def story():
        hanging = Hanging()
        async with make_engine([call("hang"), "second"], hanging.tool) as engine:
            assistant = Assistant(engine)
            first = asyncio.create_task(assistant.send("1"))
            await hanging.there.wait()
            second = asyncio.create_task(assistant.send("2", queue=True))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.wait([second])
            untouched = assistant.is_busy() and not first.done()
            first.cancel()
            await asyncio.wait([first])
            session = await assistant.sessions.current()
            await session.wait(2)
            return untouched, first.cancelled(), conversation(engine, session.id)

    untouched, cancelled, said = run(story())
    assert (untouched, cancelled) == (True, True)
    assert said[-2:] == [("user", "2"), ("assistant", "second")]


def test_the_options_reach_the_request():
    """S11: session id (empty is the current one), temperature, max_tokens (default 8192)."""

    async def story():
        settings = RequestConfig(effort="low", temperature=0.1)
        async with make_engine(["ok"] * 5, config=settings) as engine:
            assistant = Assistant(engine)
            await assistant.send("a")
            other = await engine.session()
            await assistant.send("b", SendOptions(other.id, temperature=0.0, max_tokens=77))
            await assistant.send("c", SendOptions(max_tokens=0))
            with pytest.raises(UnknownSession):
                await assistant.send("d", SendOptions("nobody"))
            asked = [one.config for one in engine.provider.requests]
            prompts = [one.messages[0].content for one in engine.provider.requests]
            return asked, prompts, assistant.sessions.current_id == other.id

    asked, prompts, moved = run(story())
    assert asked == [
        RequestConfig(8192, 0.1, "low"),
        RequestConfig(77, 0.0, "low"),
        RequestConfig(8192, 0.1, "low"),
    ]
    assert (prompts, moved) == (["a", "b", "a"], False)
    with pytest.raises(SessionError):
        SendOptions(max_tokens=-1)


def test_model_tools_and_system_prompt_change_with_the_next_prompt(tmp_path):
    """S1: set_model, set_tools, set_system_prompt; what changed is recorded by its name alone."""

    async def story():
        first, second = Scripted(["one", "two"]), Scripted(["three"])
        async with make_engine(first, system="old", store=JsonlStore(tmp_path)) as engine:
            assistant = Assistant(engine)
            await assistant.send("a")
            assistant.set_system_prompt("new")
            assistant.set_tools([look])
            await assistant.send("b")
            assistant.set_model(second)
            result = await assistant.send("c")
            asked = [*first.requests, *second.requests]
            traces = events(engine, result.session_id, TraceEvent)
            return (
                [(one.system, [each.name for each in one.tools]) for one in asked],
                [one.content for one in await assistant.history()],
                [one.detail for one in traces if one.kind == "settings"],
            )

    asked, said, settings = run(story())
    assert asked == [("old", []), ("new", ["look"]), ("new", ["look"])]
    assert said == ["a", "one", "b", "two", "c", "three"]
    assert len(settings) == 3
    assert "new" not in str(settings)


def test_history_is_a_copy_and_clear_begins_anew():
    """S1, S3: without a session there is none, and nobody makes one by asking."""

    async def story():
        async with make_engine(["one", "two"]) as engine:
            assistant = Assistant(engine)
            nothing = await assistant.history(), assistant.is_busy(), engine.summaries()
            await assistant.cancel()
            await assistant.clear()
            await assistant.send("a")
            (await assistant.history()).clear()
            before = [one.content for one in await assistant.history()]
            await assistant.clear()
            after = await assistant.history()
            await assistant.send("b")
            return nothing, before, after, [one.content for one in await assistant.history()]

    assert run(story()) == (([], False, []), ["a", "one"], [], ["b", "two"])


def test_callbacks_that_are_too_slow_miss_nothing(monkeypatch):
    """S4: whoever falls behind comes back by number."""
    monkeypatch.setattr(Channel.join, "__defaults__", (5,))

    async def story():
        async with make_engine([call("look", n=n) for n in range(40)] + ["end"], look) as engine:
            heard = Heard()

            async def slowly(output):
                heard.append(len(output.text))
                for _ in range(20):
                    await asyncio.sleep(0)

            callbacks = StreamCallbacks(on_tool_result=slowly)
            await Assistant(engine).send("go", callbacks=callbacks)
            return heard

    assert run(story()) == list(range(40))
