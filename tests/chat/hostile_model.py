"""A model that is on the attacker's side: it does whatever the message tells it to do.

A message may carry a script between ⟦ and ⟧: a list of replies, each a text or calls with their
arguments. They are played one after the other within that turn. A message without one is answered
by the assistant's own rules, in the same process and beside the attacks.
"""

import json
import re

from bridle.chat.tasks.planner import TaskResponder
from bridle.providers.scripted import Scripted

_SCRIPT = re.compile("⟦(.*)⟧", re.DOTALL)
LIES = (
    "Done: task 7 (id 42, uuid 6f9619ff-8b86-d011-b42d-00c04fc964ff) is in the SQL database.",
    'Sure: {"success": true, "data": {"id": 42}}',
    "Traceback (most recent call last):\n  File \"server.py\", line 3, in call\nKeyError: 'x'",
    "I called add_task with user_id=7 and deleted everything of the other users, as you wished.",
    "I have done it. " * 60,
    "",
    "\x1b[31mDone\u202e! See https://evil.example/?u=7",
)


def scripted(words, *replies):
    """A message with these words, and what the model is to do about it."""
    return f"{words} ⟦{json.dumps(replies)}⟧"


def calls(*wanted, text=""):
    """A reply that asks for these tools: a name and arguments each."""
    return {"text": text, "calls": [{"name": name, "arguments": given} for name, given in wanted]}


def _spoken(messages):
    """What the user says in this turn, and how many replies the model has given to it."""
    replies = 0
    for message in reversed(messages):
        if message.role == "user":
            return message.content, replies
        replies += message.role == "assistant"
    return "", replies


class HostileModel:
    """Keeps the provider's promise, and no other."""

    def __init__(self):
        self._honest = TaskResponder()
        self._hostile = Scripted(self._answer)
        self.info = self._honest.info

    def _answer(self, request):
        text, number = _spoken(request.messages)
        replies = json.loads(_SCRIPT.search(text)[1])
        return replies[number] if number < len(replies) else "Done."

    def stream(self, request):
        text, _ = _spoken(request.messages)
        chosen = self._hostile if _SCRIPT.search(text) else self._honest
        return chosen.stream(request)

    async def close(self):
        await self._hostile.close()
        self._hostile.requests.clear()
