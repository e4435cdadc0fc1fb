"""Find where a date stands in the words of a task. Pure.

A run of words that all belong to dates and that names a day or a time is one phrase. It is taken
out of the title whole, so that a part of it is never read as the date ("first of next month" is
not "next month"). Whether the phrase is clear is decided by `dates.parse_date`. Words that only
look like a date, such as a weekday before a noun ("the Friday report"), stay in the title, and
`looks_dated` finds them.
"""

import re
from dataclasses import dataclass

from bridle.chat.tasks.date_words import MONTH, NUMBERS, ORDINALS, SLIPS, WEEKDAY, WEEKDAYS

_DAYS_LONG = "|".join(WEEKDAYS)
_DAYS_MANY = "|".join(f"{name}s" for name in WEEKDAYS)
_RELATIVE = "today|tonight|tomorrow|overmorrow|yesterday"
_SLIP = "|".join(SLIPS)
_TH = r"\d{1,2}(?:st|nd|rd|th)"
_NUMBER = "|".join(sorted((*NUMBERS, *ORDINALS), key=len, reverse=True)).replace("-", "[- ]")
_UNITS = r"(?:day|week|wk|fortnight|month|year|weekday|hour|hr|minute|min|mth)s?'?s?"
_ORDINAL_WORDS = "|".join(sorted(ORDINALS, key=len, reverse=True))
_PARTS = "morning|afternoon|evening|night"
_HOLIDAY = (
    r"(?:christmas|xmas|new years?|new year's|halloween|easter|thanksgiving|pentecost|whitsun"
    r"|hanukkah|ramadan|eid|diwali|boxing|valentine'?s?|good friday|black friday|cyber monday"
    r"|(?:independence|labou?r|memorial|mother'?s|father'?s|st\.? patrick'?s|bank holiday))"
)
_WHICH = "this |next |the "
_WHOLE = f"(?:{_WHICH})*(?:day|week|month|year|quarter|business|{MONTH})"
_CLOCK = r"\d{1,2}(?:[:.]\d\d)?"
_CONNECTING = (
    "at|@|on|by|before|until|till|til|due|for|from|to|between|and|or|the|a|an|of|in|within|after"
    "|around|about|over|this|next|last|coming|past|ago|now|later|end|start|beginning|middle|mid"
    "|early|late|sometime|weekends?|quarter|half|few|several|time|couple|working|business|very"
    "|every|each|other|daily|weekly|monthly|fortnightly|yearly|annually|soon|asap|someday"
    "|once|twice|times|per|nightly|quarterly|biweekly|bi-weekly|hourly"
    "|whenever|thing|close|day|am|pm|noon|midday|midnight|eod|cob|eom|eoy|z|utc|-|–"
)
_OF_HOLIDAYS = (
    "eve|boxing|christmas|xmas|new|years?|year's|halloween|easter|thanksgiving|pentecost|whitsun"
    "|hanukkah|ramadan|eid|diwali|valentine'?s?|independence|labou?r|memorial|mother'?s|father'?s"
    "|patrick'?s|st|good|black|cyber|bank|holiday"
)


_HOLIDAY_NAME = re.compile(
    r"\b(?:(?:christmas|xmas|new year(?:'?s)?)(?: (?:day|eve))?|valentine'?s?(?: day)?"
    r"|(?:boxing|independence|labou?r|memorial|mother'?s|father'?s|(?:st\.? )?patrick'?s) day"
    r"|bank holiday|good friday|black friday|cyber monday|halloween|easter|thanksgiving|pentecost"
    r"|whitsun|hanukkah|ramadan|eid|diwali)(?!\w)",
    re.IGNORECASE,
)


def _any(*patterns: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(patterns)}){after}", re.IGNORECASE)


_OF_HOLIDAY = re.compile(rf"(?!years?$)(?:{_OF_HOLIDAYS})", re.IGNORECASE)
_TOKEN = _any(  # words that can belong to a date
    *(_RELATIVE, _SLIP, WEEKDAY, _DAYS_MANY, MONTH, _NUMBER, _UNITS, _TH, "q[1-4]"),
    *(_PARTS, f"(?:{_PARTS})s", _CONNECTING, _OF_HOLIDAYS, r"[ap]\.m\.?", "o'?clock"),
    r"\d{1,4}(?:'s)?",
    r"\d{1,3}(?:d|days?|wks?|weeks?|mths?|months?)",
    rf"{_CLOCK}(?::\d\d)?(?:am|pm|a\.m\.?|p\.m\.?|[aphm]|hrs?|mins?)?",
    rf"{_CLOCK}(?:am|pm)?[-–]{_CLOCK}(?:am|pm)?",
    rf"(?:{WEEKDAY})[-–/](?:{WEEKDAY})",
    rf"\d{{1,2}}-(?:{MONTH})(?:-\d{{2,4}})?",
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:t\S+)?",
    r"\d{1,2}[./-]\d{1,2}(?:[./-]\d{2,4})?\.?",
    r"[+-]\d\d:?\d\d",
    before="@?",
)
_STRONG = _any(  # a day or a time, wherever it stands
    *(_RELATIVE, _SLIP, _DAYS_MANY, "first thing", "later today"),
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:t\S*)?",
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}",
    rf"\d{{1,2}}[ -](?:{MONTH})",
    rf"(?:{_TH}|{_ORDINAL_WORDS}) (?:(?:day )?(?:of|in) )?(?:{MONTH}|(?:{_WHICH})?month)",
    rf"(?:{_ORDINAL_WORDS}) day (?:of|in) (?:{_WHICH})?year",
    rf"(?:{MONTH}) (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)?|{_ORDINAL_WORDS})",
    rf"{_CLOCK} ?(?:am|pm|a\.m|p\.m)",
    *(r"\d{1,2}:\d\d", r"\d{1,2}[aph]", "noon|midday|midnight|eod|cob|eom|eoy|o'?clock"),
    rf"(?:in|within|over) (?:about )?(?:the next )?(?:\d{{1,4}}|(?:half )?(?:{_NUMBER})"
    rf"|\d{{1,3}}\.\d|(?:a )?(?:few|couple|several)(?: of)?) ?(?:{_UNITS}|working|business|[hm])",
    r"in \d{1,3}(?:h|m|min|mins|hrs?|d|days?|wks?|weeks?|mths?|months?)",
    rf"in (?:about )?(?:\d{{1,2}}|{_NUMBER}) and a half {_UNITS}",
    r"within the (?:hour|day|week|month|year)",
    rf"(?:{WEEKDAY}|week|weekend|month|year) after next",
    r"(?:once|twice|times) (?:a|per|every|each) (?:day|week|month|year)",
    rf"(?:{_WHICH})?last of (?:{_WHICH})?(?:month|year|{MONTH})",
    rf"(?:\d{{1,4}}|{_NUMBER}|few) (?:{_UNITS}|(?:working|business) days?)"
    r" (?:ago|from|later|after)",
    rf"(?:this|next|last|coming) (?:{WEEKDAY}|week|weekend|month|year|fortnight|quarter|{_PARTS})",
    rf"(?:end|start|beginning|middle|close|(?:first|last) day) (?:of|in)? ?{_WHOLE}",
    rf"(?:in|at) (?:the )?(?:{_PARTS})",
    rf"(?:quarter|half|five|ten|twenty|\d{{1,2}}) (?:minutes )?(?:past|to) (?:\d{{1,2}}|{_NUMBER})",
    rf"(?:{_ORDINAL_WORDS}|{_TH}|last) (?:{WEEKDAY}) (?:of|in)",
    rf"(?:every|each) (?:other |\d+ |{_NUMBER} )?(?:{_UNITS}|weekend|{_PARTS}|{WEEKDAY})",
    before=r"\b",
    after=r"\b",
)
_LED = _any(  # a day or a time once such a word stands before it
    r"(?:\b(?:at|by|before|until|till|til|around) |@ ?)"
    rf"(?:{_NUMBER}|\d{{1,2}}(?:h|hrs)?|[012]\d[0-5]\d)(?![\w/.:])",
    rf"\b(?:on|by|before|until|till|due|for|from|after) (?:the )?(?:{_TH}|{_ORDINAL_WORDS})(?!\w)",
    rf"\bthe {_TH}(?!\w)",
    r"\b(?:on|by|before|until|till|due|for|from|after) (?:the )?\d{1,2}[./-]\d{1,2}\.?(?!\w)",
    rf"\b(?:in|by|before|until|till|this|next|last|of|early|late|mid|sometime) (?:{MONTH})(?!\w)",
    r"\b(?:in|by|before|until|till|of) (?:20\d\d|q[1-4])\b",
    rf"\b(?:on|by|before|until|till|due|at|this|next|after|from|over) (?:the )?{_HOLIDAY}\b",
    r"\b(?:on|over|at|by|before|until) (?:the )?(?:weekends?|weekdays)\b",
)
_LAST = _any(  # a day at the end of the words
    rf"(?<!the )\b(?:{WEEKDAY})\b",
    rf"\b(?:{_TH}|(?<!\d)\d{{1,2}}/\d{{1,2}})$",
    r"\b(?:weekend|daily|nightly|hourly|(?:bi-?)?weekly|fortnightly|monthly|quarterly|yearly"
    r"|annually)$",
    r"\b(?:soon|asap|someday|whenever|later|now)$",
)
_DAY_NAME = re.compile(rf"\b(?:{_DAYS_LONG}|{_RELATIVE}|{_SLIP})\b(?!['’])", re.IGNORECASE)
_DOTTED = re.compile(r"\b(?:[12]?\d|3[01])\.(?:[1-9]|1[0-2])\.?$")
_VAGUE = re.compile(  # words for a time at the end of a title; they can belong to the task itself
    r"\b(?:(?:at|by|before|after|around) (?:\w+ )?(?:breakfast|lunch|lunchtime|dinner|dinnertime"
    r"|teatime|supper|bedtime|bed|work|school|dawn|dusk|sunrise|sunset)(?: time)?"
    r"|(?<!for )(?:christmas|xmas|new year'?s?|halloween|easter|thanksgiving)(?: day| eve)?"
    r"|nye|payday|on my birthday|eventually|one day|the other day"
    r"|in the (?:coming (?:days|weeks|months)|new year)|(?:cw|week) \d{1,2}|\d{1,2}ish"
    r"|at \d{1,2}\.\d\d|\d{4} ?(?:h|hrs|hours)|the (?:\w+-)?\w+(?:tieth|teenth))$",
    re.IGNORECASE,
)
_LEADS = re.compile(
    r"(?:at|@.*|on|over|by|before|until|till|til|due|in|within|from|between|every|each|around)$",
    re.I,
)
_AFTER = re.compile(  # words that can follow a date in the middle of a title
    r"(?:with|about|to|for|from|at|in|near|and|or|because|re|regarding|so|then|if|but|via|using|on"
    r"|by|that|-|–|—)$",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(  # words that say how firm a date is, or that it is another one
    r"(?:(?:by )?(?:no|not) later than|not(?: (?:before|until|till|on|by|from))?|starting(?: from)?"
    r"|as of|maybe|perhaps|possibly|hopefully|ideally|preferably)$",
    re.IGNORECASE,
)
_SAID_AFTER = re.compile(
    r"(?:at the (?:very )?latest|or so|if possible|if i can|maybe|hopefully|ideally|preferably)$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(  # what has a number for its name: "chapter 5"
    r"(?:chapters?|pages?|rooms?|parts?|versions?|gates?|flights?|bus|platform|lines?|levels?|floors?"
    r"|lessons?|episodes?|seasons?|exercises?|questions?|numbers?|no|nr|units?|steps?|windows|python"
    r"|size|type|volumes?|vol|tickets?|invoices?|orders?|highway|route|apartment|apt)$",
    re.IGNORECASE,
)
_BEGINS_DATE = re.compile(  # not a unit or a month, of which there can be so many
    rf"(?:{_DAYS_LONG}|{_RELATIVE}|{_SLIP}|on|at|by|before|until|till|due|in|within|this|next|the)",
    re.IGNORECASE,
)
_DAY_OR_TIME = re.compile(r"[0-2]?\d|3[01]|[01]\d[0-5]\d|2[0-3][0-5]\d")  # of a month; "1830"
_EDGE = re.compile(
    "and|or|to|of|the|a|an|-|–|for|on|at|by|in|about|around|from|until|before|after|due", re.I
)
_PLAIN = " .,;:!?()"


@dataclass(frozen=True, slots=True)
class DatedWords:
    """Words without the dates in them, and the words of those dates."""

    rest: str
    phrases: tuple[str, ...] = ()

    @property
    def due(self) -> str | None:
        """All dates as one phrase; None if there is none."""
        return " ".join(self.phrases) or None


def split_dates(words: str) -> DatedWords:
    """Split what a person wrote about a task into words and dates."""
    tokens = words.split()
    spans = _spans(tokens)
    if not spans:
        return DatedWords(words)
    taken = {place for start, end in spans for place in range(start, end)}
    rest = " ".join(token for place, token in enumerate(tokens) if place not in taken)
    phrases = tuple(" ".join(tokens[start:end]).strip(_PLAIN) for start, end in spans)
    return DatedWords(rest.strip(" ,;:-–—"), phrases)


def is_dated(words: str) -> bool:
    """Are the words a date and nothing else?"""
    return bool(words.strip()) and not split_dates(words).rest


def looks_dated(title: str) -> bool:
    """Does a title name a day that was not taken as its due date?"""
    known = _DAY_NAME.search(title) or _DOTTED.search(title) or _VAGUE.search(title)
    return bool(known or split_dates(title).phrases)


def _spans(tokens: list[str]) -> list[tuple[int, int]]:
    """Return where the dates are: from which token to which."""
    spans: list[tuple[int, int]] = []
    places = _places(tokens)
    start = 0
    while start < len(tokens):
        end = start
        while end < len(tokens) and end in places:
            end += 1
            if tokens[end - 1][-1] in ":;!?" and end > start:
                break
        if end == start:
            start += 1
            continue
        first, last = _trim(tokens, start, end)
        if first < last and _is_date(tokens, first, last):
            before = " ".join(_strip_punctuation(token) for token in tokens[:first])
            after = " ".join(_strip_punctuation(one) for one in tokens[last:])
            if match := _SAID_BEFORE.search(before):
                first -= len(match[0].split())
            if match := _SAID_AFTER.match(after):
                last += len(match[0].split())
                end = max(end, last)
            spans.append((first, last))
        start = end
    return spans


def _places(tokens: list[str]) -> set[int]:
    """Return where words are that can belong to a date; "bank" only in a holiday's name."""
    bare = [_strip_punctuation(token) for token in tokens]
    holidays: set[int] = set()
    for match in _HOLIDAY_NAME.finditer(" ".join(bare)):
        first = match.string[: match.start()].count(" ")
        holidays.update(range(first, first + len(match[0].split())))
    return {
        place
        for place, one in enumerate(bare)
        if _TOKEN.fullmatch(one) and (place in holidays or not _OF_HOLIDAY.fullmatch(one))
    }


def _trim(tokens: list[str], start: int, end: int) -> tuple[int, int]:
    """Leave out words at the edges that are not part of a date by themselves."""
    while start < end and _EDGE.fullmatch(_strip_punctuation(tokens[end - 1])):
        end -= 1
    if (
        start
        and _NUMBERED.fullmatch(_strip_punctuation(tokens[start - 1]))
        and _is_number(tokens[start])
    ):
        start += 1
    start += _numbers_of_title([_strip_punctuation(token) for token in tokens[start:end]])
    while start < end and _strip_punctuation(tokens[start]).lower() in (
        "and",
        "or",
        "to",
        "of",
        "-",
        "–",
    ):
        start += 1
    if (
        end - start > 2
        and _strip_punctuation(tokens[start]).lower() == "for"
        and _is_number(tokens[start + 1])
    ):
        start += 2  # "a table for two on Friday"
    if end - start > 1 and _strip_punctuation(tokens[start]).lower() in ("a", "an", "the"):
        after = _strip_punctuation(tokens[start + 1]).lower()
        if _DAY_NAME.fullmatch(after) and start:  # "the Friday": not a date
            return end, end
    return start, end


def _numbers_of_title(words: list[str]) -> int:
    """Count numbers before a date that cannot belong to it, as in "read 1984 tomorrow"."""
    count = next((at for at, word in enumerate(words) if not word.isdigit()), len(words))
    if count == len(words) or not _BEGINS_DATE.fullmatch(words[count]):
        return 0
    return count if any(not _DAY_OR_TIME.fullmatch(word) for word in words[:count]) else 0


def _is_date(tokens: list[str], start: int, end: int) -> bool:
    text = " ".join(_strip_punctuation(token) for token in tokens[start:end])
    strong, led = _STRONG.search(text), _LED.search(text)
    at_end = end == len(tokens)
    if not (strong or led or _LAST.search(text)) or re.search(r"\b24/7\b", text):
        return False
    if re.fullmatch(r"(?:for )(?:the )?(?:\w+ )?" + _HOLIDAY + r"(?: day| eve)?", text, re.I):
        return False
    if at_end:
        return True
    leads = bool(_LEADS.match(tokens[start]))
    closed = tokens[end - 1][-1] in ",;:!?)"
    if start == 0:
        return closed or leads or bool(strong)
    follows = bool(_AFTER.match(_strip_punctuation(tokens[end]) or tokens[end])) or closed
    by_name = bool(_LAST.search(text)) and leads
    return follows or ((bool(strong) or by_name) and leads)


def _is_number(token: str) -> bool:
    return _strip_punctuation(token).isdigit() or _strip_punctuation(token).lower() in NUMBERS


def _strip_punctuation(token: str) -> str:
    kept = token.strip(',;:!?()"“”').replace("’", "'")
    return kept if re.fullmatch(r"\d{1,2}\.\d{1,2}\.|[ap]\.m\.", kept, re.I) else kept.rstrip(".")
