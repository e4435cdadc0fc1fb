"""Another process that holds a session: `holder_program.py STATE WORK SESSION REPLIES DEAF`.

Says `held` once it has the session. With DEAF it takes no letters. A line on its standard input
is a prompt to itself; the end of it is the end. It is no test, and is run by tests.
"""

import asyncio
import json
import sys

from bridle.policy import ToolPolicy
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine


def note(text: str) -> str:
    """Write a note. It changes something, so that it is asked about."""
    return f"noted {text}"


note.policy = ToolPolicy(requires_approval=True)


def say(words):
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


async def main(state, work, session_id, replies, deaf):
    model = Scripted(json.loads(replies))
    async with build_engine(
        model, tools=[note], workspace=work, state=state, on_ask="wait", face="cli"
    ) as engine:
        session = await engine.session(session_id)
        if deaf == "deaf":
            engine.store.listen(None)
        say("held")
        while line := await asyncio.to_thread(sys.stdin.readline):
            await session.send(line.strip())
            say("sent")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
