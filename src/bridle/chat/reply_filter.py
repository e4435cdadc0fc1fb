"""Check a reply before it is shown, whatever the model wrote: no ids, no jargon, not too long.

Titles are the user's own words: text inside a title is never a leak ("Fix the JSON error in task
#12"). It is only made harmless for whoever reads it.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

_QUOTES = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("«", "»"), ("`", "`"))
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINER = re.compile("[\u200c\u200d]")
_STARS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINE = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*[☐✓✔☑]?\s*", re.MULTILINE)
LONGEST_TITLE = 200


def strip_controls(text: str) -> str:
    """Without control, bidirectional and tag characters; whatever breaks a line is a new line."""
    return _HIDDEN.sub("", _BREAK.sub("\n", text))


def normalize_letters(text: str) -> str:
    """Text as the guard reads it: no other form of a letter or a digit hides what it says."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _JOINER.sub("", text))


def strip_emphasis(text: str) -> str:
    """Without the stars and lines of markup around words; a reply is plain text."""
    return _STARS.sub(r"\2", text)


def clean_title(title: object, longest: int = LONGEST_TITLE) -> str:
    """A title as it stands in a sentence: one line, harmless, not endless."""
    text = " ".join(strip_controls(unicodedata.normalize("NFC", str(title))).split())
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def remove_titles(text: str, titles: Iterable[str]) -> str:
    """The text with each known title, quoted or as a line of a list, taken out."""
    for title in sorted({*titles, *map(clean_title, titles)}, key=len, reverse=True):
        if not title.strip() or title not in text:
            continue
        for left, right in _QUOTES:
            text = text.replace(f"{left}{title}{right}", "''")
        text = re.sub(_LINE.pattern + re.escape(title), "", text, flags=re.MULTILINE)
    return text


_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
_HEX = r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"
_ULID = r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"
_ID_WORD = (
    r"\b(?:id|ids|identifier|uuid|guid|pk)\b\s*(?:is|was|of|number|no\.?)?\s*[:=#(]*\s*[\w-]*\d"
)
_PREFIXED = r"\b(?:user|call|conv|conversation|msg|toolu|req)[_-][0-9a-z]*\d[0-9a-z]*\b"
_HASH = r"#\d+"

LEAKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("id", re.compile("|".join((_UUID, _HEX, _ID_WORD, _PREFIXED, _HASH)), re.IGNORECASE)),
    ("id", re.compile(_ULID)),
    (
        "trace",
        re.compile(
            r"Traceback|stack ?trace|\bFile \"[^\"]+\"|\bline \d+, in\b|\bat [\w.$]+\([\w.]+:\d+\)"
            r"|\b[A-Z]\w*(?:Error|Exception)\b|\bErrno\b|\bpanic:|\bsegfault\b"
        ),
    ),
    ("data", re.compile(r"```|\{\s*[\"'}]|\[\s*\{|\"\w+\"\s*:|<[/?]?[a-z][\w:-]*[\s/>]|<!", re.I)),
    (
        "address",
        re.compile(
            r"\b(?:https?|ftp|file|data|javascript|mailto|tel):\S|\]\(|\bwww\.\w"
            r"|(?<![\w/])//\w|\b[\w-]+\.[a-z]{2,}/\S",
            re.IGNORECASE,
        ),
    ),
    ("code", re.compile(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+[A-Z]\w*Id\b|\b\w+\(\)|==|&&|=>")),
)

_THINGS = ("item", "number", r"no\.?", "record", "row", "entry")

_WORDS = (
    "json|xml|yaml|sql|sqlite|postgres(?:ql)?|mcp|uuids?|guid|regex|schemas?|api|apis|http|https"
    "|url|endpoint|backend|database|db|tool calls?|function calls?|tool results?|payload"
    "|parameters?|arguments?|null|undefined|boolean|exceptions?|stack|runtime|debug|stdout|stderr|tokens?"
    "|system prompt|user[ _-]?ids?|primary key|foreign key|status code|timeout"
    "|internal server error|invalid input|not_found|processing_error|traceback|query parameters?"
    "|llm|language model|session factory|rollback|idempotent|idempotency|row-level"
)
JARGON = re.compile(rf"\b(?:{_WORDS})\b", re.IGNORECASE)


@cache
def numbered_noun_pattern(nouns: tuple[str, ...]) -> re.Pattern[str]:
    """A thing with a number after it, such as `item 7`, or what the profile calls its things."""
    things = "|".join((*map(re.escape, nouns), *_THINGS))
    return re.compile(rf"\b(?:{things})s?\s*(?:number|no\.?)?\s*[#:(]?\s*(\d+)\b", re.IGNORECASE)


@cache
def noun_id_pattern(nouns: tuple[str, ...]) -> re.Pattern[str] | None:
    """A thing by its id, such as `NOUN_7f`, or the very words `NOUN id`."""
    if not nouns:
        return None
    things = "|".join(map(re.escape, nouns))
    wanted = rf"\b(?:{things})(?:[_-][0-9a-z]*\d[0-9a-z]*|[ _-]?ids?)\b"
    return re.compile(wanted, re.IGNORECASE)


Known = frozenset[str]


@dataclass(frozen=True)
class FilterFacts:
    """What the guard is told of a turn: the user's titles, the ids that came up, names to hide."""

    titles: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    hidden: tuple[str, ...] = ()
    jargon: tuple[str, ...] = ()
    longest: int = 500
    nouns: tuple[str, ...] = ()


def find_problems(text: str, facts: FilterFacts) -> list[str]:
    """What is wrong with a reply, in a word each; none: it may be said."""
    found = [] if text.strip() else ["empty"]
    if len(text) > facts.longest:
        found.append("length")
    return found + find_leaks(text, facts)


def find_leaks(text: str, facts: FilterFacts) -> list[str]:
    """What stands in a text that no reply may hold."""
    found = []
    if strip_controls(text) != text:
        found.append("control")
    bare = normalize_letters(remove_titles(text, facts.titles))
    if any(one and one in bare for one in facts.hidden):
        found.append("identity")
    found += [name for name, pattern in LEAKS if pattern.search(bare)]
    if _names_an_id(bare, facts):
        found.append("id")
    if JARGON.search(bare) or _contains_word(bare, facts.jargon):
        found.append("jargon")
    return found


def _names_an_id(text: str, facts: FilterFacts) -> bool:
    if (pattern := noun_id_pattern(facts.nouns)) is not None and pattern.search(text):
        return True
    if any(match[1] in facts.ids for match in numbered_noun_pattern(facts.nouns).finditer(text)):
        return True
    return any(not one.isdigit() and len(one) > 3 and one in text for one in facts.ids)


def _contains_word(text: str, words: Iterable[str]) -> bool:
    lower = text.lower()
    return any(re.search(rf"\b{re.escape(word.lower())}\b", lower) for word in words)


def filter_reply(said: str, expected: str, facts: FilterFacts, fallback: str) -> str:
    """The reply: the sentence that the calls come to, or what the model said if it may be said.

    Where there is a sentence (`expected`), it is the reply, word for word, whatever else was said.
    Where there is none, what is wrong is cut out; if nothing is left, it is `fallback`.
    """
    if expected:
        return expected
    said = strip_emphasis(said.strip())
    if not find_problems(said, facts):
        return said
    kept = _remove_leaks(said, facts)
    return fallback if find_problems(kept, facts) else kept  # pieces may add up to something wrong


def _remove_leaks(text: str, facts: FilterFacts) -> str:
    """The lines and sentences in which nothing is wrong, as many as there is room for."""
    if re.search(r"```|^\s*[\[{]", text) or "trace" in find_leaks(text, facts):
        return ""  # half of such a thing is no better
    kept = ""
    for piece in re.split(r"(?<=[.!?…])\s+|\n+", strip_controls(text)):
        if not piece.strip() or find_leaks(piece, facts):
            continue
        longer = f"{kept} {piece.strip()}".strip()
        if len(longer) > facts.longest:
            break
        kept = longer
    return kept or _first_words(text, facts)


def _first_words(text: str, facts: FilterFacts) -> str:
    """The beginning of one endless sentence, if there is nothing else wrong with it."""
    words = text[: facts.longest - 1].rsplit(None, 1)
    return f"{words[0]}…" if len(words) > 1 and not find_leaks(text, facts) else ""
