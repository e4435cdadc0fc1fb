"""What a log may hold of a call: no user's id, whoever put it where.

The id that the runner binds never stands among the parameters; what a model or a forged message
put there is taken out here, by the name of the field and by its value.
"""

import re
from typing import Any

from bridle.chat.tools import is_owner_word

HIDDEN = "[redacted]"
_DEEPEST = 20


def redacted(value: Any, *secrets: str) -> Any:
    """The same value without anything that says who a user is."""
    return _redacted(value, tuple(one for one in secrets if len(one) > 2), 0)


def _redacted(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    if depth > _DEEPEST:
        return HIDDEN
    if isinstance(value, dict):
        return {
            str(name): HIDDEN if is_owner_word(str(name)) else _redacted(inner, secrets, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(inner, secrets, depth + 1) for inner in value]
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:  # as a word of its own: `ana` is nobody in `banana`
                value = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, value)
    return value
