"""Letters for sessions that another process holds: without secrets, durable, and rung for.

What becomes of one is for whoever holds the session.
"""

import os
import secrets

from msgspec.structs import replace

from bridle.config.loader import load_settings
from bridle.engine.redaction import Redactor
from bridle.protocols.store import InboxMessage
from bridle.runtime.providers import known_secrets
from bridle.stores.inbox import Notifier, send
from bridle.stores.reader import SessionFolder


def deliver(folder: SessionFolder, session_id: str, letter: InboxMessage) -> None:
    """Put a letter into the session's inbox, durably, and ring the bell.

    It may lie there for days, so that nothing goes in which the log would not say.
    """
    send(folder.path(session_id).parent, _redacted(letter))
    Notifier(folder.folder).notify()


def _redacted(letter: InboxMessage) -> InboxMessage:
    """The letter without known keys, what looks like one, and what the person does not want."""
    settings = load_settings().settings
    keys = (*known_secrets(os.environ), *filter(None, [settings.api_key]))
    redactor = Redactor(keys, settings.redact, shapes=settings.redact_tokens)
    words = {name: redactor.text(getattr(letter, name)) for name in ("by", "content", "word")}
    return replace(letter, **words, parts=redactor.value(letter.parts))


def new_letter() -> str:
    """A letter's id, which no other has."""
    return secrets.token_hex(12)
