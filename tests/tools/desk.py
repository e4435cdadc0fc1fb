"""A workspace and the memory of one session, for tests that call tools one after the other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridle.errors import ToolError
from bridle.events import Event
from bridle.policy import Mode
from bridle.protocols.tool import Tool, ToolContext, ToolResult
from bridle.tools.read import Read
from bridle.workspace.workspace import Workspace


class Desk:
    """Calls tools as one session would: what was read before is remembered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self.memory: dict[str, Any] = {}
        self.events: list[Event] = []
        self.word = ""
        self.mode: Mode = "ask"

    def run(self, tool: Tool, **arguments: Any) -> ToolResult:
        context: ToolContext[None] = ToolContext(
            self.workspace,
            "1",
            emit=self.events.append,
            memory=self.memory,
            word=self.word,
            mode=self.mode,
        )
        return asyncio.run(tool.execute(arguments, context))

    def refused(self, tool: Tool, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.run(tool, **arguments)
        return caught.value.message

    def put(self, path: str, data: bytes | str, *, read: bool = True) -> Path:
        """A file, which the session has read."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        if read:
            self.run(Read(), path=path)
        return file
