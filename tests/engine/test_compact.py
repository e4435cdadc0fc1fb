"""Shortening: when the model's window is full, who writes the summary, and no spiral.

S5: what is sent is bounded; the original stays in the log.
"""

import asyncio

import pytest

from bridle.engine.budget import Limits, estimate
from bridle.errors import ContextTooLong, SessionBusy
from bridle.events import (
    Compacted,
    TextDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
    UsageReported,
)
from bridle.protocols.provider import ProviderInfo
from bridle.providers.scripted import Fault, Reply, Scripted
from bridle.usage import Price, Usage
from rig import call, events, is_valid, make_engine, run, until

TINY = ProviderInfo("some", "m", context_window=4_000, max_output=1_000)
DEAF = ProviderInfo("scripted", "m", context_window=4_000, max_output=1_000)
TOO_LONG = Fault(kind="invalid", message="too many tokens", status=413)
ROOM = 3_000


async def look(size: int = 0) -> str:
    """Look at so much."""
    return "line\n" * (size // 5)


def looking(times, size=3000):
    """A model that looks so many times, and answers a request for a summary with one."""
    seen = 0

    def answer(request):
        nonlocal seen
        if "<record>" in request.messages[0].content:
            return Reply(text="In short.", usage=Usage(100, 10))
        seen += 1
        return "done" if seen > times else call("look", size=size)

    return answer


async def one_turn(model, prompt="go on", **rest):
    """A turn with a model that may look around: engine, session, result."""
    async with make_engine(model, look, mode="auto", **rest) as engine:
        session = await engine.session()
        result = await session.wait(await session.send(prompt))
        assert is_valid(session.history.transcript)
        return engine, session, result


def asked(model):
    """The requests of the turn, and those for a summary."""
    kinds = ([], [])
    for request in model.requests:
        kinds["<record>" in request.messages[0].content].append(request)
    return kinds


def fits(requests):
    return all(sum(map(estimate, one.messages)) <= ROOM for one in requests)


def test_a_full_window_is_summarised_by_the_small_model_and_the_turn_goes_on():
    """The use is counted, the record is data, and the original stays in the log."""
    info = ProviderInfo("small", "s", context_window=9_000, price=Price(1.0, 2.0))
    small = Scripted(looking(0), info=info)
    model = Scripted(looking(8), info=TINY)
    engine, session, result = run(one_turn(model, "go </record> on", small=small))
    assert (result.text, result.reason) == ("done", "done")
    requests, none = asked(model)
    assert (none, fits(requests)) == ([], True)
    assert all(is_valid(request.messages) for request in requests)
    last = requests[-1].messages
    assert "In short." in last[0].content
    assert last[1].content == "go </record> on"
    told = asked(small)[1]
    assert all(one.messages[0].content.count("</record") == 1 for one in told)
    assert ("It is data" in told[0].system, told[0].tools) == (True, ())
    compacted = events(engine, session.id, Compacted)
    assert [one.summary for one in compacted if one.dropped] == [True] * len(told)
    assert all(one.after < 0.9 * one.before for one in compacted)
    used = [one for one in events(engine, session.id, UsageReported) if one.purpose == "summary"]
    assert [(one.usage, one.model, one.cost) for one in used] == [
        (Usage(100, 10), "s", 0.00012)
    ] * len(told)
    assert len(told) >= 2
    kept = [one.output.text for one in events(engine, session.id, ToolResultEvent)]
    assert kept == ["line\n" * 600] * 8


def test_without_a_small_model_the_model_itself_writes_it():
    model = Scripted(looking(8), info=TINY)
    _, session, result = run(one_turn(model))
    requests, told = asked(model)
    assert (result.text, fits(requests), len(told) >= 1) == ("done", True, True)
    assert all(one.config.max_tokens == 1_000 for one in told)  # what the model can write at most
    assert session.history.transcript[1].content == "go on"


def test_where_nobody_can_write_the_old_part_is_dropped_with_a_note():
    model = Scripted(looking(8), info=DEAF)
    engine, session, result = run(one_turn(model))
    requests, told = asked(model)
    assert (result.text, fits(requests), told) == ("done", True, [])
    dropped = [one for one in events(engine, session.id, Compacted) if one.dropped]
    assert {one.summary for one in dropped} == {False}
    first = session.history.transcript[0]
    assert first.content.startswith("[The beginning of this conversation was left out")
    assert "look (" in first.content


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(error=Fault(message="no luck")), "no luck"),
        (Reply(text=" \n"), "has no text"),
        (Reply(text="I will not", stop_reason="refusal"), "refusal"),
        (Reply(calls=(), parts=(), cut=True), "cut short"),
    ],
)
def test_a_summary_that_fails_is_done_without(answer, why):
    small = Scripted(lambda request: answer, info=ProviderInfo("small", "s"))
    model = Scripted(looking(6), info=TINY)
    engine, session, result = run(one_turn(model, small=small))
    assert (result.text, fits(asked(model)[0])) == ("done", True)
    assert not any(one.summary for one in events(engine, session.id, Compacted))
    traces = [one for one in events(engine, session.id, TraceEvent) if one.kind == "summary"]
    assert traces
    assert all(why in one.detail["message"] for one in traces)


def test_a_summary_that_the_budget_does_not_allow_is_not_written():
    price = Price(1.0, 1_000_000.0)
    small = Scripted(looking(0), info=ProviderInfo("small", "s", price=price))
    info = ProviderInfo("some", "m", context_window=4_000, max_output=1_000, price=Price(1.0, 1.0))
    model = Scripted(looking(6), info=info)
    limits = Limits(max_cost=0.5)
    engine, session, result = run(one_turn(model, small=small, limits=limits))
    assert (result.text, asked(small)[1]) == ("done", [])
    assert [one.summary for one in events(engine, session.id, Compacted)].count(True) == 0


def test_a_summary_is_no_step_and_its_cost_counts():
    small = Scripted(looking(0), info=ProviderInfo("small", "s", price=Price(1.0, 1.0)))
    model = Scripted(looking(5), info=TINY)
    _, _, result = run(one_turn(model, small=small, limits=Limits(max_steps=6)))
    assert result.reason == "done"
    summaries = len(asked(small)[1])
    assert result.metrics.invocations == 6 + summaries + 1  # and a title
    assert summaries >= 1


@pytest.mark.parametrize(("read", "times"), [(2_900, 1), (800, 0), (0, 0)])
def test_the_vendors_own_count_decides_where_there_is_one(read, times):
    async def story():
        reply = Reply(text="so " * 200, usage=Usage(read, 5))
        async with make_engine(Scripted([reply] * 2, info=DEAF)) as engine:
            session = await engine.session()
            for words in ("a story " * 200, "go on"):
                await session.wait(await session.send(words))
            return events(engine, session.id, Compacted)

    assert len(run(story())) == times


def test_a_provider_that_finds_it_too_long_is_asked_once_more_with_less_of_it():
    """Also where nobody knows how large the window is."""
    replies = [*[call("look", size=9000)] * 3, Reply(error=TOO_LONG), "done"]
    model = Scripted(replies)
    engine, session, result = run(one_turn(model))
    assert (result.text, result.reason) == ("done", "done")
    refused, again = (sum(map(estimate, one.messages)) for one in model.requests[-2:])
    assert again < 0.6 * refused
    (compacted,) = events(engine, session.id, Compacted)
    assert compacted.before > compacted.after
    assert model.requests[-1].messages[-1].role == "tool"


def test_a_second_refusal_ends_the_turn_and_does_not_spiral():
    replies = [*[call("look", size=9000)] * 3, *[Reply(error=TOO_LONG)] * 2, "later"]
    model = Scripted(replies)
    engine, session, result = run(one_turn(model))
    assert (result.reason, len(model.requests)) == ("stuck", 5)
    assert "shortened and is still too long" in result.detail
    (end,) = events(engine, session.id, TurnEnded)
    assert "larger context window" in end.hint


@pytest.mark.parametrize("info", [ProviderInfo("some", "m"), TINY])
def test_a_prompt_that_alone_is_too_long_is_an_error_that_says_so(info):
    model = Scripted([Reply(error=TOO_LONG), "fine"], info=info)

    async def story():
        async with make_engine(model, look) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("word " * 5_000))
            after = await session.wait(await session.send("hi"))
            return result, after, model.requests[-1].messages, events(engine, session.id, TurnEnded)

    result, after, last, ends = run(story())
    assert (result.reason, type(result.error)) == ("failed", ContextTooLong)
    assert "the prompt alone takes about" in result.detail
    assert "Send less at once" in ends[0].hint
    if info is TINY:  # and the next, shorter one is not lost because of it
        assert (after.reason, last[-1].content) == ("done", "hi")


async def write(text: str) -> str:
    """Write it."""
    return "written"


def test_a_step_that_alone_is_too_long_ends_the_turn_and_the_next_prompt_goes_on():
    """No summary is paid for where it cannot help."""
    model = Scripted([call("write", text="w" * 30_000), "In short.", "fine"], info=TINY)

    async def story():
        async with make_engine(model, write, mode="auto") as engine:
            session = await engine.session()
            first = await session.wait(await session.send("write a lot"))
            asked_before = len(model.requests)
            after = await session.wait(await session.send("and now less"))
            return first, asked_before, after, events(engine, session.id, Compacted), session

    first, asked_before, after, compacted, session = run(story())
    assert (first.reason, asked_before) == ("stuck", 1)
    assert "cannot be shortened enough" in first.detail
    assert (after.reason, len(compacted)) == ("done", 1)
    assert [one.content for one in session.history.transcript[1:]] == [
        *("write a lot", "and now less"),
        "fine",
    ]


def test_when_nothing_can_be_gained_it_is_sent_as_it_is():
    """A prompt that fills the window by our estimate, which errs, may fit all the same."""
    model = Scripted(["fine"], info=TINY)
    engine, session, result = run(one_turn(model, "word " * 1_700))
    assert (result.text, events(engine, session.id, Compacted)) == ("fine", [])


class Slow:
    """A small model that begins to write and never ends."""

    info = ProviderInfo("small", "s")

    def __init__(self):
        self.closed = 0

    async def stream(self, request):
        try:
            yield TextDelta("In sh")
            await asyncio.Event().wait()
        finally:
            self.closed += "<record>" in request.messages[0].content

    async def close(self):
        pass


def shortens(event):
    return isinstance(event, TraceEvent) and event.kind == "shortening"


def test_an_interrupt_during_the_summary_works_at_once_and_leaves_all_as_it_was():
    async def story():
        slow = Slow()
        model = Scripted(looking(6), info=TINY)
        async with make_engine(model, look, mode="auto", small=slow) as engine:
            session = await engine.session()
            turn = await session.send("go on")
            await until(session, shortens)
            before = tuple(session.history.transcript)
            await session.interrupt()
            result = await session.wait(turn)
            assert tuple(session.history.transcript) == before
            assert is_valid(before)
            return result, slow.closed, engine, session

    result, closed, engine, session = run(story())
    found = events(engine, session.id, Compacted)
    assert (result.reason, closed, found) == ("interrupted", 1, [])
    used = [one for one in events(engine, session.id, UsageReported) if one.purpose == "summary"]
    (said,) = used  # by our own count: none came
    assert said == UsageReported(said.usage, "s", None, "summary", estimated=True)
    assert said.usage == Usage(said.usage.input_tokens, len("In sh") // 3)
    assert said.usage.input_tokens > 1000


def test_a_person_can_ask_for_it_between_two_turns():
    async def story():
        model = Scripted(looking(5), info=ProviderInfo("some", "m"))
        async with make_engine(model, look, mode="auto") as engine:
            session = await engine.session()
            assert await session.compact() is False
            turn = await session.send("go on")
            with pytest.raises(SessionBusy):
                await session.compact()
            await session.wait(turn)
            before = session.history.transcript
            assert await session.compact(by="ann") is True
            after = session.history.transcript
            result = await session.wait(await session.send("and now?"))
            return engine, session, before, after, result

    engine, session, before, after, result = run(story())
    (compacted,) = events(engine, session.id, Compacted)
    assert (compacted.summary, tuple(after)) == (True, compacted.messages)
    assert after[-1] == before[-1]
    assert sum(map(estimate, after)) < 0.5 * sum(map(estimate, before))
    assert (result.reason, is_valid(session.history.transcript)) == ("done", True)
    asked_by = [one for one in events(engine, session.id, TraceEvent) if one.kind == "compact"]
    assert [one.detail["by"] for one in asked_by] == ["me", "ann"]


def test_what_a_person_asked_for_can_be_interrupted_and_a_prompt_may_wait_for_its_end():
    async def story():
        slow = Slow()
        model = Scripted(looking(5), info=ProviderInfo("some", "m"))
        async with make_engine(model, look, mode="auto", small=slow) as engine:
            session = await engine.session()
            await session.wait(await session.send("go on"))
            before = session.history.transcript
            asking = asyncio.create_task(session.compact())
            await until(session, shortens)
            turn = await session.send("next", when="queue")
            assert session.history.transcript == before
            await session.interrupt()
            result = await session.wait(turn)
            return await asking, result.reason, slow.closed, events(engine, session.id, Compacted)

    assert run(story()) == (False, "done", 1, [])


def test_many_turns_stay_within_the_window_and_ids_and_dates_stay():
    async def story():
        model = Scripted(["so " * 300] * 40, info=DEAF)
        async with make_engine(model) as engine:
            session = await engine.session()
            for number in range(40):
                result = await session.wait(await session.send(f"prompt {number} " + "x" * 300))
                assert result.reason == "done"
            return engine, session, model

    engine, session, model = run(story())
    assert all(sum(map(estimate, one.messages)) < ROOM for one in model.requests)
    compacted = events(engine, session.id, Compacted)
    assert 2 < len(compacted) < 20  # not at every turn
    found = list(session.history.transcript)
    assert all(one.id and one.created_at for one in found)
    assert len({one.id for one in found}) == len(found)


def test_a_session_that_is_taken_up_again_knows_how_full_it_is():
    async def story():
        model = Scripted([Reply(text="so", usage=Usage(2_900, 5))] * 2, info=DEAF)
        async with make_engine(model) as engine:
            session = await engine.session()
            for words in ("a story " * 300, "go on"):
                await session.wait(await session.send(words))
            await session.close()
            compacted = len(events(engine, session.id, Compacted))
            again = await engine.session(session.id)
            model.requests.clear()
            await again.wait(await again.send("more"))
            return compacted, events(engine, session.id, Compacted), again

    before, after, session = run(story())
    assert len(after) > before
    assert is_valid(session.history.transcript)
