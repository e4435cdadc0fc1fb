"""The user's own words in a reply: found again, left out of the search for jargon, made harmless.

A title may say anything ("Fix the JSON error in task #12"); where it stands in a reply as a title
it is no leak. It is shown without characters that would attack whoever reads it.
"""

import re
import unicodedata
from collections.abc import Iterable

_QUOTES = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("«", "»"), ("`", "`"))
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINER = re.compile("[\u200c\u200d]")
_STARS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINE = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*[☐✓✔☑]?\s*", re.MULTILINE)
LONGEST = 200


def plain(text: str) -> str:
    """Without control, bidirectional and tag characters; whatever breaks a line is a new line."""
    return _HIDDEN.sub("", _BREAK.sub("\n", text))


def read_aloud(text: str) -> str:
    """Text as the guard reads it: no other form of a letter or a digit hides what it says."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _JOINER.sub("", text))


def unstarred(text: str) -> str:
    """Without the stars and lines of markup around words; a reply is plain text."""
    return _STARS.sub(r"\2", text)


def shown(title: object, longest: int = LONGEST) -> str:
    """A title as it stands in a sentence: one line, harmless, not endless."""
    text = " ".join(plain(unicodedata.normalize("NFC", str(title))).split())
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def without_titles(text: str, titles: Iterable[str]) -> str:
    """The text with each known title, quoted or as a line of a list, taken out."""
    for title in sorted({*titles, *map(shown, titles)}, key=len, reverse=True):
        if not title.strip() or title not in text:
            continue
        for left, right in _QUOTES:
            text = text.replace(f"{left}{title}{right}", "''")
        text = re.sub(_LINE.pattern + re.escape(title), "", text, flags=re.MULTILINE)
    return text
