"""The gate's questions at an editor: put once what is asked is shown, withdrawn when it is settled.

The first answer wins, wherever it is given: one that came from elsewhere takes the question back
here, and one that comes too late changes nothing. What is not a clear yes is a no.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from acp import RequestError, schema
from pydantic import ValidationError

from bridle.agents.acp.updates import to_wire
from bridle.engine.engine import Engine
from bridle.engine.session import Session
from bridle.errors import AgentError
from bridle.events import ApprovalAnswered, ApprovalAsked, ChildStarted, ToolResultEvent
from bridle.messages import ToolOutput
from bridle.presentation.approvals import (
    LEAVE_UNANSWERED,
    NETWORK_NOTE,
    approval_choices,
    plan_choices,
)
from bridle.presentation.approvals import (
    options_of as answers_of,
)
from bridle.protocols.session import NO, YES, Answer
from bridle.server.acp.jsonrpc import Peer
from bridle.server.acp.updates import fenced, text_block
from bridle.workspace.text import neutral, one_line

log = logging.getLogger(__name__)

ONCE, SESSION, RULE, REJECT = "allow_once", "allow_session", "allow_rule", "reject_once"
_ANSWER = "answer_"
_OPTIONS: dict[str, tuple[str, schema.PermissionOptionKind]] = {  # by the key in a terminal
    "y": (ONCE, "allow_once"),
    "s": (SESSION, "allow_always"),
    "r": (RULE, "allow_always"),
    "n": (REJECT, "reject_once"),
}
_LABEL = 160  # characters on a button
_UNASKED = Answer(False, word="the editor could not ask the person")

Show = Callable[[ApprovalAsked], Awaitable[schema.ToolCallUpdate]]


def permission_options(asked: ApprovalAsked) -> list[schema.PermissionOption]:
    """Return what a person can answer."""
    if asked.call.name == "ask_user" and (answers := answers_of(asked)):
        skip = _option(REJECT, "reject_once", LEAVE_UNANSWERED)
        options = [_option(f"{_ANSWER}{n}", "allow_once", text) for n, text in enumerate(answers)]
        return [*options, skip]
    is_plan = asked.call.name == "exit_plan_mode"
    choices = plan_choices() if is_plan else approval_choices(asked)
    labels = {choice.key: choice.label for choice in choices}
    if "r" in labels:  # an editor shows no preview, so the button names the rule
        labels["r"] = f"Always {asked.proposal}"
    return [_option(*_OPTIONS[key], label) for key, label in labels.items() if key in _OPTIONS]


def _option(
    option_id: str, kind: schema.PermissionOptionKind, label: str
) -> schema.PermissionOption:
    return schema.PermissionOption(option_id=option_id, name=one_line(label, _LABEL), kind=kind)


def parse_answer(response: Any, asked: ApprovalAsked) -> Answer:
    """What the person at the editor said; anything that is not a clear yes is a no."""
    try:
        outcome = schema.RequestPermissionResponse.model_validate(response).outcome
    except ValidationError:
        return NO
    if not isinstance(outcome, schema.AllowedOutcome):
        return NO
    if outcome.option_id not in {one.option_id for one in permission_options(asked)}:
        return NO  # it was not offered
    if outcome.option_id.startswith(_ANSWER):
        words = answers_of(asked)
        return Answer(True, word=words[int(outcome.option_id.removeprefix(_ANSWER))])
    return {ONCE: YES, SESSION: Answer(True, "session"), RULE: Answer(True, "rule")}.get(
        outcome.option_id, NO
    )


def permission_request(
    asked: ApprovalAsked, session_id: str, call: schema.ToolCallUpdate
) -> schema.RequestPermissionRequest:
    """The question, with all of what is asked about, and why it is asked."""
    content = [*(call.content or []), *_why(asked, whole=bool(call.content))]
    return schema.RequestPermissionRequest(
        session_id=session_id,
        tool_call=call.model_copy(update={"content": content or None}),
        options=permission_options(asked),
        field_meta={"bridle": {"shown": asked.shown, "expires": asked.expires}},
    )


def _why(asked: ApprovalAsked, *, whole: bool) -> list[schema.ContentToolCallContent]:
    said = [] if whole else [fenced(json.dumps(asked.call.arguments, indent=1, default=str))]
    said += [neutral(asked.reason)] if asked.reason else []
    said += [NETWORK_NOTE] if asked.network else []
    return [schema.ContentToolCallContent(type="content", content=text_block(one)) for one in said]


class PermissionRequests:
    """The questions that stand at one editor, for one session and its children."""

    def __init__(self, peer: Peer, session_id: str, by: str, show: Show) -> None:
        self._peer = peer
        self._session_id = session_id
        self._by = by
        self._show = show
        self._asking: dict[str, asyncio.Task[None]] = {}  # by what was shown
        self._tasks: set[asyncio.Task[None]] = set()  # those, and those that are being answered

    def put(self, session: Session, asked: ApprovalAsked) -> None:
        """Ask it, unless it stands already."""
        if asked.shown in self._asking or asked.shown not in session.history.pending:
            return
        task = asyncio.create_task(self._ask(session, asked))
        self._asking[asked.shown] = task
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(asked.shown, done))

    def withdraw(self, shown: str) -> None:
        """It is settled; who settled it here hears nothing of that."""
        if (task := self._asking.get(shown)) is not None:
            task.cancel()

    async def close(self) -> None:
        """Take all of them back."""
        for task in self._asking.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _ask(self, session: Session, asked: ApprovalAsked) -> None:
        question = permission_request(asked, self._session_id, await self._show(asked))
        try:
            response = await self._peer.request("session/request_permission", to_wire(question))
            answer = parse_answer(response, asked)
        except RequestError as error:
            log.warning("the editor could not ask: %s", error)
            answer = _UNASKED
        self._asking.pop(asked.shown, None)  # what is recorded now is our own doing
        try:
            await session.answer(asked.call.id, answer, shown=asked.shown, by=self._by)
        except AgentError as error:  # somebody was first, or the turn is over
            log.info("an answer came too late: %s", error.message)

    def _over(self, shown: str, done: "asyncio.Task[None]") -> None:
        self._asking.pop(shown, None)
        self._tasks.discard(done)
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("a question could not be put", exc_info=error)


Tell = Callable[[ToolOutput], Awaitable[None]]


class ChildApprovals:
    """The children that run now, and theirs."""

    def __init__(self, engine: Engine, questions: PermissionRequests, tell: Tell) -> None:
        self._engine = engine
        self._questions = questions
        self._tell = tell
        self._watching: dict[str, asyncio.Task[None]] = {}

    def watch(self, session_id: str) -> None:
        """Look at that child until it is over."""
        session = self._engine.get_open(session_id)
        if session is not None and session_id not in self._watching:
            self._watching[session_id] = asyncio.create_task(self._watch(session))

    async def leave(self, session_id: str) -> None:
        """It is over."""
        if (task := self._watching.pop(session_id, None)) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        """Look no longer."""
        for session_id in list(self._watching):
            await self.leave(session_id)

    async def _watch(self, session: Session) -> None:
        asked_about = set()
        async with aclosing(session.subscribe(0)) as records:
            async for record in records:
                match record.event:
                    case ApprovalAsked() as asked:
                        asked_about.add(asked.call.id)
                        self._questions.put(session, asked)
                    case ToolResultEvent(output=output) if output.call_id in asked_about:
                        await self._tell(output)
                    case ApprovalAnswered(shown=shown):
                        self._questions.withdraw(shown)
                    case ChildStarted(session_id=child):
                        self.watch(child)
