"""A process of its own that has Claude Code run a long command: for a test that kills it."""

import asyncio
import sys
from pathlib import Path

from claude_rig import Gate, Whole, claude, runs, workspace


async def main(folder, seconds):
    async with claude([runs(f"sleep {seconds}")], folder) as (agent, _):
        await agent.execute("go", Whole(workspace(folder)), can_use_tool=Gate())


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
