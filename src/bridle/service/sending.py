"""Prompts: accepted once they are on disk, and each once, however often they are sent.

An idempotency key is kept in the log itself, as the name of the letter that brought the prompt: a
hash of who sent it and their key, and behind it a hash of what was sent.
"""

import asyncio
from hashlib import blake2b

import msgspec
from msgspec import Struct

from bridle.engine.history import History
from bridle.engine.session import Session
from bridle.errors import EmptyPrompt, SessionBusy, SessionLocked
from bridle.events import PromptReceived, When
from bridle.messages import Part, to_parts
from bridle.protocols.session import Prompt
from bridle.protocols.session_errors import (
    IdempotencyConflict,
    NotFound,
    PromptBegun,
    QueueFull,
    Unavailable,
)
from bridle.protocols.session_values import PromptAccepted, PromptRequest
from bridle.protocols.store import InboxMessage, Record
from bridle.runtime.inbox_sender import new_message_id
from bridle.service.inbox_client import InboxClient, MessageRefused
from bridle.service.open_sessions import OpenSessions
from bridle.service.session_info import summarize_log
from bridle.service.workspace_scope import WorkspaceScope
from bridle.stores.inbox_files import read_messages
from bridle.stores.reader import find_records

_KEY, _BODY = 24, 16  # hex digits
_WAITING, _WAITING_BYTES = 100, 20_000_000  # prompts that may wait in a session
_KEPT = 256  # letters that a session remembers; older ones are looked for in its log
_encode = msgspec.json.Encoder(order="deterministic").encode


class Parcel(Struct, frozen=True):
    """A prompt on its way. `letter` is empty where there is no key."""

    session_id: str
    content: str
    parts: tuple[Part, ...]
    when: When
    by: str
    letter: str = ""

    @property
    def prompt(self) -> Prompt:
        """What is sent."""
        return self.parts or self.content

    @property
    def key(self) -> str:
        """Who sent it, and their key."""
        return self.letter[:_KEY]


class Sending:
    """Takes prompts."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions, posting: InboxClient) -> None:
        self._ground = ground
        self._holding = holding
        self._posting = posting
        self._underway: dict[tuple[str, str], tuple[str, asyncio.Task[int]]] = {}

    async def send(
        self, session_id: str, chat: PromptRequest, by: str, key: str = ""
    ) -> PromptAccepted:
        """The turn of a prompt. Raise `SessionBusy`, `IdempotencyConflict`, `EmptyPrompt`."""
        self._holding.check_taking()
        when: When = "queue" if chat.queue and chat.when == "idle" else chat.when
        if not chat.prompt and not chat.parts:
            raise EmptyPrompt("there is nothing to send", hint="Say a prompt, or parts.")
        letter = _letter(by, key, chat) if key else ""
        words = to_parts(chat.prompt) if chat.prompt else ()
        parts = (*words, *chat.parts) if chat.parts else ()
        parcel = Parcel(session_id, chat.prompt, parts, when, by, letter)
        turn = await (self._once(parcel) if key else self._deliver(parcel))
        return PromptAccepted(session_id, turn)

    async def withdraw(self, session_id: str, prompt: int, by: str) -> None:
        """Take back a prompt that waits. Raise `PromptBegun`, `NotFound`, `SessionLocked`."""
        async with self._holding.use(session_id) as session:
            if prompt not in session.history.waiting:
                raise await asyncio.to_thread(self._not_waiting, session_id, prompt)
            await session.withdraw(prompt, by=by)

    def _not_waiting(self, session_id: str, prompt: int) -> PromptBegun | NotFound:
        """In a thread: why it cannot be taken back."""
        found = next(self._ground.folder.read(session_id, prompt - 1), None)
        if found is None or found.seq != prompt or not isinstance(found.event, PromptReceived):
            return NotFound(f"record {prompt} of session {session_id} is no prompt")
        return PromptBegun(f"prompt {prompt} waits no more: it has begun, or was taken back")

    async def _once(self, parcel: Parcel) -> int:
        """Those who send the same while it is under way get the same turn."""
        place = parcel.session_id, parcel.key
        if (underway := self._underway.get(place)) is None:
            task = asyncio.ensure_future(self._deliver(parcel))
            underway = self._underway[place] = parcel.letter, task
            task.add_done_callback(lambda done: self._done(place, done))
        _check_body(parcel, underway[0])
        return await asyncio.shield(underway[1])  # whoever goes away, it is sent all the same

    def _done(self, place: tuple[str, str], task: "asyncio.Task[int]") -> None:
        self._underway.pop(place, None)
        if not task.cancelled():
            task.exception()  # it is heard here where everybody who sent it has gone

    async def _deliver(self, parcel: Parcel) -> int:
        if not await self._posting.elsewhere(parcel.session_id):
            try:
                async with self._holding.use(parcel.session_id) as session:
                    return await self._here(session, parcel)
            except SessionLocked:
                pass  # somebody was faster
        return await self._there(parcel)

    async def _here(self, session: Session, parcel: Parcel) -> int:
        known = session.history.inbox_ids
        if parcel.letter and (len(known) >= _KEPT or _any(known, parcel.key)):
            turn = await asyncio.to_thread(self._earlier, parcel)
            if turn:
                return turn
        if session.is_busy:
            _check_room(session.history)
        return await session.send(
            parcel.prompt, when=parcel.when, by=parcel.by, letter=parcel.letter
        )

    def _earlier(self, parcel: Parcel) -> int:
        """In a thread: the turn that was given to it before; 0: it is new."""
        words = b'"letter":"' + parcel.key.encode()
        for record in find_records(self._ground.folder, parcel.session_id, words):
            event = record.event
            if isinstance(event, PromptReceived) and event.letter.startswith(parcel.key):
                _check_body(parcel, event.letter)
                return event.turn
        return 0

    async def _there(self, parcel: Parcel) -> int:
        """Send it to who holds the session, as a letter."""
        if parcel.letter and (turn := await asyncio.to_thread(self._earlier, parcel)):
            return turn
        await asyncio.to_thread(self._check_there, parcel)
        waits = await asyncio.to_thread(self._posted, parcel)
        new = f"{parcel.letter}-{new_message_id()[:8]}" if parcel.letter else new_message_id()
        letter = InboxMessage(
            waits or new, "send", parcel.by, parcel.content, parcel.parts, when=parcel.when
        )

        def turn_of(record: Record) -> int | None:
            event = record.event
            mine = isinstance(event, PromptReceived) and event.letter == letter.id
            return getattr(event, "turn", 0) if mine else None

        try:
            return await self._posting.post(parcel.session_id, letter, turn_of, again=bool(waits))
        except MessageRefused as refused:
            raise SessionBusy(refused.message) from None
        except Unavailable:
            turn = await asyncio.to_thread(self._earlier, parcel) if waits else 0
            if not turn:  # it was taken just before we looked
                raise
            return turn

    def _posted(self, parcel: Parcel) -> str:
        """The letter that lies there already with this key, if one does."""
        if not parcel.letter:
            return ""
        waiting = read_messages(self._ground.folder.path(parcel.session_id).parent)
        for one in waiting:
            if one.id.startswith(parcel.key):
                _check_body(parcel, one.id)
                return one.id
        return ""

    def _check_there(self, parcel: Parcel) -> None:
        history = summarize_log(self._ground.folder, parcel.session_id).history
        if history.running and parcel.when == "idle":
            raise SessionBusy(f"session {parcel.session_id} is busy with turn {history.running}")
        _check_room(history)


def _letter(by: str, key: str, chat: PromptRequest) -> str:
    who = blake2b(f"{by}\0{key}".encode("utf-8", "backslashreplace"), digest_size=_KEY // 2)
    what = blake2b(_encode(chat), digest_size=_BODY // 2)
    return who.hexdigest() + what.hexdigest()


def _check_room(history: History) -> None:
    """Raise `QueueFull` where no more prompts may wait."""
    waiting = history.waiting.values()
    if len(waiting) >= _WAITING:
        raise QueueFull(f"{len(waiting)} prompts wait already, and no more may; nothing was sent")
    if sum(map(_size, waiting)) >= _WAITING_BYTES:
        raise QueueFull("the prompts that wait are very large together; nothing was sent")


def _size(prompt: PromptReceived) -> int:
    return len(prompt.content) + sum(len(getattr(one, "data", "")) for one in prompt.parts)


def _any(known: dict[str, None], key: str) -> bool:
    return any(one.startswith(key) for one in known)


def _check_body(parcel: Parcel, letter: str) -> None:
    """Raise `IdempotencyConflict` where the key was used for something else."""
    size = _KEY + _BODY
    if letter[:size] != parcel.letter[:size]:
        raise IdempotencyConflict(
            "this Idempotency-Key was used for another prompt; nothing was sent"
        )
