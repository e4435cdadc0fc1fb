"""A responder: rules over what a person wrote, which keep the provider's promise as a model does.

It is what answers when there is no key. It asks for tools, reads what they give back, and says a
sentence; it is no language model, and it remembers nothing: what it knows is in the conversation
that it is handed. An assistant's own rules are put into `Rules`; the tasks have a larger one.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bridle.chat.values import ToolCallRecord
from bridle.events import ModelEvent
from bridle.messages import Message, Part, Text, ToolCall
from bridle.protocols.provider import ProviderInfo, Request
from bridle.providers.scripted import Reply, play
from bridle.usage import Price

_decode = msgspec.json.Decoder().decode
_READ = 2_000  # characters of a message that rules look at
_AROUND = " \t\r\n.!?"
Past = tuple[tuple[str, str], ...]


class Responder:
    """Keeps the provider's promise with a function. It costs nothing: its price is known, zero."""

    def __init__(
        self,
        name: str,
        answer: Callable[[Sequence[Message]], tuple[Part, ...]],
        *,
        languages: Sequence[str] = (),
    ) -> None:
        self.info = ProviderInfo("responder", name, price=Price(0, 0), local=True)
        self.languages = tuple(languages)  # that it understands; empty: nobody said which
        self._answer = answer

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Ask for the tools that the answer needs, or give it."""
        parts = self._answer(request.messages)
        name = f"responder_{len(request.messages)}"
        async with aclosing(play(Reply(chunk=4_000), parts, self.info, name)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True)
class Ask:
    """A tool to ask for, with its arguments."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """What a rule is asked about: the words that it found, and what its calls have given back."""

    message: str
    words: Mapping[str, str]
    records: tuple[ToolCallRecord, ...] = ()
    before: Past = ()

    def __getitem__(self, name: str) -> str:
        return self.words[name]

    @property
    def data(self) -> Any:
        """What the last call gave back; None while nothing was called, or where it failed."""
        return self.records[-1].data if self.records and self.records[-1].ok else None


Rule = Callable[[Said], Ask | Sequence[Ask] | str]


class Rules:
    """Rules by pattern, tried in their order. Called, it makes a provider of them.

    ```python
    rules = Rules("expenses", otherwise="I can note what you spent.")

    @rules.when(r"(?:i )?spent (?P<amount>[0-9.]+) on (?P<what>.+)")
    def spent(said: Said) -> Ask:
        return Ask("add_expense", {"what": said["what"], "amount": float(said["amount"])})
    ```

    A rule is asked again after each of its calls. Once it asks for a call that was made already,
    or one has failed, the turn is over, and the profile's `tell` has the word. `languages` are
    those in which the patterns are written, such as `("en",)`: in another one the page says so.
    """

    def __init__(self, name: str, otherwise: str, *, languages: Sequence[str] = ()) -> None:
        self.name = name
        self.otherwise = otherwise
        self.languages = tuple(languages)
        self._rules: list[tuple[re.Pattern[str], Rule]] = []

    def __call__(self) -> Responder:
        return Responder(self.name, self.answer, languages=self.languages)

    def when(self, pattern: str) -> Callable[[Rule], Rule]:
        """Put a rule in, for messages that are like this as a whole, in capitals or not."""
        compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)

        def put(rule: Rule) -> Rule:
            self._rules.append((compiled, rule))
            return rule

        return put

    def answer(self, messages: Sequence[Message]) -> tuple[Part, ...]:
        """The calls that the fitting rule asks for, or the sentence that it says."""
        message, records, before = read_messages(messages)
        words = message[:_READ].strip(_AROUND)
        for pattern, rule in self._rules:
            if (found := pattern.fullmatch(words)) is not None:
                named = {name: part or "" for name, part in found.groupdict().items()}
                return self._asked(rule, Said(message, named, records, before), len(messages))
        return (Text(self.otherwise),)

    def _asked(self, rule: Rule, said: Said, number: int) -> tuple[Part, ...]:
        if said.records and not said.records[-1].ok:
            return (Text(said.records[-1].trouble or self.otherwise),)
        wanted = rule(said)
        if isinstance(wanted, str):
            return (Text(wanted),)
        asked = [wanted] if isinstance(wanted, Ask) else wanted
        made = [(one.tool_name, one.parameters) for one in said.records]
        new = [one for one in asked if (one.tool, dict(one.arguments)) not in made]
        if not new:
            return (Text("Done."),)
        return tuple(
            ToolCall(f"responder_{number}_{place}", one.tool, dict(one.arguments))
            for place, one in enumerate(new)
        )


def read_messages(
    messages: Sequence[Message],
) -> tuple[str, tuple[ToolCallRecord, ...], Past]:
    """The newest prompt, what was called since, and what was said before."""
    place = len(messages) - 1
    while place > 0 and not (messages[place].role == "user" and messages[place].content):
        place -= 1
    records: list[ToolCallRecord] = []
    calls: dict[str, ToolCall] = {}
    for message in messages[place + 1 :]:
        calls |= {call.id: call for call in message.tool_calls}
        for output in message.tool_results:
            if (call := calls.get(output.call_id)) is not None:
                records.append(ToolCallRecord(call.name, call.arguments, _result(output.text)))
    before = tuple((one.role, said) for one in messages[:place] if (said := one.content))
    return (messages[place].content if messages else ""), tuple(records), before


def _result(text: str) -> dict[str, Any]:
    """What a tool gave back; words that are none are those of whoever refused the call."""
    try:
        found = _decode(text)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict):
        return found
    return {"success": False, "error": {"code": "invalid_input", "message": text[:200]}}
