"""The tool calls of one turn of an ACP agent: asked about, carried out by us, or done without us.

Each call that the agent announces comes to one of these ends. It asked, and the gate said yes: what
came of it is reported when the agent says so. It asked, and the gate said no. It had us do the work
(a file, a command): that was recorded there. Or it did the work without a word: then the log has
the call as one that did not pass the gate, and the person is told once.
"""

import asyncio
from typing import Any, Literal

from acp import schema
from msgspec import Struct

from bridle.agents.acp_calls import Wanted, paths_of, wanted
from bridle.agents.acp_desk import Desk
from bridle.agents.acp_map import Calls, changes_of, output_of, pick, result_of
from bridle.agents.acp_reins import Reins
from bridle.events import ResponseCompleted, ToolOutputDelta
from bridle.messages import Message, ToolCall
from bridle.promises.agent import Permission, ToolActivity
from bridle.tools.nearby import unified
from bridle.workspace.text import one_line

_Word = tuple[tuple[str, ...] | None, bool]  # ids of what is allowed, None for a no; is it over?
State = Literal["open", "asked", "allowed", "refused", "carried", "over"]
_GRACE = 0.5  # seconds for a question to be taken back
_HARMLESS = ("read", "search", "think")
_CHANGED = "not run: a hook changed the call, and this agent cannot be told to make another one"
_NO_ONCE = "not run: the agent offers no yes for this once"
_AGAIN = "the agent asked for the same again before it said what came of this"
_UNSAID = "the agent did not say what came of it"
_ANOTHER = "not run: another part of the same call was refused"
_UNGATED = (
    "This agent does some things without asking first, so the gate does not see them: {}. "
    "They are in the log. Set the agent to ask, if it can."
)
_DEFIED = "The agent says that it has done `{}`, although that was refused. Look at what changed."


class _Known(Struct):
    """One call as the agent names it, and what stands in the log for it."""

    state: State = "open"
    kind: str = "other"
    ids: tuple[str, ...] = ()
    wants: tuple[Wanted, ...] = ()
    shown: str = ""  # output that was passed on while it ran
    changes: list[schema.FileEditToolCallContent] = []  # as they were shown when it was asked


class Tools:
    """Every tool call of one turn."""

    def __init__(self, reins: Reins, desk: Desk) -> None:
        self._reins = reins
        self._desk = desk
        self._calls = Calls()
        self._known: dict[str, _Known] = {}
        self._asking: set[str] = set()  # calls about which a question is open
        self._ids: set[str] = set()
        self._shown: ToolActivity | None = None
        self.used: dict[str, None] = {}  # names of the tools, in order
        self.rounds = 0

    async def take(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> bool:
        """What is said of a call; was it the beginning of one?"""
        known = self._known.get(update.tool_call_id)
        if known is not None and known.state == "over":
            if isinstance(update, schema.ToolCallProgress):
                return False  # a last word about what is done
            self._calls.forget(update.tool_call_id)  # the same name again, for another call
            known = None
        call = self._calls.fold(update)
        is_new = known is None
        known = self._note(call)
        await self._show(self._activity(call))
        if update.status in ("completed", "failed"):
            await self._end(call, known, ok=update.status == "completed")
        elif known.state == "allowed":
            await self._pass_on(call, known)
        return is_new

    async def ask(
        self, request: schema.RequestPermissionRequest, stopped: asyncio.Event
    ) -> dict[str, Any]:
        """The agent asks before it does something: the gate's word, as one of its own options.

        A second question about a call whose first is still open is a no, and nothing of it is
        kept: the yes to one must never be taken for the other.
        """
        name = request.tool_call.tool_call_id
        if name in self._asking:
            return _answer(pick(request.options, allowed=False))
        self._asking.add(name)
        try:
            return await self._judge(request, stopped)
        finally:
            self._asking.discard(name)

    async def _judge(
        self, request: schema.RequestPermissionRequest, stopped: asyncio.Event
    ) -> dict[str, Any]:
        call = self._calls.fold(request.tool_call)
        known = self._note(call)
        if stopped.is_set():
            return _answer(None)
        wants, changes = wanted(call, self._reins.root), changes_of(call)
        before, known.ids, known.wants, known.state = known.ids, (), (), "asked"
        for one in before:  # the same call once more, such as without the agent's own sandbox
            await self._reins.finish(one, _AGAIN, ok=False)
        option = pick(request.options, allowed=True)
        judging = asyncio.ensure_future(self._permit(call.tool_call_id, wants, option is not None))
        ids, stops = await _unless(stopped, judging)
        if ids is None:
            known.state = "refused"
        else:  # together, and only here: what is made good later is what was allowed
            known.ids, known.wants, known.changes, known.state = ids, wants, changes, "allowed"
        if stops or stopped.is_set():
            return _answer(None)
        return _answer(option if ids is not None else pick(request.options, allowed=False))

    async def settle(self) -> None:
        """The turn is over: what was begun without asking, and of which nothing more was said."""
        for name, known in list(self._known.items()):
            call = self._calls.get(name)
            if known.state == "open" and call is not None and call.status == "in_progress":
                known.state = "over"
                await self._confess(call, _UNSAID, ok=False)

    def carrying(self, kind: str, path: str) -> str:
        """The id for work that the agent has us do: of the call that it is doing, if it said so."""
        fitting = [
            (name, one)
            for name, one in self._known.items()
            if one.state == "open" and one.kind in (kind, "other")
        ]
        named = [(name, one) for name, one in fitting if path and path in self._paths(name)]
        for name, one in named or fitting[:1]:
            one.state = "carried"
            return self._fresh(name)
        return ""

    def redeem(self, path: str, content: str) -> bool:
        """Was exactly this change allowed, and not made yet? Then it is made now, once."""
        for known in self._known.values():
            wants = known.wants if known.state == "allowed" and known.ids else ()
            if (kept := self._desk.promised(wants, path, content)) is not None:
                known.wants = tuple(one for one in wants if one is not kept)
                return True
        return False

    def handed_over(self, line: str) -> str:
        """The call by which exactly this command was allowed, if it was not run yet: once."""
        for known in self._known.values():
            wants = known.wants if known.state == "allowed" and known.ids else ()
            if any(one.name == "shell" and one.arguments == {"command": line} for one in wants):
                known.wants = ()
                return known.ids[0]
        return ""

    def _paths(self, name: str) -> list[str]:
        call = self._calls.get(name)
        return paths_of(call) if call is not None else []

    def _note(self, call: schema.ToolCallUpdate) -> _Known:
        known = self._known.get(call.tool_call_id)
        if known is None or (known.state == "over" and call.status not in ("completed", "failed")):
            known = self._known[call.tool_call_id] = _Known()
            self.rounds += 1
        known.kind = call.kind or "other"
        return known

    async def _show(self, activity: ToolActivity | None) -> None:
        if activity != self._shown:
            self._shown = activity
            await self._reins.show(activity)

    def _activity(self, call: schema.ToolCallUpdate) -> ToolActivity:
        name = wanted(call, self._reins.root)[0].name
        return ToolActivity(name, one_line(call.title or "", 200))

    def _fresh(self, name: str) -> str:
        """An id that stands for one call in the log."""
        found, number = name, 2
        while found in self._ids:
            found, number = f"{name}-{number}", number + 1
        self._ids.add(found)
        return found

    async def _permit(self, name: str, wants: tuple[Wanted, ...], can_say_yes: bool) -> _Word:
        """Ask for every part of it: all of them or none. The ids that it has in the log."""
        permitted: list[str] = []
        for want in wants:
            self.used[want.name] = None
            found = await self._permit_one(want, name)
            refusal = _CHANGED if found.updated_input is not None else ""
            refusal = refusal or ("" if can_say_yes else _NO_ONCE)
            if found and refusal and found.call_id:
                await self._reins.finish(found.call_id, refusal, ok=False)
            if not found or refusal:
                for one in permitted:
                    await self._reins.finish(one, _ANOTHER, ok=False)
                return None, found.stops
            permitted += [found.call_id] if found.call_id else []
        return tuple(permitted), False

    async def _permit_one(self, want: Wanted, name: str) -> Permission:
        if want.name != "exit_plan_mode":
            return await self._reins.permit(want.name, want.arguments, self._fresh(name))
        output = await self._reins.run(want.name, want.arguments, self._fresh(name))
        return Permission(not output.is_error, output.text)  # it is done: no id to report on

    async def _end(self, call: schema.ToolCallUpdate, known: _Known, *, ok: bool) -> None:
        """The agent says that the call is over."""
        text, state = result_of(call), known.state
        known.state = "over"
        if state == "allowed":
            for number, one in enumerate(known.ids):
                await self._reins.finish(
                    one,
                    text,
                    ok=ok,
                    data=_diff(changes_of(call) or known.changes, self._reins.root, number),
                )
        elif state in ("open", "asked"):
            await self._confess(call, text, ok=ok)
        elif state == "refused" and ok:
            title = one_line(call.title or known.kind, 100)
            await self._reins.tell("ungated", _DEFIED.format(title))
        self._calls.forget(call.tool_call_id)
        if all(one.state in ("over", "refused") for one in self._known.values()):
            await self._show(None)

    async def _confess(self, call: schema.ToolCallUpdate, text: str, *, ok: bool) -> None:
        """What was done without asking is recorded as that."""
        for want in wanted(call, self._reins.root):
            self.used[want.name] = None
            made = ToolCall(self._fresh(call.tool_call_id), want.name, want.arguments)
            await self._reins.say(ResponseCompleted("tool_use", Message("assistant", (made,))))
            await self._reins.finish(made.id, text, ok=ok)
        if call.kind not in _HARMLESS and not self._reins.state.get("ungated"):
            self._reins.keep(ungated=True)
            title = one_line(call.title or call.kind or "a tool", 100)
            await self._reins.tell("ungated", _UNGATED.format(f"`{title}` was the first"))

    async def _pass_on(self, call: schema.ToolCallUpdate, known: _Known) -> None:
        """Output while it runs: what is new of it."""
        text = output_of(call)
        if known.ids and text.startswith(known.shown) and len(text) > len(known.shown):
            await self._reins.say(ToolOutputDelta(known.ids[0], text[len(known.shown) :]))
            known.shown = text


async def _unless(stopped: asyncio.Event, judging: "asyncio.Task[_Word]") -> _Word:
    """The gate's word; a no, soon after the turn was stopped, where nobody takes it back."""
    stop = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({judging, stop}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({judging}, timeout=_GRACE if stopped.is_set() else None)
        return judging.result() if judging.done() else (None, True)
    finally:
        for one in (judging, stop):
            one.cancel()
        await asyncio.wait({judging, stop})


def _answer(option: str | None) -> dict[str, Any]:
    """The answer to a question; without an option it is taken back."""
    if option is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": option}}


def _diff(
    changes: list[schema.FileEditToolCallContent], root: str, number: int
) -> dict[str, Any] | None:
    """What became different, for the faces, where the call said so."""
    paths = list(dict.fromkeys(one.path for one in changes))
    if number >= len(paths):
        return None
    path = paths[number]
    where = path.removeprefix(f"{root.rstrip('/')}/")
    shown = [
        unified(where, one.old_text or "", one.new_text) for one in changes if one.path == path
    ]
    return {"path": where, "diff": "\n".join(shown)}
