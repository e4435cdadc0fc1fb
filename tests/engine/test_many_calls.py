"""A reply that asks for very many calls: each has a result, in linear time, and some run."""

from bridle.engine.loop import MAX_CALLS
from bridle.events import CallIntended, ToolResultEvent
from bridle.tools.function import tool
from rig import calls, events, is_valid, make_engine, results, run


@tool(read_only=True)
async def look(n: int) -> int:
    """Look at it."""
    return n


def test_a_reply_may_ask_for_so_many_calls_and_the_rest_is_refused():
    many = 10_000

    async def story():
        script = [calls(*(("look", {"n": 1}) for _ in range(many))), "done"]
        async with make_engine(script, look) as engine:
            session = await engine.session()
            result = await session.wait(await session.send("go"))
            assert is_valid(session.history.transcript)
            refused = [
                one.output.data
                for one in events(engine, session.id, ToolResultEvent)
                if one.output.is_error
            ]
            ran = len(events(engine, session.id, CallIntended))
            return result, ran, results(engine, session.id), refused

    result, ran, said, refused = run(story())
    assert (result.reason, ran, len(said)) == ("done", MAX_CALLS, many)
    assert refused == [{"rule": "calls_per_reply"}] * (many - MAX_CALLS)
    (words,) = {text for _, text, failed in said if failed}
    assert words.startswith(f"not run: a reply may have {MAX_CALLS} calls")
