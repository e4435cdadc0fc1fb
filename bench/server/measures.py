"""What is measured of the server, and how often.

Each round is a server of its own, with its load in another process (`clients/serve_*.py`).
"""

from bench.sessions.measures import Lasting, Yard
from bench.stage import Sample

CLIENTS = 1_000
SESSIONS = 100
PER_S = 5
WORKERS = 32


def server(yard: Yard) -> Sample:
    """Clients that watch, then prompts to ours and to a bare handler in turns."""
    words = (CLIENTS, SESSIONS, PER_S, 5 if yard.quick else 20, WORKERS)
    return yard.client("serve_measure", yard.state, yard.folder / "workspace", *words)


def page(yard: Yard) -> Sample:
    """The page in a browser: its first load, and typing while a reply streams in."""
    return yard.own("page_measure", yard.state, yard.folder / "workspace", 5 if yard.quick else 15)


SERVER = (Lasting("server", server, 3, 1), Lasting("page", page, 3, 1))
