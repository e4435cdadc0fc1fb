"""A browser for each file, and a demo of the chat that ends with it."""

import pytest
from rig_chat_page import ChatServed, ChatWindow

from web.rig_page import chromium


@pytest.fixture(scope="module")
def browser():
    """Real Chromium, for the tests of one file."""
    with chromium() as found:
        yield found


@pytest.fixture
def served(tmp_path):
    """The demo, with two users."""
    found = ChatServed(tmp_path / "chat").start()
    yield found
    found.stop()


@pytest.fixture
def window(browser, served):
    """Open a browser window of its own for a user, or for nobody."""
    opened = []

    def open_window(user="", **options):
        found = ChatWindow(browser, served, **options)
        opened.append(found)
        return found.sign_in(user) if user else found

    yield open_window
    for found in opened:
        found.context.close()
