"""Fuzzy matching of names, the best match first; quick on 20,000 paths.

A name matches if it contains the letters in their order, ignoring case. Consecutive letters win
over scattered ones, a file's own name over its folders, and short names over long ones.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from heapq import nsmallest

_LONGEST = 200  # letters of a query; what is longer matches nothing anyway


def best_matches(query: str, names: Iterable[str], limit: int = 50) -> tuple[str, ...]:
    """Return the matching names, the best first; without a query, the first ones."""
    words = query.casefold().replace(" ", "")[:_LONGEST]
    if not words:
        return tuple(name for name, _ in zip(names, range(limit), strict=False))
    found = (
        (score, len(name), name) for name in names if (score := _score(words, name)) is not None
    )
    return tuple(name for _, _, name in nsmallest(limit, found))


def matches(query: str, name: str) -> bool:
    """Does the name contain these letters in their order?"""
    words = query.casefold().replace(" ", "")[:_LONGEST]
    return not words or _score(words, name) is not None


@lru_cache(maxsize=8)
def _pattern(words: str) -> re.Pattern[str]:
    """Match the letters in their order, each where it comes first, without backtracking."""
    pieces = [f"[^{re.escape(one)}]*{re.escape(one)}" for one in words]
    return re.compile("".join(pieces), re.DOTALL)


def _score(words: str, name: str) -> int | None:
    """Return the score of a match, lower is better; None if the name does not match."""
    low = name.casefold()
    found = _pattern(words).match(low)
    if found is None:
        return None
    own = low.rstrip("/").rfind("/") + 1
    at = low.find(words, own)
    if at >= 0:
        stem = low[own:].partition(".")[0]
        exact = at == own and words in (low[own:], stem)
        return 0 if exact else 1 if at == own else 2 if not low[at - 1].isalnum() else 3
    at = low.find(words)
    if at >= 0:
        return 4 if at == 0 or not low[at - 1].isalnum() else 5
    if (inner := _pattern(words).match(low, own)) is not None:
        return 6 + _spread(words, low, own, inner.end())
    return 40 + _spread(words, low, 0, found.end())


def _spread(words: str, low: str, start: int, end: int) -> int:
    """Return how far apart the letters are; the beginning of a word costs less."""
    at, gaps = start, 0
    for one in words:
        place = low.index(one, at)
        if place > at and low[place - 1].isalnum():
            gaps += 1
        at = place + 1
    return min(gaps, 20) + min(end - start, 13)
