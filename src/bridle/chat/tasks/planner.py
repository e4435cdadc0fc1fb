"""The offline responder for tasks: which tool to call next, or what to say. It needs no model.

It remembers nothing: what "the second one" or "it" means is found in the conversation that it is
given, and looked up again in the user's own list.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bridle.chat.i18n import FALLBACK
from bridle.chat.profile import ReplyContext
from bridle.chat.reply_filter import clean_title
from bridle.chat.rule_responder import Responder, read_messages
from bridle.chat.tasks.date_phrases import is_dated
from bridle.chat.tasks.date_words import UnclearDate
from bridle.chat.tasks.dates import complete_date, is_day_half, move_date
from bridle.chat.tasks.intent import Intent, TaskFilter, parse_bare_task, parse_intent, parse_place
from bridle.chat.tasks.replies import fallback_text, reply_text, task_replies
from bridle.chat.tasks.task_matching import Task, choose_by_date, choose_tasks, tasks_in
from bridle.chat.values import ToolCallRecord
from bridle.messages import Message, Part, Text, ToolCall

PastMessages = Sequence[tuple[str, str]]
_NAMING = (
    "task_created",
    "task_completed",
    "task_reopened",
    "task_deleted",
    "task_updated",
    "confirm_delete",
)
_LINE = re.compile(r"^(\d{1,5})\. ([☐✓]) (.+)$", re.MULTILINE)
_MORE_OF_LIST = re.compile(
    r"(?:(?:show|list|see|give)(?: me)? )?(?:(?:the |some )?(?:more|next|rest|others)"
    r"|(?:the )?(?:next|other|remaining) (?:ones|tasks|page)|more tasks|what else(?: is there)?)"
    r"|go on|continue|and the rest",
    re.IGNORECASE,
)
_DUE = re.compile(r" \([^()]*\)$")


def last_question(before: PastMessages) -> tuple[Intent, str] | None:
    """What the user wanted when we asked which task, and the words that fit several."""
    if len(before) < 2 or before[-1][0] != "assistant":
        return None
    match = _find_sentence("ambiguous", before[-1][1])
    if match is None:
        return None
    said = next((words for role, words in reversed(before[:-1]) if role == "user"), "")
    intent = parse_intent(said)
    return (intent, match["query"]) if intent.is_action else None


def date_answer(message: str, before: PastMessages) -> Intent | None:
    """What the user wanted when we asked for the date, with the date that this message makes clear.

    Tasks that were added all the same are left out of it.
    """
    answer = message.strip(" .!?")
    if not (is_dated(answer) or is_day_half(answer) or re.fullmatch(r"\d{1,2}", answer)):
        return None
    answers, place = [answer], len(before)
    while place >= 2 and before[place - 1][0] == "assistant" and before[place - 2][0] == "user":
        reply, said = before[place - 1][1], before[place - 2][1]
        if not _asks_when(reply):
            return None
        intent = parse_intent(said)
        if intent.kind == "unknown":
            intent = parse_bare_task(said) or intent
        if intent.kind == "list" and intent.every is not None:
            due = intent.every.due
            for words in reversed(answers):
                due = complete_date(due, words)
            return replace(intent, every=replace(intent.every, due=due))
        wanted = [one for one in (intent.fields, *intent.more) if one.due or one.later]
        left = [one for one in wanted if f"'{one.title}'" not in reply]
        if intent.kind in ("add", "update") and left:
            due = left[0].due or ""
            for answer in reversed(answers):
                due = complete_date(due, answer)
            first = replace(left[0], due=due, later=None)
            subject = first.title or "" if intent.kind == "add" else intent.subject
            return replace(intent, subject=subject, fields=first, more=())
        answers.append(said)
        place -= 2
    return None


def _asks_when(reply: str) -> bool:
    """Is that our question for the date, in any language?"""
    replies = task_replies()
    asked = (
        replies.say(name, "invalid", missing=replies.say(name, "missing_date"))
        for name in replies.languages
    )
    return any(one in reply for one in asked)


def last_list(before: PastMessages, tasks: Sequence[Task]) -> dict[int, Task]:
    """The tasks of the newest list that we showed, by their numbers in it."""
    for role, words in reversed(before):
        if role == "assistant" and (lines := _LINE.findall(words)):
            return _match_lines(lines, list(tasks))
    return {}


def next_page(message: str, before: PastMessages) -> tuple[Intent, int] | None:
    """Which list "more" goes on with, and how many of it were shown."""
    if not _MORE_OF_LIST.fullmatch(message.strip(" .!?")):
        return None
    shown = 0
    for (_, said), (role, reply) in zip(before[-2::-2], before[::-2], strict=False):
        lines = _LINE.findall(reply)
        if role != "assistant" or not lines:
            return None
        shown = shown or int(lines[-1][0])
        if not _MORE_OF_LIST.fullmatch(said.strip(" .!?")):
            intent = parse_intent(said)
            return (intent, shown) if intent.kind == "list" else None
    return None


def last_title(before: PastMessages) -> str:
    """The title that we named last."""
    for role, words in reversed(before):
        if role != "assistant":
            continue
        for key in _NAMING:
            if match := _find_sentence(key, words):
                renamed = _new_title(words[match.end("title") :]) if key == "task_updated" else ""
                return renamed or match["title"]
    return ""


def _new_title(words: str) -> str:
    """The new title in what we said of a change; a quote and a full stop can be part of it."""
    ends = r"(?=[.,،]|$|\s(?:and|y)\s|\s?و)"
    for pattern in _patterns("change_title"):
        if match := re.search(pattern.pattern + ends, words, re.DOTALL):
            return match["value"]
    return ""


def undoable_title(before: PastMessages) -> str:
    """The title of what «undo that» means: a task that was completed just now, and nothing else."""
    said = next((words for role, words in reversed(before) if role == "assistant"), "")
    match = _find_sentence("task_completed", said)
    return match["title"] if match else ""


def _match_lines(lines: Sequence[tuple[str, str, str]], tasks: list[Task]) -> dict[int, Task]:
    """Each line's task; of several with one title, each once."""
    found: dict[int, Task] = {}
    for number, _, words in lines:
        for task in tasks:
            name = clean_title(task.get("title", ""), 90)
            if name in (words, _DUE.sub("", words)):
                found[int(number)] = task
                tasks.remove(task)
                break
    return found


def _find_sentence(key: str, words: str) -> re.Match[str] | None:
    """Where a text holds that sentence of ours, in whichever language we said it."""
    found = (pattern.search(words) for pattern in _patterns(key))
    return next((match for match in found if match), None)


@cache
def _patterns(key: str) -> tuple[re.Pattern[str], ...]:
    """A sentence in every language, as something to be found again; English first."""
    replies = task_replies()
    names = sorted(replies.languages, key=lambda name: name != FALLBACK)
    return tuple(map(_pattern, dict.fromkeys(replies.find(name, key) or "" for name in names)))


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", sentence)
    names = [f"(?P<{word}>.+?)" if at % 2 else re.escape(word) for at, word in enumerate(pieces)]
    return re.compile("".join(names), re.DOTALL)


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
class PlannedCall:
    """A tool to ask for."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class PlanContext:
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
            for task in tasks_in(record.data)
        }

    def read(self) -> ToolCallRecord | None:
        """The newest list that was asked for in this turn."""
        found = [one for one in self.records if one.tool_name == "list_tasks"]
        return found[-1] if found else None

    def say(self, key: str, **words: object) -> str:
        """A fixed sentence, in English; in another language it is said by whoever guards it."""
        return ReplyContext(self.message, self.records, task_replies()).say(key, **words)


Plan = (
    Sequence[PlannedCall] | str
)  # calls; or a sentence, where an empty one is what the calls come to


def plan(turn: PlanContext) -> Plan:
    """The next step."""
    intent = date_answer(turn.message, turn.before) or parse_intent(turn.message)
    if intent.kind == "unknown" and last_question(turn.before) is None:
        intent = parse_bare_task(turn.message) or intent
    acted = [one for one in turn.records if one.tool_name not in ("list_tasks", "search_tasks")]
    if acted or (turn.records and not turn.records[-1].ok):
        return ""
    if intent.kind == "add":
        return _add(intent)
    if not turn.records and (going_on := next_page(turn.message, turn.before)):
        step = _list_call(going_on[0].every or TaskFilter())
        return [replace(step, arguments={**step.arguments, "skip": going_on[1]})]
    if turn.records and turn.records[-1].parameters.get("skip"):
        return ""
    if intent.kind == "list":
        return "" if turn.records else [_list_call(intent.every or TaskFilter())]
    if intent.kind == "search":
        return _search(intent, turn)
    if intent.every is not None:
        return _many(intent, turn)
    if intent.is_action or intent.kind in ("pick", "unknown"):
        return _one(intent, turn)
    return _talk(turn, intent)


def _talk(turn: PlanContext, intent: Intent) -> Plan:
    keys = {
        "greet": "greeting",
        "thanks": "thanks",
        "okay": "okay",
        "foreign": "cannot",
        "help": "help",
    }
    return turn.say(keys.get(intent.kind, "not_understood"))


def _add(intent: Intent) -> Plan:
    if not intent.subject:
        return ""
    first = PlannedCall("add_task", intent.fields.arguments)
    return [first, *(PlannedCall("add_task", more.arguments) for more in intent.more)]


def _list_call(every: TaskFilter, limit: int = 0) -> PlannedCall:
    return PlannedCall("list_tasks", {**every.arguments, **({"limit": limit} if limit else {})})


def _search(intent: Intent, turn: PlanContext) -> Plan:
    if turn.records or not intent.subject:
        return ""
    return [_list_call(TaskFilter(), _ALL)]


def _many(intent: Intent, turn: PlanContext) -> Plan:
    """All that are meant, by their ids, in one call; whoever holds the tools asks the person."""
    read = turn.read()
    if read is None:
        return [_list_call(intent.every or TaskFilter(), _ALL)]
    ids = [task.get("id") for task in tasks_in(read.data)]
    given = {
        key: value for key, value in intent.fields.arguments.items() if key in ("priority", "due")
    }
    if not ids or (intent.kind == "update" and not given):
        return "" if not ids else turn.say("invalid", missing=turn.say("missing_task"))
    return [PlannedCall(_MANY[intent.kind], {"task_ids": ids, **given})]


def _one(intent: Intent, turn: PlanContext) -> Plan:
    """One task: looked up by its title, or by its place in what was shown before."""
    meant = _resolve_intent(intent, turn)
    if meant is None:
        return turn.say("not_understood") if intent.kind in ("pick", "unknown") else ""
    read = turn.read()
    if read is None:
        return [_list_call(TaskFilter(), _ALL)]
    if each := _each(turn, tasks_in(read.data)):
        return [
            PlannedCall(_ONE[meant.kind], {"task_id": one, **meant.fields.arguments})
            for one in each
        ]
    found = _find_tasks(meant, turn, tasks_in(read.data))
    if not found and (several := _several(meant, turn, tasks_in(read.data))):
        return several
    if len(found) != 1:
        return _unsure(meant, intent, turn)
    if meant.fields.later is not None:
        due = _moved_due(found[0], meant.fields.later)
        if not due:
            return turn.say("invalid", missing=turn.say("missing_date"))
        meant = replace(meant, fields=replace(meant.fields, due=due))
    if meant.kind == "update" and not meant.fields.arguments:
        return turn.say("invalid", missing=turn.say("missing_change", title=found[0]["title"]))
    return [
        PlannedCall(_ONE[meant.kind], {"task_id": found[0].get("id"), **meant.fields.arguments})
    ]


def _moved_due(task: Task, later: tuple[int, str]) -> str:
    """The task's new date; empty if it has none that could be moved so."""
    try:
        return move_date(str(task["due"]), *later) if task.get("due") else ""
    except UnclearDate:
        return ""


def _each(turn: PlanContext, tasks: Sequence[Task]) -> list[Any]:
    """The ids of all that were shown, where the answer to "Which one?" is "both" or "all"."""
    asked = last_question(turn.before)
    match = _EACH.fullmatch(turn.message.strip(" .!?"))
    if asked is None or match is None:
        return []
    shown = choose_tasks(asked[0].kind, asked[1], tasks)
    fits = len(shown) == 2 if match[1] else len(shown) <= _TOGETHER
    return [one.get("id") for one in shown] if fits else []


def _several(meant: Intent, turn: PlanContext, tasks: Sequence[Task]) -> Sequence[PlannedCall]:
    """«milk and eggs», «1 and 3»: each of them has to be one task; where one is not, none is."""
    words = [one for one in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", meant.subject) if one]
    if not 1 < len(words) <= _TOGETHER or meant.kind == "update":
        return ()
    each = [
        _find_tasks(replace(meant, subject=one, number=parse_place(one)), turn, tasks)
        for one in words
    ]
    ids = dict.fromkeys(found[0].get("id") for found in each if len(found) == 1)
    return (
        [PlannedCall(_ONE[meant.kind], {"task_id": one}) for one in ids]
        if len(ids) == len(words)
        else ()
    )


def _unsure(meant: Intent, intent: Intent, turn: PlanContext) -> Plan:
    """None, or several: said from the list, where the user's own words say what it is about."""
    if intent is meant and intent.subject and intent.subject.lower() not in _IT:
        return ""
    if meant.number or not meant.subject:
        return turn.say("invalid", missing=turn.say("missing_task"))
    return turn.say("not_found", query=meant.subject)


def _resolve_intent(intent: Intent, turn: PlanContext) -> Intent | None:
    """What is asked for, with what the conversation adds to it; None: nothing that makes sense."""
    asked = last_question(turn.before)
    if intent.kind in ("pick", "unknown"):
        if asked is None:
            return None
        return replace(asked[0], number=intent.number, subject=intent.subject or asked[1])
    if intent.subject.lower() in _IT:
        title = (
            undoable_title(turn.before) if _UNDO.match(turn.message) else last_title(turn.before)
        )
        return replace(intent, subject=title) if title else None
    return intent if intent.subject or intent.number else None


def _find_tasks(intent: Intent, turn: PlanContext, tasks: Sequence[Task]) -> list[Task]:
    asked = last_question(turn.before)
    shown: dict[int, Task] = {}
    if asked is not None and (intent.number or parse_intent(turn.message).kind == "unknown"):
        shown = dict(enumerate(choose_tasks(asked[0].kind, asked[1], tasks), 1))
    elif intent.number:
        shown = last_list(turn.before, tasks)
    if intent.number:
        number = intent.number if intent.number > 0 else max(shown, default=0)
        return [shown[number]] if number in shown else []
    found = choose_tasks(intent.kind, intent.subject, list(shown.values()) or tasks)
    if shown and len(found) != 1:
        return choose_by_date(turn.message, list(shown.values())) or found
    return found


class TaskResponder(Responder):
    """Keeps the provider's promise with the rules of the tasks."""

    def __init__(self) -> None:
        super().__init__("tasks", _answer_parts, languages=("en",))


def _answer_parts(messages: Sequence[Message]) -> tuple[Part, ...]:
    turn = PlanContext(*read_messages(messages))
    step = plan(turn)
    if isinstance(step, str):
        return (Text(step or _reply_to(turn)),)
    calls: Sequence[PlannedCall] = step
    return tuple(
        ToolCall(f"responder_{len(messages)}_{number}", one.tool, dict(one.arguments))
        for number, one in enumerate(calls)
    )


def _reply_to(turn: PlanContext) -> str:
    context = ReplyContext(turn.message, turn.records, task_replies(), titles=turn.titles)
    return reply_text(context) or fallback_text(context)
