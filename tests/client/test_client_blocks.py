"""Server-sent events with ids, however they are split (A12)."""

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.client.sse import Block, Blocks
from bridle.errors import BadStream

WORDS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=8)
BLOCKS = st.builds(
    Block,
    name=WORDS.filter(lambda text: text == text.strip()),
    data=st.lists(WORDS, min_size=1, max_size=3).map("\n".join).map(str.encode) | st.none(),
    id=st.integers(0, 10**6).map(str) | st.none(),
)


def written(block: Block, end: str, colon: str) -> str:
    lines = [f"event{colon}{block.name}"] if block.name else []
    if block.id is not None:
        lines.insert(0, f"id{colon}{block.id}")
    if block.data is not None:
        lines += [f"data{colon}{line}" for line in block.data.decode().split("\n")]
    return "".join(f"{line}{end}" for line in [*lines, ""])


@given(
    blocks=st.lists(BLOCKS, max_size=6),
    comments=st.lists(WORDS, max_size=3),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_any_chunking_any_line_end_and_comments_give_the_same_blocks(blocks, comments, end, cuts):
    """(A12)"""
    aside = "".join(f": {word}{end}" for word in comments)
    data = (aside + "".join(written(one, end, ": ") + aside for one in blocks)).encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parser = Blocks()
    found = []
    for start, stop in pairwise(places):
        found += parser.feed(data[start:stop])
    expected = [one for one in blocks if one.data is not None or one.id is not None]
    assert found == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_what_comes_out_of_any_bytes_does_not_depend_on_how_they_are_split(data, cuts):
    whole, pieces = Blocks(), Blocks()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = [pieces.feed(data[a:b]) for a, b in pairwise(places)]
    assert list(chain(*found)) == whole.feed(data)


def test_a_block_with_an_id_alone_moves_the_place_and_tells_nothing():
    assert Blocks().feed(b"id: 7\n\n: keep-alive\n\n") == [Block(id="7")]


def test_a_byte_order_mark_is_no_part_of_the_first_field():
    assert Blocks().feed(b"\xef\xbb\xbfdata: a\n\n") == [Block(data=b"a")]


def test_an_unfinished_block_is_no_block():
    parser = Blocks()
    assert parser.feed(b"id: 3\nevent: text_delta\ndata: {}\n") == []
    assert parser.feed(b"\n") == [Block("text_delta", b"{}", "3")]


def test_a_block_beyond_the_limit_is_refused():
    parser = Blocks(limit=100)
    parser.feed(b"data: " + b"a" * 40 + b"\n\n")
    with pytest.raises(BadStream):
        for _ in range(10):
            parser.feed(b"data: " + b"a" * 20 + b"\n")
