"""A browser for each file of journeys, and servers that end with their test."""

import pytest

from web.rig_page import Line, Served, Window, chromium


@pytest.fixture(scope="module")
def browser():
    """Real Chromium, for the tests of one file."""
    with chromium() as found:
        yield found


@pytest.fixture
def serve(tmp_path):
    """Start a server with these replies and files; what is started is stopped."""
    started = []

    def start(replies, files=None, *flags):
        served = Served(tmp_path / f"server{len(started)}", replies, files, *flags)
        started.append(served)
        return served.start()

    yield start
    for served in started:
        served.stop()


@pytest.fixture
def window(browser):
    """Open a browser window of its own, signed in unless `signed_in` says otherwise."""
    opened = []

    def open_window(served, *, signed_in=True, **options):
        found = Window(browser, served, **options)
        opened.append(found)
        return found.sign_in() if signed_in else found

    yield open_window
    for found in opened:
        found.context.close()


@pytest.fixture
def line_to():
    """A line to a server, which the browser then knows by the line's address."""
    opened = []

    def open_line(served):
        line = Line(served.port)
        opened.append(line)
        served.url = line.url
        return line

    yield open_line
    for line in opened:
        line.close()
