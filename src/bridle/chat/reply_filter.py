"""Check a reply before it is shown, whatever the model wrote: no ids, no jargon, not too long.

Titles are the user's own words: text inside a title is never a leak ("Fix the JSON error in task
#12"). It is only made harmless for whoever reads it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

_QUOTES = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("«", "»"), ("`", "`"))
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_BREAK = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINER = re.compile("[\u200c\u200d]")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_STARS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINE = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*[☐✓✔☑]?\s*", re.MULTILINE)
LONGEST_TITLE = 200


def strip_controls(text: str) -> str:
    """Remove control, bidirectional and tag characters; normalize line breaks."""
    return _HIDDEN.sub("", _BREAK.sub("\n", _ANSI.sub("", text)))


def normalize_letters(text: str) -> str:
    """Replace other forms of letters and digits, which could hide what a text says."""
    return text if text.isascii() else unicodedata.normalize("NFKC", _JOINER.sub("", text))


def strip_emphasis(text: str) -> str:
    """Remove the stars and underscores of emphasis; a reply is plain text."""
    return _STARS.sub(r"\2", text)


def clean_title(title: object, longest: int = LONGEST_TITLE) -> str:
    """Return a title for use in a sentence: one line, harmless, of limited length."""
    text = " ".join(strip_controls(unicodedata.normalize("NFC", str(title))).split())
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def remove_titles(text: str, titles: Iterable[str]) -> str:
    """Remove known titles that are quoted or are a line of a list."""
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
    """Return a pattern for a noun with a number after it, such as `item 7`."""
    things = "|".join((*map(re.escape, nouns), *_THINGS))
    return re.compile(rf"\b(?:{things})s?\s*(?:number|no\.?)?\s*[#:(]?\s*(\d+)\b", re.IGNORECASE)


@cache
def noun_id_pattern(nouns: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern for an id with a noun, such as `NOUN_7f`, or the words `NOUN id`."""
    if not nouns:
        return None
    things = "|".join(map(re.escape, nouns))
    wanted = rf"\b(?:{things})(?:[_-][0-9a-z]*\d[0-9a-z]*|[ _-]?ids?)\b"
    return re.compile(wanted, re.IGNORECASE)


Known = frozenset[str]


@dataclass(frozen=True)
class FilterFacts:
    """What the filter knows about a turn: the user's titles, ids, and names to hide."""

    titles: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    hidden: tuple[str, ...] = ()
    jargon: tuple[str, ...] = ()
    longest: int = 500
    nouns: tuple[str, ...] = ()


def find_problems(text: str, facts: FilterFacts) -> list[str]:
    """Return what is wrong with a reply, in a word each."""
    found = [] if text.strip() else ["empty"]
    if len(text) > facts.longest:
        found.append("length")
    return found + find_leaks(text, facts)


def find_leaks(text: str, facts: FilterFacts) -> list[str]:
    """Return what a text contains that must not be shown, in a word each."""
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
    return any(
        not task_id.isdigit() and len(task_id) > 3 and task_id in text for task_id in facts.ids
    )


def _contains_word(text: str, words: Iterable[str]) -> bool:
    lower = text.lower()
    return any(re.search(rf"\b{re.escape(word.lower())}\b", lower) for word in words)


def filter_reply(
    text: str, expected: str, facts: FilterFacts, fallback: str, *, cut: bool = True
) -> str:
    """Return the reply: `expected`, or the model's text if it may be shown.

    With `cut`, sentences with a leak are removed from the model's text. If nothing is left, or
    without `cut` if anything is wrong, the reply is `fallback`.
    """
    if expected:
        return expected
    text = strip_emphasis(text.strip())
    if not find_problems(text, facts):
        return text
    kept = _remove_leaks(text, facts) if cut else ""
    return fallback if find_problems(kept, facts) else kept  # sentences may add up to a leak


def _remove_leaks(text: str, facts: FilterFacts) -> str:
    """Return the lines and sentences without a leak, as many as there is room for."""
    if _DATA.search(text) or "trace" in find_leaks(text, facts):
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
    """Return the beginning of one endless sentence, if there is nothing else wrong with it."""
    words = text[: facts.longest - 1].rsplit(None, 1)
    return f"{words[0]}…" if len(words) > 1 and not find_leaks(text, facts) else ""


_DATA = re.compile(r"```|^\s*[\[{]")
_SENTENCE = re.compile(r"[.!?…؟]+['\"”’»)*_]*(?=\s)|[。！？]|(?=\n)")
_LIST_LINE = re.compile(r"\s*(?:\d{1,5}[.)]|[-*•☐✓✔])(?:\s|$)")


def may_show_early(text: str, sentence: str, facts: FilterFacts) -> bool:
    """May a sentence be shown while the model still writes? `text` is its reply including it.

    Only what no later knowledge could change: no leak so far, no line of a list, no title (which
    a later look at the list may make part of one), and no number that may turn out to be an id.
    """
    if _DATA.search(text) or _LIST_LINE.match(sentence) or sentence.count("**") % 2:
        return False
    if numbered_noun_pattern(facts.nouns).search(normalize_letters(sentence)):
        return False
    if any(title and title in sentence for title in facts.titles):
        return False
    return not find_leaks(text, facts)


class ReplyStream:
    """Show a reply sentence by sentence while the model writes it.

    A sentence is sent as soon as it is complete, if `may_show(text, sentence)` allows it; `text` is
    what is shown of the model's message, with the sentence. The first one that is not allowed holds
    back the rest of the message. At most `longest` characters are sent early. What was sent stays
    the beginning of the reply: `complete` returns the whole.
    """

    def __init__(
        self, send: Callable[[str], None], may_show: Callable[[str, str], bool], longest: int
    ) -> None:
        self.sent = ""
        self._send, self._may_show, self._longest = send, may_show, longest
        self._message = ""  # what the model has written of its message
        self._place = 0  # up to where it was sent
        self._shown = ""  # what was sent of it
        self._again = ""  # what was sent of a message that the model writes anew
        self._is_over = self._is_held = False

    def feed(self, text: str) -> None:
        """Take what the model has written, and send the sentences that are complete."""
        if self._is_over:
            self._begin_message()
        self._message += text
        while not self._is_held and (end := self._sentence_end()):
            self._take(self._message[self._place : end])
            self._place = self._place if self._is_held else end

    def end_message(self) -> None:
        """The message is complete; what is fed next is another one."""
        if self._is_over:  # this one had no text
            self._begin_message()
        self._is_over = True

    def discard_message(self) -> None:
        """The model writes its message anew. What was sent of it cannot be taken back."""
        self._again = self._shown or self._again
        self._message, self._shown, self._place = "", "", 0
        self._is_held = True

    @property
    def rest(self) -> str:
        """What the model has written of its last message and was not sent."""
        rest = self._message[self._place :]
        return rest.strip().removeprefix(self._again) if self._again else rest

    @property
    def has_shown_message(self) -> bool:
        """Was the beginning of the last message sent?"""
        return bool(self._shown or self._again)

    def complete(self, text: str) -> str:
        """Return the whole reply: what was sent, and `text`, which was not."""
        if not self.sent or not text:
            return self.sent or text
        rest = self._message[self._place :]
        if self._shown and rest.strip().startswith(text):
            gap = rest[: len(rest) - len(rest.lstrip())]
        else:
            gap = "\n" if "\n" in text or _LIST_LINE.match(text) else " "
        return f"{self.sent}{gap or ' '}{text}"

    def _begin_message(self) -> None:
        self._message = self._shown = self._again = ""
        self._place, self._is_over, self._is_held = 0, False, False

    def _sentence_end(self) -> int:
        """Return where the next sentence ends; 0 if it is not complete."""
        start = len(self._message) - len(self._message[self._place :].lstrip())
        match = _SENTENCE.search(self._message, start)
        return match.end() if match else 0

    def _take(self, piece: str) -> None:
        sentence = strip_emphasis(strip_controls(piece.strip()))
        space = re.match(r"\s*", piece)
        gap = space[0] if space and self._shown else " " if self.sent else ""
        text = f"{self._shown}{gap}{sentence}" if self._shown else sentence
        is_plain = strip_controls(piece) == piece
        room = len(self.sent) + len(gap) + len(sentence) <= self._longest
        if not (room and is_plain) or not self._may_show(text, sentence):
            self._is_held = True
            return
        self._shown = text
        self.sent += gap + sentence
        self._send(gap + sentence)
