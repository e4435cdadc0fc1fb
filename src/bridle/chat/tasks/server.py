"""`MCPToolServer`: the tools over a user's tasks, as a real MCP server."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from bridle.chat.tasks import tools_bulk as tools_bulk  # it puts its tools into the toolbox
from bridle.chat.tasks.tools import TASKS as TASKS
from bridle.chat.toolbox_server import ToolServer

if TYPE_CHECKING:
    from sqlmodel import Session


class MCPToolServer(ToolServer):
    """The task tools. `session_factory` returns a `Session`; each call has its own."""

    def __init__(self, session_factory: "Callable[[], Session]") -> None:
        super().__init__(TASKS, session_factory)
