"""Whatever a model, a tool or a log says: no line that a face renders commands a terminal."""

import io
import json
import re
from collections.abc import Iterator
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from cli_program import Program
from hypothesis import given
from hypothesis import strategies as st

from bridle import events
from bridle.cli import render
from bridle.cli.approval_prompt import full_text
from bridle.cli.printer import Printer
from bridle.cli.render import notice_lines
from bridle.cli.style import Paint
from bridle.cli.transcript import SessionLines, transcript_heading
from bridle.events import Event, Recorded, Streamed, ToolCallReady, ToolResultEvent
from bridle.messages import ToolCall, ToolOutput
from bridle.protocols.store import Record, SessionSummary
from bridle.stores.markdown import to_markdown

EVIL = ["\x1b]52;c;x\x07", "\x1b[2J", "\x9b31m", "\r", "\b", "\x00", "\x7f", "\x85", "\u2028"]
EVIL += ["\u202e", "\u2066", "\u200e", "\u061c", "\ud800", "\n", "\t", "\x1c"]
WORDS = st.lists(st.sampled_from([*EVIL, "a", " ", "[exit code 1]", "é", "漢"]), max_size=6)
TEXT = WORDS.map("".join)
COLOURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")
OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
KINDS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type)
    and issubclass(kind, Streamed | Recorded)
    and kind not in (Streamed, Recorded)
]


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, with hostile text wherever text may stand."""
    origin, inside = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = msgspec.structs.fields(hint)
        return st.builds(hint, **{field.name: values(field.type) for field in fields})
    if origin is Literal:
        return st.sampled_from(inside)
    if origin in (Union, UnionType):
        return st.one_of([values(one) for one in inside])
    if origin is tuple:
        return st.lists(values(inside[0]), max_size=2).map(tuple)
    if origin is dict:
        key = st.sampled_from(["command", "path", "old", "new", "content", "error", "to"])
        return st.dictionaries(key | TEXT, values(inside[1]), max_size=3)
    plain: dict[Any, Any] = {
        str: TEXT,
        int: st.integers(0, 9),
        bool: st.booleans(),
        float: st.just(0.5),
    }
    plain[type(None)] = st.none()
    return plain.get(hint, TEXT | st.integers(0, 9))


EVENTS = st.one_of([values(kind) for kind in KINDS])


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(feed: list[Event], paint: Paint, out: io.StringIO) -> Iterator[str]:
    """Everything that a screen writes, and a story tells, of these events."""
    err = type(out)()
    screen = Printer(out, err, thinking=True, paint=paint)
    story = SessionLines(paint, 40, thinking=True)
    for number, event in enumerate(feed):
        record = Record(number, "\x1b[2J", event)
        screen.feed(record)
        yield from story.lines(record)
        if isinstance(event, events.ApprovalAsked):
            yield full_text([event], paint, 40, lambda _: None)
            yield full_text([event], paint, 40, lambda _: "\x1bbefore\n")
    screen.break_line()
    yield from (*story.totals(), out.getvalue(), err.getvalue())
    records = [Record(number, "\x1b[2J", event) for number, event in enumerate(feed)]
    told = partial(notice_lines, paint=Paint())
    yield from to_markdown(SessionSummary("s", title="\x1b]0;x\x07"), records, told)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("stream", [io.StringIO, Tty])
@given(feed=st.lists(EVENTS, max_size=5))
def test_no_event_commands_a_terminal(stream: type[io.StringIO], colour: bool, feed: list[Event]):
    for line in shown(feed, Paint(colour), stream()):
        assert not OBEYED.search(COLOURS.sub("", line) if colour else line)


@given(calls=st.lists(values(ToolCall), min_size=2, max_size=3), of=TEXT)
def test_calls_side_by_side_are_named_harmlessly(calls: list[ToolCall], of: str):
    feed: list[Event] = [ToolCallReady(call) for call in calls]
    feed += [ToolResultEvent(ToolOutput(call.id, "done", name=call.name)) for call in calls]
    for line in shown(feed, Paint(False), io.StringIO()):
        assert not OBEYED.search(line)
    for line in render.result_lines(ToolOutput("1", "x"), Paint(False), 80, of=of):
        assert not OBEYED.search(line) and "\n" not in line


@given(values(SessionSummary), TEXT)
def test_a_heading_is_harmless(found: SessionSummary, path: str):
    for line in transcript_heading(found, path, Paint(False)):
        assert not OBEYED.search(line) and "\n" not in line


EVIL = "a\x9b31mb\u202ec\u200bd\U000e0041e"


def test_json_at_a_terminal_has_what_is_obeyed_or_unseen_as_escapes(bridle: Program):
    """Its values are the same; into a pipe it goes byte for byte."""
    model = bridle.script({"text": EVIL})
    with bridle.terminal("run", "hi", "--json", "-m", model, columns=500) as terminal:
        code, shown = terminal.end()
    assert code == 0 and not set(EVIL).difference("abcde31m").intersection(shown)
    with bridle.terminal("sessions", "show", bridle.logs()[0].parent.name, "--json") as terminal:
        code, again = terminal.end()
    assert code == 0 and not set(EVIL).difference("abcde31m").intersection(again)
    assert '"a\\u009b31mb\\u202ec\\u200bd\\udb40\\udc41e"' in again
    texts = [json.loads(line)["data"].get("content") for line in again.splitlines()]
    assert EVIL in texts
    piped = bridle.run("sessions", "show", bridle.logs()[0].parent.name, "--json")
    assert piped.stdout.encode() == bridle.logs()[0].read_bytes()
