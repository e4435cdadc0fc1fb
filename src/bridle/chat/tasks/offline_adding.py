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
    r" (?:to|about|that) (?P<rest>.+)$|^i (?:need(?: to)?|must|ought to|have to|have got to)"
    r" (?P<rest2>(?!do\b).+)$",
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
_SPLIT = re.compile(r"\s*(?:,|;|\n)\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)


def read_adding(text: str) -> Wish | None:
    """The task to add; None where none is asked for. An empty title is for the tool to refuse."""
    if match := _REMIND.match(text):
        rest = match["rest"] or match["rest2"] or ""
        wish = _added(rest)
        when = (match["when"] or "").strip()
        return replace(wish, fields=replace(wish.fields, due=when)) if when else wish
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
    title = title.strip(' .!,;:"“”')
    return Wish("add", title, replace(fields, title=title))


def _many(rest: str) -> Wish:
    titles = [one.strip(" .!'\"") for one in _SPLIT.split(rest) if one.strip(" .!'\"")]
    if not titles:
        return Wish("add", "", Fields(title=""))
    return Wish("add", titles[0], Fields(title=titles[0]), more=tuple(titles[1:10]))
