"""The child sessions of a turn: begun for a call, watched, stopped with it, counted in the parent.

A child is a session of the same engine, with its own log, below the parent's gate and budget. This
knows how one is put together and ended; what it may do is said in parent.py, what it may use in
carving.py, and what the parent hears of it in overhearing.py.
"""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from bridle.engine.carving import carved
from bridle.engine.no_model import NoModel
from bridle.engine.overhearing import Overhearing
from bridle.engine.parent import Parent, Tree
from bridle.engine.parts import Parts
from bridle.engine.turn import Emit, Turn
from bridle.engine.unbroken import to_its_end
from bridle.errors import AgentError, BudgetReached, ToolError
from bridle.events import ChildEnded, ChildOf, ChildStarted, ModeChanged, Reason, TitleChanged
from bridle.promises.child import SAME, Outcome, Task
from bridle.workspace.text import one_line

if TYPE_CHECKING:
    from bridle.engine.session import Session
    from bridle.promises.agent import BaseAgent

log = logging.getLogger(__name__)

DEEPEST = 3  # a child's child's child hands nothing on
AT_ONCE = 4  # children of one turn that run side by side; the others wait
IN_ALL = 16  # children in one tree that run side by side
LOOP = "loop"
_FAREWELL = 15.0  # seconds that an agent has to shut down
_PROMPT = 200  # characters of a task that the parent's log repeats
_UNOFFERED = ("exit_plan_mode",)  # a child leaves plan mode when its parent does


class _Carrier(Struct, frozen=True):
    """Who carries a child's turn: an agent, or None for our loop; `ours` is to be shut down."""

    name: str
    agent: "BaseAgent | None" = None
    ours: bool = False


class Children:
    """Begins the child sessions of one turn, and ends them with it."""

    def __init__(
        self, parts: Parts, turn: Turn, say: Emit, session_id: str, deadline: float | None
    ) -> None:
        self._parts = parts
        self._turn = turn
        self._say = say
        self._session_id = session_id
        self._deadline = deadline
        self._room = asyncio.Semaphore(AT_ONCE)
        self._tree = parts.parent.tree if parts.parent is not None else Tree()
        self._depth = parts.parent.depth + 1 if parts.parent is not None else 1

    async def spawn(self, call_id: str, task: Task) -> Outcome:
        """Run a task to its end. Raise `AgentError` where it cannot be begun."""
        if self._depth > DEEPEST:
            raise ToolError(
                f"not run: this session is a task {DEEPEST} levels down already, and tasks go no "
                "deeper. Do the work here"
            )
        async with self._room:
            if self._tree.running >= IN_ALL:
                raise ToolError(f"not run: {IN_ALL} tasks run already. Wait until one has ended")
            self._tree.running += 1
            try:
                return await self._begin(call_id, task)
            finally:
                self._tree.running -= 1

    async def _begin(self, call_id: str, task: Task) -> Outcome:
        carrier = self._carrier(task.agent)
        try:
            child = await self._opened(call_id, task, carrier)
            return await _Errand(self._turn, self._say, child, call_id).run(task, carrier.name)
        finally:
            if carrier.ours and carrier.agent is not None:
                await to_its_end(_shut_down(carrier.agent))

    def _carrier(self, wanted: str) -> _Carrier:
        """Who is to carry it. Raise `AgentError` where there is no such agent."""
        parts = self._parts
        mine = _Carrier(_name(parts.agent), parts.agent)
        has_model = not isinstance(parts.provider, NoModel)
        if wanted == SAME or wanted == mine.name or not (wanted or has_model):
            return mine
        agent = None
        if wanted not in ("", LOOP):
            if parts.agents is None:
                raise ToolError(f"there is no agent {wanted!r} here: leave `agent` out")
            agent = parts.agents(wanted)
        if agent is None and not has_model:
            raise ToolError(f"there is no model beside {mine.name}: name {SAME!r} as the agent")
        return _Carrier(_name(agent), agent, ours=agent is not None)

    async def _opened(self, call_id: str, task: Task, carrier: _Carrier) -> "Session":
        """The session, once there is room for it that others have not set aside."""
        budget = self._turn.budget
        while True:
            try:
                return self._open(call_id, task, carrier)
            except BudgetReached:
                if carrier.agent is None or not budget.is_held_by_others:
                    raise
            await budget.freed()

    def _open(self, call_id: str, task: Task, carrier: _Carrier) -> "Session":
        """The session, of which nothing is recorded yet."""
        parts, mode = self._parts, self._turn.belongings.mode
        if parts.begin is None:
            raise ToolError("there are no child sessions here")
        parent = Parent(
            self._session_id,
            call_id,
            self._depth,
            self._turn.budget,
            mode,
            self._tree,
            parts.parent,
        )
        child = parts.begin(self._lent(task, carrier, parent))
        child.preface(ChildOf(self._session_id, call_id))
        child.preface(ModeChanged(child.mode, "task", "as in the session that began it"))
        if title := one_line(task.title):
            child.preface(TitleChanged(title))
        return child

    def _lent(self, task: Task, carrier: _Carrier, parent: Parent) -> Parts:
        """What the child has of its parent: everything, but for what makes it another's task."""
        parts, agent = self._parts, carrier.agent
        left = None
        if self._deadline is not None:
            left = self._deadline - asyncio.get_running_loop().time()
        given: dict[str, Any] = {
            "limits": carved(self._turn.budget, task, left, shares=agent is not None),
            "mode": parent.mode(),
            "agent": agent,
            "parent": parent,
            "small": None,  # a task has a title, or its prompt
            "system": _told(parts, agent),
            "tools": [tool for tool in parts.offered if tool.name not in _UNOFFERED],
        }
        if parts.config.output_schema is not None:  # that is how the parent has to answer
            given["config"] = replace(parts.config, output_schema=None)
        if agent is not None:
            given["provider"] = NoModel(agent)
        if parts.approver is not None:
            words = one_line(task.title or task.prompt)
            given["approver"] = partial(self._turn.approvals().pass_on, words)
        return parts.changed(**given)


class _Errand:
    """One child, from its prompt to its end."""

    def __init__(self, turn: Turn, say: Emit, child: "Session", call_id: str) -> None:
        self._turn = turn
        self._say = say
        self._child = child
        self._call_id = call_id
        self._reason: Reason = "failed"

    async def run(self, task: Task, agent: str) -> Outcome:
        """Run it; the parent hears of it before anything happens, and when it is over."""
        child = self._child
        heard = Overhearing(child, self._call_id, self._say)
        words = one_line(task.prompt, _PROMPT)
        self._say(ChildStarted(self._call_id, child.id, agent, words, child.mode))
        try:
            await self._turn.settled()  # whatever happens to us, the log says where to look
            heard.begin()
            turn = await child.send(task.prompt, by="task")
            result = await child.wait(turn)
            self._reason = result.reason
        except asyncio.CancelledError:
            self._reason = "interrupted"
            await to_its_end(child.interrupt(by="task"))
            raise
        finally:
            await to_its_end(self._part(heard))
        if result.permission_needed and result.reason != "parked":
            self._turn.approvals().note_unanswered(result.permission_needed)
        text = result.text or heard.said  # one that was cut off may have said something before
        return Outcome(child.id, result.reason, text, result.detail, agent, child.metrics)

    async def _part(self, heard: Overhearing) -> None:
        """It is over, or has to be: nothing of it runs on, and what it used is counted."""
        child = self._child
        try:
            await child.close()
            await heard.end()
        except AgentError as error:  # its log cannot be written: ours may still
            log.warning("the child session %s: %s", child.id, error.message)
        finally:
            self._turn.budget.end_below(child.id)
            self._say(ChildEnded(self._call_id, child.id, self._reason, child.metrics))


def _name(agent: "BaseAgent | None") -> str:
    if agent is None:
        return LOOP
    found = getattr(agent, "name", "")
    return found if isinstance(found, str) and found else type(agent).__name__


def _told(parts: Parts, agent: "BaseAgent | None") -> str:
    """What the child's model is told. One that is carried otherwise is not told of our ways."""
    words = Path(__file__).with_name("child.md").read_text(encoding="utf-8").strip()
    alike = (agent is None) == (parts.agent is None)
    return f"{parts.system}\n\n{words}" if alike and parts.system else words


async def _shut_down(agent: "BaseAgent") -> None:
    try:
        await asyncio.wait_for(agent.shutdown(), _FAREWELL)
    except Exception:  # it is somebody else's, and the task is over all the same
        log.warning("the agent of a task could not be shut down", exc_info=True)
