"""The floor of a chat: a handler that sends the very same statements and makes the same MCP calls.

    chat_bare.py PORT URL SCRIPT WORKERS

Starlette on uvicorn, plain psycopg connections in threads, the official SDK's server and client in
the same process. No order of messages, no leases, no model, no checks, no users: it only asks the
database what one turn of ours asks it, and answers with a sentence that is ready.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import psycopg
import uvicorn
from chat_script import Step, Telling
from mcp import Client
from mcp.server.lowlevel import Server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

THREADS = 8  # as many as ours has, for the database and for the tools
ANY = {"type": "object", "properties": {"title": {"type": "string"}}}


class Bare:
    """One worker: its threads, their connections, its tools."""

    def __init__(self, url: str, script: Step) -> None:
        self._url, self._script = url, script
        self._own = threading.local()
        self._data = ThreadPoolExecutor(THREADS)
        self._tools = ThreadPoolExecutor(THREADS)
        self._told: dict[str, Telling] = {}
        self.client: Client | None = None

    def server(self) -> Server[Any]:
        """The tools that the script calls."""
        calls = {one["call"]: one for one in self._script["steps"] if "call" in one}
        listed = [types.Tool(name=one, input_schema=ANY) for one in calls]

        async def on_list(ctx: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=listed)

        async def on_call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            step, telling = calls[params.name], self._told[str((params.meta or {})["bench/turn"])]
            for one in step["steps"]:
                await self._do(self._tools, one, telling)
            said = types.TextContent(text=json.dumps(step["result"]))
            return types.CallToolResult(content=[said], structured_content=step["result"])

        return Server("bare", on_list_tools=on_list, on_call_tool=on_call)

    async def answer(self, telling: Telling) -> None:
        """One turn."""
        assert self.client is not None
        name = str(id(telling))
        self._told[name] = telling
        for step in self._script["steps"]:
            if "call" in step:
                meta: Any = {"bench/turn": name}
                await self.client.call_tool(step["call"], step["arguments"], meta=meta)
            else:
                await self._do(self._data, step, telling)
        del self._told[name]

    async def _do(self, threads: ThreadPoolExecutor, step: Step, telling: Telling) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(threads, self._transaction, step, telling)

    def _transaction(self, step: Step, telling: Telling) -> None:
        connection = self._connection()
        for sql, marked in step["said"]:
            cursor = connection.execute(sql, telling.values(marked))
            if cursor.description is not None:
                telling.heard([one.name for one in cursor.description], cursor.fetchall())
        connection.commit() if step["end"] == "commit" else connection.rollback()

    def _connection(self) -> Any:
        if not hasattr(self._own, "connection"):
            self._own.connection = psycopg.connect(self._url)
            self._own.connection.execute("SET ROLE bridle_chat")
            self._own.connection.commit()
        return self._own.connection


def make() -> Starlette:
    """The application of one worker."""
    bare = Bare(os.environ["BENCH_URL"], json.loads(Path(os.environ["BENCH_SCRIPT"]).read_text()))

    async def chat(request: Request) -> JSONResponse:
        user, data = request.path_params["user"], await request.json()
        await bare.answer(Telling(user, data["conversation_id"], data["message"]))
        return JSONResponse({"response": "Done.", "conversation_id": data["conversation_id"]})

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        async with Client(bare.server(), cache=None) as bare.client:
            yield

    routes = [Route("/api/{user}/chat", chat, methods=["POST"])]
    return Starlette(routes=routes, lifespan=living)


def main() -> None:
    """Serve until it is told to stop."""
    port, url, script, workers = sys.argv[1:]
    os.environ |= {"BENCH_URL": url, "BENCH_SCRIPT": script}
    here = str(Path(__file__).parent)
    more: Any = {"workers": int(workers), "log_level": "error", "access_log": False}
    uvicorn.run("chat_bare:make", factory=True, app_dir=here, port=int(port), **more)


if __name__ == "__main__":
    main()
