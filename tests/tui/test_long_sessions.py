"""What a long session takes: answers far above what is looked at are kept small, and come back."""

from bridle.presentation.blocks import WORTH_PACKING, Reply, Thought
from bridle.tui.render.blocks import Painter
from bridle.tui.render.palette import DARK
from bridle.tui.render.window import MOST, Window

WORDS = "One word after the other, é 漢 \ud800.\n" * 60


def window_of(blocks):
    return Window(blocks, Painter(DARK, 60))


def test_what_is_packed_says_the_same_and_takes_less():
    said = Reply([WORDS[:300], WORDS[300:]], True)
    said.pack()
    assert said.text == WORDS
    assert (said.pieces, len(said.packed) < len(WORDS) // 4) == ([], True)


def test_what_grows_or_is_short_stays_as_it_is():
    growing, short = Reply([WORDS]), Thought(["x" * (WORTH_PACKING - 1)], True)
    for one in (growing, short):
        one.pack()
    assert (growing.packed, short.packed) == (b"", b"")


def test_what_was_packed_can_grow_and_settle_again():
    said = Reply([WORDS], True)
    said.pack()
    said.grow("more")
    assert said.text == f"{WORDS}more"
    said.finish("other")
    assert (said.text, said.packed) == ("other", b"")


def test_answers_above_what_is_drawn_are_packed_and_come_back_as_they_were():
    """S8: memory does not grow by every answer of a day."""
    blocks, words = [], "word " * 100
    window = window_of(blocks)
    for number in range(2 * MOST):
        blocks.append(Reply([f"Answer {number}.\n\n{words}"], True))
        window.update([len(blocks) - 1])
        window.shrink()
    small = [bool(one.packed) for one in blocks]
    assert small == [place < window.first for place in range(len(blocks))]
    assert window.first >= MOST - 40
    window.grow(len(blocks))
    assert [f"Answer {n}." for n in range(len(blocks))] == [
        line for line in window.copied_text(lambda _: (0, -1)).split("\n") if "Answer" in line
    ]


def test_what_came_at_once_and_was_never_drawn_is_packed_too():
    blocks = []
    window = window_of(blocks)
    blocks += [Reply([WORDS], True) for _ in range(300)]
    window.restart(40)
    assert all(one.packed for one in blocks[: window.first])
    assert not any(one.packed for one in blocks[window.first :])


def test_a_session_that_is_opened_again_is_not_packed_before_it_is_shown():
    """Ten thousand records open at once: what was there before stays as it is."""
    blocks = [Reply([WORDS], True) for _ in range(50)]
    window = window_of(blocks)
    window.fill(40)
    window.restart(40)
    assert not any(one.packed for one in blocks)
