"""What the journeys of the terminal share: a place of their own, and windows that are closed."""

import pytest
from terminal_rig import Place, Terminal


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def open_terminal(place):
    """Opens windows; all are closed at the end."""
    opened = []

    def opening(*words, size=(100, 30)):
        opened.append(Terminal(place, *words, size=size))
        return opened[-1]

    yield opening
    for one in opened:
        one.close()
