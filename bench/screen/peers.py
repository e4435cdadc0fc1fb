"""Chats in a terminal by others, written in Python: how each is started, and its first prompt.

No key is asked for and nothing is sent: a chat is opened, and ended once one could type.
"""

from dataclasses import dataclass

from bench.environments import ENVIRONMENTS, prepare


@dataclass(frozen=True)
class Peer:
    """`environment` has its pins in `requirements/`; `marks` are there once one can type."""

    name: str
    label: str
    words: tuple[str, ...]
    marks: tuple[str, ...]

    def command(self) -> list[str]:
        """How it is started; its environment is made where there is none."""
        prepare(self.name)
        program, *more = self.words
        return [str(ENVIRONMENTS / self.name / "bin" / program), *more]


PEERS = (
    Peer("llm", "llm chat", ("llm", "chat", "-m", "gpt-4o-mini"), ("Chatting with", "\n> ")),
    Peer("elia", "elia", ("elia",), ("Enter your", "History")),
)
