"""Ids of calls and names of tools as a vendor takes them.

A conversation may have begun with another server, whose ids look otherwise, and models make up
names that no tool has: neither may make every later request a refused one. The same word always
becomes the same word, so a call and its result still belong together, and two never become one.
"""

import re
from hashlib import blake2b

_FITS = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def fit(word: str, longest: int) -> str:
    """The word, if the vendors take it; else what is left of it, and a mark of what it was."""
    if len(word) <= longest and _FITS(word):
        return word
    mark = blake2b(word.encode(errors="backslashreplace"), digest_size=6).hexdigest()
    return f"{_FOREIGN.sub('_', word)[: longest - len(mark) - 1]}-{mark}"
