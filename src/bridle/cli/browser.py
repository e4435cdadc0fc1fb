"""Open the browser at a page with a sign-in code, without showing the code to other users.

All users of the machine can read the arguments of a program. So the browser gets the path of a file
that only this user can read, and the file redirects to the page.
"""

import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from bridle.workspace.fs import write_private

_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={entrance}">
<title>bridle</title>
<p><a href="{entrance}">Open the page</a>
"""


@contextmanager
def redirect_file(folder: Path, port: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that opens the browser at an address; delete its file afterwards."""
    path = folder / f"open-{port}.html"

    def show(entrance: str) -> None:
        write_private(path, _REDIRECT.format(entrance=escape(entrance)).encode())
        webbrowser.open(path.as_uri())

    try:
        yield show
    finally:
        path.unlink(missing_ok=True)
