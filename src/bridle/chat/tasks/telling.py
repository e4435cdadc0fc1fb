"""The sentence that the calls of a turn come to: the three tables of replies, kept by code.

What was done is said from what the tools gave back; what the user asked for is read from the
user's own words. Nothing is taken from what a model says of itself, nor from a title.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bridle.chat.guard import Facts, leaks
from bridle.chat.guard_titles import shown
from bridle.chat.profile import Telling, Wanted
from bridle.chat.replies import FALLBACK
from bridle.chat.tasks.choosing import chosen, tasks_of
from bridle.chat.tasks.date_phrases import looks_dated
from bridle.chat.tasks.offline_wish import Wish
from bridle.chat.tasks.offline_words import understood
from bridle.chat.tasks.telling_claims import claims
from bridle.chat.tasks.wording import changes, dates, joined, listed, options, title
from bridle.chat.values import ToolCallRecord

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
_LONGEST = 500
_HOW_MANY = re.compile(r"^(?:(?:so|and|tell me),? )?how many\b", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:(?:and|&)\s)?|\s(?:and|&)\s")
_ABOUT = re.compile(r"\b(?:most|best|next|first|why|when|how long|should|summar\w+)\b", re.I)


def tell(telling: Telling) -> str:
    """The reply where one is fixed; empty where the model's own words will do."""
    wish = understood(telling.message)
    changed = [one for one in telling.records if one.tool_name not in _READS]
    done = [one for one in changed if one.ok]
    if done:
        said = _done(telling, done)
        said = f"{said} {_dates(telling, done, _LONGEST - len(said) - 1)}".strip()
        said = f"{said} {_one_task(telling, done)}".strip()
        failed = next((one for one in reversed(changed) if _stays_failed(one, changed)), None)
        return f"{said} {_failure(telling, wish, failed)}".strip() if failed else said
    if changed:
        return _failure(telling, wish, changed[-1])
    read = [one for one in telling.records if one.tool_name in _READS]
    if not read:
        said = _asked(telling, wish)
    else:
        last = read[-1]
        said = _read(telling, wish, last) if last.ok else _failure(telling, wish, last)
    return telling.say("unclear") if not said and claims(telling, wish) else said


def otherwise(telling: Telling) -> str:
    """What is said when the model's own words cannot be."""
    if found := [one for one in telling.records if one.tool_name in _READS and one.ok]:
        return _shown_list(telling, found[-1])
    wish = understood(telling.message)
    if wish.kind in ("greet", "thanks"):
        return telling.say({"greet": "greeting", "thanks": "thanks"}[wish.kind])
    if wish.kind == "foreign":
        return telling.say("cannot")
    return telling.say("help")


def vet(wanted: Wanted) -> dict[str, Any] | None:
    """A call about one of several tasks that the user's words fit: the user is asked which."""
    wish = understood(wanted.message)
    if not wish.is_action or not _says_which(wish) or "task_id" not in wanted.arguments:
        return None
    tasks = {str(one.get("id")): one for made in wanted.records for one in tasks_of(made.data)}
    fitting = chosen(wish.kind, wish.subject, list(tasks.values()))
    ids = {str(one.get("id")) for one in fitting}
    if len(fitting) < 2 or str(wanted.arguments["task_id"]) not in ids:
        return None
    return {
        "code": "ambiguous",
        "message": "Not done: the words fit several tasks. Ask which one.",
        "query": wish.subject,
        "options": [dict(one) for one in fitting],
    }


def _done(telling: Telling, done: Sequence[ToolCallRecord]) -> str:
    if len(done) == 1:
        return _one(telling, done[0])
    names = {one.tool_name for one in done}
    tasks = [task for one in done for task in tasks_of(one.data)]
    if names == {"add_task"}:
        titles = [f"'{title(one, 50)}'" for one in tasks]
        words = joined(titles[:6], telling.say("and"))
        if len(titles) > 6:
            words = f"{', '.join(titles[:5])} {telling.say('list_more', count=len(titles) - 5)}"
        return telling.say("tasks_created", titles=words)
    if len(names) == 1 and (key := _MANY.get(done[0].tool_name)):
        return telling.say(key, count=len({str(one.get("id")) for one in tasks}))
    parts: list[str] = []
    for one in done:
        said = _one(telling, one)
        if sum(map(len, parts)) + len(said) > 450:
            return f"{' '.join(parts)} {telling.say('list_more', count=len(done) - len(parts))}"
        parts.append(said)
    return " ".join(parts)


def _dates(telling: Telling, done: Sequence[ToolCallRecord], room: int) -> str:
    """The dates of the tasks that were added: what was understood is said back."""
    tasks = [task for one in done if one.tool_name == "add_task" for task in tasks_of(one.data)]
    words = telling.message
    quoted = [any(f"{mark}{one.get('title')}" in words for mark in "'\"“‘") for one in tasks]
    named = [
        not exact and looks_dated(str(one.get("title")))
        for one, exact in zip(tasks, quoted, strict=True)
    ]
    return dates(telling, list(zip(tasks, named, strict=True)), room)


def _one_task(telling: Telling, done: Sequence[ToolCallRecord]) -> str:
    """Several things in one title may have been meant as several tasks: how to say that."""
    if len(done) != 1 or done[0].tool_name != "add_task":
        return ""
    words = str((tasks_of(done[0].data) or [{}])[0].get("title"))
    things = _BETWEEN.split(words)
    short = len(words) <= 100 and all(0 < len(one.split()) < 4 for one in things)
    quoted = any(f"{mark}{words}" in telling.message for mark in "'\"“‘")
    if "," not in words or len(things) < 3 or not short or quoted:
        return ""
    return telling.say("one_task", title=shown(words, 100))


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


def _one(telling: Telling, record: ToolCallRecord) -> str:
    """One call that worked."""
    name, tasks = record.tool_name, tasks_of(record.data)
    if not tasks:
        return telling.say("done")
    task = tasks[0]
    if key := _ONE.get(name):
        return telling.say(key, title=title(task))
    if name == "update_task":
        before = telling.titles.get(str(task.get("id"))) if "title" in record.parameters else None
        named = task.get("was_called") or _first_title(telling, record) or before
        given = record.parameters or dict.fromkeys(task.get("changed") or (), True)
        words = changes(telling, given, task)
        return telling.say("task_updated", title=shown(named or title(task), 120), changes=words)
    if name == "bulk_delete" and len(tasks) == 1:
        return telling.say("task_deleted", title=title(task))
    if name == "bulk_update":
        given = {key: record.parameters.get(key) for key in ("priority", "due")}
        words = changes(telling, given, task)
        return telling.say("tasks_updated", count=len(tasks), changes=words)
    return telling.say(_MANY.get(name, "done"), count=len(tasks))


def _first_title(telling: Telling, record: ToolCallRecord) -> str:
    """What a task was called before this call, if that came up."""
    wanted = str(record.parameters.get("task_id"))
    for earlier in telling.records:
        if earlier is record:
            break
        for task in tasks_of(earlier.data):
            if str(task.get("id")) == wanted:
                return str(task.get("title", ""))
    return ""


def _failure(telling: Telling, wish: Wish, record: ToolCallRecord) -> str:
    """One call that did not work, as the second table says it."""
    error = record.result.get("error")
    error = error if isinstance(error, dict) else {}
    code = record.code
    if code == "not_found":
        return telling.say("not_found", query=_query(telling, wish, record))
    if code == "ambiguous":
        asked = options(telling, list(error.get("options", ())))
        return telling.say("ambiguous", query=shown(error.get("query", ""), _QUERY), options=asked)
    if code.startswith("invalid"):
        said = telling.say("invalid", missing=_missing(telling, wish, record, error))
        english = telling.replies.known(telling.language) == FALLBACK  # as the tools' own words are
        why = shown(error.get("hint", ""), 300) if english else ""
        return f"{said} {why}" if why and not leaks(why, Facts()) else said
    return telling.say("system_error")


def _query(telling: Telling, wish: Wish, record: ToolCallRecord | None = None) -> str:
    """What the user was looking for."""
    given = record.parameters if record is not None else {}
    ids = given.get("task_ids")
    first = ids[0] if isinstance(ids, list) and ids else given.get("task_id")
    known = telling.titles.get(str(first))
    if wish.kind == "unknown" and known:  # such as the phrase that confirmed it
        return shown(known, _QUERY)
    if wish.subject:
        return shown(wish.subject, _QUERY)
    if isinstance(query := given.get("query"), str) and query.strip():
        return shown(query, _QUERY)
    return shown(known or telling.message, _QUERY)


def _missing(telling: Telling, wish: Wish, record: ToolCallRecord, error: dict[str, Any]) -> str:
    key = _MISSING.get(record.code) or _MISSING.get(str(error.get("field", "")))
    if key is None and str(record.parameters.get("priority") or "low").lower() not in _LEVELS:
        key = "missing_priority"
    if key is None:
        key = "missing_title" if record.tool_name == "add_task" else "missing_task"
    named = telling.titles.get(str(record.parameters.get("task_id"))) or wish.subject
    return telling.say(key, title=shown(named, _QUERY))


def _asked(telling: Telling, wish: Wish) -> str:
    """Nothing was called. A request that lacks what it is about is answered with a question."""
    if wish.kind == "add" and not wish.subject:
        return telling.say("invalid", missing=telling.say("missing_title"))
    lacks = not (wish.subject or wish.number or wish.every)
    if lacks and (wish.is_action or wish.kind == "search"):
        return telling.say("invalid", missing=telling.say("missing_task"))
    return telling.say("cannot") if wish.kind == "foreign" else ""


def _read(telling: Telling, wish: Wish, record: ToolCallRecord) -> str:
    """Only looked at: a list is shown; what the words do not fit, or fit twice, is said."""
    tasks = tasks_of(record.data)
    if wish.kind == "list" and tasks and _HOW_MANY.search(telling.message):
        return _counted(telling, record)
    if (wish.kind == "list" and _is_plain(telling)) or (wish.every and not tasks):
        return _shown_list(telling, record)
    if wish.kind == "search":
        found = (
            tasks if record.tool_name == "search_tasks" else chosen("search", wish.subject, tasks)
        )
        if not found:
            return telling.say("not_found", query=_query(telling, wish, record))
        return listed(telling, found, len(found))
    if wish.is_action and _says_which(wish):
        fitting = chosen(wish.kind, wish.subject, tasks)
        if not fitting:
            return telling.say("not_found", query=_query(telling, wish, record))
        if len(fitting) > 1:
            asked = options(telling, fitting)
            return telling.say("ambiguous", query=_query(telling, wish), options=asked)
        if wish.fields.later is not None:
            return _unless_said(telling, _asks_for_a_date)
        return (
            "" if wish.kind != "update" or wish.fields.given else _what_to_change(telling, fitting)
        )
    return _shown_list(telling, record) if _looks_like_a_list(telling.said, tasks) else ""


def _says_which(wish: Wish) -> bool:
    return bool(wish.subject) and wish.subject.lower() not in ("it", "that", "this", "them")


def _is_plain(telling: Telling) -> bool:
    """Is it the list that is asked for, and not something about it that a model can tell?"""
    return not telling.said or _ABOUT.search(telling.message) is None


def _what_to_change(telling: Telling, fitting: Sequence[Any]) -> str:
    missing = telling.say("missing_change", title=title(fitting[0], _QUERY))
    return telling.say("invalid", missing=missing)


def _looks_like_a_list(said: str, tasks: Sequence[Any]) -> bool:
    return sum(1 for one in tasks if str(one.get("title")) in said) > 1


def _counted(telling: Telling, record: ToolCallRecord) -> str:
    """How many there are; a model that says it otherwise may have counted something else."""
    total = record.data.get("total")
    key = "tasks_counted_narrowed" if _is_narrowed(record) else "tasks_counted"
    return _unless_said(telling, lambda one: one.say(key, count=total))


def _asks_for_a_date(telling: Telling) -> str:
    return telling.say("invalid", missing=telling.say("missing_date"))


def _unless_said(telling: Telling, sentence: Callable[[Telling], str]) -> str:
    """The sentence, unless it is a model that speaks: rules say it in English."""
    by_rules = telling.said in ("", sentence(replace(telling, language=FALLBACK)))
    return sentence(telling) if by_rules else ""


def _is_narrowed(record: ToolCallRecord) -> bool:
    """Was it a part of the list that was asked for?"""
    narrowed = any(record.parameters.get(one) for one in ("due", "priority", "tag", "query"))
    return narrowed or record.parameters.get("status") not in (None, "all")


def _shown_list(telling: Telling, record: ToolCallRecord) -> str:
    tasks = tasks_of(record.data)
    if not tasks and record.parameters.get("skip"):
        return telling.say("list_over")
    if not tasks:
        return telling.say("list_none_like_that" if _is_narrowed(record) else "list_empty")
    total = record.data.get("total", len(tasks))
    skipped = record.parameters.get("skip")
    before = skipped if isinstance(skipped, int) else 0
    return listed(telling, tasks, total if isinstance(total, int) else len(tasks), before)
