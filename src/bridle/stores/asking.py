"""The questions that wait for a person, over all sessions, without reading whole logs.

The end of a turn settles everything that was asked in it. So a log is read backwards, in growing
blocks, to the newest end of a turn; in most logs that is the last line. A record is known by the
beginning of its line: the same words inside a line are somebody's content.
"""

import logging
import os
import re
from datetime import UTC, datetime

from msgspec import Struct

from bridle.errors import StoreFailed
from bridle.events import ApprovalAnswered, ApprovalAsked, add_request, take_request
from bridle.promises.store import Record
from bridle.stores.finding import backwards
from bridle.stores.glance import Place, places
from bridle.stores.inbox import letters
from bridle.stores.placing import opened
from bridle.stores.reading import SessionFolder
from bridle.stores.walking import readable

log = logging.getLogger(__name__)

_SETTLING = tuple(b'"data":{"type":"%b"' % kind for kind in (b"turn_end", b"rewind", b"fork"))
_APPROVAL = re.compile(rb'"data":\{"type":"approval_(?:asked|answered)"')
_LINE = re.compile(rb'\{"seq":\d{1,18},"timestamp":"[^"\\]{0,40}",')


class Pending(Struct, frozen=True):
    """A question that nobody has answered, and the number of its record.

    `expired`: it was to be answered by a time that has passed. `posted`: an answer lies in the
    session's inbox and counts once somebody takes the session up.
    """

    session_id: str
    asked: ApprovalAsked
    seq: int
    timestamp: str = ""
    expired: bool = False
    posted: bool = False


def pending(folder: SessionFolder) -> list[Pending]:
    """Every open question; those of the session that changed last come first."""
    try:
        every = places(folder.folder)
    except OSError as error:
        raise StoreFailed(
            f"the sessions cannot be listed: {error.strerror or error}", error
        ) from error
    return [found for place in every for found in pending_in(place, folder)]


def pending_in(place: Place, folder: SessionFolder) -> list[Pending]:
    """The open questions of one session."""
    try:
        handle = opened(f"{place.path}/log.jsonl")
    except OSError:
        return []
    try:
        records = _approvals(handle, os.fstat(handle).st_size)
    except OSError as error:
        log.warning("session %s cannot be read: %s", place.id, error.strerror or error)
        return []
    finally:
        os.close(handle)
    return _open_ones(place.id, records, folder) if records else []


def _open_ones(session_id: str, records: list[Record], folder: SessionFolder) -> list[Pending]:
    asked: dict[str, ApprovalAsked] = {}
    placed: dict[str, Record] = {}
    for record in records:
        event = record.event
        if isinstance(event, ApprovalAsked):
            add_request(asked, event)
            placed[event.shown] = record
        elif isinstance(event, ApprovalAnswered):
            take_request(asked, event)
    if not asked:
        return []
    posted = _posted(session_id, folder)
    return [
        Pending(
            session_id=session_id,
            asked=event,
            seq=placed[shown].seq,
            timestamp=placed[shown].timestamp,
            expired=_is_past(event.expires),
            posted=shown in posted,
        )
        for shown, event in asked.items()
    ]


def _posted(session_id: str, folder: SessionFolder) -> set[str]:
    try:
        waiting = letters(folder.path(session_id).parent)
    except StoreFailed:
        return set()
    return {letter.shown for letter in waiting if letter.verb == "answer"}


def _is_past(expires: str) -> bool:
    try:
        when = datetime.fromisoformat(expires)
    except ValueError:
        return False
    return (when if when.tzinfo else when.replace(tzinfo=UTC)) < datetime.now(UTC)


def _approvals(handle: int, size: int) -> list[Record]:
    """What was asked and answered since the newest end of a turn, in order."""
    found: list[bytes] = []
    for lines in backwards(handle, size):
        start = _settled(lines)
        found[:0] = _among(lines, max(start, 0))
        if start >= 0:
            break
    decoded = (readable(line) for line in found)
    return [record for record in decoded if record is not None]


def _settled(lines: bytes) -> int:
    """Where the newest record stands that settles everything before it; -1 where there is none."""
    newest = -1
    for words in _SETTLING:
        newest = max(newest, _last(lines, words, max(newest, 0)))
    return newest


def _last(lines: bytes, words: bytes, start: int) -> int:
    at = lines.rfind(words, start)
    while at >= 0 and not _begins(lines, at):
        at = lines.rfind(words, start, at)
    return at


def _begins(lines: bytes, at: int) -> bool:
    """Is this the line's own `data`, and not something inside it?"""
    start = lines.rfind(b"\n", 0, at) + 1
    return _LINE.fullmatch(lines, start, at) is not None


def _among(lines: bytes, start: int) -> list[bytes]:
    return [
        lines[lines.rfind(b"\n", 0, at) + 1 : lines.find(b"\n", at) + 1]
        for at in (match.start() for match in _APPROVAL.finditer(lines, start))
        if _begins(lines, at)
    ]
