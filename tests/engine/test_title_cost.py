"""A title that is cut off has cost something, and is paid like everything else."""

import asyncio

from bridle.engine.budget import Budget, Limits
from bridle.engine.session import write_title
from bridle.errors import StreamCutShort
from bridle.events import ResponseCompleted, TextDelta, TitleChanged, TraceEvent, UsageReported
from bridle.messages import Message, Text
from bridle.protocols.provider import ProviderInfo
from bridle.usage import Price, Usage
from rig import Speaking, events, make_engine, run

SMALL = ProviderInfo("small", "s", price=Price(1.0, 1.0))
TITLE = Message("assistant", (Text("A title"),))


def small(*said, error=None, hangs=None):
    async def stream():
        for event in said:
            yield event
        if hangs is not None:
            hangs.set()
            await asyncio.Event().wait()
        if error is not None:
            raise error

    model = Speaking(stream)
    model.info = SMALL
    return model


def test_a_title_whose_stream_breaks_is_paid():
    cut = small(UsageReported(Usage(1000, 1), "s"), TextDelta("A"), error=StreamCutShort("cut"))
    budget = Budget(Limits(max_turn_tokens=100_000), SMALL)
    said = run(write_title(cut, "go", budget))
    used = UsageReported(Usage(1000, 1), "s", 0.001001, "title")
    assert said == [used, TraceEvent("title", {"kind": "network", "message": "cut"})]
    assert (budget.tokens, budget.money) == (1001, 0.001001)


def test_a_title_that_is_cut_off_before_its_figures_came_is_estimated():
    said = run(write_title(small(TextDelta("A title"), error=StreamCutShort("cut")), "go"))
    (used, _) = said
    expected = Usage(used.usage.input_tokens, 2)
    assert used == UsageReported(expected, "s", SMALL.price.cost(expected), "title", estimated=True)


def test_a_title_that_the_end_of_the_session_cuts_off_is_paid():
    async def story():
        hangs = asyncio.Event()
        slow = small(UsageReported(Usage(1000, 1), "s"), TextDelta("A"), hangs=hangs)
        engine = make_engine(["hi"], small=slow)
        session = await engine.session()
        await session.wait(await session.send("go"))
        await hangs.wait()
        await engine.close()
        return [one for one in events(engine, session.id, UsageReported) if one.purpose == "title"]

    assert run(story()) == [UsageReported(Usage(1000, 1), "s", 0.001001, "title")]


def test_the_cost_that_who_answered_has_set_stands():
    said = run(
        write_title(
            small(
                UsageReported(Usage(10, 2), "other", 0.5, priced=True),
                ResponseCompleted("complete", TITLE, Usage(10, 2), "other"),
            ),
            "go",
        )
    )
    used = UsageReported(Usage(10, 2), "other", 0.5, "title", priced=True)
    assert said == [used, TitleChanged("A title")]


def test_a_title_that_nothing_came_of_is_not_counted():
    said = run(write_title(small(error=StreamCutShort("cut")), "go"))
    assert said == [TraceEvent("title", {"kind": "network", "message": "cut"})]
