"""A process that makes worker processes: each answers a story, and may be killed in its midst.

Everything is imported once; each line on stdin is a JSON order, for which a child is forked. The
child counts what it does in the database and kills itself, as `kill -9` would, before the n-th
thing. What it answered until then is in the order's file; a line on stdout says that it ended.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from small_runner import SmallRunner
from sqlalchemy import event

from bridle.chat import AgentRunner, ChatService, MCPToolServer
from bridle.chat.db import Database
from bridle.chat.values import ServiceLimits

LIMITS = ServiceLimits(messages_a_minute=0)


def make_service(database, kind):
    """With the small runner of the tests, or with the real one and its real tools."""
    if kind == "small":
        return ChatService(database, SmallRunner(database), LIMITS), None
    tools = MCPToolServer(database.session_factory)
    return ChatService(database, AgentRunner(database.session_factory, tools), LIMITS), tools


class Moments:
    """Counts statements and commits, before and after; at the n-th the process is gone."""

    def __init__(self, engine, last):
        self.count, self.last = 0, last
        for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
            event.listen(engine, name, self._moment)

    def _moment(self, *_):
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


async def tell(order, database):
    """The story: one message after the other in one conversation, each with its key."""
    service, tools = make_service(database, order["kind"])
    moments = Moments(database.engine, order["last"])
    conversation = order.get("conversation")
    if order.get("at_once"):
        sent = [service.reply("ana", one, conversation) for one in order["messages"]]
        await asyncio.gather(*sent)
        order["messages"] = []
    for number, message in enumerate(order["messages"]):
        reply = await service.reply("ana", message, conversation, key=f"k{number}")
        conversation = reply.conversation_id
        note(order, [number, reply.response, reply.message_id])
    note(order, ["moments", moments.count])
    await service.close()
    if tools is not None:
        await tools.close()


def note(order, what):
    with Path(order["file"]).open("a") as answers:
        answers.write(json.dumps(what) + "\n")


def child(order):
    """Fork; the new process tells the story and ends."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        database = Database(order["url"])
        asyncio.run(tell(order, database))
        database.close()
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def warm():
    """What is imported with the first message is imported here, before any fork."""
    with tempfile.TemporaryDirectory() as room:
        url = f"sqlite:///{room}/warm.db"
        database = Database(url)
        database.migrate()
        told = ["Add task a", "Show my tasks"]
        order = {"kind": "real", "last": 0, "file": f"{room}/file", "messages": told}
        asyncio.run(tell(order, database))
        database.close()


def main():
    warm()
    for line in sys.stdin:
        order = json.loads(line)
        stories = order.get("stories") or [order["messages"]]
        children = [child({**order, "messages": one}) for one in stories]
        codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children]
        print(json.dumps(codes[0] if len(codes) == 1 else codes), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
