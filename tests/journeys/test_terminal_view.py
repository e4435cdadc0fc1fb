"""What is seen in a real terminal: marked text, colours, the side panel at any width."""

import re

import pytest
from terminal_rig import needs_tmux

pytestmark = needs_tmux

ANSWER = """A paragraph that is so long that it does not fit into one line of this window at all.
A second line of it.

- an item that goes on and on until it has to be broken, since no window is as wide as that is

```python
def function(one, two):
    # a comment that is so long that this line has to be broken in the window, too, I am afraid
    return one
```
"""
COPIED = """A paragraph that is so long that it does not fit into one line of this window at all.
A second line of it.

 • an item that goes on and on until it has to be broken, since no window is as wide as that is

def function(one, two):
    # a comment that is so long that this line has to be broken in the window, too, I am afraid
    return one"""


def grounds(screen):
    """The colours behind the text, for each line of the screen."""
    return [set(re.findall(r"48;[25];[0-9;]*", line)) for line in screen.painted.split("\n")]


def test_marked_text_is_highlighted_and_copied_as_it_was_written(place, open_terminal):
    screen = open_terminal("bridle", "--model", place.script(ANSWER), size=(80, 30))
    screen.until("Describe a task and press")
    screen.say("answer me")
    lines = screen.until("return one").split("\n")
    screen.rests()
    lines = screen.seen.split("\n")
    first = next(at for at, line in enumerate(lines, 1) if "A paragraph" in line)
    last = next(at for at, line in enumerate(lines, 1) if "return one" in line)
    before = grounds(screen)
    screen.drag((4, first), (70, last))
    screen.when(
        lambda _: all(grounds(screen)[at - 1] - before[at - 1] for at in (first, last)),
        "another ground under the first and the last line",
    )
    screen.drop((70, last))
    screen.press("C-c")
    screen.until("copied")
    assert screen.copied.rstrip("\n") == COPIED


def test_soft_line_breaks_stay_line_breaks(place, open_terminal):
    screen = open_terminal(
        "bridle", "--model", place.script("Line 1\nLine 2\nLine 3"), size=(80, 24)
    )
    screen.until("Describe a task and press")
    screen.say("three lines")
    screen.until("   Line 1\n   Line 2\n   Line 3")


def test_the_plain_theme_has_the_colours_of_the_terminal_alone(place, open_terminal):
    screen = open_terminal(
        "bridle", "--theme", "plain", "--model", place.script(ANSWER), size=(120, 40)
    )
    screen.until("Describe a task and press")
    screen.say("answer me")
    screen.until("return one", "context")
    screen.rests()
    assert not re.search(r"[34]8;[25];", screen.painted)


@pytest.mark.parametrize("wide", [100, 120, 200])
def test_a_window_that_gets_wide_enough_shows_the_side_panel(place, open_terminal, wide):
    screen = open_terminal("bridle", "--model", place.script("done"), size=(80, 24))
    screen.until("Describe a task and press", "sandbox")
    screen.resize(wide, 40)
    screen.until("context", "cost")
    screen.press("F2")
    screen.until_gone("context")
    screen.press("F2")
    screen.until("context", "cost")
