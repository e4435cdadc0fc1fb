"""POST /api/agui: a run of AG-UI, as its own clients ask for it.

The protocol's library takes its time to be imported, so that the first run does that.
"""

import asyncio
from typing import Any

from litestar import post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody
from litestar.types import ASGIApp
from msgspec import Struct

from bridle.server.agui.threads import Threads
from bridle.server.authorization import check_choice
from bridle.server.flowing import EVENTS, Flow
from bridle.server.problems import refused
from bridle.server.routes.declared import Asking, Here, check_reach, lasting, needs

_MOST = 500  # runs at a time: each has a turn
_REFUSES = (
    *("unknown_session", "unknown_workspace", "forbidden_choice", "unknown_approval"),
    "session_busy",
    *("session_locked", "approval_changed", "approval_expired", "idempotency_conflict"),
    *("too_many_streams", "store_failed", "unavailable"),
)


class RunInput(Struct, frozen=True, rename="camel"):
    """What AG-UI calls a RunAgentInput.

    `threadId` names a session, or a thread that is one from then on. The newest message, where it
    is the person's, is the prompt; `resume` answers interrupts.
    """

    thread_id: str
    run_id: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    context: tuple[dict[str, Any], ...] = ()
    resume: tuple[dict[str, Any], ...] | None = None
    state: Any = None
    forwarded_props: Any = None
    protocol_version: str | None = None
    parent_run_id: str | None = None


def routes() -> tuple[HTTPRouteHandler, ...]:
    """The address, with threads of its own."""
    threads = Threads()
    running: set[object] = set()

    @post(
        "/api/agui",
        status_code=200,
        opt=needs("drive", *_REFUSES, media="text/event-stream", shape="text"),
    )
    async def agui(data: JSONBody[RunInput], request: Asking, room: Here) -> ASGIApp:
        """Run a turn, or answer what one waits for, as events of AG-UI."""
        incoming, runs = await asyncio.to_thread(_loaded)
        given = incoming.given_of(_plain(data))
        if len(running) >= _MOST:
            raise refused("too_many_streams", f"{_MOST} runs are under way.", "Try again later.")
        by = request.user.name
        check_choice(room.sessions.offer, request.user, given.new)
        for one in given.answers:
            place = one.session_id, one.call_id
            await check_reach(room, request.user, place, one.answer)
        begun = await runs.begin(room.sessions, threads, given, by)
        run = runs.Run(room.sessions, given, begun, by)
        pieces = _counted(run.pieces(), running)
        return await Flow.begun(pieces, EVENTS, room.limits.stalled_seconds, lasting(request, room))

    return (agui,)


async def _counted(pieces: Any, running: set[object]) -> Any:
    running.add(pieces)
    try:
        async for piece in pieces:
            yield piece
    finally:
        running.discard(pieces)
        await pieces.aclose()


def _loaded() -> tuple[Any, Any]:
    """In a thread: what needs the library."""
    from bridle.server.agui import incoming, running

    return incoming, running


def _plain(data: RunInput) -> dict[str, Any]:
    """As it came, for the library to look at."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(data)
    return {name: value for name, value in found.items() if value is not None}
