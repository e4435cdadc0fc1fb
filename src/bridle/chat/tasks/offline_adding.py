"""Requests for a new task: its title, and what is said beside it."""

import re
from dataclasses import replace

from bridle.chat.tasks.offline_fields import read_fields
from bridle.chat.tasks.offline_wish import Fields, Wish

_LEVEL = r"(?:(?P<level>high|low|medium|urgent)(?:[ -]priority)? )?"
_ADD = re.compile(
    r"^(?:add|create|make|put|new|note(?: down)?|write down|jot down|record|schedule|set up"
    r"|(?:todo|to-do|task)(?=:))"
    r"(?: me)?"
    rf"(?:$|[: ] ?)(?:a |an |the |another |one |some )?(?:new )?{_LEVEL}"
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
_LISTED = re.compile(
    r"\s+(?:to|on|onto|in(?:to)?)\s+(?:my|the)\s+(?:task\s+|todo\s+|to-do\s+|shopping\s+)?"
    r"(?:list|tasks|todos)\b",
    re.IGNORECASE,
)
_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"))
_QUOTED = tuple(
    re.compile(rf"^{left}(?P<title>.+?){right}(?=[\s,.;!]|$)(?P<rest>.*)$")
    for left, right in _PAIRS
)
_LONGEST = 1_000
_SPLIT = re.compile(r"\s*(?:,|;|\n)\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)


def read_adding(text: str) -> Wish | None:
    """The task to add; None where none is asked for. An empty title is for the tool to refuse."""
    if match := _REMIND.match(text):
        return _reminded(match)
    if match := _THROWN.match(text):
        return _added(match["rest"])
    match = _ADD.match(text)
    if match is None or _is_something_else(match):
        return None
    rest = match["rest"].strip()
    plural = (match["noun"] or "").lower().split(" ")[0].endswith("s") and match["to"]
    if plural and ":" in (match["to"] or ""):
        return _many(rest)
    wish = _added(rest)
    if match["level"] and wish.fields.priority is None:
        level = "high" if match["level"].lower() == "urgent" else match["level"].lower()
        wish = replace(wish, fields=replace(wish.fields, priority=level))
    return wish


def read_bare_task(text: str) -> Wish | None:
    """A task that is said without "add": "book a table on Friday at noon"."""
    text = " ".join(text[:_LONGEST].split())
    return _added(text) if _BARE.match(text) and "?" not in text else None


def _reminded(match: re.Match[str]) -> Wish:
    """ "remind me tomorrow to call Bob", "remind me to call Bob tomorrow"."""
    if not match["when"]:
        return _added(match["rest"] or match["rest2"] or match["rest3"])
    said = match[0][match.start("when") :]
    wish = _added(said)
    if start := re.match(r"(?:to|about|that)\s+(.+)", wish.subject, re.IGNORECASE):
        return replace(wish, subject=start[1], fields=replace(wish.fields, title=start[1]))
    wish = _added(match["rest"])  # not a date that we know: the tool asks about it
    due = " ".join(filter(None, (match["when"].strip(), wish.fields.due)))
    return replace(wish, fields=replace(wish.fields, due=due))


def _is_something_else(match: re.Match[str]) -> bool:
    """«make it high priority», «put X off», «add a tag to X»: a change of a task that is there."""
    rest = match["rest"].lower()
    verb = match[0].split()[0].lower().rstrip(":")
    if verb in ("make", "set", "put", "schedule", "record", "note") and not match["noun"]:
        return verb in ("make", "set", "schedule") or not _LISTED.search(match["rest"])
    return not match["noun"] and rest in ("it", "that")


def _added(rest: str) -> Wish:
    rest = _LISTED.sub("", rest).strip(" ,")
    if match := next(filter(None, (one.match(rest) for one in _QUOTED)), None):
        _, fields = read_fields(f"x {match['rest'].strip()}")
        return Wish("add", match["title"].strip(), replace(fields, title=match["title"].strip()))
    title, fields = read_fields(rest)
    title = _unquoted(title)
    return Wish("add", title, replace(fields, title=title))


def _unquoted(title: str) -> str:
    """Without the punctuation around it, and without quotes around the whole of it."""
    title = title.strip(" .!?,;:")
    for left, right in _PAIRS:
        if len(title) > 1 and title[0] == left and title[-1] == right and left not in title[1:-1]:
            return title[1:-1].strip(" .!?,;:")
    paired = title.count('"') % 2 == 0 and title.count("“") == title.count("”")
    return title if paired else title.strip('"“”')


def _many(rest: str) -> Wish:
    wishes = [_added(one) for one in _SPLIT.split(rest) if one.strip(" .!'\"")][:10]
    if not wishes:
        return Wish("add", "", Fields(title=""))
    return replace(wishes[0], more=tuple(one.fields for one in wishes[1:]))
