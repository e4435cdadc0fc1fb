"""One turn of the chat: bind its tool calls to the user, and keep a record of them.

The engine's tools call a `ChatTurn` when the model asks for them. It adds who the user is, gives
each change a name so that it is applied once, and does not run what a person has to confirm first.
It knows no provider.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from bridle.chat.confirmations import PendingCall, restrict_call, target_ids
from bridle.chat.limits import RunLimits
from bridle.chat.profile import Confirm, Profile, ProposedCall
from bridle.chat.reply_filter import FilterFacts, ReplyStream, clean_title
from bridle.chat.tools.identity import Binding
from bridle.chat.tools.source import ToolInfo, ToolSource, failure, is_owner_word
from bridle.chat.values import AgentContext, ToolCallRecord
from bridle.messages import ToolCall

_log = logging.getLogger(__name__)

_WAITS = "Not done: the person is asked to confirm it first, and answers in the next message."
_LIMIT = "Not done: no more calls are left in this turn. Say what was done."
_BROKE = "I'm having a bit of trouble right now. Please try again."
HIDDEN = "[redacted]"
_DEEPEST = 20


def redact(value: Any, *secrets: str) -> Any:
    """Return the value without anything that identifies a user."""
    return _redact(value, tuple(secret for secret in secrets if len(secret) > 2), 0)


def _redact(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    if depth > _DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {
            str(name): HIDDEN if is_owner_word(str(name)) else _redact(inner, secrets, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact(inner, secrets, depth + 1) for inner in value]
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:  # as a word of its own: `ana` is nobody in `banana`
                value = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, value)
    return value


@dataclass(frozen=True)
class AppliedChange:
    """A change that was made: the tool, and its result."""

    tool: str
    result: dict[str, Any]


async def find_applied_changes(
    factory: Callable[[], Any], user_id: str, turn_id: str
) -> dict[str, AppliedChange]:
    """Return the changes of an earlier attempt at this turn, by operation, in order."""
    return await asyncio.to_thread(_read_changes, factory, user_id, turn_id)


def _read_changes(
    factory: Callable[[], Any], user_id: str, turn_id: str
) -> dict[str, AppliedChange]:
    from sqlmodel import select

    from bridle.chat.db.engine import READ_ONLY
    from bridle.chat.db.session import owned_session
    from bridle.chat.db.tables import Operation

    with owned_session(factory(), user_id) as session:
        session.connection(execution_options={READ_ONLY: True})
        here = Operation.user_id == user_id, Operation.turn_id == turn_id
        rows = list(session.exec(select(Operation).where(*here)))
    named = {row.key: AppliedChange(row.tool, dict(row.result)) for row in rows}
    numbered = {key: one for key, one in named.items() if key.rpartition(":")[2].isdigit()}
    return dict(sorted(numbered.items(), key=lambda pair: int(pair[0].rpartition(":")[2])))


class ChatTurn:
    """One turn: its calls, their records, and what they cost."""

    def __init__(
        self,
        context: AgentContext,
        message: str,
        profile: Profile,
        source: ToolSource,
        limits: RunLimits,
    ) -> None:
        self.context = context
        self.message = message
        self.profile = profile
        self.records: list[ToolCallRecord] = []
        self.asked: list[PendingCall] = []
        self.dollars: float | None = 0.0  # None: a model without a price has answered
        self.earlier: dict[str, AppliedChange] = {}  # what another attempt at this turn has changed
        self.reached: set[str] = set()  # the model's own names of the calls that came this far
        self.changing: set[str] = set()  # the tools that were called and do not only read
        self.under_way = ""  # a change that was begun and has not answered
        self.stream: ReplyStream | None = None  # shows the reply as the model writes it
        self.calls_of_reply: Callable[[], Sequence[ToolCall]] = tuple  # of the model's last reply
        self.by_rules = False  # our own rules ask for the calls, not a model
        self._source = source
        self._limits = limits
        self._changes = 0
        self.titles: dict[str, str] = {}  # of the things that came up, by id
        self._texts: set[str] = set()

    def spend(self, cost: float, unpriced: int) -> None:
        """Add what the model cost. An unknown price stays unknown: it is never zero."""
        self.dollars = None if unpriced or self.dollars is None else self.dollars + cost

    @property
    def is_full(self) -> bool:
        """Are there no calls left?"""
        return len(self.records) >= self._limits.max_tool_calls

    async def call(self, info: ToolInfo, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a call of the model, or return why not."""
        if not info.reads and not self.is_full:
            rule = self.profile.confirm.get(info.name) or self._rule_for_many(info.name)
            if rule is not None:
                return await self._ask_first(info, arguments, rule)
            proposed = ProposedCall(self.message, info.name, arguments, tuple(self.records))
            refusal = None if self.by_rules else self.profile.check_call(proposed)
            if refusal is not None:
                result = {"success": False, "error": dict(refusal)}
                self.note(info.name, arguments, result)
                return result
        return await self.apply(info.name, arguments, reads=info.reads)

    def _rule_for_many(self, name: str) -> Confirm | None:
        """Return how to confirm a call if the turn would change many things by such calls."""
        rules = self.profile.confirm_many
        rule = rules.get(name)
        if rule is None or self.by_rules:
            return None
        calls = [(call.name, call.arguments) for call in self.calls_of_reply()]
        calls += [(done.tool_name, done.parameters) for done in self.records if done.ok]
        things = {
            thing
            for tool, arguments in calls
            if tool in rules and rules[tool].verb == rule.verb
            for thing in target_ids(rules[tool], arguments)
        }
        return rule if len(things) >= self.profile.many else None

    async def apply(
        self, name: str, arguments: dict[str, Any], *, reads: bool = False, operation: str = ""
    ) -> dict[str, Any]:
        """Call the tool for this user. A change is named by an operation and applied once."""
        if self.is_full:
            return {"success": False, "error": {"code": "limit", "message": _LIMIT}}
        if not reads and not operation:
            operation = f"{self.context.turn_id}:{self._changes}"
            self._changes += 1
        if not reads:
            self.changing.add(name)
            if (known := self.earlier.pop(operation, None)) is not None:
                return self._repeat_change(known, arguments if known.tool == name else {})
            self.under_way = name
        begun = perf_counter()
        result = await self._call_source(name, arguments, self._binding(operation))
        self.under_way = ""
        self.note(name, arguments, result, int((perf_counter() - begun) * 1000))
        return result

    def _repeat_change(self, known: AppliedChange, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a change that an earlier attempt at this turn made."""
        self.changing.add(known.tool)
        self.note(known.tool, arguments, known.result)
        return known.result

    def recall(self) -> None:
        """Record the changes of an earlier attempt that this one did not ask for."""
        for known in self.earlier.values():
            if known.result.get("success") is True:
                self._repeat_change(known, {})
        self.earlier.clear()

    async def _call_source(
        self, name: str, arguments: dict[str, Any], binding: Binding
    ) -> dict[str, Any]:
        try:
            result: Any = await self._source.call(name, arguments, binding)
        except Exception as error:  # whoever holds the tools promised not to; a turn goes on
            _log.warning("the tool %s broke: %s", name, type(error).__name__)
            _log.debug("the tool %s broke", name, exc_info=True)
            return failure("processing_error", _BROKE)
        return result if isinstance(result, dict) else failure("processing_error", _BROKE)

    def note(
        self, name: str, arguments: dict[str, Any], result: dict[str, Any], took: int = 0
    ) -> None:
        """Record a call and its result."""
        kept = redact(arguments, self.context.user_id)
        self.records.append(ToolCallRecord(name, kept, result, took))
        for key, title in _titles_in(result, self.profile.titles):
            self._texts.add(title)
            if key:
                self.titles[key] = title
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("%s(%s) took %d ms: %s", name, sorted(kept), took, result.get("success"))

    async def _ask_first(
        self, info: ToolInfo, arguments: dict[str, Any], rule: Confirm
    ) -> dict[str, Any]:
        """Put a call aside until the person confirms it. Leave out things that do not exist."""
        wanted = target_ids(rule, arguments)
        if not wanted:
            return await self.apply(info.name, arguments)  # it is refused there, with the reason
        if any(one not in self.titles for one in wanted) and rule.lookup:
            if len(self.records) + 2 > self._limits.max_tool_calls:  # looking counts as well
                return {"success": False, "error": {"code": "limit", "message": _LIMIT}}
            await self.apply(rule.lookup, dict(rule.lookup_arguments), reads=True)
        known = [target for target in wanted if target in self.titles]
        if not known:
            result = failure("not_found", "There is no such thing in this list.")
            self.note(info.name, arguments, result)
            return result
        titles = {title: clean_title(self.titles[title]) for title in known}
        self.asked.append(
            PendingCall(info.name, restrict_call(rule, arguments, known), rule, titles)
        )
        result = {"success": False, "error": {"code": "confirmation_required", "message": _WAITS}}
        self.note(info.name, arguments, result)
        return result

    def _binding(self, operation: str) -> Binding:
        context = self.context
        return Binding(
            context.user_id,
            context.conversation_id,
            operation,
            context.timezone,
            context.language or "en",
            context.now,
        )

    def facts(self) -> FilterFacts:
        """Return what the reply filter needs: the user's titles, and what must not be shown."""
        spoken = {one for one in self._texts if one}
        hidden = (self.context.user_id, self.context.conversation_id, self.context.turn_id)
        kept = tuple(one for one in hidden if len(one) > 3 and one not in self.message)
        profile = self.profile
        ids = frozenset(self.titles)
        words = profile.jargon, profile.longest, profile.nouns
        return FilterFacts(frozenset(spoken), ids, kept, *words)


def _titles_in(value: Any, fields: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the id (or an empty string) and title of every thing in a result."""
    if depth > 8:
        return
    if isinstance(value, dict):
        key = value.get("id")
        for field in fields:
            if isinstance(title := value.get(field), str):
                yield ("" if key is None else str(key)), title
                break
        for inner in value.values():
            yield from _titles_in(inner, fields, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _titles_in(inner, fields, depth + 1)
