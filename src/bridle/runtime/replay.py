"""Run a past session again, with its recorded replies, against today's tools.

The prompts and replies in the log become a scripted model, and its answers those of the approver.
Every call goes through the same gate and the same loop as then, in a folder that the caller has
prepared (`copy_folder`). Each result is compared with the recorded one.
"""

import os
import re
import shutil
import stat
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from bridle.engine.budget import Limits
from bridle.errors import ConfigError
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
from bridle.protocols.provider import ProviderInfo, Request
from bridle.protocols.session import Answer
from bridle.protocols.store import Record
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.providers.scripted import Fault, Reply, Scripted
from bridle.runtime.assembly import build_engine
from bridle.runtime.dry_run import key_of
from bridle.stores.memory_store import MemoryStore
from bridle.tools.builtin import builtin_tools

Verdict = Literal["same", "differs", "missing", "denied", "skipped"]
MOST_FILES = 100_000  # that are copied
MOST_BYTES = 1_000_000_000
NEVER_ASKED = Answer(False, word="nobody was asked about this call then", by="replay")
_SKIPPED = "not run again: it did not finish then"
_UNFINISHED = ("interrupted", "not_stopped", "unknown", "not_run", "refused")


class RecordedStep(Struct):
    """One recorded reply and the results of its calls, in their order."""

    reply: ResponseCompleted
    results: list[ToolOutput | None] = []

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the reply."""
        return self.reply.message.tool_calls if self.reply.message is not None else ()

    def add_result(self, output: ToolOutput) -> bool:
        """Store a result for the first call with its id that has none. False if there is none."""
        for index, call in enumerate(self.calls):
            if call.id == output.call_id and self.results[index] is None:
                self.results[index] = output
                return True
        return False


class RecordedTurn(Struct):
    """A prompt and the steps of its turn."""

    number: int
    prompt: tuple[Part, ...]
    steps: list[RecordedStep] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The prompt's text."""
        return "".join(part.text for part in self.prompt if isinstance(part, Text))


class RecordedSession:
    """What a replay needs of a log: turns, answers, model and workspace.

    Rewinds are ignored: they did not undo the effects of calls, so the calls run again.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.workspace = ""
        self.model = ""
        self.turns: list[RecordedTurn] = []
        self.answers: dict[bytes, list[Answer]] = {}
        self.unasked: dict[bytes, int] = {}  # how often it ran without a request
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
                self.turns[-1].steps.append(RecordedStep(event, [None] * len(calls)))
            case _:
                self._add_call(event)

    def _begin(self, number: int, prompt: PromptReceived) -> None:
        parts = prompt.parts or (Text(prompt.content or "(no words)"),)
        self.turns.append(RecordedTurn(number, parts))

    def _add_call(self, event: Event) -> None:
        match event:
            case ToolResultEvent(output=output) if self.turns and self.turns[-1].steps:
                self.turns[-1].steps[-1].add_result(output)
            case ApprovalAsked():
                self._asked[event.shown or event.call.id] = event
            case ApprovalAnswered():
                asked = self._asked.get(event.shown or event.call_id)
                if asked is not None:
                    answer = Answer(event.allowed, event.scope, event.word, event.by)
                    self.answers.setdefault(key_of(asked.call), []).append(answer)
            case CallIntended(read_only=False, call_id=call_id):
                self._intended(call_id)

    def _intended(self, call_id: str) -> None:
        steps = self.turns[-1].steps if self.turns else []
        for call in steps[-1].calls if steps else ():
            if call.id == call_id and key_of(call) not in self.answers:
                key = key_of(call)
                self.unasked[key] = self.unasked.get(key, 0) + 1


class CallComparison(Struct, frozen=True, omit_defaults=True):
    """One call, with its recorded result (`then`) and its result in the replay (`now`)."""

    name: str
    arguments: dict[str, Any]
    verdict: Verdict
    then: str = ""
    now: str = ""


class ReplayedTurn(Struct, frozen=True):
    """One turn, run again."""

    turn: int
    prompt: str
    calls: tuple[CallComparison, ...] = ()


async def replay(
    past: RecordedSession, folder: Path, *, unasked: bool = False
) -> AsyncGenerator[ReplayedTurn, None]:
    """Run the session again in that folder, turn by turn.

    With `unasked`, calls that ran then without an approval are approved now if they need one;
    otherwise they are denied.
    """
    player = _Player(past, folder, unasked)
    model = Scripted(player.reply, info=ProviderInfo("replay", past.model))
    store = MemoryStore()
    async with build_engine(
        model,
        tools=[_ReplayedTool(tool, player) for tool in builtin_tools()],
        workspace=folder,
        store=store,
        approver=player.answer,
        mode="ask",
        limits=Limits(max_steps=0),
        system="",
        face="replay",
    ) as engine:
        session = await engine.session()
        for turn in past.turns:
            player.begin_turn(turn)
            before = session.seq
            await session.wait(await session.send(turn.prompt))
            now = RecordedSession(store.read(session.id, before)).turns
            yield ReplayedTurn(turn.number, turn.text, player.comparisons(now[-1] if now else None))


class _Player:
    """Gives the recorded replies and answers, with the paths of the new folder in them."""

    def __init__(self, past: RecordedSession, folder: Path, unasked: bool) -> None:
        self._to_new = _PathTranslator(past.workspace, str(folder))
        self._to_old = _PathTranslator(str(folder), past.workspace)
        self._answers = {key: deque(answers) for key, answers in past.answers.items()}
        if unasked:
            for key, count in past.unasked.items():
                self._answers.setdefault(key, deque([Answer(True, by="then")] * count))
        self._turn = RecordedTurn(0, ())
        self._step = -1
        self._denied: set[tuple[int, str]] = set()

    def begin_turn(self, turn: RecordedTurn) -> None:
        """Start the next turn."""
        self._turn, self._step = turn, -1
        self._denied.clear()

    def reply(self, request: Request) -> Reply:
        """Return the next recorded reply of this turn."""
        self._step += 1
        if self._step >= len(self._turn.steps):
            return Reply(error=Fault(message="the recorded replies of this turn end here"))
        recorded = self._turn.steps[self._step].reply
        parts = recorded.message.parts if recorded.message is not None else ()
        moved = tuple(self._to_new.part(part) for part in parts)
        if recorded.stop_reason == "error":
            return Reply(parts=moved, error=Fault(message=recorded.stop_detail or "it failed then"))
        return Reply(parts=moved, stop_reason=recorded.stop_reason, usage=recorded.usage)

    async def answer(self, asked: ApprovalAsked) -> Answer:
        """Give the recorded answer to the same call, or deny a call that has none."""
        answers = self._answers.get(key_of(self._to_old.call(asked.call)))
        if answers:
            return answers.popleft()
        self._denied.add((self._step, asked.call.id))
        return NEVER_ASKED

    def skips(self, call_id: str) -> bool:
        """Whether this call of the running step did not finish then."""
        step = self._turn.steps[self._step]
        pairs = zip(step.calls, step.results, strict=True)
        return any(call.id == call_id and _unfinished(result) for call, result in pairs)

    def comparisons(self, now: RecordedTurn | None) -> tuple[CallComparison, ...]:
        """Compare the calls of this turn, then and now."""
        comparisons: list[CallComparison] = []
        again = now.steps if now is not None else []
        for number, (step, new) in enumerate(zip_longest(self._turn.steps, again)):
            results = new.results if new is not None else []
            if step is not None:  # not the reply that says that the recorded ones have ended
                comparisons += [
                    self._compare(number, *each)
                    for each in zip_longest(step.calls, step.results, results[: len(step.calls)])
                ]
        return tuple(comparisons)

    def _compare(
        self, step: int, call: ToolCall, then: ToolOutput | None, now: ToolOutput | None
    ) -> CallComparison:
        new_text = self._to_old.text(now.text) if now is not None else ""
        old_text = then.text if then is not None else ""
        verdict: Verdict = "same"
        if _unfinished(then):
            verdict = "skipped"
        elif (step, call.id) in self._denied:
            verdict = "denied"
        elif then is None or now is None:
            verdict = "missing"
        elif (old_text, then.is_error, then.media) != (new_text, now.is_error, now.media):
            verdict = "differs"
        return CallComparison(
            name=call.name, arguments=call.arguments, verdict=verdict, then=old_text, now=new_text
        )


def _unfinished(result: ToolOutput | None) -> bool:
    """Return whether a call was not run or was cut off, for a reason that may not recur."""
    return result is None or outcome_of(result) in _UNFINISHED


class _ReplayedTool:
    """One of today's tools. It does not run calls that did not finish then."""

    def __init__(self, tool: Tool, player: _Player) -> None:
        self._tool = tool
        self._player = player
        self.name, self.description = tool.name, tool.description
        self.parameters, self.policy = tool.parameters, tool.policy
        if touched := getattr(tool, "touched", None):
            self.touched = touched

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Run the call, unless it did not finish then."""
        if self._player.skips(context.call_id):
            return ToolResult.failure(_SKIPPED)
        return await self._tool.execute(arguments, context)


class _PathTranslator:
    """Replaces a folder's path by another's; longer names that begin with it stay."""

    def __init__(self, old: str, new: str) -> None:
        is_specific = len(Path(old).parts) > 1 and Path(old).is_absolute()
        self._pattern = re.compile(re.escape(old) + r"(?![\w.-])") if is_specific else None
        self._new = new

    def text(self, text: str) -> str:
        """Return the text with the new path in it."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._new, text)

    def call(self, call: ToolCall) -> ToolCall:
        """Return the call with the new path in its arguments."""
        return ToolCall(call.id, call.name, self._value(call.arguments), call.broken)

    def part(self, part: Part) -> Part:
        """Return a part of a reply: calls are translated, text stays as it is."""
        return self.call(part) if isinstance(part, ToolCall) else part

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._value(each) for name, each in value.items()}
        return [self._value(each) for each in value] if isinstance(value, list) else value


_Entry = tuple[str, os.stat_result]  # path from the root, and its status


class CopyResult(Struct, frozen=True):
    """How much was copied. `left_out` counts links that lead out, devices and unreadable files."""

    files: int = 0
    size: int = 0
    left_out: int = 0


def copy_folder(
    source: Path, target: Path, progress: Callable[[int, int], None] | None = None
) -> CopyResult:
    """Copy a folder into another, which is empty. Raise `ConfigError` if it is too large.

    The limits are checked before the first byte is copied. A link is copied only if it stays inside
    the folder: one that leads out would let the tools change files outside of the copy.
    """
    entries = list(_entries(source))
    total = sum(info.st_size for _, info in entries if stat.S_ISREG(info.st_mode))
    files = size = left_out = 0
    for path, info in entries:
        if not _copy(source, target, path, info):
            left_out += 1
        elif stat.S_ISREG(info.st_mode):
            files, size = files + 1, size + info.st_size
        if progress is not None:
            progress(size, total)
    return CopyResult(files, size, left_out)


def _entries(source: Path) -> Iterator[_Entry]:
    size = 0
    for count, (path, info) in enumerate(_walk(source), 1):
        size += info.st_size if stat.S_ISREG(info.st_mode) else 0
        if count > MOST_FILES or size > MOST_BYTES:
            raise ConfigError(
                f"{source} is too large to copy: the limit is {MOST_FILES:,} entries and "
                f"{MOST_BYTES // 1_000_000:,} MB; nothing was run",
                hint="Name a smaller folder that holds what the session needs with --workspace.",
            )
        yield path, info


def _walk(source: Path) -> Iterator[_Entry]:
    """Yield everything below, a folder before its entries; no link is followed."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(source / folder) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue  # it cannot be read: it is copied as an empty folder
        for entry in sorted_entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                folders.append(path)
            yield path, info


def _copy(source: Path, target: Path, path: str, info: os.stat_result) -> bool:
    """Copy one entry. False if it is left out."""
    try:
        if stat.S_ISDIR(info.st_mode):
            (target / path).mkdir(mode=0o700 | stat.S_IMODE(info.st_mode))
        elif stat.S_ISLNK(info.st_mode):
            return _copy_link(source, target, path)
        elif stat.S_ISREG(info.st_mode):
            shutil.copy2(source / path, target / path, follow_symlinks=False)
        else:
            return False
    except OSError:
        return False
    return True


def _copy_link(source: Path, target: Path, path: str) -> bool:
    """Copy a link if its text and its target both stay inside, so that it does in the copy, too."""
    link = source / path
    target_of_link = Path(os.path.normpath(link.parent / link.readlink()))
    if not target_of_link.is_relative_to(source) or not link.resolve().is_relative_to(
        source.resolve()
    ):
        return False
    new_target = target / target_of_link.relative_to(source)
    (target / path).symlink_to(os.path.relpath(new_target, (target / path).parent))
    return True
