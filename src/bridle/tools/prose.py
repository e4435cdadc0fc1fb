"""What a model reads about a tool: the `.md` beside it, read when somebody first asks for it."""

from functools import cache
from pathlib import Path


class Prose:
    """An attribute of a tool's class whose value is the text of a file beside this one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> str:
        return _text(self._name)


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()
