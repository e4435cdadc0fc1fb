"""Plain English about tasks, read by rules: what is asked for, of which task, and with what.

Only what the user wrote now is read this way. Titles, notes and old messages are never taken for
requests. Patterns are held against a short text with single spaces, which keeps them fast.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from bridle.chat.tasks.date_phrases import is_dated
from bridle.chat.tasks.offline_adding import read_adding
from bridle.chat.tasks.offline_changing import read_changing
from bridle.chat.tasks.offline_every import narrowed, read_every
from bridle.chat.tasks.offline_wish import Kind, Wish

_LONGEST = 1_000
_POLITE = re.compile(
    r"^(?:(?:hey|hi|hello|ok|okay|so|please|pls|now|also|and then|then|bridle)[,!. ]+)+"
    r"|^(?:can|could|would|will) you (?:please )?|^i(?:'d| would) like (?:you )?to "
    r"|^i want (?:you )?to |^let's |^go ahead and |^(?:oops|sorry|wait|actually|oh)[,!. ]+",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"(?:[,.!?\s]+(?:please|pls|thanks|thank you|for me))+[.!?\s]*$", re.I)
_NUMBERS = {
    "first": 1, "1st": 1, "one": 1, "second": 2, "2nd": 2, "two": 2, "third": 3, "3rd": 3,
    "three": 3, "fourth": 4, "4th": 4, "four": 4, "fifth": 5, "5th": 5, "five": 5, "sixth": 6,
    "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "last": -1, "latter": -1, "former": 1,
}  # fmt: skip
_PLACE = re.compile(
    rf"^(?:(?:the|number|no\.?|option|task|item)\s+)*#?(?:({'|'.join(_NUMBERS)})|(\d{{1,3}}))"
    r"(?:\s+(?:one|task|item|option))?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"^(?:(?:all|every|everything)\s+(?:of\s+)?(?!day|week|month|year))?"
    r"(?:(?:the|my|a|an|that|this)\s+)?(?:tasks?\s+)?"
    r"(?:(?:called|named|titled|about|to|for|of|with)\s+)?(?:(?:the|my)\s+)?(.+?)$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s+(?:(?:from|off|on|in|of)\s+(?:my|the)\s+(?:task\s+|todo\s+|to-do\s+)?(?:list|tasks)"
    r"|tasks?|one|thing)$",
    re.IGNORECASE,
)
_THEIRS = re.compile(r"\b(?:tasks?|lists?|todos?|data|everything)\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"(?:the |my )?(?:tasks? )?(?:called |named )?['\"“‘](.+)['\"”’](?: tasks?)?", re.IGNORECASE
)
_FOREIGN = re.compile(
    r"\b(?:user|account|customer)s?\s*(?:id\s*)?(?:#|number|no\.?)?\s*['\"]?\w*\d\w*"
    r"|\b(?:every(?:one|body)(?: else)?|some(?:one|body) else|other (?:people|users?|person))"
    r"(?:'s|s')?\b"
    r"|\ball (?:the )?users\b|\b(?:of|from|by|belonging to) (?:the )?user \w+",
    re.IGNORECASE,
)
_SOMEBODYS = re.compile(
    r"\b(?!(?:today|tomorrow|tonight|yesterday|(?:week|month|year)|\w*day|weekend|it|that|what|who"
    r"|let|here|there|where|how)['’]s)\w+['’]s (?:\w+ ){0,2}(?:tasks?|lists?|todos?|to-?dos?)\b"
    r"|\btasks? (?:of|belonging to) (?!(?:mine|my|the|this|that|these|next"
    r"|last|today|tomorrow|yesterday|all|any|high|medium|low)\b)\w+",
    re.IGNORECASE,
)

_REOPEN = (
    r"^(?:re-?open|uncheck|un-?tick|unmark|un-?complete|undo|restore) (?P<what>.*)$"
    r"|^(?:mark|set) (?P<what2>.+?) (?:as |to )?(?:not (?:done|completed?|finished)|undone"
    r"|incomplete|open|unfinished|pending)$"
    r"|^(?P<what3>.+?) (?:is not|isn't) (?:done|complete|finished)(?: yet)?$"
    r"|^i (?:didn't|did not|haven't|have not) (?:actually |really )?(?:do|done|finish(?:ed)?"
    r"|complete[d]?) (?P<what4>.+?)(?: yet| after all)?$"
)
_PAST = (
    "called|rang|phoned|texted|emailed|bought|paid|sent|wrote|cleaned|washed|watered|fixed|visited"
    "|met|picked up|ordered|booked|renewed|submitted|returned|brought|took out|signed"
)
_OFF_LIST = re.compile(
    rf"^(i(?:'ve| have)? (?:already |just )*(?:{_PAST}|done|finished|did) .+?),? (?:so |and )?"
    r"(?:please )?(?:cross|check|tick|mark|take) (?:it|that|them) (?:off|as done|done)"
    r"(?: (?:my|the) list)?$",
    re.IGNORECASE,
)
_COMPLETE = (
    r"^(?:mark|set|check|tick) (?P<what>.+?) (?:as |to |off as )?(?:done|completed?|finished|off)$"
    r"|^(?:mark|set) (?:as )?(?:done|completed?|finished)[: ] ?(?P<what5>.*)$"
    r"|^(?:complete|finish|check off|tick off|check|tick|close|done with|done:|i'm done with"
    r"|i am done with|i(?:'ve| have)? (?:just )?(?:finished|completed|did|done))(?: |$)"
    r"(?P<what2>.*)$"
    r"|^(?!(?:what|which|who|how many)\b)(?P<what3>.+?) (?:is|are) (?:now |already )?(?:done"
    r"|completed?|finished|paid|bought|sent|booked|ordered|sorted)$"
    r"|^(?:finished|completed|cross off) (?P<what6>.+)$|^cross (?P<what7>.+?) off(?: .*)?$"
    rf"|^i(?:'ve| have)? (?:already |just )*(?:{_PAST}) (?P<what8>.+)$"
    r"|^(?:mark) (?P<what4>.*)$"
)
_DELETE = (
    r"^(?:delete|remove|erase|get rid of|drop|trash|discard|cancel|clear|wipe|empty|scrap"
    r"|never ?mind about|forget about)(?: |$)"
    r"(?P<what>.*)$|^take (?P<what2>.+?) off (?:my|the) (?:list|tasks)$"
)
_WHEN = r"(?:due|left|overdue|for |on )*(?:today|tomorrow|this |next |due|overdue|left|tonight)"
_FINDS = re.compile(r"(?:find|search|look)\b", re.IGNORECASE)
_ON_A_DAY = re.compile(
    r"^(?:(?:do i have|is there|are there) )?(?:any(?:thing)?|something|tasks?|things?)?"
    r"(?: due| to do| planned| going on| left)* ?(?P<when>.+?)\??$",
    re.IGNORECASE,
)
_SEARCH = (
    r"^(?:find|search|look)(?: for| up)?(?: |$)(?P<what>.*)$"
    r"|^(?:do i have|is there|are there) (?:any(?:thing)? |a |some )?"
    rf"(?P<what2>(?!(?:any(?:thing)? )?{_WHEN}).+?)\??$"
    rf"|^(?:anything|something) (?:about|with|for|on) (?P<what5>(?!{_WHEN}|my|the list).+?)\??$"
    r"|^when(?:'s| is| are) (?:the |my )?(?P<what6>.+?)(?: due)?\??$"
    r"|^(?:show|list)(?: me)? (?:my |the |all )*(?:tasks?|anything|everything|items?|things) "
    r"(?:about|with|containing|mentioning|like|for) (?P<what3>(?!today|tomorrow|this |next ).+)$"
    r"|^(?:which|what) tasks? (?:are |do i have )?(?:about|mention\w*|contain\w*) "
    r"(?P<what4>.+?)\??$"
)
_VERBS: tuple[tuple[Kind, str], ...] = (
    ("reopen", _REOPEN),
    ("complete", _COMPLETE),
    ("delete", _DELETE),
    ("search", _SEARCH),
)
_LIST = re.compile(
    r"^(?:please )?(?:list|show|display|see|view)(?: me)?\b"
    r"|^(?:please )?(?:give|get|tell|read)(?: me)?\b.*\b(?:tasks?|list|todos?|to-?dos?|do|due)\b"
    r"|^(?:what|which)(?:'s|s| is| are| do| have| tasks?| should)\b(?!.*\b(?:id|name|password"
    r"|weather|news|time|date|meaning|capital)\b)(?=.*\b(?:tasks?|list|todos?|to-?dos?|do|due|left|next"
    r"|on|up|have|got|open|pending|remaining|done|completed?|finished|overdue|late|urgent|important"
    r"|priority|today|tomorrow|week|month|day|\w+day|plate|agenda|plann?e?d?|tagged|there|new|all)\b)"
    r"|^(?:my )?(?:\w+ ){0,2}(?:tasks?|list|todos?|to-?dos?)\??$"
    r"|^(?:the |my )?(?:most important|top priority)\b"
    r"|^(?:anything|something|tasks?) (?:due|left|to do|overdue|late)|^how many\b|^everything$"
    r"|^(?:(?:do i have|is there) )?(?:anything|something|what) (?:on |for |due )?"
    r"(?:today|tomorrow|this week|next week|overdue|left)\b",
    re.IGNORECASE,
)
_OKAY = (
    r"^(?:no|nope|no,? thanks|no,? thank you|never ?mind|forget (?:it|that)|nothing(?: else)?"
    r"|cancel|stop|that's (?:all|it))[.!]*$"
)
_TALK: tuple[tuple[Kind, str], ...] = (
    ("thanks", r"^(?:thanks?|thank you|thx|cheers|great|perfect|nice|cool|awesome)\b.{0,30}$"),
    ("greet", r"^(?:hello|hi|hey|good (?:morning|day|evening|afternoon)|greetings)\b.{0,20}$"),
    ("okay", _OKAY),
    ("help", r"^help\b|\bwhat can you do\b|\bwho are you\b|\bhow does this work\b"),
)


@lru_cache(maxsize=512)
def understood(message: str) -> Wish:
    """What the message asks for."""
    whole = " ".join(message[:_LONGEST].split())
    for kind, pattern in _TALK:
        if re.search(pattern, whole, re.IGNORECASE):
            return Wish(kind)
    text = _TRAILING.sub("", _POLITE.sub("", _POLITE.sub("", whole))).strip()
    text = _OFF_LIST.sub(r"\1", text.rstrip(" .!"))
    if _is_foreign(_unquoted(text)) and not read_adding(text):
        return Wish("foreign")
    if number := place(text):
        return Wish("pick", number=number)
    for read in _READERS:
        if (wish := read(text)) is not None:
            return wish
    return Wish("unknown", subject_of(text))


def _is_foreign(text: str) -> bool:
    """Does it ask for the tasks of somebody else?"""
    return _FOREIGN.search(text) is not None and _THEIRS.search(text) is not None


def place(text: str) -> int:
    """The place that is named, from 1; -1: the last; 0: none."""
    match = _PLACE.match(text.strip(" .!?"))
    if match is None:
        return 0
    return _NUMBERS[match[1].lower()] if match[1] else int(match[2])


def subject_of(text: str) -> str:
    """The words that name a task, without what people put around them."""
    words = text.strip(" .!?,;:")
    if quoted := _QUOTED.fullmatch(words):
        return quoted[1].strip()
    words = _AFTER.sub("", _AFTER.sub("", words))
    if match := _ABOUT.match(words):
        words = match[1]
    words = words.strip(" .!?,;:'\"“”‘’")
    return "" if words.lower() in ("task", "tasks", "a", "the", "my", "a task", "list") else words


def _unquoted(text: str) -> str:
    return re.sub(r"'[^']+'|\"[^\"]+\"|“[^”]+”", "''", text)


def _acting(text: str) -> Wish | None:
    for kind, pattern in _VERBS:
        match = re.search(pattern, text.rstrip(" .!?"), re.IGNORECASE)
        if match is None:
            continue
        what = next((one for one in match.groupdict().values() if one is not None), "")
        if kind == "search" and is_dated(what) and not _FINDS.match(text):
            return Wish("list", every=narrowed(text))
        return _about(kind, what)
    return None


def _about(kind: Kind, what: str) -> Wish:
    if kind == "search":
        return Wish(kind, subject_of(what))
    if (every := read_every(what, kind)) is not None:
        return Wish(kind, every=every)
    if number := place(what):
        return Wish(kind, number=number)
    return Wish(kind, subject_of(what))


def _changing(text: str) -> Wish | None:
    found = read_changing(text)
    if found is None:
        return None
    what, fields = found
    return replace(_about("update", what), fields=fields)


def _on_a_day(text: str) -> Wish | None:
    """ "do I have anything on friday?", "anything due by monday?"."""
    match = _ON_A_DAY.match(text)
    if match is None or match["when"] == text or not is_dated(match["when"]):
        return None
    return Wish("list", every=narrowed(text))


def _listing(text: str) -> Wish | None:
    if not _LIST.search(text):
        return None
    if _SOMEBODYS.search(text):
        return Wish("foreign")
    return Wish("list", every=narrowed(text))


_READERS: tuple[Callable[[str], Wish | None], ...] = (
    _changing,
    read_adding,
    _on_a_day,
    _acting,
    _listing,
)
