"""The tools over a user's tasks, and `MCPToolServer`, which serves them.

Each docstring is what a model reads. Nothing here knows who the user is: the session does. A bulk
tool changes all of its tasks, or none if one of them does not exist.
"""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from bridle.chat.db import Task, utc_now
from bridle.chat.tasks import store
from bridle.chat.tasks.dates import keep_day
from bridle.chat.tasks.fields import (
    PRIORITIES,
    parse_due,
    parse_notes,
    parse_priority,
    parse_tags,
    parse_title,
    set_due,
    to_wire,
)
from bridle.chat.tasks.store import Status
from bridle.chat.tools.mcp_server import ToolServer
from bridle.chat.tools.toolbox import Call, Toolbox, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlmodel import Session


INSTRUCTIONS = (
    "The tasks of one person. Tasks are named by their number in calls and by their title to the "
    "person; a number is never shown. Dates may be written as people say them."
)
TASKS = Toolbox("bridle-tasks", INSTRUCTIONS)

Priority = Annotated[
    str, Meta(description="How important it is.", extra_json_schema={"enum": list(PRIORITIES)})
]
DueText = Annotated[
    str, Meta(description="As people say it: 'tomorrow', 'next Friday 5pm', '2026-03-14 09:00'.")
]
TaskId = Annotated[int, Meta(description="The task's number, from list_tasks or search_tasks.")]
Limit = Annotated[int, Meta(ge=1, le=500)]


@TASKS.tool
def add_task(
    call: Call,
    title: str,
    notes: str = "",
    priority: Priority = "Medium",
    due: DueText = "",
    tags: list[str] = [],  # noqa: B006 (it is read, never changed)
) -> dict[str, Any]:
    """Put a task on the list.

    Args:
        title: What is to be done, in the person's own words.
        notes: More about it.
        tags: Words to find it by.
    """
    task = Task(
        title=parse_title(title), notes=parse_notes(notes), priority=parse_priority(priority)
    )
    task.tags = parse_tags(tags)
    set_due(task, parse_due(due, call.now) if due.strip() else None)
    return to_wire(store.insert_task(call, task), call.binding.zone)


@TASKS.tool(reads=True)
def list_tasks(
    call: Call,
    status: Status = "all",
    due: str = "any",
    priority: str = "",
    tag: str = "",
    limit: Limit = 100,
    skip: Annotated[int, Meta(ge=0, le=10_000)] = 0,
) -> dict[str, Any]:
    """List the person's tasks, the oldest first.

    Args:
        status: Open ones, done ones, or all.
        due: Only those that are due then: any, none, overdue, today, tomorrow, this_week,
            next_week, or a day as people say it, such as 'friday' or 'by 24 December'.
        priority: Only those of this priority.
        tag: Only those with this tag.
        limit: How many at most; `total` says how many there are.
        skip: How many of the oldest to leave out, such as those that were shown before.
    """
    filters = store.build_filters(call, status, due, parse_priority(priority) if priority else "")
    if tag.strip():
        wanted = (parse_tags([tag]) or [""])[0]
        tasks, total = store.select_by_tag(call, filters, wanted, limit + skip)
    else:
        tasks, total = store.select_tasks(call, filters, limit + skip)
    tasks = tasks[skip:]
    return {"tasks": [to_wire(task, call.binding.zone) for task in tasks], "total": total}


@TASKS.tool(reads=True)
def search_tasks(
    call: Call, query: str, status: Status = "all", limit: Limit = 50
) -> dict[str, Any]:
    """Find the person's tasks by words in their title, notes or tags.

    Args:
        query: The words; all of them have to be there.
        status: Open ones, done ones, or all.
        limit: How many at most; `total` says how many there are.
    """
    if not query.strip():
        raise ToolFailed("invalid_input", "Which words should the task have?", field="query")
    tasks = store.search(call, query, status)
    shown = [to_wire(task, call.binding.zone) for task in tasks[:limit]]
    return {"tasks": shown, "total": len(tasks)}


@TASKS.tool
def complete_task(call: Call, task_id: TaskId) -> dict[str, Any]:
    """Mark a task as done. One that is done already stays as it is."""
    task = store.find_task(call, task_id)
    set_completed(task, True)
    return to_wire(task, call.binding.zone)


@TASKS.tool
def reopen_task(call: Call, task_id: TaskId) -> dict[str, Any]:
    """Put a task that was done back on the list. One that is open stays as it is."""
    task = store.find_task(call, task_id)
    set_completed(task, False)
    return to_wire(task, call.binding.zone)


class Changes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `update_task` takes."""

    task_id: TaskId
    title: Annotated[str | None, Meta(description="The new title.")] = None
    notes: Annotated[str | None, Meta(description="The new notes; empty: none.")] = None
    priority: Priority | None = None
    due: Annotated[str | None, Meta(description="The new date; 'none' takes it away.")] = None
    tags: Annotated[list[str] | None, Meta(description="All of the new tags.")] = None


@TASKS.tool
def update_task(call: Call, changes: Changes) -> dict[str, Any]:
    """Change a task; what is left out stays as it is."""
    task = store.find_task(call, changes.task_id)
    before = to_wire(task, call.binding.zone)
    if changes == Changes(task_id=changes.task_id):
        raise ToolFailed("invalid_input", "What should change about the task?", field="change")
    if changes.title is not None:
        task.title = parse_title(changes.title)
    if changes.notes is not None:
        task.notes = parse_notes(changes.notes)
    if changes.tags is not None:
        task.tags = parse_tags(changes.tags)
    due = changes.due and keep_day(changes.due, before["due"], call.now)
    change(call, task, changes.priority, due)
    after = to_wire(task, call.binding.zone)
    changed = [name for name in after if after[name] != before[name]]
    told = {**after, "changed": changed}  # what it was called before is gone with this call
    return {**told, "was_called": before["title"]} if "title" in changed else told


@TASKS.tool(deletes=True)
def delete_task(call: Call, task_id: TaskId) -> dict[str, Any]:
    """Take a task off the list for good. The person is asked first."""
    task = store.find_task(call, task_id)
    gone = to_wire(task, call.binding.zone)
    call.session.delete(task)
    return gone


def set_completed(task: Task, done: bool) -> None:
    """Done or not; a task that is so already keeps its time."""
    if task.completed != done:
        task.completed = done
        task.completed_at = utc_now() if done else None
        task.updated_at = utc_now()


def change(call: Call, task: Task, priority: str | None, due: str | None) -> None:
    """What one and many tasks can be given."""
    if priority is not None:
        task.priority = parse_priority(priority)
    if due is not None:
        set_due(task, parse_due(due or "none", call.now))
    task.updated_at = utc_now()


TaskIds = Annotated[
    list[int], Meta(min_length=1, max_length=500, description="The tasks' numbers.")
]


@TASKS.tool
def bulk_complete(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Mark many tasks as done. The person is asked first."""
    tasks = store.find_tasks(call, task_ids)
    for task in tasks:
        set_completed(task, True)
    return _bulk_result(call, tasks)


@TASKS.tool
def bulk_reopen(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Put many tasks that were done back on the list. The person is asked first."""
    tasks = store.find_tasks(call, task_ids)
    for task in tasks:
        set_completed(task, False)
    return _bulk_result(call, tasks)


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
    tasks = store.find_tasks(call, task_ids)
    for task in tasks:
        change(call, task, priority, due)
    return _bulk_result(call, tasks)


@TASKS.tool(deletes=True)
def bulk_delete(call: Call, task_ids: TaskIds) -> dict[str, Any]:
    """Take many tasks off the list for good. The person is asked first."""
    tasks = store.find_tasks(call, task_ids)
    gone = _bulk_result(call, tasks)
    for task in tasks:
        call.session.delete(task)
    return gone


def _bulk_result(call: Call, tasks: list[Task]) -> dict[str, Any]:
    shown = [to_wire(task, call.binding.zone) for task in tasks]
    return {"tasks": shown, "count": len(shown)}


class MCPToolServer(ToolServer):
    """The task tools. `session_factory` returns a `Session`; each call has its own."""

    def __init__(self, session_factory: "Callable[[], Session]") -> None:
        super().__init__(TASKS, session_factory)
