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

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bridle.server.http import HttpServer, bind


def handler_of(path: str) -> Any:
    """A handler that keeps what it is sent."""
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    async def keep(request: Request) -> JSONResponse:
        os.write(handle, json.dumps(await request.json()).encode() + b"\n")
        os.fdatasync(handle)
        return JSONResponse({"turn": 1}, 202)

    return keep


async def main() -> None:
    """Serve until the input ends."""
    app = Starlette(routes=[Route("/bare", handler_of(sys.argv[1]), methods=["POST"])])
    listening = bind("127.0.0.1", 0)
    host = HttpServer(app, listening)
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
