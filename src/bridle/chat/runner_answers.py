"""A message that answers a question: compared by code, before any model is asked.

The phrase of the question that waits in this conversation of this user runs exactly the calls that
were put aside then, as long as they still are what was asked about. Anything else runs nothing. Any
message but an answer lets the question lapse: a later phrase confirms nothing any more.
"""

from dataclasses import replace
from typing import Any

from bridle.chat.confirming import (
    Asked,
    Question,
    confirms,
    only,
    openings,
    question,
    targets,
    what_is_said,
)
from bridle.chat.confirming_kept import Confirmations
from bridle.chat.guard_titles import shown
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
        """The reply to an answer; None if the message is not one."""
        said = what_is_said(run.message, self._openings)
        if not said:
            return None
        context = run.context
        asked = await self._waiting.find(context.user_id, context.conversation_id)
        if asked is None or asked.answered_by not in ("", context.turn_id):
            return _say(run, "nothing_to_confirm") if said == "phrase" else None
        if asked.answered_by and confirms(run.message, asked.phrase):
            return await self._confirmed(run, asked)  # an earlier attempt at this turn was sure
        if asked.asked_by == context.turn_id:
            return AgentResult(True, asked.text)
        if self._has_lapsed(run, asked):
            await self._waiting.drop(context.user_id, asked)
            return _say(run, "confirmation_lapsed") if said == "phrase" else None
        if asked.is_over():
            await self._waiting.drop(context.user_id, asked)
            return _say(run, "confirmation_expired") if said != "no" else _say(run, "kept")
        if said == "no":
            await self._waiting.drop(context.user_id, asked)
            return _say(run, "kept")
        if confirms(run.message, asked.phrase):
            return await self._anew(run, asked) or await self._confirmed(run, asked)
        return AgentResult(True, asked.text)  # nearly is not enough: the question stands

    def _has_lapsed(self, run: Run, asked: Question) -> bool:
        """Has the person said anything but an answer since the question was put?"""
        history = run.context.message_history
        since: list[str] = []
        for one in reversed(history):
            if one.role == "assistant" and asked.text in one.content:
                return not all(what_is_said(words, self._openings) for words in since)
            if one.role == "user":
                since.append(one.content)
        return bool(history)  # the question is further back than the history goes

    async def _anew(self, run: Run, asked: Question) -> AgentResult | None:
        """The question as it has to be put by now; None where it still is the same."""
        rule = self._profile.confirm.get(str(asked.calls[0]["tool"]))
        if rule is None or not rule.lookup:
            return None
        looked = await run.apply(rule.lookup, dict(rule.looking), reads=True)
        if looked.get("success") is not True:
            return _failed(run, Telling(run.message, (), run.profile.replies, run.context.language))
        there = {key: shown(title) for key, title in run.titles.items()}
        if not _is_whole(looked):  # what a look does not show is believed to be as it was
            there = {**asked.titles, **there}
        left: list[Asked] = []
        for call in asked.calls:
            arguments = dict(call["arguments"])
            known = [one for one in targets(rule, arguments) if one in there]
            titles = {one: there[one] for one in known}
            if known:
                kept = only(rule, arguments, known)
                left.append(Asked(str(call["tool"]), kept, rule, titles))
        now = {key: title for one in left for key, title in one.titles.items()}
        if not left or now == asked.titles:
            return None
        context = run.context
        again = question(left, self._profile.replies, context.language)
        again = replace(again, asked_by=context.turn_id)
        await self._waiting.ask(context.user_id, context.conversation_id, again)
        return AgentResult(True, again.text, tuple(run.records))

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


def _is_whole(looked: dict[str, Any]) -> bool:
    """Did a look at the list show all of it?"""
    data = looked.get("data")
    found = data if isinstance(data, dict) else {}
    total = found.get("total")
    shown_now = sum(len(one) for one in found.values() if isinstance(one, list))
    return not isinstance(total, int) or total <= shown_now


def _failed(run: Run, telling: Telling) -> AgentResult:
    """The database or the tools are away: the question still waits, and can be answered again."""
    sorry = telling.say("system_error")
    return AgentResult(False, sorry, tuple(run.records), sorry)


def _say(run: Run, key: str) -> AgentResult:
    context = run.context
    return AgentResult(True, run.profile.replies.say(context.language, key))
