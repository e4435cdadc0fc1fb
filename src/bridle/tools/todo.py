"""The tool `todo_write`: the model's own list of what is to be done, for the person to see."""

from typing import Any

from bridle.events import Todo, TodosChanged
from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose

_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "✓"}


class TodoWrite:
    """Writes the todo list anew. It changes nothing outside the log."""

    name = "todo_write"
    description = Prose("todo")
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
        """Say that the list is another now."""
        todos = tuple(Todo(item["content"], item["status"]) for item in arguments["todos"])
        context.emit(TodosChanged(todos))
        lines = [f"{_MARKS[todo.status]} {todo.content}" for todo in todos]
        return ToolResult.success(arguments["todos"], text="\n".join(lines) or "The list is empty.")
