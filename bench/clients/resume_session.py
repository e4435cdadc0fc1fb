"""Takes one session up, as a program would, and says how long that took and how much it held.

    resume_session.py STATE ID

The harness notes when the process was started; the time that counts ends when a prompt could be
sent. The peak of the resident memory is that of this process, all of it.
"""

import asyncio
import json
import sys
import time

from stopwatch import peak_kb

import bridle


async def main() -> None:
    """Take it up, and let it go."""
    state, session_id = sys.argv[1:]
    wall, cpu = time.perf_counter(), time.process_time()
    engine = bridle.build_engine("offline", workspace=".", state=state)
    async with engine:
        session = await engine.session(session_id)
        found = {
            "ready_at": time.monotonic(),
            "resume_ms": (time.perf_counter() - wall) * 1000,
            "resume_cpu_ms": (time.process_time() - cpu) * 1000,
            "records": session.seq,
            "messages": len(session.history.transcript),
        }
        print(json.dumps(found | {"peak_mb": peak_kb() / 1024}))


if __name__ == "__main__":
    asyncio.run(main())
