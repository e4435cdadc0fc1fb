"""The reply to a turn of the task assistant, made by code from the results of its calls.

It follows the three tables of replies. What was done comes from what the tools returned; nothing is
taken from what a model says about itself, nor from a title. Every word comes from the sentences of
the user's language, and every title goes through `clean_title`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from bridle.chat.i18n import FALLBACK, Replies, standard_replies
from bridle.chat.profile import ProposedCall, ReplyContext
from bridle.chat.reply_filter import FilterFacts, clean_title, find_leaks
from bridle.chat.tasks.date_phrases import looks_dated
from bridle.chat.tasks.task_matching import Task, find_equal_matches, tasks_in, thing_words
from bridle.chat.values import ToolCallRecord

_FOLDER = Path(__file__).with_name("i18n")


@cache
def task_replies() -> Replies:
    """Return the sentences about tasks."""
    return standard_replies().override(Replies.load(_FOLDER).languages)


_LONGEST = 500
_LINE = 90  # characters of a title in a list
_OPTIONS = 6  # that are named, each in so many characters
_OPTION = 50


def task_title(task: Task, longest: int = 200) -> str:
    """Return a task's title for use in a sentence."""
    return clean_title(task.get("title", ""), longest)


def format_day(context: ReplyContext, value: object, with_time: str = "date_time") -> str:
    """Format a date in the user's language, in the time zone of the result.

    `with_time` is the key of the sentence for a date with a time.
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
    """Format a numbered list with boxes that fits into a reply, and how many more there are."""
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
    """Format the due dates of tasks that were added, as many as there is room for.

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
        if sum(len(sentence) + 1 for sentence in sentences) + len(said) > room:
            break
        sentences.append(said)
    return " ".join(sentences)


def format_options(context: ReplyContext, tasks: Sequence[Task]) -> str:
    """Format the tasks to choose from, distinguishing those of the same title."""
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
    """Join words, as in "a, b or c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def format_changes(context: ReplyContext, given: Mapping[str, Any], task: Task) -> str:
    """Format what has changed about a task."""
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


# What a model may write that says that something was changed. It is only looked for in turns in
# which nothing was: what was changed is said by code, from the results of the calls.
_VERBS = "added|created|deleted|removed|updated|changed|renamed|moved|reopened|cleared|erased"
_ALL_VERBS = f"{_VERBS}|marked|completed"
_VERBS_ES = (
    r"(?:añadid|agregad|eliminad|borrad|quitad|actualizad|cambiad|completad|marcad|cread|movid)"
    r"[oa]s?"
)
_CLAIMS = (
    (
        r"\bI(?:'ve|’ve| have)?(?: just| now| successfully| already)*"
        rf" (?:{_ALL_VERBS}|done (?:it|that))\b"
    ),
    rf"\b(?:was|were|has been|have been|is now|are now)(?: successfully)? (?:{_VERBS})\b",
    rf"(?:^\s*|[.!]\s+)(?:all )?(?:done|set|{_ALL_VERBS})\b",
    r"\b(?:is|are) (?:now )?gone\b|\bno longer (?:there|on|in)\b|\bon your list now\b",
    r"\bfrom now on\b|✅|[✓✔]\s*$",
    rf"\bhe {_VERBS_ES}\b|\b(?:ha sido|han sido|fue|fueron) {_VERBS_ES}\b",
    rf"(?:^\s*|[.!]\s+)¡?(?:listo|hecho|{_VERBS_ES})\b",
    r"(?:^|\s)(?:تمت?\s|لقد\s|أضفت|حذفت|أزلت|أكملت|غيّ?رت|حدّ?ثت)",
)
_CHANGE_SENTENCES = (
    *("task_created", "task_completed", "task_deleted", "task_updated"),
    *("confirm_delete", "confirm_bulk"),
)
_SHORTEST = 6  # characters of a sentence's beginning by which it is recognised


@cache
def _claim_pattern() -> re.Pattern[str]:
    """Return a pattern for claims in our languages, and for our own sentences about changes."""
    replies = task_replies()
    openings = {
        (replies.find(language, key) or "").partition("{")[0]
        for language in replies.languages
        for key in _CHANGE_SENTENCES
    }
    known = [re.escape(opening) for opening in sorted(openings) if len(opening) >= _SHORTEST]
    return re.compile("|".join((*known, *_CLAIMS)), re.IGNORECASE)


def claims_a_change(text: str) -> bool:
    """Does a text say that something was changed, or that a confirmation was asked for?"""
    return _claim_pattern().search(text) is not None


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
_BETWEEN = re.compile(r",\s*(?:(?:and|&)\s)?|\s(?:and|&)\s")
_LIST_LINE = re.compile(r"^\s*(?:\d{1,5}[.)]|[-*•☐✓✔])\s.*$", re.MULTILINE)
_QUESTION = re.compile(r"[?؟？]\W*$")
_SAYS_LITTLE = 4  # letters: "ok", "Done"


def reply_text(context: ReplyContext) -> str:
    """Return the reply that a turn's calls determine; empty if the model's own text can be used.

    It depends on the results of the calls, not on what the person's words could mean.
    """
    if text := result_text(context):
        return text
    read = last_read(context)
    if read is not None and not read.ok:
        return failure_text(context, read)
    text = "" if read is None else _read_text(context, read)
    if not text and claims_a_change(context.model_text):
        return context.say("unclear") if read is None else search_text(context, read)
    return text


def fallback_text(context: ReplyContext) -> str:
    """Return what is said if the model's own words cannot be shown."""
    read = last_read(context)
    return search_text(context, read) if read is not None and read.ok else context.say("help")


def result_text(context: ReplyContext, subject: str = "") -> str:
    """Return what the turn's changes come to, done or failed; empty if there were none.

    `subject` are the person's words for the task, if they are known.
    """
    changed = [record for record in context.records if record.tool_name not in _READS]
    done = [call for call in changed if call.ok]
    if not done:
        return failure_text(context, changed[-1], subject) if changed else ""
    text = _changes_text(context, done)
    text = f"{text} {_due_sentences(context, done, _LONGEST_REPLY - len(text) - 1)}".strip()
    text = f"{text} {_one_task(context, done)}".strip()
    failed = next((one for one in reversed(changed) if _stays_failed(one, changed)), None)
    return f"{text} {failure_text(context, failed, subject)}".strip() if failed else text


def last_read(context: ReplyContext) -> ToolCallRecord | None:
    """Return the newest call of the turn that looked at the list."""
    return next(
        (record for record in reversed(context.records) if record.tool_name in _READS), None
    )


def check_call(call: ProposedCall) -> dict[str, Any] | None:
    """Refuse to change one of several tasks that the person's words fit equally well."""
    tasks = {str(task.get("id")): task for made in call.records for task in tasks_in(made.data)}
    chosen = tasks.get(str(call.arguments.get("task_id")))
    if chosen is None:
        return None
    is_done = {"complete_task": False, "reopen_task": True}.get(call.tool)
    likely = [one for one in tasks.values() if is_done in (None, bool(one.get("completed")))]
    query, fitting = find_equal_matches(call.message, chosen, likely)
    if len(fitting) < 2:
        return None
    return {
        "code": "ambiguous",
        "message": "Not done: the words fit several tasks. Ask which one.",
        "query": query,
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
    for call in done:
        said = _change_text(context, call)
        if sum(map(len, parts)) + len(said) > 450:
            return f"{' '.join(parts)} {context.say('list_more', count=len(done) - len(parts))}"
        parts.append(said)
    return " ".join(parts)


def _due_sentences(context: ReplyContext, done: Sequence[ToolCallRecord], room: int) -> str:
    """Return the due dates of added tasks, as they were understood."""
    tasks = [task for call in done if call.tool_name == "add_task" for task in tasks_in(call.data)]
    words = context.message
    quoted = [any(f"{mark}{one.get('title')}" in words for mark in "'\"“‘") for one in tasks]
    named = [
        not exact and looks_dated(str(one.get("title")))
        for one, exact in zip(tasks, quoted, strict=True)
    ]
    return format_dates(context, list(zip(tasks, named, strict=True)), room)


def _one_task(context: ReplyContext, done: Sequence[ToolCallRecord]) -> str:
    """Explain how to add several tasks if one title lists several things."""
    if len(done) != 1 or done[0].tool_name != "add_task":
        return ""
    words = str((tasks_in(done[0].data) or [{}])[0].get("title"))
    things = _BETWEEN.split(words)
    short = len(words) <= 100 and all(0 < len(thing.split()) < 4 for thing in things)
    quoted = any(f"{mark}{words}" in context.message for mark in "'\"“‘")
    if "," not in words or len(things) < 3 or not short or quoted:
        return ""
    return context.say("one_task", title=clean_title(words, 100))


def _stays_failed(record: ToolCallRecord, changed: Sequence[ToolCallRecord]) -> bool:
    """Did a call fail without a later one succeeding?"""
    if record.ok:
        return False
    if record is changed[-1]:
        return True
    title = record.parameters.get("title")
    same = (call.ok for call in changed if call.parameters.get("title") == title)
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
    """Return the sentence for a call that succeeded."""
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
    """Return a task's title before this call, if an earlier result has it."""
    wanted = str(record.parameters.get("task_id"))
    for earlier in context.records:
        if earlier is record:
            break
        for task in tasks_in(earlier.data):
            if str(task.get("id")) == wanted:
                return str(task.get("title", ""))
    return ""


def failure_text(context: ReplyContext, record: ToolCallRecord, subject: str = "") -> str:
    """Return the sentence for a call that did not work."""
    error = record.result.get("error")
    error = error if isinstance(error, dict) else {}
    code = record.code
    if code == "not_found":
        return context.say("not_found", query=query_words(context, record, subject))
    if code == "ambiguous":
        options = format_options(context, list(error.get("options", ())))
        query = clean_title(error.get("query", ""), _QUERY)
        return context.say("ambiguous", query=query, options=options)
    if code.startswith("invalid"):
        missing = _missing_words(context, record, error, subject)
        text = context.say("invalid", missing=missing)
        # the tools' own words are English
        is_english = context.replies.resolve_language(context.language) == FALLBACK
        hint = clean_title(error.get("hint", ""), 300) if is_english else ""
        return f"{text} {hint}" if hint and not find_leaks(hint, FilterFacts()) else text
    return context.say("system_error")


def query_words(context: ReplyContext, record: ToolCallRecord, subject: str = "") -> str:
    """Return the words for what the user was looking for."""
    arguments = record.parameters
    ids = arguments.get("task_ids")
    first = ids[0] if isinstance(ids, list) and ids else arguments.get("task_id")
    query = arguments.get("query")
    if subject:
        return clean_title(subject, _QUERY)
    if isinstance(query, str) and query.strip():
        return clean_title(query, _QUERY)
    return clean_title(context.titles.get(str(first)) or thing_words(context.message), _QUERY)


def _missing_words(
    context: ReplyContext, record: ToolCallRecord, error: dict[str, Any], subject: str
) -> str:
    key = _MISSING.get(record.code) or _MISSING.get(str(error.get("field", "")))
    if key is None and str(record.parameters.get("priority") or "low").lower() not in _LEVELS:
        key = "missing_priority"
    if key is None:
        key = "missing_title" if record.tool_name == "add_task" else "missing_task"
    title = context.titles.get(str(record.parameters.get("task_id"))) or subject
    return context.say(key, title=clean_title(title, _QUERY))


def _read_text(context: ReplyContext, record: ToolCallRecord) -> str:
    """Return the reply to a look at the list, unless the model's own words will do."""
    tasks, text = tasks_in(record.data), context.model_text
    if record.tool_name == "search_tasks" and not tasks:
        return search_text(context, record)
    if _QUESTION.search(text):
        return ""
    if looks_like_a_list(text, tasks):
        return search_text(context, record) if "?" in text else list_text(context, record)
    says_little = sum(map(str.isalpha, text)) <= _SAYS_LITTLE
    return search_text(context, record) if says_little else ""


def search_text(context: ReplyContext, record: ToolCallRecord) -> str:
    """Return what was found: the list, or a question if a search found several tasks."""
    tasks = tasks_in(record.data)
    if record.tool_name == "search_tasks" and len(tasks) != 1:
        query = query_words(context, record)
        if not tasks:
            return context.say("not_found", query=query)
        return context.say("ambiguous", query=query, options=format_options(context, tasks))
    return list_text(context, record)


def looks_like_a_list(text: str, tasks: Sequence[Any]) -> bool:
    """Does a text name several of the tasks, or one in a line of a list?"""
    titles = [str(task.get("title")) for task in tasks if str(task.get("title")) in text]
    lines = _LIST_LINE.findall(text)
    return len(titles) > 1 or any(title in line for title in titles for line in lines)


def is_narrowed(record: ToolCallRecord) -> bool:
    """Was only a part of the list asked for?"""
    narrowed = any(record.parameters.get(one) for one in ("due", "priority", "tag", "query"))
    return narrowed or record.parameters.get("status") not in (None, "all")


def list_text(context: ReplyContext, record: ToolCallRecord) -> str:
    """Return the tasks that a call returned, as a numbered list."""
    tasks = tasks_in(record.data)
    if not tasks and record.parameters.get("skip"):
        return context.say("list_over")
    if not tasks:
        return context.say("list_none_like_that" if is_narrowed(record) else "list_empty")
    total = record.data.get("total", len(tasks))
    skipped = record.parameters.get("skip")
    before = skipped if isinstance(skipped, int) else 0
    return format_list(context, tasks, total if isinstance(total, int) else len(tasks), before)
