"""Which things a person means: by title, exactly, then in part, then nearly. Pure.

The first kind of match that finds anything decides: with an exact title there is no doubt, however
many others contain the same word. Several matches of one kind are for the person to choose from.
"""

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

_CLOSE = 0.75  # how alike two words have to be
_LONGEST = 500
_SMALL = frozenset(
    ("a", "an", "and", "the", "my", "me", "of", "to", "for", "in", "on", "at", "with", "about")
) | {"task", "tasks", "item", "todo"}


def matches(query: str, titles: Sequence[str]) -> list[int]:
    """The places of the titles that are meant, best kind only, in their order."""
    wanted = folded(query)
    if not wanted:
        return []
    known = [folded(title) for title in titles]
    for kind in (_exactly, _in_part, _by_words, _nearly):
        if found := [place for place, title in enumerate(known) if title and kind(wanted, title)]:
            return found
    return []


def folded(text: str) -> str:
    """Text as it is compared: no case, no accents, no punctuation, single spaces."""
    plain = unicodedata.normalize("NFKD", text[:_LONGEST]).casefold()
    kept = "".join(one for one in plain if not unicodedata.combining(one))
    return " ".join(re.findall(r"\w+", kept))


def _exactly(wanted: str, title: str) -> bool:
    return wanted == title


def _in_part(wanted: str, title: str) -> bool:
    return f" {wanted} " in f" {title} "


def _by_words(wanted: str, title: str) -> bool:
    """Every word that matters is there, or begins one that is."""
    words = _words(wanted)
    return bool(words) and all(
        any(one == word or (len(word) > 2 and one.startswith(word)) for one in title.split())
        for word in words
    )


def _nearly(wanted: str, title: str) -> bool:
    """Every word that matters has one there that is nearly the same: a slip of the finger."""
    words, there = _words(wanted), title.split()
    return bool(words) and all(any(_alike(word, one) for one in there) for word in words)


def _words(text: str) -> list[str]:
    return [word for word in text.split() if word not in _SMALL]


def _alike(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(len(one), len(other)) < 4 or abs(len(one) - len(other)) > 2:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _CLOSE
