"""A whole server, to be killed at any moment: `chaos_program.py FOLDER PORT`. Says `up` once it is.

The real application under the real uvicorn, with a model that asks for calls whose effect is a line
in a file, each with a name of its own. It is no test, and is run by tests.
"""

import asyncio
import os
import secrets
import sys
from pathlib import Path

from bridle.policy import ToolPolicy
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.server.app import Application
from bridle.server.guard import Names
from bridle.server.hosting import bound
from bridle.server.limits import Limits
from bridle.server.opening import Engines
from bridle.server.room import Room
from bridle.server.serving import Serving
from bridle.server.sessions import Sessions
from bridle.server.signing_in import Door
from bridle.server.streams import Streams
from bridle.server.tokens import Tokens
from bridle.stores.reading import SessionFolder


def tools_of(effects):
    """Two tools with a real effect, of which one asks before it has it."""

    def leave(word):
        handle = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, f"{word}\n".encode())
        finally:
            os.close(handle)
        return f"left {word}"

    async def free(word: str) -> str:
        """Leave a word. Nobody is asked."""
        await asyncio.sleep(0.002)
        return leave(word)

    async def asks(word: str) -> str:
        """Leave a word, once somebody has said yes."""
        await asyncio.sleep(0.002)
        return leave(word)

    free.policy, asks.policy = ToolPolicy(risk="low"), ToolPolicy(requires_approval=True)
    return free, asks


def answer(request):
    """Two calls that may run, one that asks, and some words; then the turn is over."""
    newest = max(n for n, one in enumerate(request.messages) if one.role == "user")
    step = sum(one.role == "assistant" for one in request.messages[newest:])
    if step >= 2:
        return {
            "text": "That is all that there was to do here, and it is done. " * 3,
            "pause": 0.002,
        }
    names = ("free", "free") if step == 0 else ("asks",)
    made = [(name, f"c{secrets.token_hex(8)}") for name in names]
    calls = [{"name": name, "arguments": {"word": one}, "id": one} for name, one in made]
    return {"text": "Some words first.", "calls": calls, "pause": 0.002}


async def main(folder, port):
    work = folder / "work"
    work.mkdir(exist_ok=True)

    def opening(wanted, session_id):
        return build_engine(
            Scripted(answer),
            tools=tools_of(folder / "effects"),
            workspace=wanted.workspace,
            state=folder / "state",
            rules=["allow: free"],
            on_ask="wait",
            face="server",
        )

    sessions = Sessions(SessionFolder(folder / "state"), Engines(opening), (str(work),))
    room = Room(
        sessions, Streams(sessions), Door(Tokens(folder / "server", own="t" * 40)), Limits(rate=0)
    )
    serving = Serving(Application(room, Names(port, "127.0.0.1", ())), bound("127.0.0.1", port))
    await serving.start()
    sys.stdout.write("up\n")
    sys.stdout.flush()
    await serving.ended()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
