"""The words of a call of which nothing else is known: what a rule about it can be held against.

Whose tool it is, a server's or another agent's, makes no difference. Decides nothing.
"""

from typing import Any

from bridle.policy import Act, Facts, ToolPolicy

MOST, CHARACTERS = 2_000, 400_000  # words, and characters of them all, that rules are held against
TOO_MANY = "it has more words than rules can be held against"


def unknown(
    name: str,
    arguments: dict[str, Any],
    *,
    subject: str = "",
    reason: str = "",
    guard: str = "",
) -> Facts:
    """What is known of such a call: its words, each by itself, and only to forbid or to ask.

    How whoever has the tool reads them, as a path or otherwise, nobody knows. Of a call with more
    words than can be looked at, none is passed over: no rule allows it, and any that forbids some
    words forbids it.
    """
    words, whole = words_of(arguments)
    act = Act((name,), subject, reason=reason, also=words, cut=not whole)
    return Facts(ToolPolicy(), acts=(act,), guard=guard, opaque="" if whole else TOO_MANY)


def words_of(arguments: dict[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The texts among the arguments, however deep they lie, and whether these are all of them.

    The names of the arguments are the tool's; the keys of what lies deeper may be the caller's.
    """
    found: dict[str, None] = {}
    room = CHARACTERS
    waiting: list[Any] = list(arguments.values())
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, str) and one not in found:
            room -= len(one)
            if room < 0 or len(found) >= MOST:
                return tuple(found), False
            found[one] = None
    return tuple(found), True
