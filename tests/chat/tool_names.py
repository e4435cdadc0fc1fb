"""What the tests of the task tools know in common."""

ALL = [
    "add_task",
    "list_tasks",
    "search_tasks",
    "complete_task",
    "reopen_task",
    "update_task",
    "delete_task",
    "bulk_complete",
    "bulk_reopen",
    "bulk_update",
    "bulk_delete",
]
