"""The tool `ask_user`: a question to the person, and their answer.

The gate asks: the call itself is the question, and waits like every approval. When it runs, the
answer is there. If the person refuses, it does not run.
"""

import re
from pathlib import Path
from typing import Any

from bridle.policy import ToolPolicy
from bridle.protocols.tool import ToolContext, ToolResult


class AskUser:
    """Asks the person something that only they know."""

    name = "ask_user"
    description = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
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
                "description": "Answers to choose from, the one that you recommend first.",
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
        """Return what the person answered."""
        answer = context.word.strip()
        options: list[str] = arguments.get("options", [])
        if answer not in options and re.fullmatch("[1-6]", answer) and int(answer) <= len(options):
            answer = options[int(answer) - 1]  # chosen by its number
        text = f"The person answered: {answer}"
        if not answer:
            text = "The person agreed."
        elif options and answer not in options and not arguments.get("free_text", True):
            text = f"The person chose none of the options, and said: {answer}"
        return ToolResult.success({"question": arguments["question"], "answer": answer}, text=text)
