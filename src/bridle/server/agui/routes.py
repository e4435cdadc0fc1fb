"""POST /api/agui: a run of AG-UI, as its own clients ask for it.

The protocol's library takes its time to be imported, so that the first run does that.
"""

import asyncio
from typing import Any

from msgspec import Struct
from starlette.requests import Request

from bridle.server.agui.threads import Threads
from bridle.server.auth import Caller, access_lease, check_choice, check_reach
from bridle.server.context import ServerContext
from bridle.server.problems import problem_error
from bridle.server.routing import ApiRoute, Routes
from bridle.server.sse import EVENT_STREAM_HEADERS, StreamResponse

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


def routes() -> tuple[ApiRoute, ...]:
    """The address, with threads of its own."""
    threads = Threads()
    found = Routes("AG-UI")
    running: set[object] = set()

    @found.post(
        "/api/agui",
        role="drive",
        is_prompt=True,
        refuses=_REFUSES,
        media="text/event-stream",
        shape="text",
    )
    async def run_agent(
        context: ServerContext, caller: Caller, request: Request, body: RunInput
    ) -> StreamResponse:
        """Run a turn, or answer what one waits for.

        The answer is a stream of AG-UI events.
        """
        run_input, runs = await asyncio.to_thread(_loaded)
        given = run_input.parse_run_input(_plain(body))
        if len(running) >= _MOST:
            raise problem_error(
                "too_many_streams", f"{_MOST} runs are under way.", "Try again later."
            )
        check_choice(context.sessions.choices, caller, given.new)
        for one in given.answers:
            await check_reach(context.sessions, caller, one.session_id, one.call_id, one.answer)
        begun = await runs.begin(context.sessions, threads, given, caller.name)
        run = runs.Run(context.sessions, given, begun, caller.name)
        pieces = _counted(run.pieces(), running)
        return await StreamResponse.start(
            pieces, EVENT_STREAM_HEADERS, context.limits.stalled_seconds, access_lease(request)
        )

    return tuple(found)


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
    from bridle.server.agui import run, run_input

    return run_input, run


def _plain(data: RunInput) -> dict[str, Any]:
    """As it came, for the library to look at."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(data)
    return {name: value for name, value in found.items() if value is not None}
