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
from bridle.chat.tasks.intent import (
    Intent,
    IntentKind,
    TaskFilter,
    parse_bare_task,
    parse_intent,
    parse_place,
)
from bridle.chat.tasks.replies import (
    failure_text,
    format_list,
    format_options,
    is_narrowed,
    last_read,
    list_text,
    looks_like_a_list,
    query_words,
    result_text,
    task_replies,
    task_title,
)
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
    """Return what the user wanted when we asked which task, and the ambiguous words."""
    if len(before) < 2 or before[-1][0] != "assistant":
        return None
    match = _find_sentence("ambiguous", before[-1][1])
    if match is None:
        return None
    said = next((words for role, words in reversed(before[:-1]) if role == "user"), "")
    intent = parse_intent(said)
    return (intent, match["query"]) if intent.is_action else None


def date_answer(message: str, before: PastMessages) -> Intent | None:
    """Return what the user wanted when we asked for a date, with the date from this message.

    Tasks that have been added since are left out.
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
    """Does the reply ask for a date, in any language?"""
    replies = task_replies()
    asked = (
        replies.say(name, "invalid", missing=replies.say(name, "missing_date"))
        for name in replies.languages
    )
    return any(sentence in reply for sentence in asked)


def last_list(before: PastMessages, tasks: Sequence[Task]) -> dict[int, Task]:
    """Return the tasks of the newest list that we showed, by their numbers in it."""
    for role, words in reversed(before):
        if role == "assistant" and (lines := _LINE.findall(words)):
            return _match_lines(lines, list(tasks))
    return {}


def next_page(message: str, before: PastMessages) -> tuple[Intent, int] | None:
    """Return the list that "more" continues, and how many tasks of it were shown."""
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
    """Return the title that we named last."""
    for role, words in reversed(before):
        if role != "assistant":
            continue
        for key in _NAMING:
            if match := _find_sentence(key, words):
                renamed = _new_title(words[match.end("title") :]) if key == "task_updated" else ""
                return renamed or match["title"]
    return ""


def _new_title(words: str) -> str:
    """Return the new title in our sentence about a change."""
    ends = r"(?=[.,،]|$|\s(?:and|y)\s|\s?و)"
    for pattern in _patterns("change_title"):
        if match := re.search(pattern.pattern + ends, words, re.DOTALL):
            return match["value"]
    return ""


def undo_intent(message: str, before: PastMessages) -> Intent | None:
    """Return what undoes the last change, if the message asks for that and it is possible."""
    if not _UNDO.fullmatch(message.strip(" .!?")):
        return None
    reply = next((words for role, words in reversed(before) if role == "assistant"), "")
    for key, kind in _OPPOSITES:
        if match := _find_sentence(key, reply):
            return Intent(kind, match["title"])
    return None


def _match_lines(lines: Sequence[tuple[str, str, str]], tasks: list[Task]) -> dict[int, Task]:
    """Return each line's task; several tasks of the same title are used once each."""
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
    """Find one of our sentences in a text, in any language."""
    found = (pattern.search(words) for pattern in _patterns(key))
    return next((match for match in found if match), None)


@cache
def _patterns(key: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns for a sentence in every language, English first."""
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
_UNDO = re.compile(
    r"(?:please |now |can you |could you )*(?:(?:undo|revert)(?: (?:that|it|this|the last \w+))?"
    r"|take (?:that|it) back|put (?:that|it) back)(?: please)?",
    re.IGNORECASE,
)
_OPPOSITES: tuple[tuple[str, IntentKind], ...] = (
    ("task_completed", "reopen"),
    ("task_reopened", "complete"),
    ("task_created", "delete"),
)
_EACH = re.compile(
    r"(?:(both)|all(?: (?:two|three|four|five|six))?)(?: of (?:them|those))?"
    r"|every one|each(?: one)?",
    re.IGNORECASE,
)
_IT = ("it", "that", "this", "that one", "this one", "them")


@dataclass(frozen=True)
class PlannedCall:
    """A tool call to ask for."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class PlanContext:
    """What the responder knows: the message, this turn's calls, and earlier messages."""

    message: str
    records: tuple[ToolCallRecord, ...] = ()
    before: tuple[tuple[str, str], ...] = ()

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the tasks in results, by id."""
        return {
            str(task.get("id")): str(task.get("title", ""))
            for record in self.records
            for task in tasks_in(record.data)
        }

    def read(self) -> ToolCallRecord | None:
        """Return the newest list of this turn."""
        found = [record for record in self.records if record.tool_name == "list_tasks"]
        return found[-1] if found else None

    def say(self, key: str, **words: object) -> str:
        """Return a fixed sentence in English; the runner translates it."""
        return ReplyContext(self.message, self.records, task_replies()).say(key, **words)


Plan = (
    Sequence[PlannedCall] | str
)  # calls; or a sentence, where an empty one is what the calls come to


def plan(turn: PlanContext) -> Plan:
    """Return the next calls, or the reply; empty: the reply that the calls determine."""
    intent = (
        undo_intent(turn.message, turn.before)
        or date_answer(turn.message, turn.before)
        or parse_intent(turn.message)
    )
    if intent.kind == "unknown" and last_question(turn.before) is None:
        intent = parse_bare_task(turn.message) or intent
    acted = [
        record for record in turn.records if record.tool_name not in ("list_tasks", "search_tasks")
    ]
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
    """Change all matching tasks in one call; the person is asked to confirm it."""
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
    """Change one task, found by its title or by its place in what was shown."""
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
    """Return the task's new date; empty if it cannot be moved that way."""
    try:
        return move_date(str(task["due"]), *later) if task.get("due") else ""
    except UnclearDate:
        return ""


def _each(turn: PlanContext, tasks: Sequence[Task]) -> list[Any]:
    """Return the ids of all tasks shown, if the answer to "Which one?" is "both" or "all"."""
    asked = last_question(turn.before)
    match = _EACH.fullmatch(turn.message.strip(" .!?"))
    if asked is None or match is None:
        return []
    shown = choose_tasks(asked[0].kind, asked[1], tasks)
    fits = len(shown) == 2 if match[1] else len(shown) <= _TOGETHER
    return [task.get("id") for task in shown] if fits else []


def _several(meant: Intent, turn: PlanContext, tasks: Sequence[Task]) -> Sequence[PlannedCall]:
    """Handle "milk and eggs" and "1 and 3", if each of them means exactly one task."""
    words = [word for word in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", meant.subject) if word]
    if not 1 < len(words) <= _TOGETHER or meant.kind == "update":
        return ()
    each = [
        _find_tasks(replace(meant, subject=one, number=parse_place(one)), turn, tasks)
        for one in words
    ]
    ids = dict.fromkeys(found[0].get("id") for found in each if len(found) == 1)
    return (
        [PlannedCall(_ONE[meant.kind], {"task_id": task_id}) for task_id in ids]
        if len(ids) == len(words)
        else ()
    )


def _unsure(meant: Intent, intent: Intent, turn: PlanContext) -> Plan:
    """Reply if no task or several match."""
    if intent is meant and intent.subject and intent.subject.lower() not in _IT:
        return ""
    if meant.number or not meant.subject:
        return turn.say("invalid", missing=turn.say("missing_task"))
    return turn.say("not_found", query=meant.subject)


def _resolve_intent(intent: Intent, turn: PlanContext) -> Intent | None:
    """Complete an intent from the conversation; None if it makes no sense."""
    asked = last_question(turn.before)
    if intent.kind in ("pick", "unknown"):
        if asked is None:
            return None
        return replace(asked[0], number=intent.number, subject=intent.subject or asked[1])
    if intent.subject.lower() in _IT:
        title = "" if _UNDO.match(turn.message) else last_title(turn.before)
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


_HOW_MANY = re.compile(r"^(?:(?:so|and|tell me),? )?how many\b", re.IGNORECASE)
_ABOUT_LIST = re.compile(r"\b(?:most|best|next|first|why|when|how long|should|summar\w+)\b", re.I)


class TaskResponder(Responder):
    """A provider that answers by rules for English messages about tasks."""

    def __init__(self) -> None:
        super().__init__(
            "tasks",
            _answer_parts,
            languages=("en",),
            reply_text=rule_reply_text,
            fallback_text=rule_fallback_text,
        )


def _answer_parts(messages: Sequence[Message]) -> tuple[Part, ...]:
    turn = PlanContext(*read_messages(messages))
    step = plan(turn)
    if isinstance(step, str):
        return (Text(step or _reply_to(turn)),)
    calls: Sequence[PlannedCall] = step
    return tuple(
        ToolCall(f"responder_{len(messages)}_{number}", call.tool, dict(call.arguments))
        for number, call in enumerate(calls)
    )


def _reply_to(turn: PlanContext) -> str:
    context = ReplyContext(turn.message, turn.records, task_replies(), titles=turn.titles)
    return rule_reply_text(context) or rule_fallback_text(context)


def rule_reply_text(context: ReplyContext) -> str:
    """Return the reply to a message that the rules have read; empty if their own text will do."""
    intent = parse_intent(context.message)
    # a message without a subject of its own, such as a phrase that confirmed a call, names none
    subject = "" if intent.kind == "unknown" and context.titles else intent.subject
    if text := result_text(context, subject):
        return text
    read = last_read(context)
    if read is None:
        return _question_text(context, intent)
    return _read_text(context, intent, read) if read.ok else failure_text(context, read, subject)


def rule_fallback_text(context: ReplyContext) -> str:
    """Return what the rules say if there is nothing else to say."""
    read = last_read(context)
    if read is not None and read.ok:
        return list_text(context, read)
    kind = parse_intent(context.message).kind
    keys = {"greet": "greeting", "thanks": "thanks", "foreign": "cannot"}
    return context.say(keys.get(kind, "help"))


def _question_text(context: ReplyContext, intent: Intent) -> str:
    """Return a question if the message lacks what it is about; no tool was called."""
    if intent.kind == "add" and not intent.subject:
        return context.say("invalid", missing=context.say("missing_title"))
    lacks = not (intent.subject or intent.number or intent.every)
    if lacks and (intent.is_action or intent.kind == "search"):
        return context.say("invalid", missing=context.say("missing_task"))
    return context.say("cannot") if intent.kind == "foreign" else ""


def _read_text(context: ReplyContext, intent: Intent, record: ToolCallRecord) -> str:
    """Return the list, or what does not fit the words, or fits them twice."""
    tasks = tasks_in(record.data)
    if intent.kind == "list" and tasks and _HOW_MANY.search(context.message):
        return _count_text(context, record)
    if (intent.kind == "list" and _is_plain(context)) or (intent.every and not tasks):
        return list_text(context, record)
    if intent.kind == "search":
        is_search = record.tool_name == "search_tasks"
        found = tasks if is_search else choose_tasks("search", intent.subject, tasks)
        if not found:
            return context.say("not_found", query=query_words(context, record, intent.subject))
        return format_list(context, found, len(found))
    if intent.is_action and _names_task(intent):
        query = query_words(context, record, intent.subject)
        fitting = choose_tasks(intent.kind, intent.subject, tasks)
        if not fitting:
            return context.say("not_found", query=query)
        if len(fitting) > 1:
            options = format_options(context, fitting)
            return context.say("ambiguous", query=query, options=options)
        if intent.fields.later is not None:
            return context.say("invalid", missing=context.say("missing_date"))
        if intent.kind == "update" and not intent.fields.arguments:
            missing = context.say("missing_change", title=task_title(fitting[0], 80))
            return context.say("invalid", missing=missing)
        return ""
    return list_text(context, record) if looks_like_a_list(context.model_text, tasks) else ""


def _names_task(intent: Intent) -> bool:
    return bool(intent.subject) and intent.subject.lower() not in ("it", "that", "this", "them")


def _is_plain(context: ReplyContext) -> bool:
    """Is the list itself asked for, and not something about it?"""
    return not context.model_text or _ABOUT_LIST.search(context.message) is None


def _count_text(context: ReplyContext, record: ToolCallRecord) -> str:
    key = "tasks_counted_narrowed" if is_narrowed(record) else "tasks_counted"
    return context.say(key, count=record.data.get("total"))
