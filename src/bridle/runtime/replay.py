"""The replay lab: a past session, run again with its recorded replies against today's tools.

The log's prompts and replies become a scripted model; its answers become the approver's. Every call
goes through the same gate and the same loop as then, in a folder that the caller has made for it.
What came of each call is compared with what was recorded. Copies no folder and shows nothing.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from bridle.engine.budget import Limits
from bridle.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallIntended,
    Event,
    MessageAdded,
    PromptReceived,
    ResponseCompleted,
    SessionStarted,
    ToolResultEvent,
)
from bridle.messages import Part, Text, ToolCall, ToolOutput, outcome_of
from bridle.promises.provider import ProviderInfo, Request
from bridle.promises.session import Answer
from bridle.promises.store import Record
from bridle.promises.tool import Tool, ToolContext, ToolResult
from bridle.providers.scripted import Fault, Reply, Scripted
from bridle.runtime.assembly import build_engine
from bridle.stores.memory import MemoryStore
from bridle.tools.builtin import builtin_tools

Verdict = Literal["same", "differs", "missing", "denied", "skipped"]
NEVER_ASKED = Answer(False, word="nobody was asked about this call then", by="replay")
_SKIPPED = "not run again: it did not finish then"
_UNFINISHED = ("interrupted", "not_stopped", "unknown", "not_run", "refused")
_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


class Step(Struct):
    """One recorded reply and the results of its calls, in their order."""

    reply: ResponseCompleted
    results: list[ToolOutput | None] = []

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """What the reply asked for."""
        return self.reply.message.tool_calls if self.reply.message is not None else ()

    def take(self, output: ToolOutput) -> bool:
        """A result, for the first call of that id which has none; False where there is none."""
        for index, call in enumerate(self.calls):
            if call.id == output.call_id and self.results[index] is None:
                self.results[index] = output
                return True
        return False


class PastTurn(Struct):
    """What was asked, and what the model did about it."""

    number: int
    prompt: tuple[Part, ...]
    steps: list[Step] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The prompt's text."""
        return "".join(part.text for part in self.prompt if isinstance(part, Text))


class Past:
    """A log, read for what a replay needs: turns, answers, and where it worked.

    Rewinds are passed over: what was done stayed done, so it is done again.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.workspace = ""
        self.model = ""
        self.turns: list[PastTurn] = []
        self.answers: dict[bytes, list[Answer]] = {}
        self.unasked: dict[bytes, int] = {}  # how often it ran with no question before it
        self._prompts: dict[int, PromptReceived] = {}
        self._asked: dict[str, ApprovalAsked] = {}
        for record in records:
            self.add(record.seq, record.event)

    def add(self, seq: int, event: Event) -> None:
        """Take one record into account."""
        match event:
            case SessionStarted():
                self.workspace = self.workspace or event.workspace
                self.model = event.model or self.model
            case PromptReceived():
                self._prompts[seq] = event
                if not event.turn:  # a log of another program: the prompt is the turn
                    self._begin(len(self.turns) + 1, event)
            case MessageAdded(prompt=prompt) if prompt in self._prompts:
                received = self._prompts[prompt]
                if received.turn and not (self.turns and self.turns[-1].number == received.turn):
                    self._begin(received.turn, received)
            case ResponseCompleted() if self.turns:
                calls = event.message.tool_calls if event.message is not None else ()
                self.turns[-1].steps.append(Step(event, [None] * len(calls)))
            case _:
                self._add_call(event)

    def _begin(self, number: int, prompt: PromptReceived) -> None:
        parts = prompt.parts or (Text(prompt.content or "(no words)"),)
        self.turns.append(PastTurn(number, parts))

    def _add_call(self, event: Event) -> None:
        match event:
            case ToolResultEvent(output=output) if self.turns and self.turns[-1].steps:
                self.turns[-1].steps[-1].take(output)
            case ApprovalAsked():
                self._asked[event.shown or event.call.id] = event
            case ApprovalAnswered():
                asked = self._asked.get(event.shown or event.call_id)
                if asked is not None:
                    said = Answer(event.allowed, event.scope, event.word, event.by)
                    self.answers.setdefault(key_of(asked.call), []).append(said)
            case CallIntended(read_only=False, call_id=call_id):
                self._intended(call_id)

    def _intended(self, call_id: str) -> None:
        steps = self.turns[-1].steps if self.turns else []
        for call in steps[-1].calls if steps else ():
            if call.id == call_id and key_of(call) not in self.answers:
                key = key_of(call)
                self.unasked[key] = self.unasked.get(key, 0) + 1


class Compared(Struct, frozen=True, omit_defaults=True):
    """One call, and what came of it then and now."""

    name: str
    arguments: dict[str, Any]
    verdict: Verdict
    then: str = ""
    now: str = ""


class Replayed(Struct, frozen=True):
    """One turn, run again."""

    turn: int
    prompt: str
    calls: tuple[Compared, ...] = ()


def key_of(call: ToolCall) -> bytes:
    """What a recorded answer is found by: the tool's name and its exact arguments."""
    return _encode([call.name, call.arguments])


async def replay(
    past: Past, folder: Path, *, unasked: bool = False
) -> AsyncGenerator[Replayed, None]:
    """Run the session again in that folder, turn by turn.

    With `unasked`, what ran then without a question runs again; otherwise it is denied if it would
    ask today.
    """
    player = _Player(past, folder, unasked)
    model = Scripted(player.reply, info=ProviderInfo("replay", past.model))
    store = MemoryStore()
    async with build_engine(
        model,
        tools=[_Again(tool, player) for tool in builtin_tools()],
        workspace=folder,
        store=store,
        approver=player.answer,
        mode="ask",
        limits=Limits(steps=0),
        system="",
        face="replay",
    ) as engine:
        session = await engine.session()
        for turn in past.turns:
            player.begin(turn)
            before = session.seq
            await session.wait(await session.send(turn.prompt))
            now = Past(store.read(session.id, before)).turns
            yield Replayed(turn.number, turn.words, player.compared(now[-1] if now else None))


class _Player:
    """Says the recorded replies and gives the recorded answers, with the folders exchanged."""

    def __init__(self, past: Past, folder: Path, unasked: bool) -> None:
        self._there = _Moved(past.workspace, str(folder))
        self._back = _Moved(str(folder), past.workspace)
        self._answers = {key: deque(said) for key, said in past.answers.items()}
        if unasked:
            for key, count in past.unasked.items():
                self._answers.setdefault(key, deque([Answer(True, by="then")] * count))
        self._turn = PastTurn(0, ())
        self._step = -1
        self._denied: set[tuple[int, str]] = set()

    def begin(self, turn: PastTurn) -> None:
        """The next turn."""
        self._turn, self._step = turn, -1
        self._denied.clear()

    def reply(self, request: Request) -> Reply:
        """The next recorded reply of this turn."""
        self._step += 1
        if self._step >= len(self._turn.steps):
            return Reply(error=Fault(message="the recorded replies of this turn end here"))
        recorded = self._turn.steps[self._step].reply
        parts = recorded.message.parts if recorded.message is not None else ()
        moved = tuple(self._there.part(part) for part in parts)
        if recorded.stop_reason == "error":
            return Reply(parts=moved, error=Fault(message=recorded.stop_detail or "it failed then"))
        return Reply(parts=moved, stop_reason=recorded.stop_reason, usage=recorded.usage)

    async def answer(self, asked: ApprovalAsked) -> Answer:
        """What was said then to the same call; no to one that nobody was asked about."""
        held = self._answers.get(key_of(self._back.call(asked.call)))
        if held:
            return held.popleft()
        self._denied.add((self._step, asked.call.id))
        return NEVER_ASKED

    def skips(self, call_id: str) -> bool:
        """Did this call of the step that runs not come to its end then?"""
        step = self._turn.steps[self._step]
        pairs = zip(step.calls, step.results, strict=True)
        return any(call.id == call_id and _unfinished(result) for call, result in pairs)

    def compared(self, now: PastTurn | None) -> tuple[Compared, ...]:
        """Then and now, call by call."""
        found: list[Compared] = []
        again = now.steps if now is not None else []
        for number, (step, new) in enumerate(zip_longest(self._turn.steps, again)):
            results = new.results if new is not None else []
            if step is not None:  # the reply that says that there are no more is none of them
                found += [
                    self._compare(number, *each)
                    for each in zip_longest(step.calls, step.results, results[: len(step.calls)])
                ]
        return tuple(found)

    def _compare(
        self, step: int, call: ToolCall, then: ToolOutput | None, now: ToolOutput | None
    ) -> Compared:
        said = self._back.text(now.text) if now is not None else ""
        was = then.text if then is not None else ""
        verdict: Verdict = "same"
        if _unfinished(then):
            verdict = "skipped"
        elif (step, call.id) in self._denied:
            verdict = "denied"
        elif then is None or now is None:
            verdict = "missing"
        elif (was, then.is_error, then.media) != (said, now.is_error, now.media):
            verdict = "differs"
        return Compared(call.name, call.arguments, verdict, was, said)


def _unfinished(result: ToolOutput | None) -> bool:
    """Return whether a call was not run or was cut off, for a reason that may not recur."""
    return result is None or outcome_of(result) in _UNFINISHED


class _Again:
    """A tool of today that leaves alone what did not finish then."""

    def __init__(self, tool: Tool, player: _Player) -> None:
        self._tool = tool
        self._player = player
        self.name, self.description = tool.name, tool.description
        self.parameters, self.policy = tool.parameters, tool.policy
        if touched := getattr(tool, "touched", None):
            self.touched = touched

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """What the tool does."""
        if self._player.skips(context.call_id):
            return ToolResult.failure(_SKIPPED)
        return await self._tool.execute(arguments, context)


class _Moved:
    """Speaks of one folder where another was spoken of; names that only begin alike stay."""

    def __init__(self, old: str, new: str) -> None:
        worth = len(Path(old).parts) > 1 and Path(old).is_absolute()
        self._pattern = re.compile(re.escape(old) + r"(?![\w.-])") if worth else None
        self._new = new

    def text(self, text: str) -> str:
        """The text with the other folder in it."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._new, text)

    def call(self, call: ToolCall) -> ToolCall:
        """The call with the other folder in its arguments."""
        return ToolCall(call.id, call.name, self._value(call.arguments), call.broken)

    def part(self, part: Part) -> Part:
        """A part of a reply: calls are moved, words stay."""
        return self.call(part) if isinstance(part, ToolCall) else part

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._value(found) for name, found in value.items()}
        return [self._value(found) for found in value] if isinstance(value, list) else value
