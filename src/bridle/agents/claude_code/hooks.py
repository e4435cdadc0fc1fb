"""Claude Code's hooks: ask the gate before each of its calls, and report the result after it.

PreToolUse comes before every call, also those that only read and those of the program's own
subagents; if the gate says no, or cannot be asked, the call does not run. The SDK's own callback
comes after that, and follows what the gate has said. What the program would ask a person (to
approve a plan, to choose) goes through our own tools. Searches are made by our own tools, too, so
that protected files are left out.
"""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from bridle.agents.claude_code.messages import MessageReader, Result
from bridle.agents.claude_code.tool_mapping import (
    Roots,
    empty_search,
    is_own_search,
    map_questions,
    path_arguments,
    search_answer,
    to_claude,
    to_ours,
    to_path,
    tool_response,
)
from bridle.errors import AgentError
from bridle.events import ResponseCompleted, TraceEvent
from bridle.messages import Message, ToolCall
from bridle.protocols.agent import OnToolActivity, Permission, ToolActivity
from bridle.workspace.text import one_line, shorten

_TEXT_SECONDS = 2.0  # to wait for the text before a call: it comes by another way
_NO_ONE = "not run: no one is available to approve it"
_STOPPED = "It was stopped while it ran: it may have run in part."
_NO_PLAN = "No plan was written down. What was said last is the plan."
_REMARK = "The person allowed it, and said: {}"
_WRITES = ("Write", "Edit", "MultiEdit")
_MOST_PLAN = 50_000  # characters that our own tool takes
_SHOWN = 200  # characters of what a tool is doing
_TASKS = ("Task", "Agent")
_TASK_ARGUMENTS = ("description", "prompt", "subagent_type", "model")
_BYTE_ORDER_MARK = "\ufeff"  # whitespace for the program, but not for Python
_BLANK = "not run: `{}` begins or ends with a blank. Give the path without it, or use a command."
_ELSEWHERE = "not run: this call would work in {}, and calls are judged in {}. Work there."
_TASK_ARGUMENT = "not run: a task cannot have `{}` here. Leave it out."

Json = dict[str, Any]


class Hooks:
    """The hooks of one run. `config_folder` is where the program keeps its own files."""

    def __init__(
        self,
        *,
        session: Any,
        can_use_tool: Callable[..., Any] | None,
        on_tool_activity: OnToolActivity | None,
        messages: MessageReader,
        roots: Roots,
        config_folder: str,
    ) -> None:
        self._session = session
        self._can_use_tool = can_use_tool
        self._on_tool_activity = on_tool_activity
        self._messages = messages
        self._roots = roots
        self._config_folder = config_folder
        self._reply = asyncio.Condition()
        self._running: dict[str, str] = {}  # call id to tool: allowed, and without a result yet
        self._allowed: set[str] = set()
        self._hooked: set[str] = set()  # calls that came to a hook
        self._own_results: dict[str, Json] = {}  # from our tools, in place of the program's
        self.is_stopped = False
        self.used: dict[str, None] = {}  # the tools, in the order of their first use

    def registrations(self, sdk: Any, seconds: float) -> Json:
        """Return the hooks as the SDK's options want them. A hook that fails means no."""

        def matcher(hook: Callable[..., Awaitable[Json]]) -> list[Any]:
            return [sdk.HookMatcher(hooks=[hook], timeout=seconds, on_failure="block")]

        return {
            "PreToolUse": matcher(self.before_call),
            "PostToolUse": matcher(self.after_call),
            "PostToolUseFailure": matcher(self.after_failure),
        }

    async def on_reply(self) -> None:
        """Note that a reply of the model has been read."""
        async with self._reply:
            self._reply.notify_all()

    async def before_call(self, hook_input: Json, _id: str | None, _context: Any) -> Json:
        """Decide whether a call may run."""
        name, arguments = hook_input["tool_name"], hook_input["tool_input"]
        call_id = hook_input["tool_use_id"]
        self._hooked.add(call_id)
        if not hook_input.get("agent_id"):
            await self._wait_for_reply(call_id)
        remember_conversation(self._session, str(hook_input.get("session_id") or ""))
        if self._can_use_tool is None:
            return {}  # the program's own rules decide
        if reason := refusal(name, arguments, hook_input.get("cwd"), self._roots):
            self._emit(TraceEvent("claude_refused", {"tool": name, "reason": reason}))
            return _deny(reason)
        if self._is_own_file(name, arguments, hook_input):
            detail = {"tool": name, "path": arguments.get("file_path", "")}
            self._emit(TraceEvent("claude_own_file", detail))
            return self._allow(call_id)
        answer = await self._judge(name, arguments, call_id)
        if call_id in self._allowed:
            self.used[name] = None
        return answer

    async def can_use_tool(self, name: str, arguments: Json, context: Any) -> Permission:
        """Answer the program's second question: what the gate allowed is allowed, nothing else."""
        return Permission(context.tool_use_id in self._allowed, _NO_ONE)

    async def after_call(self, hook_input: Json, _id: str | None, _context: Any) -> Json:
        """Report the result of a call."""
        call_id, name = hook_input["tool_use_id"], hook_input["tool_name"]
        if (answer := self._own_results.pop(call_id, None)) is not None:
            return {"hookSpecificOutput": {"hookEventName": "PostToolUse", **answer}}
        result = tool_response(name, hook_input.get("tool_response"), self._roots)
        added = await self._finish(call_id, result.text, data=result.data)
        return _context_for_model("PostToolUse", added)

    async def after_failure(self, hook_input: Json, _id: str | None, _context: Any) -> Json:
        """Report a call that failed."""
        is_interrupt = hook_input.get("is_interrupt")
        text = _STOPPED if is_interrupt else str(hook_input.get("error") or "it failed")
        added = await self._finish(hook_input["tool_use_id"], text, ok=False)
        return _context_for_model("PostToolUseFailure", added)

    async def on_result(self, result: Result) -> None:
        """Report a result that the model reads and no hook has reported."""
        if result.call_id in self._running and self.is_stopped and not result.ok:
            result = result._replace(text=_STOPPED)  # the program says that a person refused it
        elif result.call_id in self._messages.calls and result.call_id not in self._hooked:
            await self._record_refused(self._messages.calls[result.call_id], result)
        await self._finish(result.call_id, result.text, ok=result.ok)

    async def _record_refused(self, call: ToolCall, result: Result) -> None:
        """Record a call that the program itself refused before any hook."""
        self._hooked.add(call.id)
        if hasattr(self._session, "emit") and hasattr(self._session, "finish"):
            self._session.emit(ResponseCompleted("tool_use", Message("assistant", (call,))))
            await self._session.finish(call.id, result.text, ok=result.ok)

    async def _wait_for_reply(self, call_id: str) -> None:
        """Wait until the text before a call has been read, so that it comes before the call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_TEXT_SECONDS), self._reply:
                await self._reply.wait_for(lambda: call_id in self._messages.calls)

    async def _judge(self, name: str, arguments: Json, call_id: str) -> Json:
        try:
            if name == "ExitPlanMode":
                return await self._show_plan(arguments, call_id)
            if name == "AskUserQuestion":
                return await self._ask_questions(arguments, call_id)
            if name == "TodoWrite" and hasattr(self._session, "call"):
                return await self._write_todos(arguments, call_id)
            return await self._ask_gate(name, arguments, call_id)
        except AgentError as error:
            return _deny(error.message)

    async def _ask_gate(self, name: str, arguments: Json, call_id: str) -> Json:
        ours = to_ours(name, arguments, self._roots)
        if ours.rest:
            detail = {"callId": call_id, "tool": name, "arguments": ours.rest}
            self._emit(TraceEvent("agent_arguments", detail))
        if is_own_search(name, ours) and hasattr(self._session, "call"):
            return await self._search(name, arguments, call_id)
        permission = await self._permission(ours.name, ours.arguments, call_id)
        if not permission:
            return _deny(permission.message, stops=permission.stops)
        self._running[call_id] = name
        await self._show_activity(ours.name, ours.arguments)
        answer = self._allow(call_id)
        if permission.updated_input is not None:
            changed = to_claude(name, arguments, permission.updated_input, self._roots)
            answer["hookSpecificOutput"]["updatedInput"] = changed
        if permission.word:
            remark = _REMARK.format(permission.word)
            answer["hookSpecificOutput"]["additionalContext"] = remark
        return answer

    async def _search(self, name: str, arguments: Json, call_id: str) -> Json:
        """Search with our own tool, and have the program make a search that finds nothing."""
        ours = to_ours(name, arguments, self._roots)
        output = await self._session.call(ours.name, ours.arguments, call_id)
        if output.is_error:
            return _deny(output.text)
        result = search_answer(name, arguments, output.text)
        self._own_results[call_id] = {"updatedToolOutput": result}
        answer = self._allow(call_id)
        answer["hookSpecificOutput"]["updatedInput"] = empty_search(name, arguments)
        return answer

    async def _permission(self, name: str, arguments: Json, call_id: str) -> Permission:
        assert self._can_use_tool is not None
        answer = self._can_use_tool(name, arguments, call_id)
        return to_permission(await answer if inspect.isawaitable(answer) else answer)

    async def _ask_person(self, name: str, arguments: Json, call_id: str) -> tuple[bool, str, str]:
        """Ask with our tool. Return whether it was allowed, the text for the model, the answer."""
        if not hasattr(self._session, "call"):
            permission = await self._permission(name, arguments, call_id)
            return permission.allowed, permission.word or permission.message, permission.word
        output = await self._session.call(name, arguments, call_id)
        data = output.data if isinstance(output.data, dict) else {}
        return not output.is_error, output.text, str(data.get("answer") or "")

    async def _show_plan(self, arguments: Json, call_id: str) -> Json:
        plan = arguments.get("plan") or self._messages.plans.get(call_id) or _NO_PLAN
        ours = {"plan": shorten(str(plan), _MOST_PLAN)}
        approved, text, _ = await self._ask_person("exit_plan_mode", ours, call_id)
        if not approved:
            return _deny(text)
        answer = self._allow(call_id)
        answer["hookSpecificOutput"]["additionalContext"] = text
        return answer

    async def _ask_questions(self, arguments: Json, call_id: str) -> Json:
        answers = {}
        for number, (question, ours) in enumerate(map_questions(arguments), 1):
            own_id = call_id if number == 1 else f"{call_id}-{number}"
            allowed, text, given = await self._ask_person("ask_user", ours, own_id)
            if not allowed:
                return _deny(text)
            answers[question] = given or text
        answer = self._allow(call_id)
        answer["hookSpecificOutput"]["updatedInput"] = {**arguments, "answers": answers}
        return answer

    async def _write_todos(self, arguments: Json, call_id: str) -> Json:
        ours = to_ours("TodoWrite", arguments, self._roots)
        output = await self._session.call(ours.name, ours.arguments, call_id)
        return _deny(output.text) if output.is_error else self._allow(call_id)

    def _allow(self, call_id: str) -> Json:
        self._allowed.add(call_id)
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        return {"hookSpecificOutput": decision}

    async def _finish(self, call_id: str, text: str, *, ok: bool = True, data: Any = None) -> str:
        """Report a result, once. Return what the model is to read beside it."""
        if self._running.pop(call_id, None) is None:
            return ""  # reported already, refused, or answered by our own tool
        added = ""
        if (finish := getattr(self._session, "finish", None)) is not None:
            added = await finish(call_id, text, ok=ok, data=data)
        if not self._running:
            await self._show_activity("", {})
        return added or ""

    async def _show_activity(self, name: str, arguments: Json) -> None:
        if self._on_tool_activity is not None:
            first = next((str(value) for value in arguments.values()), "")
            activity = ToolActivity(name, one_line(first, _SHOWN)) if name else None
            await self._on_tool_activity(activity)

    def _emit(self, event: TraceEvent) -> None:
        if (emit := getattr(self._session, "emit", None)) is not None:
            emit(event)

    def _is_own_file(self, name: str, arguments: Json, hook_input: Json) -> bool:
        """Is it the program's plan, or a long result that it stored, in its own folder?

        Judged by where the path really leads.
        """
        path = arguments.get("file_path")
        if not isinstance(path, str) or not path.startswith("/"):
            return False
        real = os.path.realpath(path)
        if to_path(real, self._roots) != real:
            return False  # a workspace that holds the program's folder is still the workspace
        parent, plans = os.path.split(real)[0], os.path.realpath(f"{self._config_folder}/plans")
        if parent == plans and real.endswith(".md"):
            return name in ("Read", *_WRITES) and hook_input.get("permission_mode") == "plan"
        transcript = str(hook_input.get("transcript_path") or "/").removesuffix(".jsonl")
        results = f"{os.path.realpath(transcript)}/tool-results/"
        return name == "Read" and real.startswith(results)


def remember_conversation(session: Any, conversation_id: str) -> None:
    """Store the id of the program's conversation as soon as it is known."""
    if conversation_id and session.claude_session_id != conversation_id:
        session.claude_session_id = conversation_id


def to_permission(answer: Any) -> Permission:
    """Return what a callback said, whether in our class, in the SDK's, or as a bool."""
    if isinstance(answer, Permission):
        return answer
    behavior = getattr(answer, "behavior", None)
    allowed = behavior == "allow" if behavior is not None else answer is True
    changed = getattr(answer, "updated_input", None)
    return Permission(allowed, str(getattr(answer, "message", "") or "refused"), changed)


def refusal(name: str, arguments: Json, cwd: Any, roots: Roots) -> str:
    """Return why a call cannot be judged as it is; empty if it can.

    What is judged must be what is done. The program trims a path before it uses it, and a subagent
    may work in another folder (`cwd`) than the one in which paths and commands are judged.
    """
    if not _is_root(cwd, roots):
        return _ELSEWHERE.format(cwd, roots[0])
    for field, value in path_arguments(name, arguments).items():
        if isinstance(value, str) and _has_outer_blanks(value):
            return _BLANK.format(field)
    if name in _TASKS:
        for field, value in arguments.items():
            if value and field not in _TASK_ARGUMENTS:
                return _TASK_ARGUMENT.format(field)
    return ""


def _is_root(cwd: Any, roots: Roots) -> bool:
    if not isinstance(cwd, str):
        return False
    return cwd in roots or os.path.realpath(cwd) in map(os.path.realpath, roots)


def _has_outer_blanks(path: str) -> bool:
    """Does the path, or its normal form, begin or end with what the program would trim?"""
    return any(_trim(spelling) != spelling for spelling in (path, os.path.normpath(path)))


def _trim(text: str) -> str:
    """Remove what the program takes for whitespace, and what Python does."""
    while (trimmed := text.strip().strip(_BYTE_ORDER_MARK)) != text:
        text = trimmed
    return text


def _context_for_model(event: str, text: str) -> Json:
    """Return a hook's answer with text for the model, if there is any."""
    if not text.strip():
        return {}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text.strip()}}


def _deny(reason: str, *, stops: bool = False) -> Json:
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason or "refused",
    }
    ending = {"continue_": False, "stopReason": reason} if stops else {}
    return {"hookSpecificOutput": decision, **ending}
