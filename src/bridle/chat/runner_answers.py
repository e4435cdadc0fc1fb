"""A message that answers a question: compared by code, before any model is asked.

The phrase of the question that waits in this conversation of this user runs exactly the calls that
were put aside then. Anything else runs nothing.
"""

from bridle.chat.confirming import Question, confirms, openings, what_is_said
from bridle.chat.confirming_kept import Confirmations
from bridle.chat.profile import Profile, Telling
from bridle.chat.running import Run
from bridle.chat.values import AgentResult


class Answers:
    """Looks for the question that a message may be an answer to."""

    def __init__(self, waiting: Confirmations, profile: Profile) -> None:
        self._waiting = waiting
        self._profile = profile
        self._openings = openings(profile.replies)

    async def to(self, run: Run) -> AgentResult | None:
        """The reply to an answer; None where the message is none."""
        said = what_is_said(run.message, self._openings)
        if not said:
            return None
        context = run.context
        asked = await self._waiting.find(context.user_id, context.conversation_id)
        if asked is None or asked.answered_by not in ("", context.turn_id):
            return _say(run, "nothing_to_confirm") if said == "phrase" else None
        if asked.is_over() and not asked.answered_by:
            await self._waiting.drop(context.user_id, asked)
            return _say(run, "confirmation_expired") if said != "no" else _say(run, "kept")
        if said == "no":
            await self._waiting.drop(context.user_id, asked)
            return _say(run, "kept")
        if confirms(run.message, asked.phrase):
            return await self._confirmed(run, asked)
        return AgentResult(True, asked.text)  # nearly is not enough: the question stands

    async def _confirmed(self, run: Run, asked: Question) -> AgentResult:
        context = run.context
        if not await self._waiting.take(context.user_id, asked, context.turn_id):
            return _say(run, "nothing_to_confirm")
        for number, call in enumerate(asked.calls):
            operation = f"confirmed-{asked.id}:{number}"
            await run.apply(str(call["tool"]), dict(call["arguments"]), operation=operation)
        replies, records = self._profile.replies, tuple(run.records)
        telling = Telling(run.message, records, replies, context.language, titles=asked.titles)
        if any(one.code == "processing_error" for one in run.records):
            await self._waiting.release(context.user_id, asked)
            return _failed(run, telling)
        text = self._profile.tell(telling) or telling.say("done")
        return AgentResult(True, text, tuple(run.records))


def _failed(run: Run, telling: Telling) -> AgentResult:
    """The database or the tools are away: the question still waits, and can be answered again."""
    sorry = telling.say("system_error")
    return AgentResult(False, sorry, tuple(run.records), sorry)


def _say(run: Run, key: str) -> AgentResult:
    context = run.context
    return AgentResult(True, run.profile.replies.say(context.language, key))
