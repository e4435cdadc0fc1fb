"""The last look at a reply, whatever the model said: no ids, no jargon, no traces, not too long.

It knows the text, what the calls of the turn gave back, and the sentence that they come to. Titles
are the user's own words: what stands in one does not count. Nothing here waits for anything.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bridle.chat.guard_titles import plain, read_aloud, unstarred, without_titles
from bridle.chat.guard_words import JARGON, LEAKS, named, numbered

Known = frozenset[str]


@dataclass(frozen=True)
class Facts:
    """What the guard is told of a turn: the user's titles, the ids that came up, names to hide."""

    titles: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    hidden: tuple[str, ...] = ()
    jargon: tuple[str, ...] = ()
    longest: int = 500
    nouns: tuple[str, ...] = ()


def problems(text: str, facts: Facts) -> list[str]:
    """What is wrong with a reply, in a word each; none: it may be said."""
    found = [] if text.strip() else ["empty"]
    if len(text) > facts.longest:
        found.append("length")
    return found + leaks(text, facts)


def leaks(text: str, facts: Facts) -> list[str]:
    """What stands in a text that no reply may hold."""
    found = []
    if plain(text) != text:
        found.append("control")
    bare = read_aloud(without_titles(text, facts.titles))
    if any(one and one in bare for one in facts.hidden):
        found.append("identity")
    found += [name for name, pattern in LEAKS if pattern.search(bare)]
    if _names_an_id(bare, facts):
        found.append("id")
    if JARGON.search(bare) or _says(bare, facts.jargon):
        found.append("jargon")
    return found


def _names_an_id(text: str, facts: Facts) -> bool:
    if (pattern := named(facts.nouns)) is not None and pattern.search(text):
        return True
    if any(match[1] in facts.ids for match in numbered(facts.nouns).finditer(text)):
        return True
    return any(not one.isdigit() and len(one) > 3 and one in text for one in facts.ids)


def _says(text: str, words: Iterable[str]) -> bool:
    lower = text.lower()
    return any(re.search(rf"\b{re.escape(word.lower())}\b", lower) for word in words)


def guarded(said: str, expected: str, facts: Facts, fallback: str) -> str:
    """The reply: the sentence that the calls come to, or what the model said if it may be said.

    Where there is a sentence (`expected`), it is the reply, word for word, whatever else was said.
    Where there is none, what is wrong is cut out; if nothing is left, it is `fallback`.
    """
    if expected:
        return expected
    said = unstarred(said.strip())
    if not problems(said, facts):
        return said
    kept = _cut_out(said, facts)
    return fallback if problems(kept, facts) else kept  # pieces may add up to something wrong


def _cut_out(text: str, facts: Facts) -> str:
    """The lines and sentences in which nothing is wrong, as many as there is room for."""
    if re.search(r"```|^\s*[\[{]", text) or "trace" in leaks(text, facts):
        return ""  # half of such a thing is no better
    kept = ""
    for piece in re.split(r"(?<=[.!?…])\s+|\n+", plain(text)):
        if not piece.strip() or leaks(piece, facts):
            continue
        longer = f"{kept} {piece.strip()}".strip()
        if len(longer) > facts.longest:
            break
        kept = longer
    return kept or _first_words(text, facts)


def _first_words(text: str, facts: Facts) -> str:
    """The beginning of one endless sentence, if there is nothing else wrong with it."""
    words = text[: facts.longest - 1].rsplit(None, 1)
    return f"{words[0]}…" if len(words) > 1 and not leaks(text, facts) else ""
