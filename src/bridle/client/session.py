"""A session that lives on a server, with the verbs and the looks of one that lives here.

What is known of it is folded from its stream; what is done with it is a request. Who does it is
known from the token: a name that is handed in (`by`) is not sent.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

from msgspec.structs import fields

from bridle.client.faults import read
from bridle.client.feed import Feed
from bridle.client.link import Link, spelled
from bridle.engine.history import History
from bridle.errors import EmptyPrompt, SessionError, Unreachable
from bridle.events import Grant, When
from bridle.messages import Part, Text
from bridle.policy import Mode
from bridle.protocols.session import Answer, Prompt, TurnResult
from bridle.protocols.session_values import (
    Budget,
    PromptAccepted,
    RulePreview,
    SessionDetail,
    SessionInfo,
    SessionLimits,
    UndoPreview,
)
from bridle.protocols.store import Record
from bridle.usage import ExecutionMetrics

_T = TypeVar("_T")
_spelled = {one.name: one.encode_name for one in fields(SessionLimits)}
_SEEN = 5.0  # seconds until what was done is seen in the stream; then it is believed
_TRIES = 4  # ... with the same key, so that a prompt is sent once


class RemoteSession:
    """A conversation that lasts, elsewhere."""

    def __init__(self, link: Link, line: SessionInfo, feed: Feed) -> None:
        self.id = line.id
        self.line = line  # as it was when it was opened
        self._link = link
        self._feed = feed
        self._path = f"/api/sessions/{spelled(line.id)}"

    async def __aenter__(self) -> "RemoteSession":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def title(self) -> str:
        """The session's title: given, or made from its first prompt."""
        return self.history.title or self.line.title

    @property
    def mode(self) -> Mode:
        """What may run without asking: the session's own mode, or else its server's."""
        return cast("Mode", self.history.mode or self.line.mode or "ask")

    @property
    def is_busy(self) -> bool:
        """Is a turn running, or about to?"""
        known = self.history
        return not known.parked and bool(known.running or known.waiting)

    @property
    def is_parked(self) -> bool:
        """Does a turn wait for answers, with nothing running?"""
        return self.history.parked

    @property
    def is_closed(self) -> bool:
        """Is it watched no longer?"""
        return self._feed.closed

    @property
    def turn(self) -> int:
        """The number of the turn that runs or is parked; 0: none."""
        return self.history.running

    @property
    def seq(self) -> int:
        """The number of the newest record that was seen."""
        return self._feed.seq

    @property
    def began(self) -> int:
        """The record before the newest turn's prompt: from there on it can be shown whole."""
        return self._feed.endings.began

    @property
    def metrics(self) -> ExecutionMetrics:
        """What the session has used so far."""
        return self.history.metrics

    @property
    def history(self) -> History:
        """What the records add up to."""
        return self._feed.history

    async def send(self, prompt: Prompt, *, when: When = "idle", by: str = "me") -> int:
        """The turn's number, once the prompt is on the server's disk."""
        body: dict[str, Any] = {"when": when}
        parts = _parts(prompt)
        if all(isinstance(part, Text) for part in parts):
            body["prompt"] = "".join(part.text for part in parts if isinstance(part, Text))
        else:
            body["parts"] = parts
        key = {"Idempotency-Key": secrets.token_hex(16)}
        taken = read(await self._post("chat", body, key), PromptAccepted)
        await self._feed.until(lambda: self.history.turn >= taken.turn, _SEEN)
        return taken.turn

    async def answer(self, call_id: str, answer: Answer | bool, *, shown: str, by: str) -> None:
        """Settle a question; the first answer wins. Raise `UnknownApproval`."""
        said = answer if isinstance(answer, Answer) else Answer(answer)
        await self._do("POST", f"approvals/{spelled(call_id)}", answer_body(said, shown))
        await self._feed.until(lambda: shown not in self.history.pending, _SEEN)

    async def interrupt(self, *, by: str = "me") -> None:
        """End the running turn, and come back when it has ended."""
        turn = self.turn
        await self._do("POST", "interrupt", {})
        if turn:
            await self._feed.until(lambda: self.turn != turn, _SEEN)

    async def wait(self, turn: int) -> TurnResult:
        """The result of a turn, when it is over.

        A parked one is not: whoever answers what it asks, here or elsewhere, lets it go on.
        """
        feed = self._feed
        await feed.until(lambda: self.history.turn >= turn, _SEEN)
        if not 0 < turn <= self.history.turn:
            raise SessionError(f"session {self.id} has no turn {turn}")

        await feed.until(lambda: turn in feed.endings.results)
        return feed.endings.results[turn]

    async def until(self, there: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until what is known of it says so; False where it did not in time."""
        return await self._feed.until(there, seconds)

    def subscribe(self, after: int = 0) -> AsyncGenerator[Record, None]:
        """Every record after that number: what was written, then live; no gap, no repeat."""
        return self._feed.records(after)

    async def resume(self) -> int:
        """Carry on what was left behind, a parked turn or prompts that wait: the turn's number."""
        await self._seen(await self._ask("POST", "resume", {}, of=SessionInfo))
        waiting = min((one.turn for one in self.history.waiting.values()), default=0)
        if not (turn := self.turn or waiting):
            raise SessionError(f"session {self.id} has nothing to resume", hint="Send it a prompt.")
        return turn

    async def set_mode(self, mode: Mode, *, by: str = "me", reason: str = "") -> None:
        """Have this mode from the next call on."""
        await self._change(mode=mode)

    async def rename(self, title: str) -> None:
        """Give it a title."""
        await self._change(title=title)

    async def tag(self, tags: Iterable[str]) -> None:
        """Give it these tags, and no others."""
        await self._change(tags=list(tags))

    async def configure(self, *, provider: str = "", model: str = "", agent: str = "") -> None:
        """Another model or agent from the next turn on."""
        given = {"provider": provider, "model": model, "agent": agent}
        await self._change(**{key: value for key, value in given.items() if value})

    async def _change(self, **change: Any) -> None:
        self.line = await self._ask("PATCH", "", change, of=SessionDetail)
        await self._seen(self.line)

    async def rewind(self, to: int, *, by: str = "me") -> None:
        """Make the conversation again what it was at record `to`; 0 is empty."""
        await self._seen(await self._ask("POST", "rewind", {"to": to}, of=SessionDetail))

    async def compact(self, *, by: str = "me") -> bool:
        """Shorten the conversation now, between two turns: was there anything to gain?"""
        before = len(self.history.transcript)
        await self._seen(await self._ask("POST", "compact", {}, of=SessionDetail))
        return len(self.history.transcript) < before

    async def fork(self, at: int | None = None) -> SessionInfo:
        """A new session with this one's conversation, up to a record; this one stays as it is."""
        return await self._ask("POST", "fork", {"at": at}, of=SessionInfo)

    async def detail(self) -> SessionDetail:
        """The session as the server shows it now."""
        return await self._ask("GET", "", of=SessionDetail)

    async def look(self) -> None:
        """Have `line` say what the server shows of it now."""
        self.line = await self.detail()

    def grants(self) -> tuple[Grant, ...]:
        """What a person has allowed for the session, and nobody has taken back."""
        now = datetime.now(UTC)
        return tuple(one for one in self.history.grants.values() if not _is_over(one, now))

    async def revoke(self, grant: str = "", *, by: str = "me") -> None:
        """Take one grant back, by its id; without one, all of them."""
        await self._do("DELETE", f"grants/{spelled(grant)}" if grant else "grants")
        there = self.history.grants
        await self._feed.until(lambda: grant not in there if grant else not there, _SEEN)

    async def preview(self, rule: str) -> tuple[str, ...]:
        """The calls of this conversation that a rule would have covered, in words."""
        found = await self._ask("POST", "preview-rule", {"rule": rule}, of=RulePreview)
        return found.calls

    async def undo_preview(self, turn: int = 0) -> UndoPreview:
        """What an undo of that turn (0: the newest that changed something) would do."""
        query = f"undo?turn={turn}" if turn else "undo"
        return await self._ask("GET", query, of=UndoPreview)

    async def undo(
        self, shown: UndoPreview, *, clashes: Literal["refuse", "skip", "overwrite"] = "refuse"
    ) -> None:
        """Put back what was shown. `clashes`: what to do with files that changed after the turn.

        With "refuse", if there are any, put nothing back and raise `SessionError`.
        """
        body = {"turn": shown.turn, "token": shown.token, "clashes": clashes}
        await self._do("POST", "undo", body)

    async def budget(self) -> Budget:
        """What it may use, and what it has used."""
        return await self._ask("GET", "budget", of=Budget)

    async def set_budget(self, **limits: float) -> Budget:
        """Narrower limits, from the next turn on: `max_session_cost=2.5`."""
        named = {_spelled[name]: value for name, value in limits.items()}
        return await self._ask("PUT", "budget", named, of=Budget)

    async def withdraw(self, prompt: int, *, by: str = "me") -> None:
        """Take back a prompt that waits, by the number of its record."""
        await self._do("DELETE", f"queue/{prompt}")
        await self._feed.until(lambda: prompt not in self.history.waiting, _SEEN)

    async def export(self, form: str = "jsonl") -> bytes:
        """The whole session as a file: `jsonl` or `markdown`."""
        return await self._link.ask("GET", f"{self._path}/export", query={"format": form})

    async def close(self) -> None:
        """Watch it no longer. The session itself goes on without us."""
        await self._feed.close()

    async def _post(self, verb: str, body: Any, headers: dict[str, str]) -> bytes:
        """A request that is safe to send again, for it says which one it is."""
        path = f"{self._path}/{verb}"
        for left in reversed(range(_TRIES)):
            try:
                return await self._link.ask("POST", path, body, headers=headers)
            except Unreachable as problem:
                if not left:
                    raise
                await asyncio.sleep(min(problem.retry_after or 0.3, 2.0))
        raise AssertionError("the last try returns or raises")

    async def _ask(self, method: str, verb: str, body: Any = None, *, of: type[_T]) -> _T:
        return read(await self._do(method, verb, body), of)

    async def _do(self, method: str, verb: str, body: Any = None) -> bytes:
        path = f"{self._path}/{verb}" if verb else self._path
        return await self._link.ask(method, path, body)

    async def _seen(self, line: SessionInfo) -> None:
        """Until the stream has told what the answer says."""
        await self._feed.until(lambda: self._feed.seq >= line.seq, _SEEN)


def answer_body(said: Answer, shown: str) -> dict[str, Any]:
    """An answer as a server takes it."""
    body = {"allowed": said.allowed, "shown": shown, "scope": said.scope}
    return body | {"word": said.word, "rule": said.rule}


def _parts(prompt: Prompt) -> tuple[Part, ...]:
    given: Iterable[str | Part] = [prompt] if isinstance(prompt, str) else prompt
    parts = tuple(Text(one) if isinstance(one, str) else one for one in given)
    if not any(not isinstance(one, Text) or one.text.strip() for one in parts):
        raise EmptyPrompt("the prompt is empty", hint="Say what you want done.")
    return parts


def _is_over(grant: Grant, now: datetime) -> bool:
    try:
        return bool(grant.until) and datetime.fromisoformat(grant.until) <= now
    except ValueError:
        return True
