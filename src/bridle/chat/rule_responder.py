"""A provider that answers by rules about what a person wrote, without a language model.

It answers if there is no API key: it asks for tools, reads their results, and returns a sentence.
It remembers nothing: all it knows is the conversation that it is given. An assistant's own rules go
into `Rules`; the task assistant has a larger set.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bridle.chat.profile import ReplyText
from bridle.chat.values import ToolCallRecord
from bridle.events import ModelEvent
from bridle.messages import Message, Part, Text, ToolCall
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.scripted import Reply, play
from bridle.usage import Price

_decode = msgspec.json.Decoder().decode
_READ = 2_000  # characters of a message that rules look at
_AROUND = " \t\r\n.!?"
PastMessages = tuple[tuple[str, str], ...]


class Responder:
    """A provider that answers by a function. Its price is known: zero.

    `reply_text` and `fallback_text` replace those of the profile, for rules that read the person's
    words themselves.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[[Sequence[Message]], tuple[Part, ...]],
        *,
        languages: Sequence[str] = (),
        reply_text: ReplyText | None = None,
        fallback_text: ReplyText | None = None,
    ) -> None:
        self.info = ProviderInfo("responder", name, price=Price(0, 0), local=True)
        self.reply_text, self.fallback_text = reply_text, fallback_text
        self.languages = tuple(languages)  # that it understands; empty: nobody said which
        self._answer = answer

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Yield the tool calls that the answer needs, or the answer."""
        parts = self._answer(request.messages)
        name = f"responder_{len(request.messages)}"
        async with aclosing(play(Reply(chunk=4_000), parts, self.info, name)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True)
class Ask:
    """A tool call that a rule asks for."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RuleMatch:
    """A message that matches a rule: the words it found, and the results of its calls."""

    message: str
    words: Mapping[str, str]
    records: tuple[ToolCallRecord, ...] = ()
    before: PastMessages = ()

    def __getitem__(self, name: str) -> str:
        return self.words[name]

    @property
    def data(self) -> Any:
        """The result of the last call; None if there was none or it failed."""
        return self.records[-1].data if self.records and self.records[-1].ok else None


Rule = Callable[[RuleMatch], Ask | Sequence[Ask] | str]


class Rules:
    """Rules by pattern, tried in order. Calling the object returns a provider that uses them.

    ```python
    rules = Rules("expenses", fallback="I can note what you spent.")

    @rules.when(r"(?:i )?spent (?P<amount>[0-9.]+) on (?P<what>.+)")
    def spent(match: RuleMatch) -> Ask:
        return Ask("add_expense", {"what": match["what"], "amount": float(match["amount"])})
    ```

    A rule is called again after each of its tool calls. When it asks for a call that was made
    before, or a call has failed, the turn ends, and the profile's `reply_text` makes the reply.
    `languages` are those in which the patterns are written, such as `("en",)`: a page in another
    language says so.
    """

    def __init__(self, name: str, fallback: str, *, languages: Sequence[str] = ()) -> None:
        self.name = name
        self.fallback = fallback
        self.languages = tuple(languages)
        self._rules: list[tuple[re.Pattern[str], Rule]] = []

    def __call__(self) -> Responder:
        return Responder(self.name, self.answer, languages=self.languages)

    def when(self, pattern: str) -> Callable[[Rule], Rule]:
        """Add a rule for messages that match the pattern as a whole, in any case."""
        compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)

        def put(rule: Rule) -> Rule:
            self._rules.append((compiled, rule))
            return rule

        return put

    def answer(self, messages: Sequence[Message]) -> tuple[Part, ...]:
        """Return the calls that the matching rule asks for, or its sentence."""
        message, records, before = read_messages(messages)
        words = message[:_READ].strip(_AROUND)
        for pattern, rule in self._rules:
            if (found := pattern.fullmatch(words)) is not None:
                named = {name: part or "" for name, part in found.groupdict().items()}
                return self._ask(rule, RuleMatch(message, named, records, before), len(messages))
        return (Text(self.fallback),)

    def _ask(self, rule: Rule, match: RuleMatch, number: int) -> tuple[Part, ...]:
        if match.records and not match.records[-1].ok:
            return (Text(match.records[-1].error_message or self.fallback),)
        wanted = rule(match)
        if isinstance(wanted, str):
            return (Text(wanted),)
        asked = [wanted] if isinstance(wanted, Ask) else wanted
        made = [(record.tool_name, record.parameters) for record in match.records]
        new = [call for call in asked if (call.tool, dict(call.arguments)) not in made]
        if not new:
            return (Text("Done."),)
        return tuple(
            ToolCall(f"responder_{number}_{place}", one.tool, dict(one.arguments))
            for place, one in enumerate(new)
        )


def read_messages(
    messages: Sequence[Message],
) -> tuple[str, tuple[ToolCallRecord, ...], PastMessages]:
    """Return the newest prompt, the calls since, and the messages before."""
    place = len(messages) - 1
    while place > 0 and not (messages[place].role == "user" and messages[place].content):
        place -= 1
    records: list[ToolCallRecord] = []
    calls: dict[str, ToolCall] = {}
    for message in messages[place + 1 :]:
        calls |= {call.id: call for call in message.tool_calls}
        for output in message.tool_results:
            if (call := calls.get(output.call_id)) is not None:
                records.append(
                    ToolCallRecord(call.name, call.arguments, _parse_result(output.text))
                )
    before = tuple((one.role, said) for one in messages[:place] if (said := one.content))
    return (messages[place].content if messages else ""), tuple(records), before


def _parse_result(text: str) -> dict[str, Any]:
    """Return a tool's result. Plain text comes from the engine, which refused the call."""
    try:
        found = _decode(text)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict):
        return found
    return {"success": False, "error": {"code": "invalid_input", "message": text[:200]}}
