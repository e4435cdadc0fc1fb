"""Send messages to sessions that another process owns: without secrets, and durably.

The process that owns the session does what they ask for.
"""

import os
import secrets

from msgspec.structs import replace

from bridle.config.loader import load_settings
from bridle.engine.redaction import Redactor
from bridle.protocols.store import InboxMessage
from bridle.runtime.providers import known_secrets
from bridle.stores.inbox_files import Notifier, send
from bridle.stores.reader import SessionFolder


def send_message(folder: SessionFolder, session_id: str, message: InboxMessage) -> None:
    """Put a message into the session's inbox, durably and without secrets, and notify its owner."""
    send(folder.path(session_id).parent, without_secrets(message))
    Notifier(folder.folder).notify()


def without_secrets(message: InboxMessage) -> InboxMessage:
    """Remove secrets as in the log, since the message may stay in the inbox for days."""
    settings = load_settings().settings
    keys = (*known_secrets(os.environ), *filter(None, [settings.api_key]))
    redactor = Redactor(keys, settings.redact, shapes=settings.redact_tokens)
    texts = {name: redactor.text(getattr(message, name)) for name in ("by", "content", "word")}
    return replace(message, **texts, parts=redactor.value(message.parts))


def new_message_id() -> str:
    """Return an id that no other message has."""
    return secrets.token_hex(12)
