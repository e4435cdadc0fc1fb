"""Write an agent: any object with `execute`, `cancel` and `shutdown` can run turns."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import bridle
from bridle.agents.base import AgentResponse
from bridle.events import ApprovalAsked


class Replacer:
    """Replace a word in a file: `FILE OLD NEW`. It uses bridle's tools, so the gate is asked."""

    async def execute(
        self, prompt: str, session: Any, *, on_text_chunk: Any = None, **_: Any
    ) -> AgentResponse:
        if len(words := prompt.split()) != 3:
            return AgentResponse(f"It was {session.state.get('was', 'nothing yet')}.")
        path, old, new = words
        await on_text_chunk("Let me look.")
        await session.call("read", {"path": path})
        await on_text_chunk("I will edit it.")
        done = await session.call("edit", {"path": path, "old": old, "new": new})
        session.state = {"was": old}  # stored in the log, also for other processes
        return AgentResponse("Not edited." if done.is_error else "Edited.")

    async def cancel(self, session_id: str) -> None: ...

    async def shutdown(self) -> None: ...


async def yes(asked: ApprovalAsked) -> bool:
    """Approve every call; a real approver would ask a person."""
    print(f"asked about {asked.call.name} {asked.call.arguments['path']}")
    return True


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        file = Path(folder) / "a.txt"
        file.write_text("one\n")
        async with bridle.build_engine(
            agent=Replacer(), workspace=folder, state=state, approver=yes
        ) as engine:
            result = await engine.run("a.txt one two")
        print(result.text, file.read_text().strip())


if __name__ == "__main__":
    asyncio.run(main())
