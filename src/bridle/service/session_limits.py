"""Limits of a session as HTTP has them, and as its log keeps them. No limit is None there, 0 here.

Which limits hold is said by the session.
"""

import msgspec
from msgspec.structs import asdict, replace

from bridle.engine.budget import Limits
from bridle.events import LimitsNarrowed
from bridle.protocols.session_values import SessionLimits
from bridle.stores.reader import SessionFolder, find_records

_KIND = b'"kind":"limits"'


def to_view(limits: Limits) -> SessionLimits:
    """The limits as a client is shown them."""
    given = asdict(limits)
    names = SessionLimits.__struct_fields__
    return SessionLimits(**{name: given[name] or None for name in names})


def narrowed(limits: Limits, wanted: SessionLimits) -> Limits:
    """The limits with those that are wanted; what is left out stays."""
    given = {name: value for name, value in asdict(wanted).items() if value is not None}
    return replace(limits, **given)


def kept_limits(folder: SessionFolder, session_id: str, usual: Limits) -> Limits:
    """The limits of a session: the usual ones, and where its log has narrower ones, those."""
    for record in find_records(folder, session_id, _KIND):
        event = record.event
        if isinstance(event, LimitsNarrowed):
            try:
                kept = msgspec.convert(event.limits, Limits)
            except msgspec.ValidationError:
                return usual
            return _narrower(usual, kept)
    return usual


def _narrower(ours: Limits, kept: Limits) -> Limits:
    """Of each the narrower one: the settings may have become stricter since."""
    mine, theirs = asdict(ours), asdict(kept)
    both = {name: (mine[name], theirs[name]) for name in SessionLimits.__struct_fields__}
    return replace(
        ours, **{name: min(filter(None, pair), default=0) for name, pair in both.items()}
    )
