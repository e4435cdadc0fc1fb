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
from bridle.chat.reply_filter import ReplyStream, clean_title, filter_reply, may_show_early
from bridle.chat.rule_responder import Responder
from bridle.chat.tools.source import ToolSource
from bridle.chat.turn import ChatTurn, find_applied_changes
from bridle.chat.values import AgentContext, AgentResult, TurnTimeout, check_session_factory
from bridle.protocols.provider import Provider, ProviderInfo
from bridle.protocols.session import TurnResult

_log = logging.getLogger(__name__)


class ConfirmationAnswers:
    """Handles messages that answer a pending question."""

    def __init__(self, waiting: Confirmations, profile: Profile) -> None:
        self._waiting = waiting
        self._profile = profile
        self._openings = phrase_openings(profile.replies)

    async def handle(self, run: ChatTurn) -> AgentResult | None:
        """Return the reply if the message answers a question; otherwise None."""
        said = classify_answer(run.message, self._openings)
        if not said:
            return None
        context = run.context
        asked = await self._waiting.find(context.user_id, context.conversation_id)
        if asked is None or asked.answered_by not in ("", context.turn_id):
            return _sentence_result(run, "nothing_to_confirm") if said == "phrase" else None
        if asked.answered_by and is_phrase(run.message, asked.phrase):
            return await self._run_confirmed(run, asked)  # an earlier attempt at this turn was sure
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
            return await self._anew(run, asked) or await self._run_confirmed(run, asked)
        return AgentResult(True, asked.text)  # nearly is not enough: the question stands

    def _has_lapsed(self, run: ChatTurn, asked: Question) -> bool:
        """Has the person written anything but an answer since the question was asked?"""
        history = run.context.message_history
        since: list[str] = []
        for message in reversed(history):
            if message.role == "assistant" and asked.text in message.content:
                return not all(classify_answer(words, self._openings) for words in since)
            if message.role == "user":
                since.append(message.content)
        return bool(history)  # the question is further back than the history goes

    async def _anew(self, run: ChatTurn, asked: Question) -> AgentResult | None:
        """Ask again if the question would be another one by now; otherwise return None."""
        rule = self._profile.confirm.get(str(asked.calls[0]["tool"]))
        if rule is None or not rule.lookup:
            return None
        looked = await run.apply(rule.lookup, dict(rule.lookup_arguments), reads=True)
        if looked.get("success") is not True:
            return _failure_result(
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

    async def _run_confirmed(self, run: ChatTurn, asked: Question) -> AgentResult:
        user, turn, language = run.context.user_id, run.context.turn_id, run.context.language
        if not await self._waiting.take(user, asked, turn):
            return _sentence_result(run, "nothing_to_confirm")
        for number, call in enumerate(asked.calls):
            operation = f"confirmed-{asked.id}:{number}"
            await run.apply(str(call["tool"]), dict(call["arguments"]), operation=operation)
        replies, records = self._profile.replies, tuple(run.records)
        context = ReplyContext(run.message, records, replies, language, titles=asked.titles)
        if any(record.code == "processing_error" for record in run.records):
            await self._waiting.release(user, asked)
            return _failure_result(run, context)
        text = self._profile.reply_text(context) or context.say("done")
        return AgentResult(True, text, tuple(run.records))


def _lists_everything(looked: dict[str, Any]) -> bool:
    """Did the lookup return the whole list?"""
    data = looked.get("data")
    found = data if isinstance(data, dict) else {}
    total = found.get("total")
    shown_now = sum(len(item) for item in found.values() if isinstance(item, list))
    return not isinstance(total, int) or total <= shown_now


def _failure_result(run: ChatTurn, context: ReplyContext) -> AgentResult:
    """The database or the tools failed. The question still waits and can be answered again."""
    sorry = context.say("system_error")
    return AgentResult(False, sorry, tuple(run.records), sorry)


def _sentence_result(run: ChatTurn, key: str) -> AgentResult:
    context = run.context
    return AgentResult(True, run.profile.replies.say(context.language, key))


class AgentRunner:
    """Answers the messages of a chat.

    ```python
    runner = AgentRunner(database.session_factory, mcp_server)
    result = await runner.run(context, "Add task buy milk")
    ```

    `session_factory` returns sessions for storing pending questions: that of a `Database`, or any
    function that returns a `Session` on a database with the tables. Without a `profile` it is the
    task assistant. Without a `provider` it is the model whose API key is set, or else the profile's
    responder.
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
        self._by_rules = False  # our own rules answer, not a model
        self._reply_text = self.profile.reply_text
        self._fallback_text = self.profile.fallback_text
        self.model: ProviderInfo | None = None  # known once it is ready
        self.languages: tuple[str, ...] = ()  # that rules understand; empty: any, as a model does
        self._opening = asyncio.Lock()

    async def run(
        self,
        context: AgentContext,
        message: str,
        *,
        on_text: Callable[[str], None] | None = None,
    ) -> AgentResult:
        """Answer a message. Raise `TimeoutError` (a `TurnTimeout`, which says what was done).

        `on_text` gets the sentences that can be shown while the model still writes. Together they
        are the beginning of the response.
        """
        context = self._with_defaults(context, message)
        if key := message_problem(message, self.limits):
            return self._refusal(context, key)
        run = ChatTurn(context, message, self.profile, self._source, self.limits)
        try:
            async with asyncio.timeout(self.limits.max_seconds):
                result = _complete(run, await self._answer(run, on_text))
                return result if run.dollars == 0 else replace(result, dollars=run.dollars)
        except TimeoutError:
            raise TurnTimeout(_complete(run, self._too_slow(run))) from None
        except Exception as error:  # the edge: a person reads a sentence, the log has the rest
            _log.warning("a turn failed: %s", type(error).__name__)
            _log.debug("a turn failed", exc_info=True)
            return replace(_complete(run, self._apology(run)), dollars=run.dollars)

    async def warm_up(self) -> None:
        """Load what the first message would otherwise wait for."""
        await self._ready()

    async def close(self) -> None:
        """Close connections. The source of tools is closed by its owner."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    def _with_defaults(self, context: AgentContext, message: str) -> AgentContext:
        """Return the context with an id for the turn, and a language."""
        spoken = context.language or detect_language(message, self.profile.replies)
        return replace(context, turn_id=context.turn_id or uuid4().hex, language=spoken)

    async def _answer(self, run: ChatTurn, on_text: Callable[[str], None] | None) -> AgentResult:
        if self.profile.confirm:
            answer = await self._answers.handle(run)
            if answer is not None:
                return answer
        if run.context.retried:
            who = run.context.user_id, run.context.turn_id
            run.earlier = await find_applied_changes(self._factory, *who)
        engine = await self._ready()
        run.by_rules = self._by_rules
        if on_text is not None and not self._by_rules and not run.earlier:

            def may_show(text: str, sentence: str) -> bool:
                return self._may_show(run, text, sentence)

            run.stream = ReplyStream(on_text, may_show, self.profile.longest // 2)
        ended = await engine.run_turn(run, past_messages(run.context, self.limits.history))
        if ended.error is not None:
            _log.warning("the model's side failed: %s", type(ended.error).__name__)
            _log.debug("the model's side failed: %s", ended.error)
        run.recall()
        if run.asked:
            return await self._ask(run)
        return self._compose_reply(run, ended)

    async def _ready(self) -> ChatEngine:
        if self._engine is not None:
            return self._engine
        async with self._opening:
            if self._engine is None:
                infos = await self._source.list()
                provider = choose_provider(self._given, self.profile)
                self.model = provider.info
                self.languages = tuple(getattr(provider, "languages", ()))
                if isinstance(provider, Responder):
                    self._by_rules = True
                    self._reply_text = provider.reply_text or self._reply_text
                    self._fallback_text = provider.fallback_text or self._fallback_text
                self._engine = ChatEngine(provider, self.profile, infos, self.limits)
        return self._engine

    async def _ask(self, run: ChatTurn) -> AgentResult:
        """Store the question, then ask it."""
        context, replies = run.context, self.profile.replies
        asked = build_question(run.asked, replies, context.language)
        await self._waiting.ask(context.user_id, context.conversation_id, asked)
        done = [record for record in run.records if record.ok]
        said = _reply_context(run, "", tuple(done))
        before = self._reply_text(said) if _has_changes(run) else ""
        text = f"{before} {asked.text}".strip() if before else asked.text
        return AgentResult(True, text, tuple(run.records))

    def _may_show(self, run: ChatTurn, text: str, sentence: str) -> bool:
        """May this sentence be shown before the model has finished?"""
        if run.asked or run.changing or not all(record.ok for record in run.records):
            return False  # the reply is made by code
        if self._reply_text(_reply_context(run, text)):
            return False
        return may_show_early(text, sentence, run.facts())

    def _compose_reply(self, run: ChatTurn, ended: TurnResult) -> AgentResult:
        """Return the reply: what the calls come to, or the model's own text if it may be shown."""
        context = _reply_context(run, ended.text)
        expected = self._reply_text(context)
        if ended.reason == "budget":
            expected = context.say("too_many", done=expected).replace("  ", " ")
        elif not ended.ok and not expected:
            return self._apology(run)
        is_foreign = not self.profile.replies.has_language(run.context.language)
        fallback = expected or self._fallback_text(context) or context.say("unclear")
        is_fine = (
            ended.ok and all(record.ok for record in run.records) and (run.records or not expected)
        )
        wanted = "" if is_foreign and is_fine else expected  # a language that only the model speaks
        text = context.replies.translate(run.context.language, ended.text)  # rules speak English
        facts = run.facts()
        if run.stream is not None and run.stream.has_shown_message:
            text, fallback = run.stream.rest, ""
            facts = replace(facts, longest=facts.longest - len(run.stream.sent))
        response = filter_reply(text, wanted, facts, fallback, cut=not run.records)
        failed = response == context.say("system_error")
        return AgentResult(not failed, response, tuple(run.records), response if failed else None)

    def _refusal(self, context: AgentContext, key: str) -> AgentResult:
        replies, language = self.profile.replies, context.language
        missing = replies.say(language, key)
        text = replies.say(language, "invalid", missing=missing)
        return AgentResult(False, text, (), text)

    def _apology(self, run: ChatTurn) -> AgentResult:
        """Return an apology, after the sentence about what was changed before."""
        context = _reply_context(run)
        text = self._reply_text(context) if _has_changes(run) else ""
        sorry = context.say("system_error")
        text = f"{text} {sorry}" if text and sorry not in text else sorry
        return AgentResult(False, text, tuple(run.records), sorry)

    def _too_slow(self, run: ChatTurn) -> AgentResult:
        context = _reply_context(run)
        done = self._reply_text(context) if _has_changes(run) else ""
        said = context.say("too_slow_done", done=done) if done else ""
        if run.under_way:
            said = f"{said} {context.say('too_slow_unsure')}".strip()
        text = context.say("too_slow", done=said or context.say("too_slow_nothing"))
        return AgentResult(False, text, tuple(run.records), text, run.dollars)


def _complete(run: ChatTurn, result: AgentResult) -> AgentResult:
    """Put what has been shown before the rest of the reply."""
    if run.stream is None:
        return result
    return replace(result, response=run.stream.complete(result.response))


def _reply_context(
    run: ChatTurn, said: str = "", records: tuple[Any, ...] | None = None
) -> ReplyContext:
    kept = tuple(run.records) if records is None else records
    language = run.context.language
    return ReplyContext(run.message, kept, run.profile.replies, language, said, run.titles)


def _has_changes(run: ChatTurn) -> bool:
    """Did any call of this turn change something?"""
    return any(record.ok and record.tool_name in run.changing for record in run.records)


def _default_profile() -> Profile:
    from bridle.chat.tasks.profile import task_profile

    return task_profile()
