"""Answers of very many small values: counted before anybody makes something of them (S1)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_rig import context_of, look, named, raw, serving
from web_server import web_server

from bridle.errors import ToolError
from bridle.tools.mcp import message_filter
from bridle.tools.mcp.message_filter import TOO_LARGE, JsonCounter
from bridle.tools.mcp.spec import ServerSpec
from rig import run

BLOCKS = "more than 1,000 blocks at once"


async def refused(tmp_path, spec):
    async with serving(tmp_path, spec) as source:
        await look(source, tmp_path, action="tools", server=spec.name)
        with pytest.raises(ToolError) as caught:
            tool = named(source, f"mcp__{spec.name}__echo")
            await tool.execute({"text": "x"}, context_of(tmp_path))
        return caught.value.message


@pytest.mark.parametrize(("mode", "why"), [("crowd", TOO_LARGE), ("blocks", BLOCKS)])
def test_a_program_that_answers_with_very_many_values_is_refused(tmp_path, mode, why):
    assert why in run(refused(tmp_path, raw(mode, tmp_path)))


@pytest.mark.parametrize("way", ["", " event"])
@pytest.mark.parametrize(("mode", "why"), [("crowd", TOO_LARGE), ("blocks", BLOCKS)])
def test_an_address_that_answers_with_very_many_values_is_refused(tmp_path, mode, why, way):
    with web_server(mode + way) as web:
        assert why in run(refused(tmp_path, ServerSpec("web", url=web.url, identity="web")))


TEXTS = st.text(st.sampled_from('",{}[]\\:a\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda one: st.lists(one, max_size=5) | st.dictionaries(TEXTS, one, max_size=5),
    max_leaves=25,
)


def weight(value):
    """The values of it, and how deep they lie, by what they are."""
    if not isinstance(value, dict | list):
        return 0, 0
    below = [weight(one) for one in (value.values() if isinstance(value, dict) else value)]
    count = 1 + max(len(below) - 1, 0) + sum(one[0] for one in below)
    return count, 1 + max((one[1] for one in below), default=0)


def cut(data, places):
    ends = sorted({min(one, len(data)) for one in places})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


PLACES = st.lists(st.integers(0, 120), max_size=8)


@given(VALUES, PLACES)
def test_values_are_counted_however_their_bytes_are_cut(value, places):
    count, depth = weight(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_filter, "MAX_VALUES", 12)
        patch.setattr(message_filter, "MAX_DEPTH", 4)
        found = JsonCounter()
        verdicts = [found.add(piece) for piece in cut(json.dumps(value).encode(), places)]
    assert all(verdicts) == (count <= 12 and depth <= 4)


@given(st.lists(VALUES, max_size=4), PLACES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_counted_each_by_itself_whatever_stands_beside_them(values, places, end):
    events = [f': "{end}id: {{[{end}data: {json.dumps(one)}{end}{end}' for one in values]
    weights = [weight(one) for one in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_filter, "MAX_VALUES", 14)
        patch.setattr(message_filter, "MAX_DEPTH", 6)
        found = JsonCounter()
        verdicts = [found.add_events(piece) for piece in cut("".join(events).encode(), places)]
    small = all(count + 2 <= 14 and depth + 2 <= 6 for count, depth in weights)
    assert all(verdicts) == small


def test_an_event_of_many_lines_is_one():
    found = JsonCounter()
    pieces = [b"data: [\r", *([b"\ndata: 0,0,0,0,0,\r"] * 60_000), b"\n\r\n"]
    assert not all(found.add_events(piece) for piece in pieces)
