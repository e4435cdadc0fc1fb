"""Find which things a person means: by exact title, then part of it, then a similar one. Pure.

The first kind of match with any result decides: an exact title leaves no doubt, however many other
titles contain the same word. If one kind matches several titles, the person has to choose.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

_CLOSE = 0.75  # how alike two words have to be
_LONGEST = 500
_SMALL = frozenset(
    ("a", "an", "and", "the", "my", "me", "of", "to", "for", "in", "on", "at", "with", "about")
)


def matches(
    query: str, titles: Sequence[str], nouns: Collection[str] = (), *, close: bool = True
) -> list[int]:
    """Return the indexes of the titles that are meant: the best kind of match only.

    `nouns` are what such things are called, as in "the milk task"; they are ignored. Without
    `close`, similar titles do not count.
    """
    wanted = normalize_title(query)
    if not wanted:
        return []
    known = [normalize_title(title) for title in titles]
    words = [word for word in wanted.split() if word not in _SMALL and word not in nouns]
    for kind in (_exactly, _in_part, _by_words, *((_nearly,) if close else ())):
        said = [wanted] if kind in (_exactly, _in_part) else words
        if found := [place for place, title in enumerate(known) if title and kind(said, title)]:
            return found
    return []


def normalize_title(text: str) -> str:
    """Return text in the form in which it is compared: no case, accents or punctuation."""
    plain = unicodedata.normalize("NFKD", text[:_LONGEST]).casefold()
    kept = "".join(character for character in plain if not unicodedata.combining(character))
    return " ".join(re.findall(r"\w+", kept))


def _exactly(words: list[str], title: str) -> bool:
    return words[0] == title


def _in_part(words: list[str], title: str) -> bool:
    return f" {words[0]} " in f" {title} "


def _by_words(words: list[str], title: str) -> bool:
    """Is every word in the title, or the beginning of one?"""
    return bool(words) and all(
        any(one == word or (len(word) > 2 and one.startswith(word)) for one in title.split())
        for word in words
    )


def _nearly(words: list[str], title: str) -> bool:
    """Has every word a similar one in the title, such as one with a typing error?"""
    there = title.split()
    return bool(words) and all(any(_is_similar(word, one) for one in there) for word in words)


def _is_similar(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(len(one), len(other)) < 4 or abs(len(one) - len(other)) > 2:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _CLOSE
