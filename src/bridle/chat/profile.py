"""What makes an assistant: its prompt, its sentences, what must be confirmed, its offline rules.

`AgentRunner` is the same for all assistants. The task assistant is the profile in `chat/tasks`;
your own is another value of this class. Nothing here performs I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridle.chat.i18n import Replies, standard_replies
from bridle.chat.reply_filter import FilterFacts, find_leaks
from bridle.chat.values import ToolCallRecord
from bridle.protocols.provider import Provider

Records = Sequence[ToolCallRecord]


@dataclass(frozen=True)
class ReplyContext:
    """What a reply is made from: the user's message, the calls that were made, the sentences.

    `model_text` is the model's own reply, which must not be trusted. `titles` are the titles of the
    things in the results, by id.
    """

    message: str
    records: tuple[ToolCallRecord, ...]
    replies: Replies
    language: str = "en"
    model_text: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    def say(self, key: str, **words: object) -> str:
        """Return a fixed sentence in the user's language."""
        return self.replies.say(self.language, key, **words)

    @property
    def error_message(self) -> str:
        """Why the last call failed, in a sentence for the person; empty if it succeeded."""
        if not self.records or self.records[-1].ok:
            return ""
        said = self.records[-1].error_message
        return self.say("unclear") if not said or find_leaks(said, FilterFacts()) else said


ReplyText = Callable[
    [ReplyContext], str
]  # the sentence that the calls come to; empty: the model's own


@dataclass(frozen=True)
class ProposedCall:
    """A call that the model asks for, with the user's message and the calls before it."""

    message: str
    tool: str
    arguments: Mapping[str, Any]
    records: tuple[ToolCallRecord, ...] = ()


# the error to return in place of running the call; None: it may run
CallCheck = Callable[[ProposedCall], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Confirm:
    """How a tool call must be confirmed, in words that code compares.

    `question` and `phrase` are keys of the sentences for one thing, `bulk_question` and
    `bulk_phrase` of those for many. The call's argument `target` (one id) or `targets` (a list,
    which makes it a bulk change) names the things. `lookup` is a tool whose answer has their
    titles; it is called with `lookup_arguments` if the titles are not known yet.
    """

    verb: str = "delete"
    target: str = "id"
    targets: str = ""
    lookup: str = ""
    lookup_arguments: Mapping[str, Any] = field(default_factory=dict)
    question: str = "confirm_delete"
    phrase: str = "phrase_delete"
    bulk_question: str = "confirm_bulk"
    bulk_phrase: str = "phrase_bulk"


def _no_text(context: ReplyContext) -> str:
    return ""


def _no_objection(call: ProposedCall) -> None:
    return None


@dataclass(frozen=True)
class Profile:
    """One assistant.

    `reply_text` makes the reply from the results of a turn's calls. If it returns a text, that is
    the reply, whatever the model wrote. `fallback_text` makes one if the model's own text cannot be
    shown. `check_call` may refuse a call of a model. `confirm` names the tools that need the
    person's confirmation, and `confirm_many` those that need it from a model once it calls them for
    `many` things in a turn. `responder` makes the provider that answers if there is no API key.
    `jargon` are words that a reply never contains, in addition to the usual ones. `titles` are the
    fields of results that hold the user's own text, which is never jargon. `nouns` are what its
    things are called, in the singular: a number after one of them, as in `task 7`, is an id, and
    ids are not shown.

    The page shows `title` (default: the name), `logo` (the path of an SVG or PNG file; default: the
    first letter of the title) and, in an empty conversation, `opening` (a question or a greeting),
    `about` (a sentence on what the assistant can do) and `suggestions` (messages that one click
    sends).
    """

    name: str
    system_prompt: str
    replies: Replies = field(default_factory=standard_replies)
    reply_text: ReplyText = _no_text
    fallback_text: ReplyText = _no_text
    check_call: CallCheck = _no_objection
    confirm: Mapping[str, Confirm] = field(default_factory=dict)
    confirm_many: Mapping[str, Confirm] = field(default_factory=dict)
    many: int = 3
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
