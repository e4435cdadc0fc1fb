"""The tool `todo_write`: the model's own list of tasks, which the person sees."""

from pathlib import Path
from typing import Any

from bridle.events import Todo, TodosChanged
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult

_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "✓"}


class TodoWrite:
    """Replaces the todo list. It changes nothing outside the log."""

    name = "todo_write"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    policy = ToolPolicy(read_only=True, risk="low")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "maxItems": 200,
                "description": "The whole list, in order.",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "minLength": 1, "maxLength": 1000},
                        "status": {"enum": ["pending", "in_progress", "completed"]},
                    },
                    "required": ["content", "status"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["todos"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Record the new list."""
        todos = tuple(Todo(item["content"], item["status"]) for item in arguments["todos"])
        context.emit(TodosChanged(todos))
        lines = [f"{_MARKS[todo.status]} {todo.content}" for todo in todos]
        return ToolResult.success(arguments["todos"], text="\n".join(lines) or "The list is empty.")
