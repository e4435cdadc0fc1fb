"""What makes one assistant: its prompt, its sentences, what it asks about first, its responder.

`AgentRunner` is the same for all of them. The task assistant is the profile in `chat/tasks`; your
own is another value of this class. Nothing here performs I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridle.chat.guard import Facts, leaks
from bridle.chat.replies import Replies, standard
from bridle.chat.values import ToolCallRecord
from bridle.protocols.provider import Provider

Records = Sequence[ToolCallRecord]


@dataclass(frozen=True)
class Telling:
    """What a reply is made of: the user's words, the calls that were made, the sentences.

    `said` is the model's own reply: to see what it is about, not to be believed. `titles` are those
    of the things that came up, by id.
    """

    message: str
    records: tuple[ToolCallRecord, ...]
    replies: Replies
    language: str = "en"
    said: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def say(self, key: str, **words: object) -> str:
        """A fixed sentence in the user's language."""
        return self.replies.say(self.language, key, **words)

    @property
    def trouble(self) -> str:
        """Why the last call was not done, in a person's words; empty where it was done."""
        if not self.records or self.records[-1].ok:
            return ""
        said = self.records[-1].trouble
        return self.say("unclear") if not said or leaks(said, Facts()) else said


Tell = Callable[[Telling], str]  # the sentence that the calls come to; empty: the model's own


@dataclass(frozen=True)
class Wanted:
    """A call that the model asks for: what the user said, and what was called before it."""

    message: str
    tool: str
    arguments: Mapping[str, Any]
    records: tuple[ToolCallRecord, ...] = ()


Vet = Callable[[Wanted], Mapping[str, Any] | None]  # a failure in its place; None: it may go on


@dataclass(frozen=True)
class Confirm:
    """A tool that runs only once the person has confirmed it, in words that code compares.

    `question` and `phrase` are keys of the sentences for one thing, `bulk_phrase` for many. The
    things are named by the argument `target` (one) or `targets` (a list, which makes it bulk);
    `lookup` is the tool, called with `looking`, whose answer has their titles, should the turn not
    have come across them yet.
    """

    verb: str = "delete"
    target: str = "id"
    targets: str = ""
    lookup: str = ""
    looking: Mapping[str, Any] = field(default_factory=dict)
    question: str = "confirm_delete"
    phrase: str = "phrase_delete"
    bulk_question: str = "confirm_bulk"
    bulk_phrase: str = "phrase_bulk"


Asks = Callable[[Wanted], Confirm | None]  # whether this call has to be confirmed, too


def _nothing(telling: Telling) -> str:
    return ""


def _fine(wanted: Wanted) -> None:
    return None


@dataclass(frozen=True)
class Profile:
    """One assistant.

    `tell` makes the sentence that the calls of a turn come to; where it gives one, that is the
    reply, whatever the model said. `otherwise` is asked for one when what the model said cannot be
    shown. `vet` may refuse a call, such as one that the user's words do not bear out. `confirm`
    names the tools that need the person's word, `asks` says it of calls that need it for once,
    such as one of many of the same kind.
    `responder` makes the provider that is used when there is no key. `jargon` are words that a
    reply never holds, beside the usual ones. `titles` are the fields of results whose text is the
    user's own, so that it is no jargon whatever it says. `nouns` are what its things are called, in
    the singular: a number after one of them, as in `task 7`, is an id that a reply does not say.

    The page shows `title` (the name, if there is none), `logo` (the path of an SVG or PNG file; the
    first letter of the title, if there is none) and, in an empty conversation, `opening`, a
    question or a greeting, `about`, a sentence on what the assistant can do, and `suggestions`,
    messages that one click sends.
    """

    name: str
    system_prompt: str
    replies: Replies = field(default_factory=standard)
    tell: Tell = _nothing
    otherwise: Tell = _nothing
    vet: Vet = _fine
    confirm: Mapping[str, Confirm] = field(default_factory=dict)
    asks: Asks = _fine
    responder: Callable[[], Provider] | None = None
    jargon: tuple[str, ...] = ()
    titles: tuple[str, ...] = ("title", "name")
    nouns: tuple[str, ...] = ()
    longest: int = 500
    title: str = ""
    logo: str | Path | None = None
    opening: str = ""
    about: str = ""
    suggestions: tuple[str, ...] = ()
