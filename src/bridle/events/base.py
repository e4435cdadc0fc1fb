"""The two families of events, and the words that they have in common."""

from typing import Literal

from msgspec import Struct

StopReason = Literal["complete", "tool_use", "max_tokens", "refusal", "interrupted", "error"]
When = Literal["idle", "queue", "next_step"]
Reason = Literal[
    "done", "failed", "timeout", "interrupted", "budget", "stuck", "max_tokens", "parked"
]


class Streamed(
    Struct, frozen=True, gc=False, tag_field="eventType", rename="camel", omit_defaults=True
):
    """Tells of something that is still going on, and is kept as a record of the type `event`."""


class Recorded(Struct, frozen=True, gc=False, tag_field="type", rename="camel", omit_defaults=True):
    """A fact with a record type of its own."""
