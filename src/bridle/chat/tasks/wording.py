"""Tasks in words: a title, a day, a list with boxes, options to choose from, what has changed.

Every word comes from the sentences of the user's language, every title goes through `shown`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bridle.chat.guard_titles import shown
from bridle.chat.profile import Telling
from bridle.chat.tasks.choosing import Task

_LONGEST = 500
_LINE = 90  # characters of a title in a list
_OPTIONS = 6  # that are named, each in so many characters
_OPTION = 50


def title(task: Task, longest: int = 200) -> str:
    """A task's title, as a sentence has it."""
    return shown(task.get("title", ""), longest)


def day(telling: Telling, value: object, with_time: str = "date_time") -> str:
    """A date as people read it, in the user's language; in the zone that the tool said it in.

    `with_time` is the sentence for one that has a time.
    """
    text = str(value)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return shown(text, 60)
    words = {
        "weekday": telling.say("weekdays").split()[moment.weekday()],
        "day": moment.day,
        "month": telling.say("months").split()[moment.month - 1],
        "year": moment.year,
        "time": f"{moment:%H:%M}",
    }
    return telling.say(with_time if len(text) > 10 else "date", **words)


def listed(telling: Telling, tasks: Sequence[Task], total: int, shown_before: int = 0) -> str:
    """A numbered list with boxes, as long as a reply may be; then how many more there are."""
    lines: list[str] = []
    room = _LONGEST - len(telling.say("list_more", count=total)) - 1
    for number, task in enumerate(tasks, shown_before + 1):
        line = _line(telling, number, task)
        if sum(len(one) + 1 for one in lines) + len(line) > room:
            break
        lines.append(line)
    rest = max(total - shown_before, len(tasks)) - len(lines)
    if rest > 0:
        lines.append(telling.say("list_more", count=rest))
    return "\n".join(lines)


def _line(telling: Telling, number: int, task: Task) -> str:
    box = telling.say("checked" if task.get("completed") else "unchecked")
    line = f"{number}. {box} {title(task, _LINE)}"
    if task.get("due"):
        line += f" ({telling.say('list_due', when=day(telling, task['due']))})"
    return line


def dates(telling: Telling, added: Sequence[tuple[Task, bool]], room: int) -> str:
    """When the tasks that were added are due, as it was understood; so much as there is room for.

    Each task comes with whether its title still names a day.
    """
    sentences: list[str] = []
    for task, named in added:
        key = "due_follows" if len(added) == 1 else "due_follows_named"
        if task.get("due"):
            when = day(telling, task["due"], "date_and_time")
            said = telling.say(key, title=title(task, _OPTION), when=when)
        elif named:
            said = telling.say(key.replace("follows", "none"), title=title(task, _OPTION))
        else:
            continue
        if sum(len(one) + 1 for one in sentences) + len(said) > room:
            break
        sentences.append(said)
    return " ".join(sentences)


def options(telling: Telling, tasks: Sequence[Task]) -> str:
    """What there is to choose from; tasks of the same title are told apart."""
    known = [title(one, _OPTION) for one in tasks]
    read = [text.casefold() for text in known]  # "Call Bob" and "call Bob" read the same
    twice = {text for text, count in Counter(read).items() if count > 1}
    words: list[str] = []
    for place, task in enumerate(tasks[:_OPTIONS]):
        text = f"'{known[place]}'"
        words.append(_apart(telling, task, text, place) if read[place] in twice else text)
    if len(tasks) > _OPTIONS:
        more = telling.say("list_more", count=len(tasks) - _OPTIONS)
        return f"{', '.join(words)} {more}"
    return joined(words, telling.say("or"))


def _apart(telling: Telling, task: Task, text: str, place: int) -> str:
    if task.get("completed"):
        text = telling.say("option_done", title=text)
    elif task.get("due"):
        text = telling.say("option_due", title=text, when=day(telling, task["due"]))
    return telling.say("option_number", title=text, number=place + 1)


def joined(words: Sequence[str], last: str) -> str:
    """«a, b or c»."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def changes(telling: Telling, given: Mapping[str, Any], task: Task) -> str:
    """What a task has now that it was given this, in words."""
    found = [
        _changed(telling, name, task)
        for name in ("title", "priority", "due", "tags", "notes")
        if given.get(name) is not None
    ]
    return joined(found, telling.say("and")) or telling.say("change_none")


def _changed(telling: Telling, name: str, task: Task) -> str:
    value = task.get(name)
    if not value:
        return telling.say(f"change_no_{name}" if name != "title" else "change_none")
    if name == "due":
        return telling.say("change_due", value=day(telling, value))
    if name == "tags":
        tags = [f"'{shown(one, 30)}'" for one in value[:5]]
        return telling.say("change_tags", value=joined(tags, telling.say("and")))
    if name == "priority":
        level = telling.replies.find(telling.language, f"priority_{str(value).lower()}")
        return telling.say("change_priority", value=level or shown(value, 20))
    return telling.say(f"change_{name}", value=shown(value, 120))
