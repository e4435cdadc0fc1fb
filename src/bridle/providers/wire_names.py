"""Ids of calls and names of tools as vendors accept them.

A conversation may have begun with another server, whose ids look different, and models make up
names that no tool has. Neither may have every later request refused. The same name always becomes
the same name, so a call and its result still belong together, and two never become one.
"""

import re
from hashlib import blake2b

_FITS = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def fit_name(name: str, longest: int) -> str:
    """Return the name if vendors accept it; otherwise what is left of it, and a hash of it."""
    if len(name) <= longest and _FITS(name):
        return name
    mark = blake2b(name.encode(errors="backslashreplace"), digest_size=6).hexdigest()
    return f"{_FOREIGN.sub('_', name)[: longest - len(mark) - 1]}-{mark}"
