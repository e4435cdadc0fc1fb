"""No half of a secret, none that only the log would show, none in what an error came from."""



from bridle.errors import ToolError
from bridle.events import ResponseCompleted, TitleChanged, TraceEvent, TurnEnded
from rig import Speaking, Thing, call, events, one_turn, run

KEY = "Zx9-very-secret-value-0123456789-abcdef"


def test_the_end_of_a_turn_that_is_stuck_quotes_no_half_of_a_secret():
    async def fail(arguments, context):
        raise ToolError("x" * (203 - len(KEY)) + KEY)

    replies = [call("thing")] * 5
    engine, found, result = run(one_turn(replies, Thing(fail), secrets=(KEY,)))
    (ended,) = events(engine, found, TurnEnded)
    said = "thing failed 3 times in the same way: " + "x" * (203 - len(KEY)) + "[redacted]"
    assert (result.reason, result.detail, ended.detail) == ("stuck", said, said)


def test_an_event_that_nobody_knows_is_quoted_without_half_of_a_secret():
    before = "y" * (2003 - len("TitleChanged(title='") - len(KEY))

    async def stream():
        yield TitleChanged(before + KEY)
        yield ResponseCompleted("complete")

    engine, found, _ = run(one_turn(Speaking(stream), secrets=(KEY,)))
    (said,) = events(engine, found, TraceEvent)
    assert said.detail == f"TitleChanged(title='{before}[redacted]')"
