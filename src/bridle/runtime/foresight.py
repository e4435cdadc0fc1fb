"""What would be decided of a call, found with the real tools, facts and rules. Runs nothing.

`bridle policy` and a replay under another policy ask here; the engine has the same parts.
"""

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bridle.engine.facts import facts_of
from bridle.engine.ruled_reads import with_ruled_reads
from bridle.messages import ToolCall
from bridle.policy import Decision, Facts, Mode, Rule, ToolPolicy, decide
from bridle.promises.ground import Ground
from bridle.promises.tool import Tool, ToolContext, ToolResult
from bridle.runtime.grounding import LaterGround, own_places, sandbox_of
from bridle.workspace.paths import Workspace

_SUBJECTS = {"web_fetch": "url", "fetch": "url"}
_OFF = "there is no tool web_fetch here: it is off as long as the settings name no hosts"


class Foreseen(NamedTuple):
    """What is known of a call, and what that comes to."""

    facts: Facts
    decision: Decision


class Foresight:
    """Decides calls in a folder.

    With `offered_only` it says what would happen here and now: a tool that is off is denied, and
    of one that nobody knows (it may be offered later, by a program) nothing is taken for granted.
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

    def decide(
        self, call: ToolCall, mode: Mode = "ask", rules: tuple[Rule, ...] = (), cwd: str = ""
    ) -> Foreseen:
        """What would be decided, with these rules beside the standing ones."""
        known = self.tools.get(call.name)
        tool = known or _Unknown(call.name)
        folder = os.path.normpath(Path(self.ground.root, cwd)) if cwd else ""
        sandboxed = self.sandbox if mode == "auto" else False  # it takes 10 ms to look for one
        facts = facts_of(call, tool, self.ground, cwd=folder, sandboxed=sandboxed)
        rules = self.rules + rules
        if rules and tool.policy.runs:
            facts = with_ruled_reads(facts, self.ground, rules, folder)
        if known is None and self._offered_only:
            return Foreseen(facts, _unoffered(call, facts, rules, mode))
        return Foreseen(facts, decide(call, facts, rules, mode))

    def call(self, tool: str, subject: str) -> ToolCall:
        """A call of that tool with that command, path or host."""
        known = self.tools.get(tool)
        if known is not None and known.policy.runs:
            return ToolCall("", tool, {known.policy.runs: subject})
        if key := _SUBJECTS.get(tool):
            url = subject if "://" in subject else f"https://{subject}/"
            return ToolCall("", "web_fetch", {key: url})
        if known is not None and hasattr(known, "touched"):
            known = None  # which paths it touches stands in a text of its own: `write` will do
            tool = "write"
        return ToolCall("", tool, {"path": subject})


def _unoffered(call: ToolCall, facts: Facts, rules: tuple[Rule, ...], mode: Mode) -> Decision:
    """What is decided of a tool that is not here. Rules about it hold, for when it is."""
    if call.name in _SUBJECTS:
        return Decision("deny", _OFF)
    found = decide(call, facts, rules, "ask" if mode == "auto" else mode)
    if found.verdict != "ask" or found.rule:
        return found
    return Decision("ask", f"no tool {call.name} is known here, so nobody knows what it would do")


class _Unknown:
    """A tool of which nothing is known but its name: it asks."""

    description = ""
    parameters: dict[str, Any] = {}
    policy = ToolPolicy(requires_approval=True)

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """There is nothing to run."""
        return ToolResult.failure(f"there is no tool {self.name}")
