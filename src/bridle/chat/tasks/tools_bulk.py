"""The tools that change many tasks at once: all of them or, where one is not there, none."""

from typing import Annotated, Any

from msgspec import Meta

from bridle.chat.data import Task
from bridle.chat.tasks import store
from bridle.chat.tasks.results import to_wire
from bridle.chat.tasks.tools import TASKS, DueText, Priority, change, set_completed
from bridle.chat.toolbox import Call, ToolFailed

TaskIds = Annotated[
    list[int], Meta(min_length=1, max_length=500, description="The tasks' numbers.")
]


@TASKS.tool
def bulk_complete(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Mark many tasks as done. The person is asked first."""
    tasks = store.found_all(call, task_ids)
    for task in tasks:
        set_completed(task, True)
    return _told(call, tasks)


@TASKS.tool
def bulk_reopen(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Put many tasks that were done back on the list. The person is asked first."""
    tasks = store.found_all(call, task_ids)
    for task in tasks:
        set_completed(task, False)
    return _told(call, tasks)


@TASKS.tool
def bulk_update(
    call: Call, task_ids: TaskIds, priority: Priority | None = None, due: DueText | None = None
) -> dict[str, Any]:
    """Give many tasks the same priority or date. The person is asked first.

    Args:
        due: The new date; 'none' takes it away.
    """
    if priority is None and due is None:
        raise ToolFailed("invalid_input", "What should change about the tasks?", field="change")
    tasks = store.found_all(call, task_ids)
    for task in tasks:
        change(call, task, priority, due)
    return _told(call, tasks)


@TASKS.tool(deletes=True)
def bulk_delete(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Take many tasks off the list for good. The person is asked first."""
    tasks = store.found_all(call, task_ids)
    gone = _told(call, tasks)
    for task in tasks:
        call.session.delete(task)
    return gone


def _told(call: Call, tasks: list[Task]) -> dict[str, Any]:
    shown = [to_wire(one, call.binding.zone) for one in tasks]
    return {"tasks": shown, "count": len(shown)}
