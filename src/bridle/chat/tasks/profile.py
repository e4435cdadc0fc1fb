"""The task assistant, as a profile: its prompt, its sentences, what it asks about first."""

from functools import cache
from pathlib import Path

from bridle.chat.profile import Confirm, Profile, Wanted
from bridle.chat.tasks.offline import TaskResponder
from bridle.chat.tasks.offline_words import understood
from bridle.chat.tasks.sentences import task_replies
from bridle.chat.tasks.telling import otherwise, tell, vet

_PROMPT = Path(__file__).with_name("prompt.md")
_LOGO = Path(__file__).with_name("logo.svg")
_EVERY = {"limit": 500}


def _bulk(verb: str) -> Confirm:
    one = (
        ("confirm_delete", "phrase_delete") if verb == "delete" else ("confirm_bulk", "phrase_bulk")
    )
    return Confirm(
        verb,
        "task_id",
        "task_ids",
        lookup="list_tasks",
        looking=_EVERY,
        question=one[0],
        phrase=one[1],
    )


CONFIRM = {
    "delete_task": Confirm("delete", "task_id", lookup="list_tasks", looking=_EVERY),
    "bulk_delete": _bulk("delete"),
    "bulk_complete": _bulk("complete"),
    "bulk_reopen": _bulk("reopen"),
    "bulk_update": _bulk("update"),
}
_EACH = {
    "complete_task": _bulk("complete"),
    "reopen_task": _bulk("reopen"),
    "update_task": _bulk("update"),
}


def asks(wanted: Wanted) -> Confirm | None:
    """Who wants all of them changed is asked, also if a model changes them one by one."""
    wish = understood(wanted.message)
    return _EACH.get(wanted.tool) if wish.is_action and wish.every is not None else None


@cache
def task_profile() -> Profile:
    """The assistant for a user's own tasks."""
    return Profile(
        "tasks",
        _PROMPT.read_text(encoding="utf-8"),
        replies=task_replies(),
        tell=tell,
        otherwise=otherwise,
        vet=vet,
        confirm=CONFIRM,
        asks=asks,
        responder=TaskResponder,
        nouns=("task", "todo"),
        title="Tasks",
        logo=_LOGO,
        suggestions=("Show my tasks", "Add buy bread tomorrow", "What is due today?"),
    )
