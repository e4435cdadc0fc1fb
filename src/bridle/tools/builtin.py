"""The tools that come with bridle, under their final names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bridle.protocols.tool import Tool
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.ask_user import AskUser
from bridle.tools.edit import Edit
from bridle.tools.exit_plan_mode import ExitPlanMode
from bridle.tools.glob import Glob
from bridle.tools.grep import Grep
from bridle.tools.list import List
from bridle.tools.read import Read
from bridle.tools.shell import LONGEST, Shell
from bridle.tools.shell_output import ShellOutput
from bridle.tools.shell_stop import ShellStop
from bridle.tools.task import TaskTool
from bridle.tools.todo import TodoWrite
from bridle.tools.write import Write

if TYPE_CHECKING:
    from bridle.tools.skill import Readable
    from bridle.workspace.sandbox import Sandbox


def builtin_tools(
    *,
    sandbox: "Sandbox | None" = None,
    hosts: Sequence[str] = (),
    skills: "Sequence[Readable]" = (),
    longest: float = LONGEST,
) -> tuple[Tool, ...]:
    """One of each; `web_fetch` and `skill` only where there are hosts and skills to read.

    Commands run in that sandbox, if there is one, for at most `longest` seconds.
    """
    tools: tuple[Tool, ...] = (
        *(Read(), Write(), Edit(), ApplyPatch(), Glob(), Grep(), List()),
        *(Shell(sandbox, longest), ShellOutput(), ShellStop()),
        *(TodoWrite(), AskUser(), ExitPlanMode(), TaskTool()),
    )
    if skills:
        from bridle.tools.skill import SkillTool

        tools = (*tools, SkillTool(skills))
    if not hosts:
        return tools
    from bridle.tools.web_fetch import WebFetch

    return (*tools, WebFetch(hosts))
