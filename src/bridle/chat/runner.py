"""Answer a user's message: one friendly reply, and the tool calls that were made for it.

`AgentRunner` keeps no state between two runs. The user's id comes with the context and goes to the
tools behind the model's back. Whatever goes wrong, the person reads a sentence, and the details go
to the log.

An answer to a pending question is handled by code before any model is asked. The exact phrase runs
the calls that were put aside, if they still affect what the person was asked about. Any other
message lets the question lapse: after that, the phrase confirms nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from bridle.chat.confirmations import (
    Confirmations,
    PendingCall,
    Question,
    build_question,
    classify_answer,
    is_phrase,
    phrase_openings,
    restrict_call,
    target_ids,
)
from bridle.chat.engine import ChatEngine, choose_provider, past_messages
from bridle.chat.i18n import detect_language
from bridle.chat.limits import RunLimits, message_problem
from bridle.chat.profile import Profile, ReplyContext
from bridle.chat.reply_filter import clean_title, filter_reply
from bridle.chat.tools.source import ToolSource
from bridle.chat.turn import ChatTurn, find_applied_changes
from bridle.chat.values import AgentContext, AgentResult, TurnTimeout, check_session_factory
from bridle.protocols.provider import Provider, ProviderInfo
from bridle.protocols.session import TurnResult


class ConfirmationAnswers:
    """Looks for the question that a message may be an answer to."""

    def __init__(self, waiting: Confirmations, profile: Profile) -> None:
        self._waiting = waiting
        self._profile = profile
        self._openings = phrase_openings(profile.replies)

    async def handle(self, run: ChatTurn) -> AgentResult | None:
        """The reply to an answer; None if the message is not one."""
        said = classify_answer(run.message, self._openings)
        if not said:
            return None
        context = run.context
        asked = await self._waiting.find(context.user_id, context.conversation_id)
        if asked is None or asked.answered_by not in ("", context.turn_id):
            return _sentence_result(run, "nothing_to_confirm") if said == "phrase" else None
        if asked.answered_by and is_phrase(run.message, asked.phrase):
            return await self._confirmed(run, asked)  # an earlier attempt at this turn was sure
        if asked.asked_by == context.turn_id:
            return AgentResult(True, asked.text)
        if self._has_lapsed(run, asked):
            await self._waiting.drop(context.user_id, asked)
            return _sentence_result(run, "confirmation_lapsed") if said == "phrase" else None
        if asked.is_over():
            await self._waiting.drop(context.user_id, asked)
            return (
                _sentence_result(run, "confirmation_expired")
                if said != "no"
                else _sentence_result(run, "kept")
            )
        if said == "no":
            await self._waiting.drop(context.user_id, asked)
            return _sentence_result(run, "kept")
        if is_phrase(run.message, asked.phrase):
            return await self._anew(run, asked) or await self._confirmed(run, asked)
        return AgentResult(True, asked.text)  # nearly is not enough: the question stands

    def _has_lapsed(self, run: ChatTurn, asked: Question) -> bool:
        """Has the person said anything but an answer since the question was put?"""
        history = run.context.message_history
        since: list[str] = []
        for one in reversed(history):
            if one.role == "assistant" and asked.text in one.content:
                return not all(classify_answer(words, self._openings) for words in since)
            if one.role == "user":
                since.append(one.content)
        return bool(history)  # the question is further back than the history goes

    async def _anew(self, run: ChatTurn, asked: Question) -> AgentResult | None:
        """The question as it has to be put by now; None where it still is the same."""
        rule = self._profile.confirm.get(str(asked.calls[0]["tool"]))
        if rule is None or not rule.lookup:
            return None
        looked = await run.apply(rule.lookup, dict(rule.lookup_arguments), reads=True)
        if looked.get("success") is not True:
            return _failed_answer(
                run, ReplyContext(run.message, (), run.profile.replies, run.context.language)
            )
        there = {key: clean_title(title) for key, title in run.titles.items()}
        if not _lists_everything(looked):  # what a look does not show is believed to be as it was
            there = {**asked.titles, **there}
        left: list[PendingCall] = []
        for call in asked.calls:
            arguments = dict(call["arguments"])
            known = [one for one in target_ids(rule, arguments) if one in there]
            titles = {one: there[one] for one in known}
            if known:
                kept = restrict_call(rule, arguments, known)
                left.append(PendingCall(str(call["tool"]), kept, rule, titles))
        now = {key: title for one in left for key, title in one.titles.items()}
        if not left or now == asked.titles:
            return None
        context = run.context
        again = build_question(left, self._profile.replies, context.language)
        again = replace(again, asked_by=context.turn_id)
        await self._waiting.ask(context.user_id, context.conversation_id, again)
        return AgentResult(True, again.text, tuple(run.records))

    async def _confirmed(self, run: ChatTurn, asked: Question) -> AgentResult:
        context = run.context
        if not await self._waiting.take(context.user_id, asked, context.turn_id):
            return _sentence_result(run, "nothing_to_confirm")
        for number, call in enumerate(asked.calls):
            operation = f"confirmed-{asked.id}:{number}"
            await run.apply(str(call["tool"]), dict(call["arguments"]), operation=operation)
        replies, records = self._profile.replies, tuple(run.records)
        telling = ReplyContext(run.message, records, replies, context.language, titles=asked.titles)
        if any(one.code == "processing_error" for one in run.records):
            await self._waiting.release(context.user_id, asked)
            return _failed_answer(run, telling)
        text = self._profile.reply_text(telling) or telling.say("done")
        return AgentResult(True, text, tuple(run.records))


def _lists_everything(looked: dict[str, Any]) -> bool:
    """Did a look at the list show all of it?"""
    data = looked.get("data")
    found = data if isinstance(data, dict) else {}
    total = found.get("total")
    shown_now = sum(len(one) for one in found.values() if isinstance(one, list))
    return not isinstance(total, int) or total <= shown_now


def _failed_answer(run: ChatTurn, telling: ReplyContext) -> AgentResult:
    """The database or the tools are away: the question still waits, and can be answered again."""
    sorry = telling.say("system_error")
    return AgentResult(False, sorry, tuple(run.records), sorry)


def _sentence_result(run: ChatTurn, key: str) -> AgentResult:
    context = run.context
    return AgentResult(True, run.profile.replies.say(context.language, key))


_log = logging.getLogger(__name__)


class AgentRunner:
    """Runs the turns of a chat.

    ```python
    runner = AgentRunner(database.session_factory, mcp_server)
    result = await runner.run(context, "Add task buy milk")
    ```

    `session_factory` makes the sessions in which questions wait for their phrase: that of a
    `Database`, or any function that returns a `Session` on a database with the tables. Without a
    `profile` it is the task assistant; without a `provider` it is the model whose key is there, or
    else the profile's own responder.
    """

    def __init__(
        self,
        session_factory: Callable[[], Any],
        mcp_server: ToolSource,
        *,
        profile: Profile | None = None,
        provider: Provider | str | None = None,
        limits: RunLimits | None = None,
    ) -> None:
        check_session_factory(session_factory)
        self.profile = profile if profile is not None else _default_profile()
        self.limits = limits or RunLimits()
        self._factory = session_factory
        self._source = mcp_server
        self._given = provider
        self._waiting = Confirmations(session_factory, self.limits.confirm_seconds)
        self._answers = ConfirmationAnswers(self._waiting, self.profile)
        self._engine: ChatEngine | None = None
        self.model: ProviderInfo | None = None  # known once it is ready
        self.languages: tuple[str, ...] = ()  # that rules understand; empty: any, as a model does
        self._opening = asyncio.Lock()

    async def run(self, context: AgentContext, message: str) -> AgentResult:
        """Answer a message. Raise `TimeoutError` (a `TurnTimeout`, which says what was done)."""
        context = self._settled(context, message)
        if key := message_problem(message, self.limits):
            return self._refused(context, key)
        run = ChatTurn(context, message, self.profile, self._source, self.limits)
        try:
            async with asyncio.timeout(self.limits.max_seconds):
                result = await self._answered(run)
                return result if run.dollars == 0 else replace(result, dollars=run.dollars)
        except TimeoutError:
            raise TurnTimeout(self._too_slow(run)) from None
        except Exception as error:  # the edge: a person reads a sentence, the log has the rest
            _log.warning("a turn failed: %s", type(error).__name__)
            _log.debug("a turn failed", exc_info=True)
            return replace(self._failed(run), dollars=run.dollars)

    async def warm_up(self) -> None:
        """Load what the first message would otherwise wait for."""
        await self._ready()

    async def close(self) -> None:
        """Let go of connections. The source of tools is its owner's to close."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    def _settled(self, context: AgentContext, message: str) -> AgentContext:
        """The context with a name for the turn, and a language."""
        spoken = context.language or detect_language(message, self.profile.replies)
        return replace(context, turn_id=context.turn_id or uuid4().hex, language=spoken)

    async def _answered(self, run: ChatTurn) -> AgentResult:
        if self.profile.confirm:
            answer = await self._answers.handle(run)
            if answer is not None:
                return answer
        if run.context.retried:
            who = run.context.user_id, run.context.turn_id
            run.earlier = await find_applied_changes(self._factory, *who)
        engine = await self._ready()
        ended = await engine.run_turn(run, past_messages(run.context, self.limits.history))
        if ended.error is not None:
            _log.warning("the model's side failed: %s", type(ended.error).__name__)
            _log.debug("the model's side failed: %s", ended.error)
        run.recall()
        if run.asked:
            return await self._ask(run)
        return self._told(run, ended)

    async def _ready(self) -> ChatEngine:
        if self._engine is not None:
            return self._engine
        async with self._opening:
            if self._engine is None:
                infos = await self._source.list()
                provider = choose_provider(self._given, self.profile)
                self.model = provider.info
                self.languages = tuple(getattr(provider, "languages", ()))
                self._engine = ChatEngine(provider, self.profile, infos, self.limits)
        return self._engine

    async def _ask(self, run: ChatTurn) -> AgentResult:
        """The question is kept first, and then put."""
        context, replies = run.context, self.profile.replies
        asked = build_question(run.asked, replies, context.language)
        await self._waiting.ask(context.user_id, context.conversation_id, asked)
        done = [one for one in run.records if one.ok]
        before = (
            self.profile.reply_text(_reply_context(run, "", tuple(done)))
            if _has_changes(run)
            else ""
        )
        text = f"{before} {asked.text}".strip() if before else asked.text
        return AgentResult(True, text, tuple(run.records))

    def _told(self, run: ChatTurn, ended: TurnResult) -> AgentResult:
        """The reply: what the calls come to, or what the model said, as far as it may be said."""
        telling = _reply_context(run, ended.text)
        expected = self.profile.reply_text(telling)
        if ended.reason == "budget":
            expected = telling.say("too_many", done=expected).replace("  ", " ")
        elif not ended.ok and not expected:
            return self._failed(run)
        foreign = not self.profile.replies.has_language(run.context.language)
        facts = run.facts()
        fallback = expected or self.profile.fallback_text(telling) or telling.say("unclear")
        fine = ended.ok and all(one.ok for one in run.records) and (run.records or not expected)
        wanted = "" if foreign and fine else expected  # a language that only the model speaks
        said = telling.replies.translate(run.context.language, ended.text)  # rules speak English
        text = filter_reply(said, wanted, facts, fallback)
        trouble = telling.say("system_error")
        failed = text == trouble
        return AgentResult(not failed, text, tuple(run.records), text if failed else None)

    def _refused(self, context: AgentContext, key: str) -> AgentResult:
        replies, language = self.profile.replies, context.language
        missing = replies.say(language, key)
        text = replies.say(language, "invalid", missing=missing)
        return AgentResult(False, text, (), text)

    def _failed(self, run: ChatTurn) -> AgentResult:
        """A sentence for the person; what was done before stays done, and is said."""
        telling = _reply_context(run)
        text = self.profile.reply_text(telling) if _has_changes(run) else ""
        sorry = telling.say("system_error")
        text = f"{text} {sorry}" if text and sorry not in text else sorry
        return AgentResult(False, text, tuple(run.records), sorry)

    def _too_slow(self, run: ChatTurn) -> AgentResult:
        telling = _reply_context(run)
        done = self.profile.reply_text(telling) if _has_changes(run) else ""
        said = telling.say("too_slow_done", done=done) if done else ""
        if run.under_way:
            said = f"{said} {telling.say('too_slow_unsure')}".strip()
        text = telling.say("too_slow", done=said or telling.say("too_slow_nothing"))
        return AgentResult(False, text, tuple(run.records), text, run.dollars)


def _reply_context(
    run: ChatTurn, said: str = "", records: tuple[Any, ...] | None = None
) -> ReplyContext:
    kept = tuple(run.records) if records is None else records
    language = run.context.language
    return ReplyContext(run.message, kept, run.profile.replies, language, said, run.titles)


def _has_changes(run: ChatTurn) -> bool:
    """Was anything done that changes something?"""
    return any(one.ok and one.tool_name in run.changing for one in run.records)


def _default_profile() -> Profile:
    from bridle.chat.tasks.profile import task_profile

    return task_profile()
