"""No key is recorded, told or read again, however it comes."""

import asyncio
import re
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.engine.engine_config import EngineConfig
from bridle.engine.redaction import (
    MARK,
    SHAPES_BY_START,
    Redaction,
    Redactor,
    anchor_index,
    anchor_pattern,
)
from bridle.errors import ProviderError
from bridle.events import (
    ResponseCompleted,
    TextDelta,
    ToolCallArgsDelta,
    ToolCallReady,
    ToolCallStarted,
    ToolOutputDelta,
    ToolResultEvent,
    TraceEvent,
    TurnEnded,
)
from bridle.messages import Message, Text, ToolCall, ToolOutput
from bridle.protocols.codec import decode_data, encode_data
from bridle.protocols.tool import ToolResult
from bridle.providers.scripted import Scripted
from bridle.stores.jsonl import JsonlStore
from bridle.stores.memory_store import MemoryStore
from bridle.tools.read import Read
from bridle.tools.shell.tool import Shell
from bridle.workspace.machine import LocalMachine
from bridle.workspace.workspace import Workspace
from rig import Speaking, Thing, call, make_engine, one_turn, results, run

KEY = "sk-test-0123456789abcdef"


def _through(*found, secrets=(KEY,)):
    said = []
    stage = Redaction(Redactor(secrets), lambda event, data: said.append(event))
    for event in (*found, TurnEnded(1, "done")):
        stage.take(event)
    return said[:-1]


def test_a_secret_is_replaced_wherever_it_stands():
    arguments = {"a": [KEY, {KEY: f"x{KEY}y"}], "n": 1, "t": (True, None)}
    (said,) = _through(TraceEvent("x", arguments))
    assert said == TraceEvent("x", {"a": [MARK, {MARK: f"x{MARK}y"}], "n": 1, "t": (True, None)})
    reply = Message("assistant", (Text(f"it is {KEY}"), ToolCall("c", "t", {"k": KEY})))
    (said,) = _through(ResponseCompleted("tool_use", reply))
    assert said.message.parts == (Text(f"it is {MARK}"), ToolCall("c", "t", {"k": MARK}))
    output = ToolOutput("c", KEY, data=["k", Workspace("/")])
    (said,) = _through(ToolResultEvent(output))
    assert said.output.text == MARK


def test_an_event_without_a_secret_is_handed_on_as_it_is():
    event = TraceEvent("x", {"a": [1, "sk-test-"]})
    assert _through(event)[0] is event


def test_a_secret_that_json_writes_differently_is_found():
    odd = 'quote"and\\slash-ünd'
    (said,) = _through(TraceEvent("x", f"<{odd}>"), secrets=(odd,))
    assert said == TraceEvent("x", f"<{MARK}>")
    inside = msgspec.json.encode({"k": odd}).decode()
    (said,) = _through(ToolCallArgsDelta("c", inside), secrets=(odd,))
    assert said == ToolCallArgsDelta("c", f'{{"k":"{MARK}"}}')


def test_what_is_too_short_to_be_a_key_is_left_alone():
    assert not Redactor(("none", "", "12345678901", "\udcff" * 20), shapes=False)
    assert Redactor(("123456789012\n",)).text("x123456789012") == f"x{MARK}"


@given(st.lists(st.integers(0, len(KEY) + 8), max_size=6), st.integers(0, 3))
def test_a_secret_in_pieces_is_found_and_nothing_else_is_lost(cuts, noise):
    whole = f"say {KEY} now"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [TextDelta(whole[a:b]) for a, b in pairwise(places)]
    pieces[noise:noise] = [TraceEvent("odd"), ToolOutputDelta("c", KEY[:5])]
    said = _through(*pieces)
    text = "".join(one.text for one in said if isinstance(one, TextDelta))
    assert text == f"say {MARK} now"
    assert [one.text for one in said if isinstance(one, ToolOutputDelta)] == [KEY[:5]]


def test_only_the_beginning_of_a_secret_waits():
    said = _through(TextDelta("a sk"), TextDelta("y is sk-test"), ResponseCompleted("error"))
    assert said == [
        TextDelta("a "),
        TextDelta("sky is "),
        TextDelta("sk-test"),
        ResponseCompleted("error"),
    ]


async def _told(session):
    found = []
    async with aclosing(session.subscribe()) as records:
        async for record in records:
            found.append(encode_data(record.event))
            if isinstance(record.event, TurnEnded):
                return found
    return found


def test_a_key_reaches_neither_log_nor_watcher_nor_model(tmp_path):
    """Said by the model in pieces, by a tool, in a prompt and in arguments."""
    (tmp_path / "key.txt").write_text(f"KEY={KEY}\n")
    ran = []

    async def use(arguments, context):
        ran.append(arguments)
        return ToolResult.success("used")

    parameters = {"type": "object", "properties": {"key": {"type": "string"}}}
    model = Scripted(
        [
            {"text": f"I see {KEY} there.", "chunk": 3, **call("shell", command="cat key.txt")},
            call("read", path="key.txt"),
            call("use", key=KEY),
            f"The key is {KEY}",
        ]
    )
    tools = Shell(), Read(), Thing(use, "use", parameters=parameters)
    store = JsonlStore(tmp_path / "state")

    async def work():
        rest = {"store": store, "root": tmp_path, "machine": LocalMachine(Workspace(tmp_path))}
        async with make_engine(model, *tools, mode="auto", secrets=(KEY,), **rest) as engine:
            session = await engine.session()
            watching = asyncio.create_task(_told(session))
            result = await session.wait(await session.send(f"my key is {KEY}"))
            return session.log_path, result, await watching, results(engine, session.id)

    path, result, told, outputs = run(work())
    written = Path(path).read_bytes()
    assert KEY.encode() not in written
    assert KEY.encode() not in b"".join(told)
    assert len(told) > 10
    deltas = [event for event in map(decode_data, told) if isinstance(event, TextDelta)]
    assert "".join(one.text for one in deltas).startswith(f"I see {MARK} there.")
    assert KEY not in repr([list(request.messages) for request in model.requests])
    assert len(model.requests) == 4
    assert result.text == f"The key is {MARK}"
    assert ran == []
    assert [failed for _, _, failed in outputs] == [False, False, True]
    assert outputs[0][1].startswith(f"KEY={MARK}\n")
    assert outputs[2][1].startswith(f"not run: the arguments hold {MARK}")


def test_a_key_in_an_error_is_not_told():
    async def break_off():
        raise ProviderError(f"the vendor says that {KEY} is wrong")
        yield

    engine, found, result = run(one_turn(Speaking(break_off), secrets=(KEY,)))
    assert KEY not in repr(list(engine.store.read(found)))
    assert result.detail == f"the vendor says that {MARK} is wrong"
    assert str(result.error) == result.detail


def test_a_key_at_the_place_of_a_cut_is_gone_before_the_cut():
    async def long(arguments, context):
        return ToolResult.success("x" * 39_950 + KEY + "y" * 100_000)

    engine, found, _ = run(one_turn([call("thing"), "ok"], Thing(long), secrets=(KEY,)))
    ((_, text, _),) = results(engine, found)
    assert KEY[:8] not in text


def test_the_parts_of_an_engine_do_not_show_a_key():
    parts = EngineConfig(Scripted([]), {}, MemoryStore(), Workspace("/"), secrets=(KEY,))
    assert KEY not in repr(parts)
    assert parts.secrets == ()
    assert parts.redactor is not None


def test_without_secrets_nothing_stands_in_between():
    parts = EngineConfig(
        Scripted([]), {}, MemoryStore(), Workspace("/"), secrets=("short",), redact_tokens=False
    )
    assert parts.redactor is None


@pytest.mark.parametrize("name", ["BRIDLE_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"])
def test_the_keys_of_the_environment_are_known_to_an_engine(name, monkeypatch, tmp_path):
    import bridle

    monkeypatch.setenv(name, KEY)
    engine = bridle.build_engine(
        Scripted([f"it is {KEY}"]), tools=[], workspace=tmp_path, state=tmp_path
    )

    async def work():
        async with engine:
            return await engine.run("go")

    assert run(work()).text == f"it is {MARK}"


def test_a_key_that_is_handed_to_a_provider_is_known_to_an_engine(tmp_path):
    import bridle

    key = "handed-in-0123456789"
    bridle.provider("openai-chat/m", api_key=key, base_url="http://127.0.0.1:1/v1")
    engine = bridle.build_engine(
        Scripted([f"it is {key}"]), tools=[], workspace=tmp_path, state=tmp_path
    )

    async def work():
        async with engine:
            return await engine.run("go")

    assert run(work()).text == f"it is {MARK}"


def test_the_end_of_a_text_that_waits_is_said_before_the_call_behind_it():
    ready = ToolCallReady(ToolCall("c", "t"))
    started = ToolCallStarted("c", "t")
    end = KEY[:7]
    said = _through(TextDelta(f"plan {end}"), started, TextDelta(end), ready, TextDelta("x"))
    assert said == [
        TextDelta("plan "),
        TextDelta(end),
        started,
        TextDelta(end),
        ready,
        TextDelta("x"),
    ]


def test_a_secret_with_a_call_in_its_middle_is_not_said_whole():
    started = ToolCallStarted("c", "t")
    said = _through(TextDelta(f"plan {KEY[:9]}"), started, TextDelta(f"{KEY[9:]} b"))
    assert said == [TextDelta("plan "), TextDelta(KEY[:9]), started, TextDelta(f"{MARK} b")]


def test_an_event_that_was_found_clean_is_not_encoded_anew_when_it_is_said_next():
    spelled = []

    class Odd:
        def __str__(self):
            spelled.append(1)
            return "odd"

    redactor, event = Redactor((KEY,)), TraceEvent("x", Odd())
    assert redactor.value(event) is event
    assert redactor.encoded(event)[0] is event
    assert len(spelled) == 1
    assert redactor.encoded(event)[1] == encode_data(event)
    assert redactor.encoded(TraceEvent("x", KEY)) == (TraceEvent("x", MARK), None)


ODD = ("k" * 20, "-leading-dash-x", "x]^y-z\\q[12345", "é:ABCDE-ñ")
SCREEN = re.compile(anchor_pattern([*SHAPES_BY_START, *ODD]))
PIECES = st.sampled_from([*SHAPES_BY_START, *ODD, *"k-_AJBKC:] \\^é", "tool_call", "xitem-0"])


@given(st.lists(st.tuples(PIECES, st.integers(0, 9), st.integers(1, 30)), max_size=8))
def test_the_screen_stops_exactly_where_a_literal_stands(pieces):
    text = "".join(piece[start : start + length] for piece, start, length in pieces)
    places = {
        found.start() + anchor_index(literal)
        for literal in [*SHAPES_BY_START, *ODD]
        for found in re.finditer(f"(?={re.escape(literal)})", text)
    }
    assert {hit.start() for hit in SCREEN.finditer(text)} == places
