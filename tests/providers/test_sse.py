"""The parser of server-sent events: the same events however the bytes are split."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import RECORDINGS, split_everywhere

from bridle.errors import BadStream
from bridle.providers.sse import EventParser, ServerEvent

ODD = (
    b"\xef\xbb\xbf: a comment\n\n\n"
    b"event: a\ndata: 1\n\n"
    b"data: two\ndata:lines\ndata\n\n"
    b"id: 7\nretry: 10\n\n"
    b"data: {}\r\n\r\n"
    b"event: b\revent: c\rdata: x\r\r"
    b"event: no data\n\n"
    b"data: \xc3\xa9\n\n"
)
ODD_EVENTS = [
    (b"a", b"1"),
    (b"", b"two\nlines\n"),
    (b"", b"{}"),
    (b"c", b"x"),
    (b"", "é".encode()),
]


def parsed(*chunks: bytes) -> list[ServerEvent]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


def by_line(stream: bytes) -> list[ServerEvent]:
    """The definition, slowly: one line after the other."""
    events: list[ServerEvent] = []
    name, data = b"", []
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in [*text.split(b"\n"), b""]:
        field, _, value = line.partition(b":")
        if not line:
            events += [(name, b"\n".join(data))] if data else []
            name, data = b"", []
        elif field == b"event":
            name = value.removeprefix(b" ")
        elif field == b"data":
            data.append(value.removeprefix(b" "))
    return events


def test_comments_line_ends_and_many_lines_are_understood() -> None:
    assert parsed(ODD) == ODD_EVENTS


def test_a_stream_split_at_every_byte_gives_the_same_events() -> None:
    assert all(parsed(*halves) == ODD_EVENTS for halves in split_everywhere(ODD))
    assert parsed(*(ODD[at : at + 1] for at in range(len(ODD)))) == ODD_EVENTS


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.sse")), ids=lambda path: path.name)
def test_recordings_parse_as_the_definition_says(path) -> None:
    stream = path.read_bytes()
    assert parsed(stream) == by_line(stream)
    assert parsed(*(stream[at : at + 7] for at in range(0, len(stream), 7))) == by_line(stream)


PIECES = st.sampled_from(
    [
        b"event: x",
        b"data: {}",
        b"data",
        b"data: a:b",
        b": hm",
        b"\n",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
    ]
)


@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 200), max_size=6))
def test_any_stream_split_anywhere_parses_as_the_definition_says(pieces, cuts) -> None:
    stream = b"".join(pieces)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(bounds)]
    assert parsed(*chunks) == by_line(stream)


def test_an_event_beyond_the_limit_is_refused() -> None:
    """(A13): whether it comes whole, in pieces, or never ends."""
    parser = EventParser(limit=1000)
    assert parser.feed(b"data: " + b"x" * 900 + b"\n\n") == [(b"", b"x" * 900)]
    for chunks in ([b"data: " + b"x" * 1000 + b"\n\n"], [b"data: "] + [b"x" * 100] * 10):
        with pytest.raises(BadStream):
            parsed_within(1000, chunks)


def parsed_within(limit: int, chunks: list[bytes]) -> None:
    parser = EventParser(limit)
    for chunk in chunks:
        parser.feed(chunk)


def test_a_line_of_a_hundred_megabytes_costs_no_more_than_its_limit() -> None:
    """(A13): after sixteen megabytes in small pieces the parser holds sixteen, and stops."""
    parser = EventParser()
    fed = 0
    with pytest.raises(BadStream):
        for _ in range(1600):
            parser.feed(b"x" * 65536)
            fed += 65536
    assert fed == 16 * 1024 * 1024
