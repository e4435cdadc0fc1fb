"""The limits of a session, as its log keeps them and as they are shown.

"No limit" is None where it is shown, and 0 in the engine.
"""

import msgspec
from msgspec.structs import asdict, replace

from bridle.engine.budget import Limits
from bridle.events import LimitsNarrowed
from bridle.protocols.session_catalog import SessionCatalog
from bridle.protocols.session_values import SessionLimits

_KIND = b'"kind":"limits"'


def to_session_limits(limits: Limits) -> SessionLimits:
    """Return limits as they are shown."""
    values = asdict(limits)
    return SessionLimits(**{name: values[name] or None for name in SessionLimits.__struct_fields__})


def with_changes(limits: Limits, changes: SessionLimits) -> Limits:
    """Return the limits with those that are given; the others stay."""
    given = {name: value for name, value in asdict(changes).items() if value is not None}
    return replace(limits, **given)


def recorded_limits(catalog: SessionCatalog, session_id: str, usual: Limits) -> Limits:
    """Return the usual limits, narrowed by those that the session's log records."""
    for record in catalog.find(session_id, _KIND):
        event = record.event
        if isinstance(event, LimitsNarrowed):
            try:
                recorded = msgspec.convert(event.limits, Limits)
            except msgspec.ValidationError:
                return usual
            return _narrower(usual, recorded)
    return usual


def _narrower(usual: Limits, recorded: Limits) -> Limits:
    """Return the narrower of each: the settings may have become stricter meanwhile."""
    ours, theirs = asdict(usual), asdict(recorded)
    names = SessionLimits.__struct_fields__
    pairs = {name: filter(None, (ours[name], theirs[name])) for name in names}
    return replace(usual, **{name: min(pair, default=0) for name, pair in pairs.items()})
