"""The tools that come with bridle, under their final names."""

from bridle.promises.tool import Tool
from bridle.tools.edit import Edit
from bridle.tools.glob import Glob
from bridle.tools.grep import Grep
from bridle.tools.read import Read
from bridle.tools.shell import Shell
from bridle.tools.todo import TodoWrite
from bridle.tools.write import Write


def builtin_tools() -> tuple[Tool, ...]:
    """One of each: read, write, edit, glob, grep, shell, todo_write."""
    return (Read(), Write(), Edit(), Glob(), Grep(), Shell(), TodoWrite())
