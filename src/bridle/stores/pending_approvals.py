"""The open approval requests of all sessions, found without reading whole logs.

The end of a turn closes every request that was made in it. So a log is read from its end back to
the newest end of a turn, which in most logs is the last line.
"""

import logging
import os
from datetime import UTC, datetime
from functools import partial

from bridle.errors import StoreFailed
from bridle.events import ApprovalAnswered, ApprovalAsked, add_request, take_request
from bridle.protocols.session_catalog import PendingApproval
from bridle.protocols.store import Record
from bridle.stores.inbox_files import read_messages
from bridle.stores.log_format import iter_lines_backward, record_types
from bridle.stores.reader import SessionFolder, decode_line
from bridle.stores.session_index import LogEntry, log_entries
from bridle.workspace.fs import open_file

log = logging.getLogger(__name__)

_APPROVALS = (b"approval_asked", b"approval_answered")
_TYPES = record_types("approval_asked", "approval_answered", "turn_end", "rewind", "fork")


def pending_approvals(folder: SessionFolder) -> list[PendingApproval]:
    """Every open approval request; those of the session that changed last come first."""
    try:
        entries = log_entries(folder.folder)
    except OSError as error:
        raise StoreFailed(
            f"the sessions cannot be listed: {error.strerror or error}", error
        ) from error
    return [approval for entry in entries for approval in pending_in(entry, folder)]


def pending_in(entry: LogEntry, folder: SessionFolder) -> list[PendingApproval]:
    """The open approval requests of one session."""
    try:
        handle = open_file(f"{entry.path}/log.jsonl")
    except OSError:
        return []
    try:
        records = _approvals(handle)
    except OSError as error:
        log.warning("session %s cannot be read: %s", entry.id, error.strerror or error)
        return []
    finally:
        os.close(handle)
    return _open_requests(entry.id, records, folder) if records else []


def _approvals(handle: int) -> list[Record]:
    """The requests and answers since the newest end of a turn, in order."""
    lines: list[bytes] = []
    size = os.fstat(handle).st_size
    for record in iter_lines_backward(partial(os.pread, handle), size, _TYPES):
        if record.type not in _APPROVALS:
            break
        lines.append(record.line)
    decoded = (decode_line(line) for line in reversed(lines))
    return [record for record in decoded if record is not None]


def _open_requests(
    session_id: str, records: list[Record], folder: SessionFolder
) -> list[PendingApproval]:
    requests: dict[str, ApprovalAsked] = {}
    asked_in: dict[str, Record] = {}  # the newest record of each request
    for record in records:
        event = record.event
        if isinstance(event, ApprovalAsked):
            add_request(requests, event)
            asked_in[event.shown] = record
        elif isinstance(event, ApprovalAnswered):
            take_request(requests, event)
    posted = _answers_in_inbox(session_id, folder) if requests else set()
    return [
        PendingApproval(
            session_id=session_id,
            asked=request,
            seq=asked_in[fingerprint].seq,
            timestamp=asked_in[fingerprint].timestamp,
            expired=_is_past(request.expires),
            posted=fingerprint in posted,
        )
        for fingerprint, request in requests.items()
    ]


def _answers_in_inbox(session_id: str, folder: SessionFolder) -> set[str]:
    """The fingerprints of the requests whose answers are in the inbox."""
    try:
        messages = read_messages(folder.path(session_id).parent)
    except StoreFailed:
        return set()
    return {message.shown for message in messages if message.verb == "answer"}


def _is_past(expires: str) -> bool:
    try:
        when = datetime.fromisoformat(expires)
    except ValueError:
        return False
    return (when if when.tzinfo else when.replace(tzinfo=UTC)) < datetime.now(UTC)
