"""The sentences of the task assistant: its own, laid over those that every assistant has."""

from functools import cache
from pathlib import Path

from bridle.chat.replies import Replies, standard

_FOLDER = Path(__file__).with_name("replies")


@cache
def task_replies() -> Replies:
    """The sentences about tasks, read once."""
    return standard().over(Replies.load(_FOLDER).languages)
