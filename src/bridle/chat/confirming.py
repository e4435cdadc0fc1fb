"""Questions that wait for a person's exact phrase, and what a message says to them.

Code compares the words; no model is asked. A question belongs to one user in one conversation,
is answered once, and expires. Where it is kept is `confirming_kept`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from bridle.chat.profile import Confirm
from bridle.chat.replies import Replies

Said = Literal["phrase", "yes", "no", ""]
_YES = frozenset(
    ("yes", "yep", "yeah", "yup", "y", "sure", "ok", "okay", "confirm", "si", "sí", "vale", "نعم")
) | {
    "أجل",
    "yes please",
    "please do",
    "do it",
    "yes do it",
    "go ahead",
    "yes go ahead",
    "of course",
}
_NO = frozenset(
    ("no", "nope", "cancel", "stop", "never mind", "nevermind", "don't", "do not", "no thanks")
) | {"forget it", "keep it", "no, cancel", "no, don't", "cancelar", "no gracias", "لا", "إلغاء"}
_POINTS = re.compile(r"[.,!;:…،؛\"“”‘’'«»]+")
_AROUND = " \t\n\r.!'\"“”‘’«»`"


@dataclass(frozen=True)
class Asked:
    """A call that was asked for and has to be confirmed first."""

    tool: str
    arguments: dict[str, Any]
    rule: Confirm
    titles: dict[str, str]  # by id, as they are shown


@dataclass(frozen=True)
class Question:
    """What was asked: the calls that the phrase stands for, and until when."""

    phrase: str
    text: str
    calls: tuple[dict[str, Any], ...]
    titles: dict[str, str] = field(default_factory=dict)
    id: str = ""
    answered_by: str = ""
    asked_by: str = ""  # the turn that put it in the place of another: it cannot answer it as well
    expires_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def is_over(self, now: datetime | None = None) -> bool:
        """Is it too late to answer?"""
        return (now or datetime.now(UTC)) >= self.expires_at


def question(asked: list[Asked], replies: Replies, language: str) -> Question:
    """One question for all that was asked for with the same verb; the rest was not asked for."""
    rule = asked[0].rule
    titles: dict[str, str] = {}
    together: list[Asked] = []
    for one in asked:
        if one.rule.verb == rule.verb and not one.titles.keys() & titles.keys():
            together.append(one)
            titles |= one.titles
    count = len(titles)
    bulk = count != 1
    verb = replies.find(language, f"verb_{rule.verb}") or rule.verb
    key = rule.bulk_phrase if bulk else rule.phrase
    phrase = replies.say(language, key, verb=verb, count=count)
    said = {"phrase": phrase, "verb": verb, "count": count, "title": next(iter(titles.values()))}
    text = replies.say(language, rule.bulk_question if bulk else rule.question, **said)
    calls = tuple({"tool": one.tool, "arguments": one.arguments} for one in together)
    return Question(phrase, text, calls, titles)


def what_is_said(message: str, openings: re.Pattern[str]) -> Said:
    """Could this be an answer to a question? Only then is the database asked whether there is one.

    `phrase` begins as phrases do (`openings`); whether it is the right one, `confirms` says.
    """
    words = bare(message)
    if len(words) > 100:
        return ""
    plain = _unpointed(message)
    if words in _NO or plain in _NO:
        return "no"
    if words in _YES or plain in _YES:
        return "yes"
    return "phrase" if openings.match(words) else ""


def confirms(message: str, phrase: str) -> bool:
    """Is it that phrase, word for word? Case and punctuation do not matter; a "?" does."""
    return _unpointed(message) == _unpointed(phrase)


def _unpointed(message: str) -> str:
    return " ".join(_POINTS.sub(" ", bare(message)).split())


def bare(message: str) -> str:
    """A short message as it is compared."""
    return " ".join(message[:400].strip(_AROUND).casefold().split())


def openings(replies: Replies) -> re.Pattern[str]:
    """How phrases begin: «yes», in any language, and then what would be done."""
    heads, tails = set(), set()
    for sentences in replies.languages.values():
        for key, text in sentences.items():
            head, _, tail = bare(text).partition(" ")
            if key.startswith("verb_"):
                tails.add(bare(text))
            elif key.startswith("phrase_"):
                heads.add(head)
                tails.add(tail.partition("{")[0].strip())
    kinds = (heads - {""}, tails - {""})
    first, then = ("|".join(sorted(map(re.escape, each))) for each in kinds)
    return re.compile(rf"(?:{first})[ ,]+(?:{then})\b")


def targets(rule: Confirm, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the things that a call is about, as text."""
    many = arguments.get(rule.targets) if rule.targets else None
    if isinstance(many, list | tuple):
        return tuple(dict.fromkeys(str(one) for one in many))
    one = arguments.get(rule.target)
    return () if one is None else (str(one),)


def only(rule: Confirm, arguments: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """The call, about the things that are there and were shown, and nothing else."""
    if not rule.targets or not isinstance(arguments.get(rule.targets), list | tuple):
        return dict(arguments)
    kept = [one for one in arguments[rule.targets] if str(one) in known]
    return {**arguments, rule.targets: kept}
