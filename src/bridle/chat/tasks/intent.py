"""What an English message about tasks asks for, read by patterns. For the offline responder.

Only the user's newest message is read this way. Titles, notes and old messages are never taken for
requests. Patterns are matched against a short text with single spaces, which keeps them fast.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from bridle.chat.tasks.date_phrases import is_dated, split_dates
from bridle.chat.tasks.date_words import NUMBER, number

IntentKind = Literal[
    "add",
    "list",
    "search",
    "complete",
    "reopen",
    "delete",
    "update",
    "pick",
    "help",
    "greet",
    "thanks",
    "okay",
    "foreign",
    "unknown",
]
ACTIONS: frozenset[IntentKind] = frozenset({"complete", "reopen", "delete", "update"})


@dataclass(frozen=True)
class TaskFields:
    """The fields of a task that a message names; None: it does not name them.

    `later` is by how much the due date moves, such as 1 and "week"; negative: earlier.
    """

    title: str | None = None
    notes: str | None = None
    priority: str | None = None
    due: str | None = None
    tags: tuple[str, ...] | None = None
    later: tuple[int, str] | None = None

    @property
    def arguments(self) -> dict[str, object]:
        """The fields that are named, as arguments of a call."""
        found: dict[str, object] = {
            name: getattr(self, name)
            for name in ("title", "notes", "priority", "due")
            if getattr(self, name) is not None
        }
        if self.priority is not None:
            found["priority"] = self.priority.capitalize()
        if self.tags is not None:
            found["tags"] = list(self.tags)
        return found


@dataclass(frozen=True)
class TaskFilter:
    """Which tasks are meant, if not a single one; `due` is as `list_tasks` takes it."""

    status: Literal["all", "open", "done"] = "all"
    due: str = "any"
    priority: str = ""
    tag: str = ""

    @property
    def arguments(self) -> dict[str, object]:
        """The filter as arguments of a call."""
        found: dict[str, object] = {}
        if self.status != "all":
            found["status"] = self.status
        if self.due != "any":
            found["due"] = self.due
        if self.priority:
            found["priority"] = self.priority
        if self.tag:
            found["tag"] = self.tag
        return found


@dataclass(frozen=True)
class Intent:
    """What a message asks for: the kind, the task or tasks (`every`), and the fields.

    `number` is a place in the list that was shown, from 1; -1 is the last. `more` are the fields of
    further tasks to add.
    """

    kind: IntentKind = "unknown"
    subject: str = ""
    fields: TaskFields = field(default_factory=TaskFields)
    every: TaskFilter | None = None
    number: int = 0
    more: tuple[TaskFields, ...] = ()

    @property
    def is_action(self) -> bool:
        """Does it change an existing task?"""
        return self.kind in ACTIONS


_LEVEL_WORD = r"(?:high|low|medium|normal|top|urgent|highest|lowest)"
_PRIORITY = re.compile(
    rf"[,;]?\s*(?:\b(?:with|at|as|of|in|and)\s+)?(?:\b(?:a|an|the)\s+)?"
    rf"(?:\b({_LEVEL_WORD})[ -]priority\b|\bpriority(?:\s+(?:is|of|to)|\s*[:=])?\s+(\w+)\b)",
    re.IGNORECASE,
)
_TAGGED_WITH = re.compile(
    r"[,;]?\s*\b(?:and\s+)?(?:tagged(?: with| as)?|with (?:the )?tags?|tags?:)\s+"
    r"([\w#-]+(?:(?:\s*,\s*|\s+and\s+)[\w#-]+)*)",
    re.IGNORECASE,
)
_HASH = re.compile(r"(?:^|(?<=\s))#(?!\d+\b)(\w[\w-]*)")
_NOTES = re.compile(r"[,;.]?\s*\b(?:with (?:the |a )?)?notes?\s*(?::|saying)\s*(.+)$", re.I | re.S)
_MARKED = re.compile(
    r"[,;]?\s+(?:and\s+)?(?:(?:which|that|it)\s+is\s+)?\(?\b(?:due(?: date)?|deadline)\b"
    r"(?:\s*(?:is|by|on|at|:))?\s+([^()]{1,60}?)\)?$",
    re.IGNORECASE,
)


def parse_fields(words: str) -> tuple[str, TaskFields]:
    """Split words into a title and the other fields."""
    words, notes = _take_match(_NOTES, words)
    tags: list[str] = []
    if match := _TAGGED_WITH.search(words):
        tags += re.split(r"\s*,\s*|\s+and\s+", match[1])
        words = _without_match(words, match)
    tags += _HASH.findall(words)
    words = _HASH.sub("", words)
    priority = None
    if match := _PRIORITY.search(words):
        priority = _level(match[1] or match[2])
        words = _without_match(words, match)
    words, due = parse_due_words(" ".join(words.split()))
    named = tuple(tag.strip("#").lower() for tag in tags if tag.strip("#"))
    return words.strip(" ,;"), TaskFields(None, notes, priority, due, named or None)


def parse_due_words(words: str) -> tuple[str, str | None]:
    """Split words into those without dates, and the dates as they were written."""
    if match := _MARKED.search(words):
        dated = split_dates(words[: match.start()])
        return dated.rest, " ".join([*dated.phrases, match[1].strip(" .,;!?")])
    dated = split_dates(words)
    return dated.rest, dated.due


def _level(word: str) -> str:
    low = word.lower()
    return {"top": "high", "highest": "high", "urgent": "high", "lowest": "low"}.get(low, low)


def _take_match(pattern: re.Pattern[str], words: str) -> tuple[str, str | None]:
    match = pattern.search(words)
    if match is None:
        return words, None
    return words[: match.start()].strip(), match[1].strip()


def _without_match(words: str, match: re.Match[str]) -> str:
    return f"{words[: match.start()]} {words[match.end() :]}".strip()


_EVERY = re.compile(
    r"^(?:all|every|everything|each|them all)\b|^(?:my|the) (?:whole |entire )?(?:list|tasks)$"
    r"|^tasks$|^list$|^(?:my |the |all )*"
    r"(?:done|completed|finished|open|pending|unfinished|overdue|old) (?:tasks|ones|items)$"
    r"|^completed$|^(?:my |the |all )*tasks (?:tagged|with the tag|that are|which are|due)\b"
    r"|^(?:my |the |all )*(?:#\w[\w-]*|(?:high|low|medium)[ -]priority) tasks$",
    re.IGNORECASE,
)
_IS_DONE = re.compile(r"\b(?:done|complete[d]?|finished|checked)\b", re.IGNORECASE)
_IS_OPEN = re.compile(
    r"\b(?:open|pending|unfinished|incomplete|not done|left|remaining|to do|todo|undone)\b", re.I
)
_IMPORTANT = re.compile(r"\b(?:most important|top priority)\b", re.IGNORECASE)
_STRETCHES = ("today", "tomorrow", "this week", "next week")
_NO_DAY = re.compile(r"(?:now|soon|asap|someday|whenever|later|first thing)", re.IGNORECASE)
_BEFORE_A_DAY = re.compile(r"^(?:(?:due|on|for|in|over|at|the)\s+)+(?=\S)", re.IGNORECASE)
_FILTER_LEVEL = re.compile(r"\b(high|low|medium|urgent)(?:[ -]priority)?\b", re.IGNORECASE)
_TAG = re.compile(r"#(\w[\w-]*)|\btagged (?:with |as )?#?(\w[\w-]*)|\btag #?(\w[\w-]*)", re.I)
_FILTER_WORDS = re.compile(
    r"(?:a|all|and|any|are|as|at|dates?|done|due|each|entire|every|everything|for|from|have|in|is"
    r"|it|items?|left|list|my|no|not|now|of|off|old|on|ones?|open|our|overdue|past|please"
    r"|remaining|still|tag|tagged|tasks?|that|the|them|these|things?|this|those|to|to-?dos?|today|tomorrow|next"
    r"|undone|week|which|whole|with|without|incomplete|completed?|finished|checked|pending"
    r"|unfinished|late|urgent|(?:high|low|medium)(?:-priority)?|priority)"
)


def parse_filter(text: str) -> TaskFilter:
    """Return the filter in a request for a list."""
    important = _IMPORTANT.search(text)
    status = "open" if _IS_OPEN.search(text) else "done" if _IS_DONE.search(text) else "all"
    level = _FILTER_LEVEL.search(text)
    tag = _TAG.search(text)
    return TaskFilter(
        status="open" if important and status == "all" else status,  # type: ignore[arg-type]
        due=_filter_due(text, status == "done"),
        priority="High" if important else _level_name(level[1]) if level else "",
        tag=next(one for one in tag.groups() if one).lower() if tag else "",
    )


def parse_filter_of_many(what: str, kind: IntentKind) -> TaskFilter | None:
    """Return the filter in a request about many tasks; None if it is about one."""
    words = what.strip(" .!?")
    if not _EVERY.search(words) or _names_more(words):
        return None
    found = parse_filter(words)
    if found.status == "all" and kind in ("complete", "reopen"):
        status = "open" if kind == "complete" else "done"
        return replace(found, status=status)  # type: ignore[arg-type]
    return found


def _names_more(words: str) -> bool:
    """Does it name more, as in "all tasks about milk" or "everything but the bike"?"""
    rest = _TAG.sub("", words).casefold()
    return any(not _FILTER_WORDS.fullmatch(word) for word in re.findall(r"[\w'-]+", rest))


def _level_name(level: str) -> str:
    return {"high": "High", "urgent": "High", "medium": "Medium", "low": "Low"}[level.lower()]


def _filter_due(text: str, done: bool) -> str:
    """Return when the tasks are due, as `list_tasks` takes it."""
    lower = text.lower()
    if "overdue" in lower or re.search(r"\b(?:late|past due)\b", lower):
        return "overdue"
    day = _BEFORE_A_DAY.sub("", split_dates(text).due or "").lower()
    if day in _STRETCHES:
        return day.replace(" ", "_")
    if day and not _NO_DAY.fullmatch(day) and not (done and "due" not in lower):
        return day
    if match := re.search(r"\b(today|tomorrow|this week|next week)\b", lower):
        return match[1].replace(" ", "_")
    return "none" if re.search(r"\b(?:no|without a?) ?(?:due )?dates?\b", lower) else "any"


_ADD_LEVEL = r"(?:(?P<level>high|low|medium|urgent)(?:[ -]priority)? )?"
_ADD = re.compile(
    r"^(?:add|create|make|put|new|note(?: down)?|write down|jot down|record|schedule|set up"
    r"|(?:todo|to-do|task)(?=:))"
    r"(?: me)?"
    rf"(?:$|[: ] ?)(?:a |an |the |another |one |some )?(?:new )?{_ADD_LEVEL}"
    r"(?P<noun>(?:tasks?|todos?|to-?dos?|reminders?|items?)\b(?: (?:called|named|titled|for me))?)?"
    r"(?P<to>\s*(?::|\b(?:to|for|about)\b))?\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
_REMIND = re.compile(
    r"^(?:remind me|remember|(?:don't|do not) (?:let me )?forget)(?: (?P<when>.{1,30}?))?"
    r" (?:to|about|that) (?P<rest>.+)$"
    r"|^(?:don't|do not) let me forget (?P<rest3>.+)$"
    r"|^(?:i )?(?:really )?(?:need(?: to)?|must|ought to|have to|(?:have |'ve )?got(?:ta| to)"
    r"|should(?: probably| really)?|(?:have )?gotta) (?P<rest2>(?!do\b).+)$",
    re.IGNORECASE,
)
_THROWN = re.compile(
    r"^(?:throw|stick|chuck|pop|drop) (?P<rest>.+?) (?:on|onto|in)"
    r" (?:there|it|(?:my|the) (?:(?:task|todo|to-do|shopping) )?list)[.!]*$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"(?:book|buy|call|ring|phone|text|email|e-mail|pay|pick up|order|renew|send|write|clean|wash"
    r"|water|fix|visit|meet|bring|return|submit|sign up) \S",
    re.IGNORECASE,
)
_ON_LIST = re.compile(
    r"\s+(?:to|on|onto|in(?:to)?)\s+(?:my|the)\s+(?:task\s+|todo\s+|to-do\s+|shopping\s+)?"
    r"(?:list|tasks|todos)\b",
    re.IGNORECASE,
)
_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"))
_QUOTED_TITLE = tuple(
    re.compile(rf"^{left}(?P<title>.+?){right}(?=[\s,.;!]|$)(?P<rest>.*)$")
    for left, right in _PAIRS
)
_LONGEST_MESSAGE = 1_000
_SPLIT = re.compile(r"\s*(?:,|;|\n)\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)


def parse_add(text: str) -> Intent | None:
    """Return a request to add a task; None if it is not one. The title may be empty."""
    if match := _REMIND.match(text):
        return _reminder(match)
    if match := _THROWN.match(text):
        return _new_task(match["rest"])
    match = _ADD.match(text)
    if match is None or _is_something_else(match):
        return None
    rest = match["rest"].strip()
    plural = (match["noun"] or "").lower().split(" ")[0].endswith("s") and match["to"]
    if plural and ":" in (match["to"] or ""):
        return _several_tasks(rest)
    intent = _new_task(rest)
    if match["level"] and intent.fields.priority is None:
        level = "high" if match["level"].lower() == "urgent" else match["level"].lower()
        intent = replace(intent, fields=replace(intent.fields, priority=level))
    return intent


def parse_bare_task(text: str) -> Intent | None:
    """Return a task that is written without "add": "book a table on Friday at noon"."""
    text = " ".join(text[:_LONGEST_MESSAGE].split())
    return _new_task(text) if _BARE.match(text) and "?" not in text else None


def _reminder(match: re.Match[str]) -> Intent:
    """ "remind me tomorrow to call Bob", "remind me to call Bob tomorrow"."""
    if not match["when"]:
        return _new_task(match["rest"] or match["rest2"] or match["rest3"])
    said = match[0][match.start("when") :]
    intent = _new_task(said)
    if start := re.match(r"(?:to|about|that)\s+(.+)", intent.subject, re.IGNORECASE):
        return replace(intent, subject=start[1], fields=replace(intent.fields, title=start[1]))
    intent = _new_task(match["rest"])  # not a date that we know: the tool asks about it
    due = " ".join(filter(None, (match["when"].strip(), intent.fields.due)))
    return replace(intent, fields=replace(intent.fields, due=due))


def _is_something_else(match: re.Match[str]) -> bool:
    """Is it a change, as in "make it high priority", "put X off" or "add a tag to X"?"""
    rest = match["rest"].lower()
    verb = match[0].split()[0].lower().rstrip(":")
    if verb in ("make", "set", "put", "schedule", "record", "note") and not match["noun"]:
        return verb in ("make", "set", "schedule") or not _ON_LIST.search(match["rest"])
    return not match["noun"] and rest in ("it", "that")


def _new_task(rest: str) -> Intent:
    rest = _ON_LIST.sub("", rest).strip(" ,")
    if match := next(filter(None, (one.match(rest) for one in _QUOTED_TITLE)), None):
        _, fields = parse_fields(f"x {match['rest'].strip()}")
        return Intent("add", match["title"].strip(), replace(fields, title=match["title"].strip()))
    title, fields = parse_fields(rest)
    title = _unquote_title(title)
    return Intent("add", title, replace(fields, title=title))


def _unquote_title(title: str) -> str:
    """Remove punctuation around a title, and quotes around the whole of it."""
    title = title.strip(" .!?,;:")
    for left, right in _PAIRS:
        if len(title) > 1 and title[0] == left and title[-1] == right and left not in title[1:-1]:
            return title[1:-1].strip(" .!?,;:")
    paired = title.count('"') % 2 == 0 and title.count("“") == title.count("”")
    return title if paired else title.strip('"“”')


def _several_tasks(rest: str) -> Intent:
    intents = [_new_task(piece) for piece in _SPLIT.split(rest) if piece.strip(" .!'\"")][:10]
    if not intents:
        return Intent("add", "", TaskFields(title=""))
    return replace(intents[0], more=tuple(intent.fields for intent in intents[1:]))


Change = tuple[str, TaskFields]
_SET = r"(?:change|set|update|edit|modify|make|put|switch)"
_MOVE = r"(?:move|postpone|reschedule|push|delay|schedule)"
_CHANGE_LEVEL = r"(?P<level>high|low|medium|normal|urgent|top|\w+)"


def _change_title(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(title=match["value"].strip(" .!'\"“”‘’"))


def _change_level(match: re.Match[str]) -> Change:
    level = match["level"].lower()
    return match["what"], TaskFields(priority={"urgent": "high", "top": "high"}.get(level, level))


def _raise_level(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(priority="high")


def _change_due(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(due=match["value"].strip(" .!"))


def _move_later(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(later=(_count(match["count"]), match["unit"].lower()))


def _move_earlier(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(later=(-_count(match["count"]), match["unit"].lower()))


def _count(word: str) -> int:
    return 1 if word.lower() == "another" else number(word.lower())


def _snooze(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(due=f"in {match['count']} {match['unit']}")


def _is_on(match: re.Match[str]) -> Change | None:
    """ "the dentist is on friday now": only if it is a day that follows."""
    return _change_due(match) if is_dated((match["lead"] or "") + match["value"]) else None


def _remove_due(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(due="none")


def _change_tags(match: re.Match[str]) -> Change:
    tags = [word.strip(" #'\"").lower() for word in re.split(r"\s*,\s*|\s+and\s+", match["value"])]
    return match["what"], TaskFields(tags=tuple(tag for tag in tags if tag))


def _change_notes(match: re.Match[str]) -> Change:
    return match["what"], TaskFields(notes=match["value"].strip())


def _change_to(match: re.Match[str]) -> Change | None:
    """Read "change X to Y": Y is a date, a priority, or else a title."""
    what, value = match["what"], match["value"].strip(" .!")
    if level := re.fullmatch(r"(high|low|medium|urgent)(?: priority)?", value, re.IGNORECASE):
        return what, TaskFields(priority={"urgent": "high"}.get(level[1].lower(), level[1].lower()))
    rest, due = parse_due_words(f"x {value}")
    if due is not None and rest == "x":
        return what, TaskFields(due=due)
    return what, TaskFields(title=value.strip("'\"“”‘’"))


def _open_change(match: re.Match[str]) -> Change | None:
    """Read "update X with high priority due friday", or an update without any change."""
    what, fields = parse_fields(match["what"])
    return re.sub(r"\s+(?:with|to have|to be|so)$", "", what), replace(fields, title=None)


_W, _V = r"(?P<what>.+?)", r"(?P<value>.+)"
_LEVELS = r"(?P<level>high|low|medium|normal|urgent|top)"
_DAY = r"(?:due date|due|date|deadline)"
_BY = (
    rf"(?:by |for )?(?:about )?(?P<count>{NUMBER}|another)"
    r" (?P<unit>(?:day|week|month|year|hour|minute)s?)"
)
_TO = r"(?:to|until|till|for|by)"
_PUT_OFF = r"(?:put off|defer|snooze)"
_NO_TITLE = (
    r"(?!(?:what|which|who|when|where|how|show|list|any|add|remind|create|today|tomorrow)\b)"
)
_OFF = r"(?:remove|clear|delete|drop|take away)"

_PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Change | None]], ...] = (
    (rf"(?:rename|retitle) {_W} (?:to|as|into) {_V}", _change_title),
    (rf"{_SET} the (?:title|name) of {_W} to {_V}", _change_title),
    (rf"{_SET} {_W}'s (?:title|name) to {_V}", _change_title),
    (
        rf"{_SET} (?:the )?priority (?:of|for|on) {_W} (?:to|as) {_CHANGE_LEVEL}(?: priority)?",
        _change_level,
    ),
    (rf"{_SET} {_W}'s priority to {_CHANGE_LEVEL}", _change_level),
    (rf"{_SET} {_W} (?:to |as |a |with )*{_LEVELS}(?:[ -]priority)?", _change_level),
    (rf"{_SET} {_W} priority (?:to )?{_CHANGE_LEVEL}", _change_level),
    (rf"{_SET} {_W} (?:to |with )?{_CHANGE_LEVEL} priority", _change_level),
    (rf"prioriti[sz]e {_W}(?P<level>)", _raise_level),
    (rf"{_OFF} the {_DAY} (?:of|from|for|on) {_W}", _remove_due),
    (rf"{_SET} (?:the |a )?{_DAY} (?:of|for|on) {_W} (?:to|as|for) {_V}", _change_due),
    (rf"{_SET} {_W}'s {_DAY} to {_V}", _change_due),
    (rf"(?:add|give|set) (?:a )?(?:due date|deadline)(?: of)? {_V} (?:to|for) {_W}", _change_due),
    (rf"snooze {_W} {_BY}", _snooze),
    (rf"(?:{_MOVE}|{_PUT_OFF}|make) {_W} {_BY} (?:later|back)", _move_later),
    (rf"(?:{_MOVE}|bring|make) {_W} {_BY} (?:earlier|sooner)", _move_earlier),
    (rf"(?:push|move|put|shift) {_W} (?:back|out|off) {_BY}", _move_later),
    (rf"(?:push|move|put|shift) (?:back|out|off) {_W} {_BY}", _move_later),
    (rf"(?:push|postpone|delay|defer|extend) {_W} {_BY}", _move_later),
    (rf"(?:bring|pull) {_W} forward {_BY}", _move_earlier),
    (rf"(?:bring|pull) forward {_W} {_BY}", _move_earlier),
    (
        rf"(?:move|reschedule) {_W}(?: up| forward| ahead)? (?P<value>{_BY})",
        _change_due,
    ),  # earlier or later?
    (rf"(?:put|push) {_W} off {_TO} {_V}", _change_due),
    (rf"(?:bring|pull) {_W} forward {_TO} {_V}", _change_due),
    (rf"(?:{_MOVE}|{_PUT_OFF})(?: back)? {_W}(?: back| forward| up| out)? {_TO} {_V}", _change_due),
    (rf"{_SET} {_W} (?:to be )?due (?:on |by |at )?{_V}", _change_due),
    (
        rf"(?!what|which|show|list|any|add|remind|create){_W} is due (?:on |by |at )?{_V}",
        _change_due,
    ),
    (rf"{_NO_TITLE}{_W} is (?:now )?(?P<lead>(?:on|at|by|for) )?{_V}(?: now| instead)", _is_on),
    (rf"{_NO_TITLE}{_W} is (?:now )?(?P<lead>(?:on|at|by) ){_V}", _is_on),
    (rf"{_W} (?:isn't|is not|are not|aren't) due (?:until|till|before) {_V}", _change_due),
    (rf"(?:add|put) (?:the )?tags? {_V} (?:to|on) {_W}", _change_tags),
    (rf"tag {_W} (?:with|as) {_V}", _change_tags),
    (rf"(?:add|put) (?:a )?notes? (?:to|on) {_W}(?::| saying| that) {_V}", _change_notes),
    (rf"{_SET} the notes? (?:of|for|on) {_W} to {_V}", _change_notes),
    (rf"(?:change|update|edit|modify|turn) {_W} (?:to|into) {_V}", _change_to),
    (r"(?:change|update|edit|modify)(?: |$)(?P<what>.*)", _open_change),
)


def parse_change(text: str) -> Change | None:
    """Return which task to change and its new fields; None if no change is asked for."""
    words = text.rstrip(" .!?")
    for pattern, make in _PATTERNS:
        if match := re.fullmatch(pattern, words, re.IGNORECASE):
            found = make(match)
            if found is not None:
                return found
    return None


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
_QUOTED_SUBJECT = re.compile(
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
_VERBS: tuple[tuple[IntentKind, str], ...] = (
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
_TALK: tuple[tuple[IntentKind, str], ...] = (
    ("thanks", r"^(?:thanks?|thank you|thx|cheers|great|perfect|nice|cool|awesome)\b.{0,30}$"),
    ("greet", r"^(?:hello|hi|hey|good (?:morning|day|evening|afternoon)|greetings)\b.{0,20}$"),
    ("okay", _OKAY),
    ("help", r"^help\b|\bwhat can you do\b|\bwho are you\b|\bhow does this work\b"),
)


@lru_cache(maxsize=512)
def parse_intent(message: str) -> Intent:
    """Return what an English message asks for."""
    whole = " ".join(message[:_LONGEST_MESSAGE].split())
    for kind, pattern in _TALK:
        if re.search(pattern, whole, re.IGNORECASE):
            return Intent(kind)
    text = _TRAILING.sub("", _POLITE.sub("", _POLITE.sub("", whole))).strip()
    text = _OFF_LIST.sub(r"\1", text.rstrip(" .!"))
    if _is_foreign(_blank_quotes(text)) and not parse_add(text):
        return Intent("foreign")
    if number := parse_place(text):
        return Intent("pick", number=number)
    for read in _READERS:
        if (intent := read(text)) is not None:
            return intent
    return Intent("unknown", parse_subject(text))


def _is_foreign(text: str) -> bool:
    """Does it ask for the tasks of another user?"""
    return _FOREIGN.search(text) is not None and _THEIRS.search(text) is not None


def parse_place(text: str) -> int:
    """Return the place in a list that is named, from 1; -1: the last; 0: none."""
    match = _PLACE.match(text.strip(" .!?"))
    if match is None:
        return 0
    return _NUMBERS[match[1].lower()] if match[1] else int(match[2])


def parse_subject(text: str) -> str:
    """Return the words that name a task, without articles and the like."""
    words = text.strip(" .!?,;:")
    if quoted := _QUOTED_SUBJECT.fullmatch(words):
        return quoted[1].strip()
    words = _AFTER.sub("", _AFTER.sub("", words))
    if match := _ABOUT.match(words):
        words = match[1]
    words = words.strip(" .!?,;:'\"“”‘’")
    return "" if words.lower() in ("task", "tasks", "a", "the", "my", "a task", "list") else words


def _blank_quotes(text: str) -> str:
    return re.sub(r"'[^']+'|\"[^\"]+\"|“[^”]+”", "''", text)


def _action_intent(text: str) -> Intent | None:
    for kind, pattern in _VERBS:
        match = re.search(pattern, text.rstrip(" .!?"), re.IGNORECASE)
        if match is None:
            continue
        what = next((one for one in match.groupdict().values() if one is not None), "")
        if kind == "search" and is_dated(what) and not _FINDS.match(text):
            return Intent("list", every=parse_filter(text))
        return _intent_about(kind, what)
    return None


def _intent_about(kind: IntentKind, what: str) -> Intent:
    if kind == "search":
        return Intent(kind, parse_subject(what))
    if (every := parse_filter_of_many(what, kind)) is not None:
        return Intent(kind, every=every)
    if number := parse_place(what):
        return Intent(kind, number=number)
    return Intent(kind, parse_subject(what))


def _change_intent(text: str) -> Intent | None:
    found = parse_change(text)
    if found is None:
        return None
    what, fields = found
    return replace(_intent_about("update", what), fields=fields)


def _day_intent(text: str) -> Intent | None:
    """ "do I have anything on friday?", "anything due by monday?"."""
    match = _ON_A_DAY.match(text)
    if match is None or match["when"] == text or not is_dated(match["when"]):
        return None
    return Intent("list", every=parse_filter(text))


def _list_intent(text: str) -> Intent | None:
    if not _LIST.search(text):
        return None
    if _SOMEBODYS.search(text):
        return Intent("foreign")
    return Intent("list", every=parse_filter(text))


_READERS: tuple[Callable[[str], Intent | None], ...] = (
    _change_intent,
    parse_add,
    _day_intent,
    _action_intent,
    _list_intent,
)
