"""Questions that wait for a person's exact phrase.

Code compares the words; no model is asked. A question belongs to one user in one conversation, is
answered once, and expires. It is stored in the database, so that any process can handle the answer.
Every query names the user, even if the session is already scoped to that user: a custom session
factory may not be.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlmodel import Session, select

from bridle.chat.db.engine import READ_ONLY
from bridle.chat.db.session import owned_session
from bridle.chat.db.tables import PendingConfirmation
from bridle.chat.i18n import Replies
from bridle.chat.profile import Confirm

AnswerKind = Literal["phrase", "yes", "no", ""]
_YES = frozenset(
    (
        *("yes", "yep", "yeah", "yup", "y", "sure", "ok", "okay", "confirm", "si", "sí", "vale"),
        *("نعم", "أجل", "yes please", "please do", "do it", "yes do it", "go ahead"),
        *("yes go ahead", "of course"),
    )
)
_NO = frozenset(
    (
        *("no", "nope", "cancel", "stop", "never mind", "nevermind", "don't", "do not"),
        *("no thanks", "forget it", "keep it", "no, cancel", "no, don't", "cancelar"),
        *("no gracias", "لا", "إلغاء", "cancel that", "cancel it", "stop that", "forget that"),
        *("leave it", "don't do it", "do not do it", "don't do that", "never mind that"),
        *("no cancel that", "no leave it"),
    )
)
_POINTS = re.compile(r"[.,!;:…،؛\"“”‘’'«»]+")
_AROUND = " \t\n\r.!'\"“”‘’«»`"


@dataclass(frozen=True)
class PendingCall:
    """A call that must be confirmed first."""

    tool: str
    arguments: dict[str, Any]
    rule: Confirm
    titles: dict[str, str]  # by id, as they are shown


@dataclass(frozen=True)
class Question:
    """A pending question: its phrase, the calls that the phrase runs, and until when."""

    phrase: str
    text: str
    calls: tuple[dict[str, Any], ...]
    titles: dict[str, str] = field(default_factory=dict)
    id: str = ""
    answered_by: str = ""
    asked_by: str = ""  # the turn that put it in the place of another: it cannot answer it as well
    expires_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def is_over(self, now: datetime | None = None) -> bool:
        """Has the question expired?"""
        return (now or datetime.now(UTC)) >= self.expires_at


def build_question(asked: list[PendingCall], replies: Replies, language: str) -> Question:
    """Build one question for all calls with the verb of the first; drop the others."""
    rule = asked[0].rule
    titles: dict[str, str] = {}
    together: list[PendingCall] = []
    for call in asked:
        if call.rule.verb == rule.verb and not call.titles.keys() & titles.keys():
            together.append(call)
            titles |= call.titles
    count = len(titles)
    bulk = count != 1
    verb = replies.find(language, f"verb_{rule.verb}") or rule.verb
    key = rule.bulk_phrase if bulk else rule.phrase
    phrase = replies.say(language, key, verb=verb, count=count)
    said = {"phrase": phrase, "verb": verb, "count": count, "title": next(iter(titles.values()))}
    text = replies.say(language, rule.bulk_question if bulk else rule.question, **said)
    calls = tuple({"tool": one.tool, "arguments": one.arguments} for one in together)
    return Question(phrase, text, calls, titles)


def classify_answer(message: str, openings: re.Pattern[str]) -> AnswerKind:
    """Tell whether a message could answer a question. Only then is the database queried.

    A `phrase` begins as phrases do (`openings`); `is_phrase` tells whether it is the right one.
    """
    words = normalize_answer(message)
    if len(words) > 100:
        return ""
    plain = _without_punctuation(message)
    if words in _NO or plain in _NO:
        return "no"
    if words in _YES or plain in _YES:
        return "yes"
    return "phrase" if openings.match(words) else ""


def is_phrase(message: str, phrase: str) -> bool:
    """Is it that phrase, word for word? Ignore case and punctuation, except a "?"."""
    return _without_punctuation(message) == _without_punctuation(phrase)


def _without_punctuation(message: str) -> str:
    return " ".join(_POINTS.sub(" ", normalize_answer(message)).split())


def normalize_answer(message: str) -> str:
    """Return a short message in the form in which it is compared."""
    return " ".join(message[:400].strip(_AROUND).casefold().split())


def phrase_openings(replies: Replies) -> re.Pattern[str]:
    """Return a pattern for the beginnings of phrases: "yes" and the verb, in any language."""
    heads, tails = set(), set()
    for sentences in replies.languages.values():
        for key, text in sentences.items():
            head, _, tail = normalize_answer(text).partition(" ")
            if key.startswith("verb_"):
                tails.add(normalize_answer(text))
            elif key.startswith("phrase_"):
                heads.add(head)
                tails.add(tail.partition("{")[0].strip())
    kinds = (heads - {""}, tails - {""})
    first, then = ("|".join(sorted(map(re.escape, each))) for each in kinds)
    return re.compile(rf"(?:{first})[ ,]+(?:{then})\b")


def target_ids(rule: Confirm, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the things that a call is about, as text."""
    many = arguments.get(rule.targets) if rule.targets else None
    if isinstance(many, list | tuple):
        return tuple(dict.fromkeys(str(one) for one in many))
    one = arguments.get(rule.target)
    return () if one is None else (str(one),)


def restrict_call(rule: Confirm, arguments: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Return the arguments, restricted to the things that exist and were shown."""
    if not rule.targets or not isinstance(arguments.get(rule.targets), list | tuple):
        return dict(arguments)
    kept = [one for one in arguments[rule.targets] if str(one) in known]
    return {**arguments, rule.targets: kept}


class Confirmations:
    """The questions that wait, in the database. A method is one short transaction in a thread."""

    def __init__(self, session_factory: Callable[[], Any], seconds: float) -> None:
        self._session_factory = session_factory
        self._seconds = seconds

    async def find(self, user_id: str, conversation_id: str) -> Question | None:
        """Return the question that waits in this conversation of this user."""

        def read() -> Question | None:
            with self._open(user_id) as session:
                session.connection(execution_options={READ_ONLY: True})  # blocks no writer
                row = _row_of_conversation(session, user_id, conversation_id)
                return None if row is None else _to_question(row)

        return await asyncio.to_thread(read)

    async def ask(self, user_id: str, conversation_id: str, question: Question) -> None:
        """Store a question. It replaces the one that waits in this conversation."""

        def replace_row() -> None:
            now = datetime.now(UTC)
            with self._open(user_id) as session:
                row = _row_of_conversation(session, user_id, conversation_id)
                if row is not None:
                    session.delete(row)
                    session.flush()
                payload: dict[str, Any] = {"text": question.text, "calls": list(question.calls)}
                payload |= {"titles": question.titles, "turn": "", "asked_by": question.asked_by}
                row = PendingConfirmation(
                    user_id=user_id,
                    conversation_id=conversation_id,
                    action=str(question.calls[0]["tool"]),
                    phrase=question.phrase,
                    payload=payload,
                    created_at=now,
                    expires_at=now + timedelta(seconds=self._seconds),
                )
                session.add(row)
                session.commit()

        await asyncio.to_thread(replace_row)

    async def take(self, user_id: str, question: Question, turn: str) -> bool:
        """Mark it as answered by this turn. Return whether no other turn had answered it before."""

        def mark() -> bool:
            with self._open(user_id) as session:
                row = _row(session, user_id, question.id, lock=True)
                if row is None or row.payload.get("turn") not in ("", turn):
                    return False
                row.payload = {**row.payload, "turn": turn}
                session.add(row)
                session.commit()
                return True

        return await asyncio.to_thread(mark)

    async def release(self, user_id: str, question: Question) -> None:
        """Let it wait again: it was answered, but its calls could not be run."""

        def unmark() -> None:
            with self._open(user_id) as session:
                row = _row(session, user_id, question.id, lock=True)
                if row is not None:
                    row.payload = {**row.payload, "turn": ""}
                    session.add(row)
                    session.commit()

        await asyncio.to_thread(unmark)

    async def drop(self, user_id: str, question: Question) -> None:
        """Delete it: nobody can answer it any more."""

        def delete_row() -> None:
            with self._open(user_id) as session:
                row = _row(session, user_id, question.id)
                if row is not None:
                    session.delete(row)
                    session.commit()

        await asyncio.to_thread(delete_row)

    def _open(self, user_id: str) -> Session:
        return owned_session(self._session_factory(), user_id)


def _row_of_conversation(
    session: Session, user_id: str, conversation_id: str
) -> PendingConfirmation | None:
    here = (
        PendingConfirmation.user_id == user_id,
        PendingConfirmation.conversation_id == conversation_id,
    )
    return session.exec(select(PendingConfirmation).where(*here)).first()


def _row(
    session: Session, user_id: str, question_id: str, *, lock: bool = False
) -> PendingConfirmation | None:
    here = PendingConfirmation.id == question_id, PendingConfirmation.user_id == user_id
    statement = select(PendingConfirmation).where(*here)
    return session.exec(statement.with_for_update() if lock else statement).first()


def _to_question(row: PendingConfirmation) -> Question:
    payload = row.payload
    return Question(
        phrase=row.phrase,
        text=str(payload.get("text", "")),
        calls=tuple(payload.get("calls", ())),
        titles=dict(payload.get("titles", {})),
        id=row.id,
        answered_by=str(payload.get("turn", "")),
        asked_by=str(payload.get("asked_by", "")),
        expires_at=row.expires_at,
    )
