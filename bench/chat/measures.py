"""What is measured of the chat, and how often.

Each round is a PostgreSQL server of its own (`clients/chat_*.py`), run by the interpreter of the
benchmark itself, which has one.
"""

from bench.sessions.measures import Lasting, Yard
from bench.stage import Sample

WORKERS = 2
USERS = 16
FEW, MANY = 10, 1_000


def rate(yard: Yard) -> Sample:
    """Messages to ours and to a bare handler with the same statements, in turns."""
    times = (3, 2) if yard.quick else (5, 4)  # seconds of a round, and rounds
    return yard.own("chat_measure", yard.folder, WORKERS, USERS, *times)


def length(yard: Yard) -> Sample:
    """A turn in a short conversation and in a long one."""
    return yard.own("chat_length", FEW, MANY, 10 if yard.quick else 40)


CHAT = (Lasting("chat_rate", rate, 2, 1), Lasting("chat_length", length, 2, 1))
