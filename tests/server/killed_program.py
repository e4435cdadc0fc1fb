"""A server's sessions without HTTP, to be killed: `killed_program.py STATE WORK REPLIES`.

Reads verbs as lines of JSON, and says what came of each; `begun` where it was started. It is no
test, and is run by tests.
"""

import asyncio
import json
import sys

from bridle.policy import ToolPolicy
from bridle.protocols.session_values import NewSession, PromptRequest
from bridle.providers.scripted import Scripted
from bridle.runtime import build_engine
from bridle.service.engine_pool import EnginePool
from bridle.service.local_service import LocalService


def note(text: str) -> str:
    """Write a note. It changes something, so that it is asked about."""
    return f"noted {text}"


async def stall() -> str:
    """Do something that does not end."""
    say("stalling")
    await asyncio.sleep(600)
    return "never"


note.policy = ToolPolicy(requires_approval=True)
stall.policy = ToolPolicy(read_only=False, requires_approval=False, risk="low")


def say(words):
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


async def main(state, work, replies):
    def opening(wanted, session_id):
        return build_engine(
            Scripted(json.loads(replies)),
            tools=[note, stall],
            workspace=wanted.workspace,
            state=state,
            rules=["allow: stall"],
            on_ask="wait",
            face="server",
        )

    sessions = LocalService(state, EnginePool(opening), (work,))
    await sessions.start()
    say("begun")
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, *given = json.loads(line)
        if verb == "create":
            say((await sessions.create(NewSession(), "ann")).id)
        else:
            name, words, queue = given
            say((await sessions.send(name, PromptRequest(words, queue=queue), "ann")).turn)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
