"""Who asks, and what they may. No HTTP and no tokens here."""

from msgspec import Struct

from bridle.server.views import ROLES, Role

OWNER = "me"  # whose machine it is: the name of the server's own token


class Caller(Struct, frozen=True):
    """Somebody whom a token or a sign-in names. The name stands on every prompt and answer."""

    name: str
    role: Role


def may(caller: Caller, role: Role) -> bool:
    """May they do what needs that role? Each role may what those before it may."""
    return ROLES.index(caller.role) >= ROLES.index(role)
