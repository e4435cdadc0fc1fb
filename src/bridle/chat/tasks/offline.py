"""A responder for tasks that needs no key: rules over what the user wrote, and the tools.

It keeps the provider's promise as a model does: it asks for tools, reads what they give back, and
says a sentence. It is no language model. It remembers nothing: what «the second one» or «it» means
is found in the conversation that it is handed, and looked up again in the user's own list.
"""

from collections.abc import Sequence

from bridle.chat.profile import Telling
from bridle.chat.responder import Responder, read_messages
from bridle.chat.tasks.offline_plan import Step, Turn, plan
from bridle.chat.tasks.sentences import task_replies
from bridle.chat.tasks.telling import otherwise, tell
from bridle.messages import Message, Part, Text, ToolCall


class TaskResponder(Responder):
    """Keeps the provider's promise with the rules of the tasks."""

    def __init__(self) -> None:
        super().__init__("tasks", _answer, languages=("en",))


def _answer(messages: Sequence[Message]) -> tuple[Part, ...]:
    turn = Turn(*read_messages(messages))
    step = plan(turn)
    if isinstance(step, str):
        return (Text(step or _say(turn)),)
    calls: Sequence[Step] = step
    return tuple(
        ToolCall(f"responder_{len(messages)}_{number}", one.tool, dict(one.arguments))
        for number, one in enumerate(calls)
    )


def _say(turn: Turn) -> str:
    telling = Telling(turn.message, turn.records, task_replies(), titles=turn.titles)
    return tell(telling) or otherwise(telling)
