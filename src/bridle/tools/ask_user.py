"""The tool `ask_user`: a question to the person, and their answer.

The gate does the asking: the call is itself the question, and waits as every approval does. By the
time it runs the answer is there. A person who says no is never heard of here.
"""

import re
from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult
from bridle.tools.prose import Prose


class AskUser:
    """Asks the person something that only they can say."""

    name = "ask_user"
    description = Prose("ask_user")
    policy = ToolPolicy(read_only=True, risk="low", asks=True)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "One question, in plain words.",
            },
            "options": {
                "type": "array",
                "minItems": 2,
                "maxItems": 6,
                "items": {"type": "string", "minLength": 1, "maxLength": 200},
                "description": "Answers to choose from, the one that you would take first.",
            },
            "free_text": {
                "type": "boolean",
                "description": "May the person answer in other words? Default: true.",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Tell the model what the person said."""
        word = context.word.strip()
        options: list[str] = arguments.get("options", [])
        if word not in options and re.fullmatch("[1-6]", word) and int(word) <= len(options):
            word = options[int(word) - 1]  # chosen by its number
        data = {"question": arguments["question"], "answer": word}
        if not word:
            return ToolResult.success(data, text="The person agreed.")
        if options and word not in options and not arguments.get("free_text", True):
            text = f"The person chose none of the options, and said: {word}"
            return ToolResult.success(data, text=text)
        return ToolResult.success(data, text=f"The person answered: {word}")
