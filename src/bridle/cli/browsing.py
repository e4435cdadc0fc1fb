"""Opens the browser at a page that is signed in, without telling every process the code.

What a program is called with can be read by all users of the machine. So the browser is handed a
file of this user's alone, which leads on to the page.
"""

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

_LEADS_ON = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={entrance}">
<title>bridle</title>
<p><a href="{entrance}">Open the page</a>
"""


@contextmanager
def entrance_file(folder: Path, port: int) -> Iterator[Callable[[str], None]]:
    """What opens the browser at an address; what it needs for that is gone afterwards."""
    from bridle.server.tokens import write_private

    path = folder / f"open-{port}.html"

    def show(entrance: str) -> None:
        write_private(path, _LEADS_ON.format(entrance=escape(entrance)).encode())
        webbrowser.open(path.as_uri())

    try:
        yield show
    finally:
        path.unlink(missing_ok=True)
