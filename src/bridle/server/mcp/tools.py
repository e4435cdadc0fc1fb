"""The tools that bridle offers as an MCP server: six verbs, each a struct and a few lines.

Who may answer: an agent that answers its own questions has no person above it, so that
`answer_approval` is offered only where the person who started the server has said so.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from bridle.errors import EmptyPrompt, SessionError, UnknownApproval
from bridle.protocols.session import Answer
from bridle.protocols.session_catalog import PendingApproval
from bridle.protocols.store import InboxMessage
from bridle.server.mcp import session_views as views
from bridle.server.mcp.schemas import Caller, Reply, ToolOffer, tool_description
from bridle.server.mcp.session_views import SessionViews
from bridle.server.mcp.tasks import TaskLimits, TaskRequest, Tasks

SessionId = Annotated[str, Meta(max_length=100, description="A session's id.")]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=100)]
Steps = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(gt=0, le=1e12)]
_MOST = 50  # questions in one list

Post = Callable[[str, InboxMessage], None]


class RunTask(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `run_task`."""

    prompt: Annotated[
        str, Meta(max_length=400_000, description="What to do. Empty: continue `session`.")
    ] = ""
    session: Annotated[
        str, Meta(max_length=100, description="A session to continue. Empty: a new one.")
    ] = ""
    mode: Annotated[
        Literal["plan", "ask", "edits"] | None,
        Meta(description="What may run without approval; at most the server's own mode."),
    ] = None
    wait_seconds: Annotated[
        Seconds, Meta(description="How long to wait for an approval; then the task is parked.")
    ] = 0.0
    max_steps: Annotated[Steps | None, Meta(description="Limit of model requests.")] = None
    max_seconds: Annotated[Amount | None, Meta(description="Limit of seconds.")] = None
    max_tokens: Annotated[Steps | None, Meta(description="Limit of tokens.")] = None
    max_cost: Annotated[Amount | None, Meta(description="Limit of dollars.")] = None


class ListSessions(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `list_sessions`."""

    limit: Annotated[Count, Meta(description="How many to list, newest first.")] = 20


class ShowSession(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `show_session`."""

    session: SessionId
    last: Annotated[Count, Meta(description="How many of the last messages.")] = 10


class ListApprovals(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `list_approvals`."""

    session: Annotated[str, Meta(max_length=100, description="Only this session. Empty: all.")] = ""


class AnswerApproval(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `answer_approval`."""

    session: SessionId
    call_id: Annotated[str, Meta(min_length=1, max_length=500)]
    shown: Annotated[
        str, Meta(min_length=1, max_length=500, description="As `list_approvals` shows it.")
    ]
    allowed: bool
    word: Annotated[
        str,
        Meta(
            max_length=20_000, description="A message for the model, or the answer to its question."
        ),
    ] = ""


class Interrupt(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `interrupt`."""

    session: SessionId


class TaskTools:
    """What the tools do. `post` puts a letter into the inbox of a session that is not ours."""

    def __init__(self, tasks: Tasks, seen: SessionViews, post: Post) -> None:
        self._tasks = tasks
        self._views = seen
        self._post = post

    def offers(self, *, answers: bool = False) -> tuple[ToolOffer[Any], ...]:
        """The tools; the one that answers approvals only with the person's leave."""
        found: list[ToolOffer[Any]] = [
            ToolOffer("run_task", tool_description("run_task"), RunTask, self.run_task),
            ToolOffer(
                "list_sessions",
                tool_description("list_sessions"),
                ListSessions,
                self.list_sessions,
                True,
            ),
            ToolOffer(
                "show_session",
                tool_description("show_session"),
                ShowSession,
                self.show_session,
                True,
            ),
            ToolOffer(
                "list_approvals",
                tool_description("list_approvals"),
                ListApprovals,
                self.list_approvals,
                True,
            ),
            ToolOffer("interrupt", tool_description("interrupt"), Interrupt, self.interrupt),
        ]
        if answers:
            name = "answer_approval"
            found.append(
                ToolOffer(name, tool_description(name), AnswerApproval, self.answer_approval)
            )
        return tuple(found)

    async def run_task(self, given: RunTask, caller: Caller) -> Reply:
        """Run a task, or go on with one, and say what came of it."""
        if not (given.prompt.strip() or given.session):
            raise EmptyPrompt("there is nothing to do", hint="Say in `prompt` what is wanted.")
        if given.session:
            await asyncio.to_thread(self._views.own, given.session)
        caps = TaskLimits(given.max_steps, given.max_seconds, given.max_tokens, given.max_cost)
        order = TaskRequest(
            given.prompt.strip(), caller.name, given.session, given.mode, given.wait_seconds, caps
        )
        found = await self._tasks.run(order, caller.tell)
        facts, text = views.outcome_row(found), found.result.text
        failed = found.result.reason not in ("done", "parked")
        said = views.outcome_text(facts)
        return Reply(tuple(filter(None, (text, said))), {"text": text, **facts}, is_error=failed)

    async def list_sessions(self, given: ListSessions, caller: Caller) -> Reply:
        """The newest sessions of the workspace."""
        found = await asyncio.to_thread(self._views.summaries)
        shown = [
            views.session_row(one) | {"running_here": self._tasks.session(one.id) is not None}
            for one in found[: given.limit]
        ]
        return Reply(data={"sessions": shown, "more": max(0, len(found) - given.limit)})

    async def show_session(self, given: ShowSession, caller: Caller) -> Reply:
        """One session and its last messages."""
        return Reply(data=await asyncio.to_thread(self._views.session, given.session, given.last))

    async def list_approvals(self, given: ListApprovals, caller: Caller) -> Reply:
        """The questions that wait for a person."""
        found = await asyncio.to_thread(self._views.questions, given.session)
        shown = [
            views.approval_row(one.session_id, one.asked, expired=one.expired, answered=one.posted)
            for one in found[:_MOST]
        ]
        return Reply(data={"approvals": shown, "more": max(0, len(found) - _MOST)})

    async def answer_approval(self, given: AnswerApproval, caller: Caller) -> Reply:
        """Answer one of them, once: no answer from here makes a rule, or holds for longer."""
        await asyncio.to_thread(self._views.own, given.session)
        one = _chosen(await asyncio.to_thread(self._views.questions, given.session), given)
        self._check(one)
        answer = Answer(given.allowed, word=given.word)
        session = self._tasks.session(given.session)
        if session is not None:
            await session.answer(given.call_id, answer, shown=given.shown, by=caller.name)
            how = "the turn that waited for it goes on"
        else:
            await asyncio.to_thread(self._send, given, caller.name)
            how = "call run_task with this session and no prompt to go on with the turn"
        data = {"session": given.session, "call_id": given.call_id, "allowed": given.allowed}
        return Reply(data={**data, "by": caller.name, "next": how})

    async def interrupt(self, given: Interrupt, caller: Caller) -> Reply:
        """End the turn of a session."""
        await asyncio.to_thread(self._views.own, given.session)
        await self._tasks.interrupt(given.session, caller.name)
        return Reply(data={"session": given.session, "interrupted": True})

    def _check(self, one: PendingApproval) -> None:
        """What may not be answered from here is left to a person. Raise `SessionError`."""
        if not views.is_whole(one.asked):
            raise SessionError(
                "the question is too large to be shown here, and what was not shown is not allowed",
                hint="A person answers it: `bridle approvals list`.",
            )
        if one.asked.call.name == "exit_plan_mode" and self._tasks.widest == "plan":
            raise SessionError(
                "the server was started for plans alone, and only a person leaves that mode",
                hint="A person answers it: `bridle approvals list`.",
            )

    def _send(self, given: AnswerApproval, by: str) -> None:
        letter = InboxMessage(
            secrets.token_hex(12),
            "answer",
            by,
            call_id=given.call_id,
            shown=given.shown,
            allowed=given.allowed,
            word=given.word,
        )
        self._post(given.session, letter)


def _chosen(found: list[PendingApproval], given: AnswerApproval) -> PendingApproval:
    """The question that was shown. Raise `UnknownApproval`."""
    for one in found:
        if one.asked.call.id == given.call_id and one.asked.shown == given.shown:
            if one.expired or one.posted:
                how = "has expired, which counts as a no" if one.expired else "is answered already"
                raise UnknownApproval(f"the question about call {given.call_id} {how}")
            return one
    raise UnknownApproval(
        f"no question about call {given.call_id} stands open as it was shown",
        hint="`list_approvals` shows what is asked now; it may have been answered already.",
    )
