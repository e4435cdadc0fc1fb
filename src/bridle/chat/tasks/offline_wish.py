"""What a message about tasks asks for, as a plain value. Knows no tool and no task."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "add",
    "list",
    "search",
    "complete",
    "reopen",
    "delete",
    "update",
    "pick",
    "help",
    "greet",
    "thanks",
    "okay",
    "foreign",
    "unknown",
]
ACTIONS: frozenset[Kind] = frozenset({"complete", "reopen", "delete", "update"})


@dataclass(frozen=True)
class Fields:
    """What a task is given, or a list is narrowed to; None: nothing was said of it.

    `later` is by how much its date moves, such as 1 and "week": back in time if it is negative.
    """

    title: str | None = None
    notes: str | None = None
    priority: str | None = None
    due: str | None = None
    tags: tuple[str, ...] | None = None
    later: tuple[int, str] | None = None

    @property
    def given(self) -> dict[str, object]:
        """Those of which something was said, as a call has them."""
        found: dict[str, object] = {
            name: getattr(self, name)
            for name in ("title", "notes", "priority", "due")
            if getattr(self, name) is not None
        }
        if self.priority is not None:
            found["priority"] = self.priority.capitalize()
        if self.tags is not None:
            found["tags"] = list(self.tags)
        return found


@dataclass(frozen=True)
class Narrowing:
    """Which tasks of the list are meant, if it is not one; `due` is as `list_tasks` takes it."""

    status: Literal["all", "open", "done"] = "all"
    due: str = "any"
    priority: str = ""
    tag: str = ""

    @property
    def given(self) -> dict[str, object]:
        """As a call has it."""
        found: dict[str, object] = {}
        if self.status != "all":
            found["status"] = self.status
        if self.due != "any":
            found["due"] = self.due
        if self.priority:
            found["priority"] = self.priority
        if self.tag:
            found["tag"] = self.tag
        return found


@dataclass(frozen=True)
class Wish:
    """What is asked for: of which task, or of which ones (`every`), and with what.

    `number` is a place in what was shown before, from 1; -1 is the last. `more` is what
    further tasks to add are given.
    """

    kind: Kind = "unknown"
    subject: str = ""
    fields: Fields = field(default_factory=Fields)
    every: Narrowing | None = None
    number: int = 0
    more: tuple[Fields, ...] = ()

    @property
    def is_action(self) -> bool:
        """Does it change a task that is there?"""
        return self.kind in ACTIONS
