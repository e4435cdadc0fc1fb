"""The floor of a prompt: a handler that appends a line to a file and has it on disk. No more.

    serve_bare.py FILE

The same framework, the same server and the same kind of socket as ours; says where it is.
"""

import asyncio
import json
import os
import resource
import sys
from typing import Any

from litestar import Litestar, post

from bridle.server.hosting import Host, bound


def handler_of(path: str) -> Any:
    """A route that keeps what it is sent."""
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    @post("/bare", status_code=202)
    async def keep(data: dict[str, str]) -> dict[str, int]:
        os.write(handle, json.dumps(data).encode() + b"\n")
        os.fdatasync(handle)
        return {"turn": 1}

    return keep


async def main() -> None:
    """Serve until the input ends."""
    app = Litestar([handler_of(sys.argv[1])], openapi_config=None, logging_config=None)
    listening = bound("127.0.0.1", 0)
    host = Host(app, listening)
    await host.start()
    sys.stdout.write(json.dumps({"port": listening.getsockname()[1]}) + "\n")
    sys.stdout.flush()
    while await asyncio.to_thread(sys.stdin.readline):
        used = resource.getrusage(resource.RUSAGE_SELF)
        sys.stdout.write(json.dumps({"cpu": used.ru_utime + used.ru_stime}) + "\n")
        sys.stdout.flush()
    await host.stop(5)


if __name__ == "__main__":
    asyncio.run(main())
