"""What the responder does next: which calls to ask for, or that it is time to speak. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridle.chat.profile import Telling
from bridle.chat.tasks.choosing import Task, chosen, chosen_by_date, tasks_of
from bridle.chat.tasks.dates import Unclear, moved
from bridle.chat.tasks.offline_adding import read_bare_task
from bridle.chat.tasks.offline_past import (
    answered_date,
    last_title,
    more_of_the_list,
    undone,
    was_asked,
    was_listed,
)
from bridle.chat.tasks.offline_wish import Narrowing, Wish
from bridle.chat.tasks.offline_words import place, understood
from bridle.chat.tasks.sentences import task_replies
from bridle.chat.values import ToolCallRecord

_ALL = 500  # tasks that are looked at
_ONE = {
    "complete": "complete_task",
    "reopen": "reopen_task",
    "delete": "delete_task",
    "update": "update_task",
}
_MANY = {
    "complete": "bulk_complete",
    "reopen": "bulk_reopen",
    "delete": "bulk_delete",
    "update": "bulk_update",
}
_TOGETHER = 8  # tasks that one message names by their titles
_UNDO = re.compile(r"\W*(?:please |now )?undo\b", re.IGNORECASE)
_EACH = re.compile(
    r"(?:(both)|all(?: (?:two|three|four|five|six))?)(?: of (?:them|those))?"
    r"|every one|each(?: one)?",
    re.IGNORECASE,
)
_IT = ("it", "that", "this", "that one", "this one", "them")


@dataclass(frozen=True)
class Step:
    """A tool to ask for."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """What the responder has before it."""

    message: str
    records: tuple[ToolCallRecord, ...] = ()
    before: tuple[tuple[str, str], ...] = ()

    @property
    def titles(self) -> dict[str, str]:
        """The titles that came up, by id."""
        return {
            str(task.get("id")): str(task.get("title", ""))
            for record in self.records
            for task in tasks_of(record.data)
        }

    def read(self) -> ToolCallRecord | None:
        """The newest list that was asked for in this turn."""
        found = [one for one in self.records if one.tool_name == "list_tasks"]
        return found[-1] if found else None

    def say(self, key: str, **words: object) -> str:
        """A fixed sentence, in English; in another language it is said by whoever guards it."""
        return Telling(self.message, self.records, task_replies()).say(key, **words)


Plan = Sequence[Step] | str  # calls; or a sentence, where an empty one is what the calls come to


def plan(turn: Turn) -> Plan:
    """The next step."""
    wish = answered_date(turn.message, turn.before) or understood(turn.message)
    if wish.kind == "unknown" and was_asked(turn.before) is None:
        wish = read_bare_task(turn.message) or wish
    acted = [one for one in turn.records if one.tool_name not in ("list_tasks", "search_tasks")]
    if acted or (turn.records and not turn.records[-1].ok):
        return ""
    if wish.kind == "add":
        return _add(wish)
    if not turn.records and (going_on := more_of_the_list(turn.message, turn.before)):
        step = _listing(going_on[0].every or Narrowing())
        return [replace(step, arguments={**step.arguments, "skip": going_on[1]})]
    if turn.records and turn.records[-1].parameters.get("skip"):
        return ""
    if wish.kind == "list":
        return "" if turn.records else [_listing(wish.every or Narrowing())]
    if wish.kind == "search":
        return _search(wish, turn)
    if wish.every is not None:
        return _many(wish, turn)
    if wish.is_action or wish.kind in ("pick", "unknown"):
        return _one(wish, turn)
    return _talk(turn, wish)


def _talk(turn: Turn, wish: Wish) -> Plan:
    keys = {
        "greet": "greeting",
        "thanks": "thanks",
        "okay": "okay",
        "foreign": "cannot",
        "help": "help",
    }
    return turn.say(keys.get(wish.kind, "not_understood"))


def _add(wish: Wish) -> Plan:
    if not wish.subject:
        return ""
    first = Step("add_task", wish.fields.given)
    return [first, *(Step("add_task", more.given) for more in wish.more)]


def _listing(every: Narrowing, limit: int = 0) -> Step:
    return Step("list_tasks", {**every.given, **({"limit": limit} if limit else {})})


def _search(wish: Wish, turn: Turn) -> Plan:
    if turn.records or not wish.subject:
        return ""
    return [_listing(Narrowing(), _ALL)]


def _many(wish: Wish, turn: Turn) -> Plan:
    """All that are meant, by their ids, in one call; whoever holds the tools asks the person."""
    read = turn.read()
    if read is None:
        return [_listing(wish.every or Narrowing(), _ALL)]
    ids = [task.get("id") for task in tasks_of(read.data)]
    given = {key: value for key, value in wish.fields.given.items() if key in ("priority", "due")}
    if not ids or (wish.kind == "update" and not given):
        return "" if not ids else turn.say("invalid", missing=turn.say("missing_task"))
    return [Step(_MANY[wish.kind], {"task_ids": ids, **given})]


def _one(wish: Wish, turn: Turn) -> Plan:
    """One task: looked up by its title, or by its place in what was shown before."""
    meant = _meant(wish, turn)
    if meant is None:
        return turn.say("not_understood") if wish.kind in ("pick", "unknown") else ""
    read = turn.read()
    if read is None:
        return [_listing(Narrowing(), _ALL)]
    if each := _each(turn, tasks_of(read.data)):
        return [Step(_ONE[meant.kind], {"task_id": one, **meant.fields.given}) for one in each]
    found = _found(meant, turn, tasks_of(read.data))
    if not found and (several := _several(meant, turn, tasks_of(read.data))):
        return several
    if len(found) != 1:
        return _unsure(meant, wish, turn)
    if meant.fields.later is not None:
        due = _moved(found[0], meant.fields.later)
        if not due:
            return turn.say("invalid", missing=turn.say("missing_date"))
        meant = replace(meant, fields=replace(meant.fields, due=due))
    if meant.kind == "update" and not meant.fields.given:
        return turn.say("invalid", missing=turn.say("missing_change", title=found[0]["title"]))
    return [Step(_ONE[meant.kind], {"task_id": found[0].get("id"), **meant.fields.given})]


def _moved(task: Task, later: tuple[int, str]) -> str:
    """The task's new date; empty if it has none that could be moved so."""
    try:
        return moved(str(task["due"]), *later) if task.get("due") else ""
    except Unclear:
        return ""


def _each(turn: Turn, tasks: Sequence[Task]) -> list[Any]:
    """The ids of all that were shown, where the answer to "Which one?" is "both" or "all"."""
    asked = was_asked(turn.before)
    match = _EACH.fullmatch(turn.message.strip(" .!?"))
    if asked is None or match is None:
        return []
    shown = chosen(asked[0].kind, asked[1], tasks)
    fits = len(shown) == 2 if match[1] else len(shown) <= _TOGETHER
    return [one.get("id") for one in shown] if fits else []


def _several(meant: Wish, turn: Turn, tasks: Sequence[Task]) -> Sequence[Step]:
    """«milk and eggs», «1 and 3»: each of them has to be one task; where one is not, none is."""
    words = [one for one in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", meant.subject) if one]
    if not 1 < len(words) <= _TOGETHER or meant.kind == "update":
        return ()
    each = [_found(replace(meant, subject=one, number=place(one)), turn, tasks) for one in words]
    ids = dict.fromkeys(found[0].get("id") for found in each if len(found) == 1)
    return (
        [Step(_ONE[meant.kind], {"task_id": one}) for one in ids] if len(ids) == len(words) else ()
    )


def _unsure(meant: Wish, wish: Wish, turn: Turn) -> Plan:
    """None, or several: said from the list, where the user's own words say what it is about."""
    if wish is meant and wish.subject and wish.subject.lower() not in _IT:
        return ""
    if meant.number or not meant.subject:
        return turn.say("invalid", missing=turn.say("missing_task"))
    return turn.say("not_found", query=meant.subject)


def _meant(wish: Wish, turn: Turn) -> Wish | None:
    """What is asked for, with what the conversation adds to it; None: nothing that makes sense."""
    asked = was_asked(turn.before)
    if wish.kind in ("pick", "unknown"):
        if asked is None:
            return None
        return replace(asked[0], number=wish.number, subject=wish.subject or asked[1])
    if wish.subject.lower() in _IT:
        title = undone(turn.before) if _UNDO.match(turn.message) else last_title(turn.before)
        return replace(wish, subject=title) if title else None
    return wish if wish.subject or wish.number else None


def _found(wish: Wish, turn: Turn, tasks: Sequence[Task]) -> list[Task]:
    asked = was_asked(turn.before)
    shown: dict[int, Task] = {}
    if asked is not None and (wish.number or understood(turn.message).kind == "unknown"):
        shown = dict(enumerate(chosen(asked[0].kind, asked[1], tasks), 1))
    elif wish.number:
        shown = was_listed(turn.before, tasks)
    if wish.number:
        number = wish.number if wish.number > 0 else max(shown, default=0)
        return [shown[number]] if number in shown else []
    found = chosen(wish.kind, wish.subject, list(shown.values()) or tasks)
    if shown and len(found) != 1:
        return chosen_by_date(turn.message, list(shown.values())) or found
    return found
