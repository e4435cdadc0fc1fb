"""A small real runner for tests of the service: it notes what it is told, once for each turn.

`note X` adds a task through the toolbox's own way of applying an operation; `fail` raises, `slow`
takes longer than it may, anything else is echoed with what it knows of the conversation.
"""

import asyncio

from bridle.chat.db import Task
from bridle.chat.tools.apply_once import ApplyOnce
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.toolbox import Call, Toolbox
from bridle.chat.values import AgentResult, ToolCallRecord

toolbox = Toolbox("notes")


@toolbox.tool
def note(call: Call, title: str) -> dict:
    """Note something."""
    row = Task(title=title)
    call.session.add(row)
    call.session.flush()
    return {"id": row.id, "title": title}


class SmallRunner:
    """Answers messages; `ran` holds those that it was asked, in order."""

    def __init__(self, database):
        self._apply = ApplyOnce(toolbox, database.session_factory)
        self.ran = []
        self.gates = {}

    async def run(self, context, message):
        self.ran.append(message)
        if message in self.gates:
            await self.gates[message].wait()
        if message == "fail":
            raise RuntimeError("secret details of a stack")
        if message.startswith("note "):
            return await self._note(context, message.removeprefix("note "))
        seen = len(context.message_history)
        return AgentResult(True, f"{message}! I know {seen} messages.")

    async def _note(self, context, titles):
        """Several notes with commas between them, an operation each."""
        made = []
        for number, title in enumerate(titles.split(",")):
            operation = f"{context.turn_id}:{number}"
            binding = Binding(context.user_id, context.conversation_id, operation)
            arguments = {"title": title}
            result = await asyncio.to_thread(self._apply, "note", arguments, binding)
            made.append(ToolCallRecord("note", arguments, result, 1))
        good = all(one.ok for one in made)
        response = f"Noted {len(made)}." if good else "I'm having a bit of trouble right now."
        return AgentResult(good, response, tuple(made), None if good else response)
