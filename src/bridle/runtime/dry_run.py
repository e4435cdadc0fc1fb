"""What the gate would decide about a call, with the real tools, facts and rules. Runs nothing.

`bridle policy`, the preview of a rule and the re-evaluation of past calls use it.
"""

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bridle.engine.gate import ForeignTool, Gate, JudgedCall
from bridle.messages import ToolCall
from bridle.policy import Decision, Mode, Rule, ToolPolicy
from bridle.promises.ground import Ground
from bridle.promises.tool import Tool, ToolContext, ToolResult
from bridle.runtime.grounding import LaterGround, own_places, sandbox_of
from bridle.workspace.paths import Workspace

_URL_ARGUMENTS = {"web_fetch": "url", "fetch": "url"}
_FETCH_OFF = "there is no tool web_fetch here: it is off as long as the settings name no hosts"


class DryRun:
    """Judges calls in a folder without running them.

    With `offered_only` it says what would happen here and now: a tool that is off is denied, and
    nothing is taken for granted about an unknown tool, which a program may offer later.
    """

    def __init__(
        self,
        root: str | Path,
        rules: Iterable[Rule] = (),
        *,
        also: Iterable[str | os.PathLike[str]] = (),
        sandbox: str = "auto",
        hosts: Iterable[str] = (),
        offered_only: bool = False,
    ) -> None:
        self._offered_only = offered_only
        self.rules = tuple(rules)
        self._hosts = tuple(hosts)
        workspace = Workspace(root, also=tuple(map(str, also)))
        own = own_places(os.environ)
        self.sandbox = sandbox_of(workspace, own, sandbox)
        self.ground: Ground = LaterGround(workspace, own, self.sandbox)

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """The tools that come with bridle, by name."""
        from bridle.tools.builtin import builtin_tools

        tools = builtin_tools(sandbox=self.sandbox, hosts=self._hosts)
        return {tool.name: tool for tool in tools}

    def judge(
        self,
        call: ToolCall,
        mode: Mode = "ask",
        rules: tuple[Rule, ...] = (),
        cwd: str = "",
        *,
        foreign: bool = False,
    ) -> JudgedCall:
        """Return what the gate would say of a call, with these rules besides the standing ones.

        `foreign`: another agent would make it by its own means.
        """
        tool = self.tools.get(call.name)
        folder = os.path.normpath(Path(self.ground.root, cwd)) if cwd else ""
        if tool is None and foreign:
            return self._gate(mode, rules).judge(call, ForeignTool(call.name), foreign=True)
        if tool is None and self._offered_only:
            return self._judge_unoffered(call, mode, rules)
        tool = tool or _UnknownTool(call.name)
        return self._gate(mode, rules).judge(call, tool, folder, foreign=foreign)

    def call(self, tool: str, subject: str) -> ToolCall:
        """Return a call of that tool with that command, path or host."""
        known = self.tools.get(tool)
        if known is not None and known.policy.runs:
            return ToolCall("", tool, {known.policy.runs: subject})
        if key := _URL_ARGUMENTS.get(tool):
            url = subject if "://" in subject else f"https://{subject}/"
            return ToolCall("", "web_fetch", {key: url})
        if known is not None and hasattr(known, "touched"):
            tool = "write"  # the paths that it touches stand in a text of its own
        return ToolCall("", tool, {"path": subject})

    def _gate(self, mode: Mode, rules: tuple[Rule, ...]) -> Gate:
        return Gate(
            root=self.ground.root,
            rules=self.rules + rules,
            mode=lambda: mode,
            ground=self.ground,
            sandbox=self.sandbox,
        )

    def _judge_unoffered(self, call: ToolCall, mode: Mode, rules: tuple[Rule, ...]) -> JudgedCall:
        """Judge a call of a tool that is not here. Rules about it hold for when it is."""
        judged = self._gate("ask" if mode == "auto" else mode, rules).judge(
            call, _UnknownTool(call.name)
        )
        if call.name in _URL_ARGUMENTS:
            return replace(judged, decision=Decision("deny", _FETCH_OFF))
        if judged.decision.verdict != "ask" or judged.decision.rule:
            return judged
        reason = f"no tool {call.name} is known here, so nobody knows what it would do"
        return replace(judged, decision=Decision("ask", reason))


class _UnknownTool:
    """A tool of which nothing is known but its name: it asks."""

    description = ""
    parameters: dict[str, Any] = {}
    policy = ToolPolicy(requires_approval=True)

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Refuse: there is nothing to run."""
        return ToolResult.failure(f"there is no tool {self.name}")
