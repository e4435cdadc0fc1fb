"""The runner: a user's message in, one friendly reply out, with the calls that were made.

It holds nothing between two runs. It knows a profile, a source of tools, a provider and where
questions wait; who the user is comes with the context and goes to the tools behind the model's
back. Whatever goes wrong, the person reads a sentence, and the details go to the log.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from bridle.chat.confirming import question
from bridle.chat.confirming_kept import Confirmations
from bridle.chat.guard import guarded
from bridle.chat.limits import RunLimits, lacking
from bridle.chat.profile import Profile, Telling
from bridle.chat.replies_language import language_of
from bridle.chat.runner_answers import Answers
from bridle.chat.running import Run
from bridle.chat.running_applied import applied
from bridle.chat.running_engine import Talking, choose_provider, past_of
from bridle.chat.tools import ToolSource
from bridle.chat.values import AgentContext, AgentResult, TurnTimeout, check_factory
from bridle.protocols.provider import Provider, ProviderInfo
from bridle.protocols.session import TurnResult

log = logging.getLogger(__name__)


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
        check_factory(session_factory)
        self.profile = profile if profile is not None else _tasks()
        self.limits = limits or RunLimits()
        self._factory = session_factory
        self._source = mcp_server
        self._given = provider
        self._waiting = Confirmations(session_factory, self.limits.confirm_seconds)
        self._answers = Answers(self._waiting, self.profile)
        self._talking: Talking | None = None
        self.model: ProviderInfo | None = None  # known once it is ready
        self.languages: tuple[str, ...] = ()  # that rules understand; empty: any, as a model does
        self._opening = asyncio.Lock()

    async def run(self, context: AgentContext, message: str) -> AgentResult:
        """Answer a message. Raise `TimeoutError` (a `TurnTimeout`, which says what was done)."""
        context = self._settled(context, message)
        if key := lacking(message, self.limits):
            return self._refused(context, key)
        run = Run(context, message, self.profile, self._source, self.limits)
        try:
            async with asyncio.timeout(self.limits.max_seconds):
                result = await self._answered(run)
                return result if run.dollars == 0 else replace(result, dollars=run.dollars)
        except TimeoutError:
            raise TurnTimeout(self._too_slow(run)) from None
        except Exception as error:  # the edge: a person reads a sentence, the log has the rest
            log.warning("a turn failed: %s", type(error).__name__)
            log.debug("a turn failed", exc_info=True)
            return replace(self._failed(run), dollars=run.dollars)

    async def warm_up(self) -> None:
        """Load what the first message would otherwise wait for."""
        await self._ready()
        if self.profile.confirm:
            await self._waiting.warm_up()

    async def close(self) -> None:
        """Let go of connections. The source of tools is its owner's to close."""
        talking, self._talking = self._talking, None
        if talking is not None:
            await talking.close()

    def _settled(self, context: AgentContext, message: str) -> AgentContext:
        """The context with a name for the turn, and a language."""
        spoken = context.language or language_of(message, self.profile.replies)
        return replace(context, turn_id=context.turn_id or uuid4().hex, language=spoken)

    async def _answered(self, run: Run) -> AgentResult:
        if self.profile.confirm:
            answer = await self._answers.to(run)
            if answer is not None:
                return answer
        if run.context.retried:
            who = run.context.user_id, run.context.turn_id
            run.earlier = await applied(self._factory, *who)
        talking = await self._ready()
        ended = await talking.turn(run, past_of(run.context, self.limits.history))
        if ended.error is not None:
            log.warning("the model's side failed: %s", type(ended.error).__name__)
            log.debug("the model's side failed: %s", ended.error)
        run.recall()
        if run.asked:
            return await self._ask(run)
        return self._told(run, ended)

    async def _ready(self) -> Talking:
        if self._talking is not None:
            return self._talking
        async with self._opening:
            if self._talking is None:
                infos = await self._source.list()
                provider = choose_provider(self._given, self.profile)
                self.model = provider.info
                self.languages = tuple(getattr(provider, "languages", ()))
                self._talking = Talking(provider, self.profile, infos, self.limits)
        return self._talking

    async def _ask(self, run: Run) -> AgentResult:
        """The question is kept first, and then put."""
        context, replies = run.context, self.profile.replies
        asked = question(run.asked, replies, context.language)
        await self._waiting.ask(context.user_id, context.conversation_id, asked)
        done = [one for one in run.records if one.ok]
        before = self.profile.tell(_telling(run, "", tuple(done))) if _changed(run) else ""
        text = f"{before} {asked.text}".strip() if before else asked.text
        return AgentResult(True, text, tuple(run.records))

    def _told(self, run: Run, ended: TurnResult) -> AgentResult:
        """The reply: what the calls come to, or what the model said, as far as it may be said."""
        telling = _telling(run, ended.text)
        expected = self.profile.tell(telling)
        if ended.reason == "budget":
            expected = telling.say("too_many", done=expected).replace("  ", " ")
        elif not ended.ok and not expected:
            return self._failed(run)
        foreign = not self.profile.replies.has(run.context.language)
        facts = run.facts()
        fallback = expected or self.profile.otherwise(telling) or telling.say("unclear")
        fine = ended.ok and all(one.ok for one in run.records) and (run.records or not expected)
        wanted = "" if foreign and fine else expected  # a language that only the model speaks
        said = telling.replies.again(run.context.language, ended.text)  # rules speak English
        text = guarded(said, wanted, facts, fallback)
        trouble = telling.say("system_error")
        failed = text == trouble
        return AgentResult(not failed, text, tuple(run.records), text if failed else None)

    def _refused(self, context: AgentContext, key: str) -> AgentResult:
        replies, language = self.profile.replies, context.language
        missing = replies.say(language, key)
        text = replies.say(language, "invalid", missing=missing)
        return AgentResult(False, text, (), text)

    def _failed(self, run: Run) -> AgentResult:
        """A sentence for the person; what was done before stays done, and is said."""
        telling = _telling(run)
        text = self.profile.tell(telling) if _changed(run) else ""
        sorry = telling.say("system_error")
        text = f"{text} {sorry}" if text and sorry not in text else sorry
        return AgentResult(False, text, tuple(run.records), sorry)

    def _too_slow(self, run: Run) -> AgentResult:
        telling = _telling(run)
        done = self.profile.tell(telling) if _changed(run) else ""
        said = telling.say("too_slow_done", done=done) if done else ""
        if run.under_way:
            said = f"{said} {telling.say('too_slow_unsure')}".strip()
        text = telling.say("too_slow", done=said or telling.say("too_slow_nothing"))
        return AgentResult(False, text, tuple(run.records), text, run.dollars)


def _telling(run: Run, said: str = "", records: tuple[Any, ...] | None = None) -> Telling:
    kept = tuple(run.records) if records is None else records
    language = run.context.language
    return Telling(run.message, kept, run.profile.replies, language, said, run.titles)


def _changed(run: Run) -> bool:
    """Was anything done that changes something?"""
    return any(one.ok and one.tool_name in run.changing for one in run.records)


def _tasks() -> Profile:
    from bridle.chat.tasks.profile import task_profile

    return task_profile()
