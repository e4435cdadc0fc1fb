"""The cases of the agent conformance suite. Each runs a real engine over the agent under test."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from bridle.engine.engine import Engine
from bridle.engine.foreign.agent import agent_name
from bridle.engine.session import Session
from bridle.events import (
    AgentResponded,
    ApprovalAsked,
    CallIntended,
    Event,
    TextDelta,
    ToolResultEvent,
    TraceEvent,
)
from bridle.protocols.agent import BaseAgent
from bridle.protocols.session import TurnResult
from bridle.runtime.assembly import build_engine
from bridle.testing.agent_script import Fail, Say, Script, Wait, Write

E = TypeVar("E", bound=Event)
Setting = Callable[[Script], AbstractAsyncContextManager[BaseAgent]]
Case = Callable[[Setting], Coroutine[Any, Any, None]]

_LONG = 60.0  # seconds after which a turn that has not ended never will


class _Overheard:
    """The session that an agent is handed; the text that it emits is heard."""

    def __init__(self, session: Any, hear: Callable[[str], None]) -> None:
        vars(self).update(_session=session, _hear=hear)

    def emit(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._hear(event.text)
        self._session.emit(event)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_session"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._session, name, value)


class _Watched:
    """The agent under test: what it streams, and whether it ends its runs by itself."""

    def __init__(self, agent: BaseAgent) -> None:
        self._agent = agent
        self.name = agent_name(agent)
        self.forced = False  # its task had to be cancelled
        self.streamed: list[str] = []

    async def execute(self, prompt: str, session: Any, **callbacks: Any) -> Any:
        chunk = callbacks.pop("on_text_chunk")

        async def on_text_chunk(text: str) -> None:
            self.streamed.append(text)
            await chunk(text)

        heard = _Overheard(session, self.streamed.append)
        # a task of its own: an agent may cancel that one by itself, and has then ended its run
        run = asyncio.ensure_future(
            self._agent.execute(prompt, heard, on_text_chunk=on_text_chunk, **callbacks)
        )
        try:
            return await run
        except asyncio.CancelledError:
            task = asyncio.current_task()
            self.forced |= task is not None and task.cancelling() > 0
            raise

    async def cancel(self, session_id: str) -> None:
        await self._agent.cancel(session_id)

    async def shutdown(self) -> None:
        await self._agent.shutdown()


class _Bench:
    """A workspace, a folder for the logs, and engines over the agent."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self._state = folder / "state"

    def engine(self, agent: BaseAgent, **options: Any) -> Engine:
        """An engine in which the agent carries the turns."""
        given = {"sandbox": "none", **options}
        return build_engine(agent=agent, workspace=self.root, state=self._state, **given)

    def holds(self, path: str) -> str | None:
        """What that file says; None where there is none."""
        file = self.root / path
        return file.read_text() if file.exists() else None


@asynccontextmanager
async def _bench() -> AsyncIterator[_Bench]:
    with tempfile.TemporaryDirectory() as folder:
        yield _Bench(Path(folder))


async def text_is_streamed(setting: Setting) -> None:
    """Text comes while the agent runs, and is the turn's answer (P7)."""
    script: Script = {"greet": (Say("Hello "), Say("world"))}
    async with _bench() as bench, setting(script) as bare:
        agent = _Watched(bare)
        async with bench.engine(agent) as engine:
            session = await engine.session()
            result = await _turn(session, "greet")
            deltas = "".join(one.text for one in _said(engine, session, TextDelta))
    streamed = "".join(agent.streamed)
    assert result.reason == "done", f"the turn ended as {result.reason}: {result.detail}"
    assert "Hello" in streamed and "world" in streamed, f"streamed was only {streamed!r}"
    assert "Hello" in deltas and "world" in deltas, f"the log has only {deltas!r}"
    assert "world" in result.text, f"the turn's answer is {result.text!r}"


async def an_allowed_effect_happens_after_its_intent(setting: Setting) -> None:
    """It waits for the answer, then acts, and says what came of it."""
    seen: list[str | None] = []

    async def approver(asked: ApprovalAsked) -> bool:
        seen.append(bench.holds("made.txt"))
        return True

    script: Script = {"make": (Write("made.txt", "by the agent"), Say("made"))}
    async with _bench() as bench, setting(script) as agent:
        async with bench.engine(agent, approver=approver) as engine:
            session = await engine.session()
            result = await _turn(session, "make")
            kinds = (CallIntended, ToolResultEvent)
            order = [type(one).__name__ for one in _said(engine, session, *kinds)]
            outputs = [one.output for one in _said(engine, session, ToolResultEvent)]
        made = bench.holds("made.txt")
    assert result.reason == "done", f"the turn ended as {result.reason}: {result.detail}"
    assert seen, "nobody was asked"
    assert seen[0] is None, "the file was there before anybody had allowed it"
    assert made is not None and made.strip() == "by the agent", f"the file holds {made!r}"
    assert order[:2] == ["CallIntended", "ToolResultEvent"], f"the log has {order}"
    assert not outputs[0].is_error, f"the call is said to have failed: {outputs[0].text}"


async def a_denied_effect_does_not_happen(setting: Setting) -> None:
    """A no is a no, and the session goes on."""

    async def approver(asked: ApprovalAsked) -> bool:
        return False

    script: Script = {"make": (Write("made.txt", "x"), Say("tried")), "greet": (Say("Hello"),)}
    async with _bench() as bench, setting(script) as agent:
        async with bench.engine(agent, approver=approver) as engine:
            session = await engine.session()
            await _turn(session, "make")
            intents = _said(engine, session, CallIntended)
            after = await _turn(session, "greet")
        made = bench.holds("made.txt")
    assert made is None, f"the file was written all the same: {made!r}"
    assert intents == [], "an intent was recorded of a call that was refused"
    assert after.reason == "done", f"the next turn ended as {after.reason}: {after.detail}"


async def cancel_is_prompt_and_clean(setting: Setting) -> None:
    """A cancel ends the run by the agent's own means, and the session goes on (P7)."""
    script: Script = {"work": (Say("at it"), Wait()), "greet": (Say("Hello"),)}
    async with _bench() as bench, setting(script) as bare:
        agent = _Watched(bare)
        async with bench.engine(agent) as engine:
            session = await engine.session()
            turn = await session.send("work")
            await _until(session, TextDelta)
            await session.interrupt()
            result = await session.wait(turn)
            strays = [one.kind for one in _said(engine, session, TraceEvent)]
            after = await _turn(session, "greet")
    assert result.reason == "interrupted", f"the turn ended as {result.reason}"
    assert not agent.forced, "`cancel` did not end the run: its task had to be cancelled"
    assert "not_stopped" not in strays, "the agent did not stop at all"
    assert after.reason == "done", f"the next turn ended as {after.reason}: {after.detail}"
    assert "Hello" in after.text, f"the next turn answered {after.text!r}"


async def a_stop_while_a_person_is_asked_stops_for_good(setting: Setting) -> None:
    """What was asked about is not done after a stop."""
    script: Script = {"make": (Write("made.txt", "x"), Say("made")), "greet": (Say("Hello"),)}
    async with _bench() as bench, setting(script) as agent:
        async with bench.engine(agent, on_ask="wait") as engine:
            session = await engine.session()
            turn = await session.send("make")
            await _until(session, ApprovalAsked)
            await session.interrupt()
            result = await session.wait(turn)
            after = await _turn(session, "greet")
        made = bench.holds("made.txt")
    assert (result.reason, made) == ("interrupted", None)
    assert after.reason == "done", f"the next turn ended as {after.reason}: {after.detail}"


async def shutdown_leaves_nothing(setting: Setting) -> None:
    """No task and no child process outlives the engine, also where a turn was running (P7)."""
    tasks, children = asyncio.all_tasks(), _children()
    script: Script = {"work": (Say("at it"), Wait()), "greet": (Say("Hello"),)}
    async with _bench() as bench, setting(script) as agent:
        around, beside = asyncio.all_tasks() - tasks, _children() - children
        async with bench.engine(agent) as engine:
            first, second = await engine.session(), await engine.session()
            await _turn(first, "greet")
            await second.send("work")
            await _until(second, TextDelta)
        left, running = asyncio.all_tasks() - tasks - around, _children() - children - beside
    assert not left, f"tasks are left: {sorted(one.get_name() for one in left)}"
    assert not running, f"child processes are left: {sorted(running)}"


async def two_sessions_do_not_mix(setting: Setting) -> None:
    """Each hears its own, at the same time."""

    async def approver(asked: ApprovalAsked) -> bool:
        return True

    script: Script = {
        "alpha": (Write("alpha.txt", "alpha"), Say("this is alpha")),
        "beta": (Write("beta.txt", "beta"), Say("this is beta")),
    }
    async with _bench() as bench, setting(script) as agent:
        async with bench.engine(agent, approver=approver) as engine:
            sessions = {word: await engine.session() for word in script}
            work = (_turn(session, word) for word, session in sessions.items())
            found = dict(zip(script, await asyncio.gather(*work), strict=True))
            asked = {
                word: [one.call.arguments for one in _said(engine, session, ApprovalAsked)]
                for word, session in sessions.items()
            }
        written = {word: bench.holds(f"{word}.txt") for word in script}
    for word, other in (("alpha", "beta"), ("beta", "alpha")):
        text, said = found[word].text, str(asked[word])
        assert word in text and other not in text, f"session {word} heard {text!r}"
        assert f"{word}.txt" in said and f"{other}.txt" not in said, f"{word} asked {said}"
        assert (written[word] or "").strip() == word, f"{word}.txt holds {written[word]!r}"


async def an_exception_becomes_an_error_response(setting: Setting) -> None:
    """What breaks is said in words, and the session goes on."""
    script: Script = {"break": (Fail(),), "greet": (Say("Hello"),)}
    async with _bench() as bench, setting(script) as agent, bench.engine(agent) as engine:
        session = await engine.session()
        result = await _turn(session, "break")
        responses = [one.is_error for one in _said(engine, session, AgentResponded)]
        after = await _turn(session, "greet")
    assert (result.reason, responses) == ("failed", [True]), f"{result.reason}, {responses}"
    assert result.detail and "Traceback" not in result.detail, f"it is said as {result.detail!r}"
    assert after.reason == "done", f"the next turn ended as {after.reason}: {after.detail}"


async def its_session_id_is_recorded_and_found_again(setting: Setting) -> None:
    """The agent's own conversation is in the log, and another process can resume it (P5)."""
    script: Script = {"greet": (Say("Hello"),), "again": (Say("once more"),)}
    async with _bench() as bench, setting(script) as agent:
        async with bench.engine(agent) as engine:
            session = await engine.session()
            await _turn(session, "greet")
            first = [one.session_id for one in session.history.attached.values()]
        async with setting(script) as another, bench.engine(another) as engine:
            again = await engine.session(session.id)
            found = [one.session_id for one in again.history.attached.values()]
            result = await _turn(again, "again")
            later = [one.session_id for one in again.history.attached.values()]
    assert len(first) == 1 and first[0], "the agent has no conversation of its own in the log"
    assert found == first, f"what was recorded is {first}, what was found {found}"
    assert (result.reason, later) == ("done", first), f"{result.reason}: {result.detail}, {later}"


async def _turn(session: Session, prompt: str) -> TurnResult:
    async with asyncio.timeout(_LONG):
        return await session.wait(await session.send(prompt))


async def _until(session: Session, kind: type[Event]) -> None:
    """Until something of that kind is in the log."""
    async with asyncio.timeout(_LONG), aclosing(session.subscribe()) as records:
        async for record in records:
            if isinstance(record.event, kind):
                return


def _said(engine: Engine, session: Session, *kinds: type[E]) -> list[E]:
    found = engine.store.read(session.id)
    return [one.event for one in found if isinstance(one.event, kinds)]


def _children() -> set[int]:
    """The child processes of this one, where the system shows them; the dead do not count."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):  # it may end while we look
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(entry.parent.name))
    return found


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        text_is_streamed,
        an_allowed_effect_happens_after_its_intent,
        a_denied_effect_does_not_happen,
        cancel_is_prompt_and_clean,
        a_stop_while_a_person_is_asked_stops_for_good,
        shutdown_leaves_nothing,
        two_sessions_do_not_mix,
        an_exception_becomes_an_error_response,
        its_session_id_is_recorded_and_found_again,
    )
}
