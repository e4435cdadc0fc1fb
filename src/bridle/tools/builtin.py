"""The tools that come with bridle."""

from collections.abc import Sequence

from bridle.protocols.tool import Tool
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.edit import Edit
from bridle.tools.glob import Glob
from bridle.tools.grep import Grep
from bridle.tools.list import List
from bridle.tools.read import Read
from bridle.tools.session_tools import AskUser, ExitPlanMode, TaskTool, TodoWrite
from bridle.tools.shell.tool import LONGEST, Shell, ShellOutput, ShellStop
from bridle.tools.skill import Skill, SkillTool
from bridle.tools.web_fetch import WebFetch
from bridle.tools.write import Write
from bridle.workspace.sandbox import Sandbox


def builtin_tools(
    *,
    sandbox: Sandbox | None = None,
    hosts: Sequence[str] = (),
    skills: Sequence[Skill] = (),
    longest: float = LONGEST,
) -> tuple[Tool, ...]:
    """Return one of each; `skill` and `web_fetch` only if there are skills and hosts.

    Commands run in the sandbox, if there is one, for at most `longest` seconds.
    """
    tools: tuple[Tool, ...] = (
        *(Read(), Write(), Edit(), ApplyPatch(), Glob(), Grep(), List()),
        *(Shell(sandbox, longest), ShellOutput(), ShellStop()),
        *(TodoWrite(), AskUser(), ExitPlanMode(), TaskTool()),
    )
    if skills:
        tools = (*tools, SkillTool(skills))
    if not hosts:
        return tools
    return (*tools, WebFetch(hosts))
