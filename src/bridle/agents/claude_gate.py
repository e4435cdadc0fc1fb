"""Claude Code's hooks, on our reins: each of its calls is asked about before, and told of after.

PreToolUse comes before every call, also those that only read and those of its helpers; where the
gate says no, or cannot be asked, the call does not run. The SDK's own callback is the second look
of the program, which follows what the gate has said. The questions that the program would put to a
person (a plan, a choice) go through our own tools.
"""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from bridle.agents.claude_refusals import refusal
from bridle.agents.claude_results import result_of
from bridle.agents.claude_search import answer_of, harmless, is_for_ours
from bridle.agents.claude_talk import Answered, Talk
from bridle.agents.claude_tools import Roots, questions, to_ours, to_path, to_theirs
from bridle.errors import AgentError
from bridle.events import ResponseCompleted, TraceEvent
from bridle.messages import Message, ToolCall
from bridle.promises.agent import OnToolActivity, Permission, ToolActivity
from bridle.workspace.text import one_line, shorten

_SEEN = 2.0  # seconds for the words before a call to arrive: they come another way
_NOBODY = "not run: nobody is here who could be asked"
_STOPPED = "It was stopped while it ran: it may have run in part."
_NO_PLAN = "No plan was written down. What was said last is the plan."
_SAID = "The person allowed it, and said: {}"
_WRITES = ("Write", "Edit", "MultiEdit")
_MOST_PLAN = 50_000  # characters that our own tool takes
_SHOWN = 200  # characters of what a tool is doing

Json = dict[str, Any]


class Hooks:
    """The hooks of one run. `folder` is where the program keeps its own files."""

    def __init__(
        self,
        session: Any,
        can_use_tool: Callable[..., Any] | None,
        on_tool_activity: OnToolActivity | None,
        talk: Talk,
        roots: Roots,
        folder: str,
    ) -> None:
        self._session = session
        self._ask = can_use_tool
        self._tell = on_tool_activity
        self._talk = talk
        self._roots = roots
        self._folder = folder
        self._news = asyncio.Condition()
        self._running: dict[str, str] = {}  # allowed, and not answered: their own names
        self._allowed: set[str] = set()
        self._seen: set[str] = set()  # calls that came to a hook
        self.is_stopped = False
        self._found: dict[str, Json] = {}  # what our own tool has answered in the program's place
        self.used: dict[str, None] = {}  # the tools, in the order of their first use

    def registered(self, sdk: Any, seconds: float) -> Json:
        """For the SDK's options. A hook that fails is a no."""

        def matcher(hook: Callable[..., Awaitable[Json]]) -> list[Any]:
            return [sdk.HookMatcher(hooks=[hook], timeout=seconds, on_failure="block")]

        return {
            "PreToolUse": matcher(self.before),
            "PostToolUse": matcher(self.after),
            "PostToolUseFailure": matcher(self.failed),
        }

    async def heard(self) -> None:
        """The talk has gone on."""
        async with self._news:
            self._news.notify_all()

    async def before(self, given: Json, _id: str | None, _context: Any) -> Json:
        """May this call run?"""
        name, theirs, call_id = given["tool_name"], given["tool_input"], given["tool_use_id"]
        self._seen.add(call_id)
        if not given.get("agent_id"):
            await self._words_before(call_id)
        attach(self._session, str(given.get("session_id") or ""))
        if self._ask is None:
            return {}  # the program's own rules are all there is
        if reason := refusal(name, theirs, given.get("cwd"), self._roots):
            self._emit(TraceEvent("claude_refused", {"tool": name, "reason": reason}))
            return _no(reason)
        if self._is_its_own(name, theirs, given):
            self._emit(TraceEvent("claude_own_file", {"tool": name, **_path_of(theirs)}))
            return self._yes(call_id)
        answer = await self._judged(name, theirs, call_id)
        if call_id in self._allowed:
            self.used[name] = None
        return answer

    async def permitted(self, name: str, given: Json, context: Any) -> Permission:
        """The program asks again: what the gate allowed stays allowed, the rest is refused."""
        return Permission(context.tool_use_id in self._allowed, _NOBODY)

    async def after(self, given: Json, _id: str | None, _context: Any) -> Json:
        """A call has worked."""
        call_id, name = given["tool_use_id"], given["tool_name"]
        if (answer := self._found.pop(call_id, None)) is not None:
            return {"hookSpecificOutput": {"hookEventName": "PostToolUse", **answer}}
        came = result_of(name, given.get("tool_response"), self._roots)
        return _told("PostToolUse", await self._finish(call_id, came.text, data=came.data))

    async def failed(self, given: Json, _id: str | None, _context: Any) -> Json:
        """A call has not."""
        text = _STOPPED if given.get("is_interrupt") else str(given.get("error") or "it failed")
        return _told("PostToolUseFailure", await self._finish(given["tool_use_id"], text, ok=False))

    async def answered(self, found: Answered) -> None:
        """The model reads a result of which no hook has told."""
        if found.call_id in self._running and self.is_stopped and not found.ok:
            found = found._replace(text=_STOPPED)  # in the program's words a person said no
        elif found.call_id in self._talk.called and found.call_id not in self._seen:
            await self._confess(self._talk.called[found.call_id], found)
        await self._finish(found.call_id, found.text, ok=found.ok)

    async def _confess(self, call: ToolCall, found: Answered) -> None:
        """A call that the program itself refused, before any hook: it is in the log as that."""
        self._seen.add(call.id)
        if hasattr(self._session, "emit") and hasattr(self._session, "finish"):
            reply = ResponseCompleted("tool_use", Message("assistant", (call,)))
            self._session.emit(reply)
            await self._session.finish(call.id, found.text, ok=found.ok)

    async def _words_before(self, call_id: str) -> None:
        """What the model said before a call stands before it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SEEN), self._news:
                await self._news.wait_for(lambda: call_id in self._talk.called)

    async def _judged(self, name: str, theirs: Json, call_id: str) -> Json:
        try:
            if name == "ExitPlanMode":
                return await self._plan(theirs, call_id)
            if name == "AskUserQuestion":
                return await self._question(theirs, call_id)
            if name == "TodoWrite" and hasattr(self._session, "call"):
                return await self._todos(theirs, call_id)
            return await self._gated(name, theirs, call_id)
        except AgentError as error:
            return _no(error.message)

    async def _gated(self, name: str, theirs: Json, call_id: str) -> Json:
        ours = to_ours(name, theirs, self._roots)
        if ours.rest:
            detail = {"callId": call_id, "tool": name, "arguments": ours.rest}
            self._emit(TraceEvent("agent_arguments", detail))
        if is_for_ours(name, ours) and hasattr(self._session, "call"):
            return await self._sought(name, theirs, call_id)
        found = await self._permission(ours.name, ours.arguments, call_id)
        if not found:
            return _no(found.message, stops=found.stops)
        self._running[call_id] = name
        await self._show(ours.name, ours.arguments)
        answer = self._yes(call_id)
        if found.updated_input is not None:
            changed = to_theirs(name, theirs, found.updated_input, self._roots)
            answer["hookSpecificOutput"]["updatedInput"] = changed
        if found.word:
            answer["hookSpecificOutput"]["additionalContext"] = _SAID.format(found.word)
        return answer

    async def _sought(self, name: str, theirs: Json, call_id: str) -> Json:
        """A search is made by our own tool, which leaves out what is protected."""
        ours = to_ours(name, theirs, self._roots)
        output = await self._session.call(ours.name, ours.arguments, call_id)
        if output.is_error:
            return _no(output.text)
        self._found[call_id] = {"updatedToolOutput": answer_of(name, theirs, output.text)}
        answer = self._yes(call_id)
        answer["hookSpecificOutput"]["updatedInput"] = harmless(name, theirs)
        return answer

    async def _permission(self, name: str, arguments: Json, call_id: str) -> Permission:
        assert self._ask is not None
        found = self._ask(name, arguments, call_id)
        return to_permission(await found if inspect.isawaitable(found) else found)

    async def _person(self, name: str, arguments: Json, call_id: str) -> tuple[bool, str, str]:
        """A question through our own tool: yes or no, what the model is told, what was said."""
        if not hasattr(self._session, "call"):
            found = await self._permission(name, arguments, call_id)
            return found.allowed, found.word or found.message, found.word
        output = await self._session.call(name, arguments, call_id)
        data = output.data if isinstance(output.data, dict) else {}
        return not output.is_error, output.text, str(data.get("answer") or "")

    async def _plan(self, theirs: Json, call_id: str) -> Json:
        plan = theirs.get("plan") or self._talk.plans.get(call_id) or _NO_PLAN
        shown = {"plan": shorten(str(plan), _MOST_PLAN)}
        agreed, text, _ = await self._person("exit_plan_mode", shown, call_id)
        if not agreed:
            return _no(text)
        answer = self._yes(call_id)
        answer["hookSpecificOutput"]["additionalContext"] = text
        return answer

    async def _question(self, theirs: Json, call_id: str) -> Json:
        answers = {}
        for number, (question, call) in enumerate(questions(theirs)):
            its_id = call_id if number == 0 else f"{call_id}-{number + 1}"
            agreed, text, word = await self._person("ask_user", call, its_id)
            if not agreed:
                return _no(text)
            answers[question] = word or text
        answer = self._yes(call_id)
        answer["hookSpecificOutput"]["updatedInput"] = {**theirs, "answers": answers}
        return answer

    async def _todos(self, theirs: Json, call_id: str) -> Json:
        ours = to_ours("TodoWrite", theirs, self._roots)
        output = await self._session.call(ours.name, ours.arguments, call_id)
        return _no(output.text) if output.is_error else self._yes(call_id)

    def _yes(self, call_id: str) -> Json:
        self._allowed.add(call_id)
        found = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        return {"hookSpecificOutput": found}

    async def _finish(self, call_id: str, text: str, *, ok: bool = True, data: Any = None) -> str:
        """Say what came of it: what the model is to read beside that."""
        if self._running.pop(call_id, None) is None:
            return ""  # told already, refused, or answered by our own tool
        added = ""
        if (finish := getattr(self._session, "finish", None)) is not None:
            added = await finish(call_id, text, ok=ok, data=data)
        if not self._running:
            await self._show("", {})
        return added or ""

    async def _show(self, name: str, arguments: Json) -> None:
        if self._tell is not None:
            words = next((str(value) for value in arguments.values()), "")
            shown = ToolActivity(name, one_line(words, _SHOWN)) if name else None
            await self._tell(shown)

    def _emit(self, event: TraceEvent) -> None:
        if (emit := getattr(self._session, "emit", None)) is not None:
            emit(event)

    def _is_its_own(self, name: str, theirs: Json, given: Json) -> bool:
        """Its plan, which it writes into its own folder, and long results that it put away there.

        Judged by where the path really leads.
        """
        path = theirs.get("file_path")
        if not isinstance(path, str) or not path.startswith("/"):
            return False
        real = os.path.realpath(path)
        if to_path(real, self._roots) != real:
            return False  # a workspace that holds the program's folder is still the workspace
        parent, plans = os.path.split(real)[0], os.path.realpath(f"{self._folder}/plans")
        if parent == plans and real.endswith(".md"):
            return name in ("Read", *_WRITES) and given.get("permission_mode") == "plan"
        kept = os.path.realpath(str(given.get("transcript_path") or "/").removesuffix(".jsonl"))
        return name == "Read" and real.startswith(f"{kept}/tool-results/")


def attach(session: Any, conversation: str) -> None:
    """Have the program's conversation remembered as soon as it is known."""
    if conversation and session.claude_session_id != conversation:
        session.claude_session_id = conversation


def to_permission(found: Any) -> Permission:
    """What a callback said: ours, the SDK's, or plainly yes or no."""
    if isinstance(found, Permission):
        return found
    behavior = getattr(found, "behavior", None)
    allowed = behavior == "allow" if behavior is not None else found is True
    changed = getattr(found, "updated_input", None)
    return Permission(allowed, str(getattr(found, "message", "") or "refused"), changed)


def _path_of(theirs: Json) -> Json:
    return {"path": theirs.get("file_path", "")}


def _told(moment: str, words: str) -> Json:
    """A hook's word for the model, where there is one."""
    if not words.strip():
        return {}
    return {"hookSpecificOutput": {"hookEventName": moment, "additionalContext": words.strip()}}


def _no(reason: str, *, stops: bool = False) -> Json:
    found = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason or "refused",
    }
    ends = {"continue_": False, "stopReason": reason} if stops else {}
    return {"hookSpecificOutput": found, **ends}
