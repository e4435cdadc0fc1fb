"""The reply to a turn of the task assistant, made by code from the results of its calls.

It follows the three tables of replies. What was done comes from what the tools returned; nothing is
taken from what a model says about itself, nor from a title. Every word comes from the sentences of
the user's language, and every title goes through `clean_title`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from bridle.chat.i18n import FALLBACK, Replies, standard_replies
from bridle.chat.profile import ProposedCall, ReplyContext
from bridle.chat.reply_filter import FilterFacts, clean_title, find_leaks
from bridle.chat.tasks.date_phrases import looks_dated
from bridle.chat.tasks.intent import Intent, parse_intent
from bridle.chat.tasks.task_matching import Task, choose_tasks, tasks_in
from bridle.chat.values import ToolCallRecord

_FOLDER = Path(__file__).with_name("i18n")


@cache
def task_replies() -> Replies:
    """The sentences about tasks, read once."""
    return standard_replies().override(Replies.load(_FOLDER).languages)


_LONGEST = 500
_LINE = 90  # characters of a title in a list
_OPTIONS = 6  # that are named, each in so many characters
_OPTION = 50


def task_title(task: Task, longest: int = 200) -> str:
    """A task's title, as a sentence has it."""
    return clean_title(task.get("title", ""), longest)


def format_day(context: ReplyContext, value: object, with_time: str = "date_time") -> str:
    """A date as people read it, in the user's language; in the zone that the tool said it in.

    `with_time` is the sentence for one that has a time.
    """
    text = str(value)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return clean_title(text, 60)
    words = {
        "weekday": context.say("weekdays").split()[moment.weekday()],
        "day": moment.day,
        "month": context.say("months").split()[moment.month - 1],
        "year": moment.year,
        "time": f"{moment:%H:%M}",
    }
    return context.say(with_time if len(text) > 10 else "date", **words)


def format_list(
    context: ReplyContext, tasks: Sequence[Task], total: int, shown_before: int = 0
) -> str:
    """A numbered list with boxes, as long as a reply may be; then how many more there are."""
    lines: list[str] = []
    room = _LONGEST - len(context.say("list_more", count=total)) - 1
    for number, task in enumerate(tasks, shown_before + 1):
        line = _line(context, number, task)
        if sum(len(one) + 1 for one in lines) + len(line) > room:
            break
        lines.append(line)
    rest = max(total - shown_before, len(tasks)) - len(lines)
    if rest > 0:
        lines.append(context.say("list_more", count=rest))
    return "\n".join(lines)


def _line(context: ReplyContext, number: int, task: Task) -> str:
    box = context.say("checked" if task.get("completed") else "unchecked")
    line = f"{number}. {box} {task_title(task, _LINE)}"
    if task.get("due"):
        line += f" ({context.say('list_due', when=format_day(context, task['due']))})"
    return line


def format_dates(context: ReplyContext, added: Sequence[tuple[Task, bool]], room: int) -> str:
    """When the tasks that were added are due, as it was understood; so much as there is room for.

    Each task comes with whether its title still names a day.
    """
    sentences: list[str] = []
    for task, named in added:
        key = "due_follows" if len(added) == 1 else "due_follows_named"
        if task.get("due"):
            when = format_day(context, task["due"], "date_and_time")
            said = context.say(key, title=task_title(task, _OPTION), when=when)
        elif named:
            said = context.say(key.replace("follows", "none"), title=task_title(task, _OPTION))
        else:
            continue
        if sum(len(one) + 1 for one in sentences) + len(said) > room:
            break
        sentences.append(said)
    return " ".join(sentences)


def format_options(context: ReplyContext, tasks: Sequence[Task]) -> str:
    """What there is to choose from; tasks of the same title are told apart."""
    known = [task_title(one, _OPTION) for one in tasks]
    read = [text.casefold() for text in known]  # "Call Bob" and "call Bob" read the same
    twice = {text for text, count in Counter(read).items() if count > 1}
    words: list[str] = []
    for place, task in enumerate(tasks[:_OPTIONS]):
        text = f"'{known[place]}'"
        words.append(_distinguish(context, task, text, place) if read[place] in twice else text)
    if len(tasks) > _OPTIONS:
        more = context.say("list_more", count=len(tasks) - _OPTIONS)
        return f"{', '.join(words)} {more}"
    return join_words(words, context.say("or"))


def _distinguish(context: ReplyContext, task: Task, text: str, place: int) -> str:
    if task.get("completed"):
        text = context.say("option_done", title=text)
    elif task.get("due"):
        text = context.say("option_due", title=text, when=format_day(context, task["due"]))
    return context.say("option_number", title=text, number=place + 1)


def join_words(words: Sequence[str], last: str) -> str:
    """«a, b or c»."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def format_changes(context: ReplyContext, given: Mapping[str, Any], task: Task) -> str:
    """What a task has now that it was given this, in words."""
    found = [
        _format_change(context, name, task)
        for name in ("title", "priority", "due", "tags", "notes")
        if given.get(name) is not None
    ]
    return join_words(found, context.say("and")) or context.say("change_none")


def _format_change(context: ReplyContext, name: str, task: Task) -> str:
    value = task.get(name)
    if not value:
        return context.say(f"change_no_{name}" if name != "title" else "change_none")
    if name == "due":
        return context.say("change_due", value=format_day(context, value))
    if name == "tags":
        tags = [f"'{clean_title(one, 30)}'" for one in value[:5]]
        return context.say("change_tags", value=join_words(tags, context.say("and")))
    if name == "priority":
        level = context.replies.find(context.language, f"priority_{str(value).lower()}")
        return context.say("change_priority", value=level or clean_title(value, 20))
    return context.say(f"change_{name}", value=clean_title(value, 120))


_DONE_SENTENCES = (
    "task_created",
    "task_completed",
    "task_deleted",
    "task_updated",
    "confirm_delete",
    "confirm_bulk",
)
_CHANGED = "added|created|deleted|removed|updated|changed|renamed|moved|reopened|cleared|erased"
_CLAIM = re.compile(
    rf"\bI(?:'ve|’ve| have)(?: just| now| successfully| already)* (?:{_CHANGED}|marked|completed)\b"
    rf"|\b(?:was|were|has been|have been|is now|are now)(?: successfully)? (?:{_CHANGED})\b"
    rf"|(?:^|[.!]\s+)(?:all )?(?:done|set|{_CHANGED}|marked|completed)\b",
    re.IGNORECASE,
)


def claims(context: ReplyContext, intent: Intent) -> bool:
    """Does the model say that it did, or asked, what it did not?"""
    known = [context.replies.find(context.language, key) or "" for key in _DONE_SENTENCES]
    if any(one.partition("{")[0] in context.model_text for one in known):
        return True
    wanted = intent.is_action or intent.kind == "add"
    if wanted and context.model_text and not re.search("[?؟]", context.model_text):
        return True
    return _CLAIM.search(context.model_text) is not None


_READS = ("list_tasks", "search_tasks")
_MISSING = {
    "invalid_date": "missing_date",
    "invalid_priority": "missing_priority",
    "due": "missing_date",
    "priority": "missing_priority",
    "title": "missing_title",
    "change": "missing_change",
    "query": "missing_task",
    "task_id": "missing_task",
}
_LEVELS = ("low", "medium", "high")
_QUERY = 80
_LONGEST_REPLY = 500
_HOW_MANY = re.compile(r"^(?:(?:so|and|tell me),? )?how many\b", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:(?:and|&)\s)?|\s(?:and|&)\s")
_ABOUT = re.compile(r"\b(?:most|best|next|first|why|when|how long|should|summar\w+)\b", re.I)


def reply_text(context: ReplyContext) -> str:
    """The reply where one is fixed; empty where the model's own words will do."""
    intent = parse_intent(context.message)
    changed = [one for one in context.records if one.tool_name not in _READS]
    done = [one for one in changed if one.ok]
    if done:
        said = _changes_text(context, done)
        said = f"{said} {_due_sentences(context, done, _LONGEST_REPLY - len(said) - 1)}".strip()
        said = f"{said} {_one_task(context, done)}".strip()
        failed = next((one for one in reversed(changed) if _stays_failed(one, changed)), None)
        return f"{said} {_failure_text(context, intent, failed)}".strip() if failed else said
    if changed:
        return _failure_text(context, intent, changed[-1])
    read = [one for one in context.records if one.tool_name in _READS]
    if not read:
        said = _question_text(context, intent)
    else:
        last = read[-1]
        said = (
            _read_text(context, intent, last) if last.ok else _failure_text(context, intent, last)
        )
    return context.say("unclear") if not said and claims(context, intent) else said


def fallback_text(context: ReplyContext) -> str:
    """What is said when the model's own words cannot be."""
    if found := [one for one in context.records if one.tool_name in _READS and one.ok]:
        return _list_text(context, found[-1])
    intent = parse_intent(context.message)
    if intent.kind in ("greet", "thanks"):
        return context.say({"greet": "greeting", "thanks": "thanks"}[intent.kind])
    if intent.kind == "foreign":
        return context.say("cannot")
    return context.say("help")


def check_call(wanted: ProposedCall) -> dict[str, Any] | None:
    """A call about one of several tasks that the user's words fit: the user is asked which."""
    intent = parse_intent(wanted.message)
    if not intent.is_action or not _names_task(intent) or "task_id" not in wanted.arguments:
        return None
    tasks = {str(one.get("id")): one for made in wanted.records for one in tasks_in(made.data)}
    fitting = choose_tasks(intent.kind, intent.subject, list(tasks.values()))
    ids = {str(one.get("id")) for one in fitting}
    if len(fitting) < 2 or str(wanted.arguments["task_id"]) not in ids:
        return None
    return {
        "code": "ambiguous",
        "message": "Not done: the words fit several tasks. Ask which one.",
        "query": intent.subject,
        "options": [dict(one) for one in fitting],
    }


def _changes_text(context: ReplyContext, done: Sequence[ToolCallRecord]) -> str:
    if len(done) == 1:
        return _change_text(context, done[0])
    names = {one.tool_name for one in done}
    tasks = [task for one in done for task in tasks_in(one.data)]
    if names == {"add_task"}:
        titles = [f"'{task_title(one, 50)}'" for one in tasks]
        words = join_words(titles[:6], context.say("and"))
        if len(titles) > 6:
            words = f"{', '.join(titles[:5])} {context.say('list_more', count=len(titles) - 5)}"
        return context.say("tasks_created", titles=words)
    if len(names) == 1 and (key := _MANY.get(done[0].tool_name)):
        return context.say(key, count=len({str(one.get("id")) for one in tasks}))
    parts: list[str] = []
    for one in done:
        said = _change_text(context, one)
        if sum(map(len, parts)) + len(said) > 450:
            return f"{' '.join(parts)} {context.say('list_more', count=len(done) - len(parts))}"
        parts.append(said)
    return " ".join(parts)


def _due_sentences(context: ReplyContext, done: Sequence[ToolCallRecord], room: int) -> str:
    """The dates of the tasks that were added: what was understood is said back."""
    tasks = [task for one in done if one.tool_name == "add_task" for task in tasks_in(one.data)]
    words = context.message
    quoted = [any(f"{mark}{one.get('title')}" in words for mark in "'\"“‘") for one in tasks]
    named = [
        not exact and looks_dated(str(one.get("title")))
        for one, exact in zip(tasks, quoted, strict=True)
    ]
    return format_dates(context, list(zip(tasks, named, strict=True)), room)


def _one_task(context: ReplyContext, done: Sequence[ToolCallRecord]) -> str:
    """Several things in one title may have been meant as several tasks: how to say that."""
    if len(done) != 1 or done[0].tool_name != "add_task":
        return ""
    words = str((tasks_in(done[0].data) or [{}])[0].get("title"))
    things = _BETWEEN.split(words)
    short = len(words) <= 100 and all(0 < len(one.split()) < 4 for one in things)
    quoted = any(f"{mark}{words}" in context.message for mark in "'\"“‘")
    if "," not in words or len(things) < 3 or not short or quoted:
        return ""
    return context.say("one_task", title=clean_title(words, 100))


def _stays_failed(record: ToolCallRecord, changed: Sequence[ToolCallRecord]) -> bool:
    """Did a call fail that no later one made good?"""
    if record.ok:
        return False
    if record is changed[-1]:
        return True
    title = record.parameters.get("title")
    same = (one.ok for one in changed if one.parameters.get("title") == title)
    return record.tool_name == "add_task" and not any(same)


_ONE = {
    "add_task": "task_created",
    "complete_task": "task_completed",
    "reopen_task": "task_reopened",
    "delete_task": "task_deleted",
}
_MANY = {
    "complete_task": "tasks_completed",
    "reopen_task": "tasks_reopened",
    "delete_task": "tasks_deleted",
    "bulk_complete": "tasks_completed",
    "bulk_reopen": "tasks_reopened",
    "bulk_delete": "tasks_deleted",
}


def _change_text(context: ReplyContext, record: ToolCallRecord) -> str:
    """One call that worked."""
    name, tasks = record.tool_name, tasks_in(record.data)
    if not tasks:
        return context.say("done")
    task = tasks[0]
    if key := _ONE.get(name):
        return context.say(key, title=task_title(task))
    if name == "update_task":
        before = context.titles.get(str(task.get("id"))) if "title" in record.parameters else None
        named = task.get("was_called") or _earlier_title(context, record) or before
        given = record.parameters or dict.fromkeys(task.get("changed") or (), True)
        words = format_changes(context, given, task)
        return context.say(
            "task_updated", title=clean_title(named or task_title(task), 120), changes=words
        )
    if name == "bulk_delete" and len(tasks) == 1:
        return context.say("task_deleted", title=task_title(task))
    if name == "bulk_update":
        given = {key: record.parameters.get(key) for key in ("priority", "due")}
        words = format_changes(context, given, task)
        return context.say("tasks_updated", count=len(tasks), changes=words)
    return context.say(_MANY.get(name, "done"), count=len(tasks))


def _earlier_title(context: ReplyContext, record: ToolCallRecord) -> str:
    """What a task was called before this call, if that came up."""
    wanted = str(record.parameters.get("task_id"))
    for earlier in context.records:
        if earlier is record:
            break
        for task in tasks_in(earlier.data):
            if str(task.get("id")) == wanted:
                return str(task.get("title", ""))
    return ""


def _failure_text(context: ReplyContext, intent: Intent, record: ToolCallRecord) -> str:
    """One call that did not work, as the second table says it."""
    error = record.result.get("error")
    error = error if isinstance(error, dict) else {}
    code = record.code
    if code == "not_found":
        return context.say("not_found", query=_query_words(context, intent, record))
    if code == "ambiguous":
        asked = format_options(context, list(error.get("options", ())))
        return context.say(
            "ambiguous", query=clean_title(error.get("query", ""), _QUERY), options=asked
        )
    if code.startswith("invalid"):
        said = context.say("invalid", missing=_missing_words(context, intent, record, error))
        english = (
            context.replies.resolve_language(context.language) == FALLBACK
        )  # as the tools' own words are
        why = clean_title(error.get("hint", ""), 300) if english else ""
        return f"{said} {why}" if why and not find_leaks(why, FilterFacts()) else said
    return context.say("system_error")


def _query_words(
    context: ReplyContext, intent: Intent, record: ToolCallRecord | None = None
) -> str:
    """What the user was looking for."""
    given = record.parameters if record is not None else {}
    ids = given.get("task_ids")
    first = ids[0] if isinstance(ids, list) and ids else given.get("task_id")
    known = context.titles.get(str(first))
    if intent.kind == "unknown" and known:  # such as the phrase that confirmed it
        return clean_title(known, _QUERY)
    if intent.subject:
        return clean_title(intent.subject, _QUERY)
    if isinstance(query := given.get("query"), str) and query.strip():
        return clean_title(query, _QUERY)
    return clean_title(known or context.message, _QUERY)


def _missing_words(
    context: ReplyContext, intent: Intent, record: ToolCallRecord, error: dict[str, Any]
) -> str:
    key = _MISSING.get(record.code) or _MISSING.get(str(error.get("field", "")))
    if key is None and str(record.parameters.get("priority") or "low").lower() not in _LEVELS:
        key = "missing_priority"
    if key is None:
        key = "missing_title" if record.tool_name == "add_task" else "missing_task"
    named = context.titles.get(str(record.parameters.get("task_id"))) or intent.subject
    return context.say(key, title=clean_title(named, _QUERY))


def _question_text(context: ReplyContext, intent: Intent) -> str:
    """Nothing was called. A request that lacks what it is about is answered with a question."""
    if intent.kind == "add" and not intent.subject:
        return context.say("invalid", missing=context.say("missing_title"))
    lacks = not (intent.subject or intent.number or intent.every)
    if lacks and (intent.is_action or intent.kind == "search"):
        return context.say("invalid", missing=context.say("missing_task"))
    return context.say("cannot") if intent.kind == "foreign" else ""


def _read_text(context: ReplyContext, intent: Intent, record: ToolCallRecord) -> str:
    """Only looked at: a list is shown; what the words do not fit, or fit twice, is said."""
    tasks = tasks_in(record.data)
    if intent.kind == "list" and tasks and _HOW_MANY.search(context.message):
        return _count_text(context, record)
    if (intent.kind == "list" and _is_plain(context)) or (intent.every and not tasks):
        return _list_text(context, record)
    if intent.kind == "search":
        found = (
            tasks
            if record.tool_name == "search_tasks"
            else choose_tasks("search", intent.subject, tasks)
        )
        if not found:
            return context.say("not_found", query=_query_words(context, intent, record))
        return format_list(context, found, len(found))
    if intent.is_action and _names_task(intent):
        fitting = choose_tasks(intent.kind, intent.subject, tasks)
        if not fitting:
            return context.say("not_found", query=_query_words(context, intent, record))
        if len(fitting) > 1:
            asked = format_options(context, fitting)
            return context.say("ambiguous", query=_query_words(context, intent), options=asked)
        if intent.fields.later is not None:
            return _for_rules_only(context, _date_question)
        return (
            ""
            if intent.kind != "update" or intent.fields.arguments
            else _what_to_change(context, fitting)
        )
    return _list_text(context, record) if _looks_like_a_list(context.model_text, tasks) else ""


def _names_task(intent: Intent) -> bool:
    return bool(intent.subject) and intent.subject.lower() not in ("it", "that", "this", "them")


def _is_plain(context: ReplyContext) -> bool:
    """Is it the list that is asked for, and not something about it that a model can tell?"""
    return not context.model_text or _ABOUT.search(context.message) is None


def _what_to_change(context: ReplyContext, fitting: Sequence[Any]) -> str:
    missing = context.say("missing_change", title=task_title(fitting[0], _QUERY))
    return context.say("invalid", missing=missing)


def _looks_like_a_list(said: str, tasks: Sequence[Any]) -> bool:
    return sum(1 for one in tasks if str(one.get("title")) in said) > 1


def _count_text(context: ReplyContext, record: ToolCallRecord) -> str:
    """How many there are; a model that says it otherwise may have counted something else."""
    total = record.data.get("total")
    key = "tasks_counted_narrowed" if _is_narrowed(record) else "tasks_counted"
    return _for_rules_only(context, lambda one: one.say(key, count=total))


def _date_question(context: ReplyContext) -> str:
    return context.say("invalid", missing=context.say("missing_date"))


def _for_rules_only(context: ReplyContext, sentence: Callable[[ReplyContext], str]) -> str:
    """The sentence, unless it is a model that speaks: rules say it in English."""
    by_rules = context.model_text in ("", sentence(replace(context, language=FALLBACK)))
    return sentence(context) if by_rules else ""


def _is_narrowed(record: ToolCallRecord) -> bool:
    """Was it a part of the list that was asked for?"""
    narrowed = any(record.parameters.get(one) for one in ("due", "priority", "tag", "query"))
    return narrowed or record.parameters.get("status") not in (None, "all")


def _list_text(context: ReplyContext, record: ToolCallRecord) -> str:
    tasks = tasks_in(record.data)
    if not tasks and record.parameters.get("skip"):
        return context.say("list_over")
    if not tasks:
        return context.say("list_none_like_that" if _is_narrowed(record) else "list_empty")
    total = record.data.get("total", len(tasks))
    skipped = record.parameters.get("skip")
    before = skipped if isinstance(skipped, int) else 0
    return format_list(context, tasks, total if isinstance(total, int) else len(tasks), before)
