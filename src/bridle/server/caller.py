"""Who asks, and what they may. No HTTP and no tokens here."""

from collections.abc import Callable

from msgspec import Struct

from bridle.protocols.session_values import ROLES, Role

OWNER = "me"  # whose machine it is: the name of the server's own token


class Caller(Struct, frozen=True):
    """Somebody whom a token or a sign-in names. The name stands on every prompt and answer."""

    name: str
    role: Role


class Stay:
    """Whether an answer that lasts may go on: a token may be revoked, somebody may sign out.

    `still` is asked now and then; what is in `leavers` is called once a sign-in has ended.
    """

    def __init__(
        self,
        still: Callable[[], bool] = lambda: True,
        leavers: set[Callable[[], object]] | None = None,
    ) -> None:
        self.still = still
        self.leavers: set[Callable[[], object]] = set() if leavers is None else leavers


def may(caller: Caller, role: Role) -> bool:
    """May they do what needs that role? Each role may what those before it may."""
    return ROLES.index(caller.role) >= ROLES.index(role)
