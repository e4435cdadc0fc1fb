"""Requests to change a task: which one, and what it is to have."""

import re
from collections.abc import Callable
from dataclasses import replace

from bridle.chat.tasks.date_phrases import is_dated
from bridle.chat.tasks.dates_spoken import NUMBER, number
from bridle.chat.tasks.offline_fields import read_due, read_fields
from bridle.chat.tasks.offline_wish import Fields

Found = tuple[str, Fields]
_SET = r"(?:change|set|update|edit|modify|make|put|switch)"
_MOVE = r"(?:move|postpone|reschedule|push|delay|schedule)"
_LEVEL = r"(?P<level>high|low|medium|normal|urgent|top|\w+)"


def _titled(match: re.Match[str]) -> Found:
    return match["what"], Fields(title=match["value"].strip(" .!'\"“”‘’"))


def _leveled(match: re.Match[str]) -> Found:
    level = match["level"].lower()
    return match["what"], Fields(priority={"urgent": "high", "top": "high"}.get(level, level))


def _raised(match: re.Match[str]) -> Found:
    return match["what"], Fields(priority="high")


def _dated(match: re.Match[str]) -> Found:
    return match["what"], Fields(due=match["value"].strip(" .!"))


def _later(match: re.Match[str]) -> Found:
    return match["what"], Fields(later=(_count(match["count"]), match["unit"].lower()))


def _earlier(match: re.Match[str]) -> Found:
    return match["what"], Fields(later=(-_count(match["count"]), match["unit"].lower()))


def _count(word: str) -> int:
    return 1 if word.lower() == "another" else number(word.lower())


def _snoozed(match: re.Match[str]) -> Found:
    return match["what"], Fields(due=f"in {match['count']} {match['unit']}")


def _is_on(match: re.Match[str]) -> Found | None:
    """ "the dentist is on friday now": only if it is a day that follows."""
    return _dated(match) if is_dated((match["lead"] or "") + match["value"]) else None


def _undated(match: re.Match[str]) -> Found:
    return match["what"], Fields(due="none")


def _tagged(match: re.Match[str]) -> Found:
    tags = [one.strip(" #'\"").lower() for one in re.split(r"\s*,\s*|\s+and\s+", match["value"])]
    return match["what"], Fields(tags=tuple(one for one in tags if one))


def _noted(match: re.Match[str]) -> Found:
    return match["what"], Fields(notes=match["value"].strip())


def _moved(match: re.Match[str]) -> Found | None:
    """«change X to Y»: a date or a priority where Y is one, else a title."""
    what, value = match["what"], match["value"].strip(" .!")
    if level := re.fullmatch(r"(high|low|medium|urgent)(?: priority)?", value, re.IGNORECASE):
        return what, Fields(priority={"urgent": "high"}.get(level[1].lower(), level[1].lower()))
    rest, due = read_due(f"x {value}")
    if due is not None and rest == "x":
        return what, Fields(due=due)
    return what, Fields(title=value.strip("'\"“”‘’"))


def _open(match: re.Match[str]) -> Found | None:
    """«update X with high priority due friday», or nothing said yet of what to change."""
    what, fields = read_fields(match["what"])
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

_PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Found | None]], ...] = (
    (rf"(?:rename|retitle) {_W} (?:to|as|into) {_V}", _titled),
    (rf"{_SET} the (?:title|name) of {_W} to {_V}", _titled),
    (rf"{_SET} {_W}'s (?:title|name) to {_V}", _titled),
    (rf"{_SET} (?:the )?priority (?:of|for|on) {_W} (?:to|as) {_LEVEL}(?: priority)?", _leveled),
    (rf"{_SET} {_W}'s priority to {_LEVEL}", _leveled),
    (rf"{_SET} {_W} (?:to |as |a |with )*{_LEVELS}(?:[ -]priority)?", _leveled),
    (rf"{_SET} {_W} priority (?:to )?{_LEVEL}", _leveled),
    (rf"{_SET} {_W} (?:to |with )?{_LEVEL} priority", _leveled),
    (rf"prioriti[sz]e {_W}(?P<level>)", _raised),
    (rf"{_OFF} the {_DAY} (?:of|from|for|on) {_W}", _undated),
    (rf"{_SET} (?:the |a )?{_DAY} (?:of|for|on) {_W} (?:to|as|for) {_V}", _dated),
    (rf"{_SET} {_W}'s {_DAY} to {_V}", _dated),
    (rf"(?:add|give|set) (?:a )?(?:due date|deadline)(?: of)? {_V} (?:to|for) {_W}", _dated),
    (rf"snooze {_W} {_BY}", _snoozed),
    (rf"(?:{_MOVE}|{_PUT_OFF}|make) {_W} {_BY} (?:later|back)", _later),
    (rf"(?:{_MOVE}|bring|make) {_W} {_BY} (?:earlier|sooner)", _earlier),
    (rf"(?:push|move|put|shift) {_W} (?:back|out|off) {_BY}", _later),
    (rf"(?:push|move|put|shift) (?:back|out|off) {_W} {_BY}", _later),
    (rf"(?:push|postpone|delay|defer|extend) {_W} {_BY}", _later),
    (rf"(?:bring|pull) {_W} forward {_BY}", _earlier),
    (rf"(?:bring|pull) forward {_W} {_BY}", _earlier),
    (
        rf"(?:move|reschedule) {_W}(?: up| forward| ahead)? (?P<value>{_BY})",
        _dated,
    ),  # earlier or later?
    (rf"(?:put|push) {_W} off {_TO} {_V}", _dated),
    (rf"(?:bring|pull) {_W} forward {_TO} {_V}", _dated),
    (rf"(?:{_MOVE}|{_PUT_OFF})(?: back)? {_W}(?: back| forward| up| out)? {_TO} {_V}", _dated),
    (rf"{_SET} {_W} (?:to be )?due (?:on |by |at )?{_V}", _dated),
    (rf"(?!what|which|show|list|any|add|remind|create){_W} is due (?:on |by |at )?{_V}", _dated),
    (rf"{_NO_TITLE}{_W} is (?:now )?(?P<lead>(?:on|at|by|for) )?{_V}(?: now| instead)", _is_on),
    (rf"{_NO_TITLE}{_W} is (?:now )?(?P<lead>(?:on|at|by) ){_V}", _is_on),
    (rf"{_W} (?:isn't|is not|are not|aren't) due (?:until|till|before) {_V}", _dated),
    (rf"(?:add|put) (?:the )?tags? {_V} (?:to|on) {_W}", _tagged),
    (rf"tag {_W} (?:with|as) {_V}", _tagged),
    (rf"(?:add|put) (?:a )?notes? (?:to|on) {_W}(?::| saying| that) {_V}", _noted),
    (rf"{_SET} the notes? (?:of|for|on) {_W} to {_V}", _noted),
    (rf"(?:change|update|edit|modify|turn) {_W} (?:to|into) {_V}", _moved),
    (r"(?:change|update|edit|modify)(?: |$)(?P<what>.*)", _open),
)


def read_changing(text: str) -> Found | None:
    """Which task, and what it is to have; None where no change is asked for."""
    words = text.rstrip(" .!?")
    for pattern, make in _PATTERNS:
        if match := re.fullmatch(pattern, words, re.IGNORECASE):
            found = make(match)
            if found is not None:
                return found
    return None
