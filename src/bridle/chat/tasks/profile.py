"""The task assistant as a profile: its prompt, its sentences, what must be confirmed."""

from functools import cache
from pathlib import Path

from bridle.chat.profile import Confirm, Profile
from bridle.chat.tasks.planner import TaskResponder
from bridle.chat.tasks.replies import check_call, fallback_text, reply_text, task_replies

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
        lookup_arguments=_EVERY,
        question=one[0],
        phrase=one[1],
    )


CONFIRM = {
    "delete_task": Confirm("delete", "task_id", lookup="list_tasks", lookup_arguments=_EVERY),
    "bulk_delete": _bulk("delete"),
    "bulk_complete": _bulk("complete"),
    "bulk_reopen": _bulk("reopen"),
    "bulk_update": _bulk("update"),
}
CONFIRM_MANY = {
    "complete_task": _bulk("complete"),
    "reopen_task": _bulk("reopen"),
    "update_task": _bulk("update"),
}


@cache
def task_profile() -> Profile:
    """Return the assistant for a user's own tasks."""
    return Profile(
        "tasks",
        _PROMPT.read_text(encoding="utf-8"),
        replies=task_replies(),
        reply_text=reply_text,
        fallback_text=fallback_text,
        check_call=check_call,
        confirm=CONFIRM,
        confirm_many=CONFIRM_MANY,
        responder=TaskResponder,
        nouns=("task", "todo"),
        title="Tasks",
        logo=_LOGO,
        suggestions=("Show my tasks", "Add buy bread tomorrow", "What is due today?"),
    )
