"""Diagnostics: what a project's own linter says of a file, right after the model has changed it.

A voice among the hooks, heard after `write`, `edit` and `apply_patch`. The commands come from the
person's settings, or from a folder that they trust; they are judged by the same rules as the
model's commands and run in the same sandbox, where nobody is asked: what would need an answer in
`auto` does not run, and without a sandbox only what would run unasked. What they say is a word for
the model, with the result of its edit, and a record of the log. A linter that finds nothing says
nothing. It denies nothing, and breaks nothing.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bridle.config.diagnostics import Check, parse_check
from bridle.engine.gate import Gate
from bridle.engine.hooks import apply_policy_engine
from bridle.errors import AgentError, ToolError
from bridle.messages import ToolCall
from bridle.policy import Decision, Mode, Rule
from bridle.protocols.hooks import HookEvent, HookResult, Moment
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.shell.state import ShellState
from bridle.tools.shell.tool import Shell, find_bash
from bridle.tools.threads import in_thread
from bridle.workspace.fs import is_below
from bridle.workspace.process.command import Command, ExitStatus
from bridle.workspace.sandbox import Sandbox, supervised_start
from bridle.workspace.text import neutral, one_line, quantity, shorten

if TYPE_CHECKING:
    from bridle.engine.engine_config import PolicyEngine
    from bridle.protocols.machine import Machine
    from bridle.tools.guarded_root import Run
    from bridle.workspace.workspace import Workspace

SECONDS = 30.0  # for one command
MOST = 8000  # characters that are told of one
_MOST_FILES = 50
_BYTES = 1 << 20  # that are read of one
_SHOWN = 200  # characters of a command, where it is named


class Diagnostics:
    """The commands, and what they are judged by. Keeps the shape of a `Voice`."""

    name = "diagnostics"
    on: tuple[Moment, ...] = ("after_tool",)
    tools = ("write", "edit", "apply_patch")

    def __init__(
        self,
        checks: Iterable[Check],
        workspace: "Workspace",
        *,
        rules: Iterable[Rule] = (),
        machine: "Machine | None" = None,
        sandbox: Sandbox | None = None,
        policy_engine: "PolicyEngine | None" = None,
        policy_engine_seconds: float = 10.0,
        seconds: float = SECONDS,
    ) -> None:
        self._checks = tuple(checks)
        self._workspace = workspace
        self._sandbox = sandbox
        self._policy_engine = policy_engine
        self._policy_engine_seconds = policy_engine_seconds
        self._seconds = seconds
        self._gate = Gate(
            root=workspace.root,
            rules=tuple(rules),
            mode=lambda: self._mode,
            machine=machine,
            sandbox=sandbox if sandbox is not None else "",
        )

    async def speak(self, event: HookEvent) -> HookResult:
        """Look at what was changed, and say what was found."""
        if not event.ok:
            return HookResult()
        files = self._changed(event)
        said = []
        for check in self._checks:
            if concerned := check.matching(files)[:_MOST_FILES]:
                said.append(await self._look(check, concerned))
        return HookResult(word="\n".join(filter(None, said)))

    def _changed(self, event: HookEvent) -> tuple[str, ...]:
        """The files of the workspace that the call named and that are there now."""
        try:
            named = _named(event)
        except (ToolError, TypeError):
            return ()
        root, found = self._workspace.root, []
        for path in named:
            place = self._workspace.resolve_path(path)
            if place is not None and os.path.isfile(place):  # noqa: PTH113 - never raises
                found.append(os.path.relpath(place, root) if is_below(place, root) else place)
        return tuple(dict.fromkeys(found))

    async def _look(self, check: Check, files: tuple[str, ...]) -> str:
        """What one of them says, in words; empty where it has nothing to say."""
        line = check.command(files)
        shown = one_line(line, _SHOWN)
        try:
            decision = await self._decide(line)
            if decision.verdict != "allow":
                return f"diagnostics: `{shown}` was not run: {decision.reason}"
            ended, text = await self._run(line)
        except AgentError as error:
            return f"diagnostics: `{shown}` could not be run: {error.message}"
        return _told(shown, ended, text, self._seconds)

    async def _decide(self, line: str) -> Decision:
        """Judge the command as if the model had called the shell with it. Nobody is asked."""
        call = ToolCall("diagnostics", "shell", {"command": line})
        judged = self._gate.judge(call, Shell())
        if self._policy_engine is not None and judged.decision.verdict != "deny":
            judged = await apply_policy_engine(
                self._policy_engine, judged, self._mode, seconds=self._policy_engine_seconds
            )
        decision = judged.decision
        if decision.verdict == "ask":
            reason = f"{decision.reason}; without a sandbox that takes a rule that allows it"
            return Decision("deny", reason, decision.rule)
        return decision

    @property
    def _mode(self) -> Mode:
        """In a sandbox everything runs that nothing denies; without one, what runs unasked."""
        return "auto" if self._level != "none" else "edits"

    async def _run(self, line: str) -> tuple[ExitStatus, str]:
        """Run it as the shell tool runs a command, and stay until everybody is gone."""
        heard = bytearray()

        def take(data: bytes) -> bool:
            heard.extend(data[: _BYTES - len(heard)])
            return len(heard) < _BYTES

        root, shell = self._workspace.root, self._shell
        words = [find_bash(), "--noprofile", "--norc", "-c", 'eval -- "$1"', "bash", line]
        held = await shell.begin(level=self._level)
        command = Command(words, root, take, starter=self._starter(root, held))
        try:
            environment = shell.environment(is_confined=self._level != "none")
            ended = await command.run(self._seconds, environment)
        finally:
            await in_thread(shell.end, held)
        return ended, heard.decode("utf-8", "replace")

    @cached_property
    def _shell(self) -> ShellState:
        return ShellState(self._workspace.roots, self._sandbox)

    @property
    def _level(self) -> str:
        return self._sandbox.level if self._sandbox is not None else "none"

    def _starter(self, root: str, held: "Run") -> Callable[[Sequence[str], int], Any]:
        if self._sandbox is None or self._level == "none":
            return supervised_start
        sandbox = self._sandbox
        return lambda argv, lifeline: sandbox.start(
            argv, root, lifeline, unreadable=held.unreadable, unwritable=held.unwritable
        )


def as_checks(given: Iterable[Check | str]) -> tuple[Check, ...]:
    """Command lines, read or as they were written. Raise `ConfigError`."""
    return tuple(
        one if isinstance(one, Check) else parse_check(one, "diagnostics") for one in given
    )


def _named(event: HookEvent) -> tuple[str, ...]:
    """The paths that an edit names. Raise `ToolError`, `TypeError`."""
    if event.tool == "apply_patch":
        return ApplyPatch().touched(event.arguments)
    path = event.arguments.get("path")
    if not isinstance(path, str):
        raise TypeError("no path")
    return (path,)


def _told(shown: str, ended: ExitStatus, text: str, seconds: float) -> str:
    """What is said of a run; nothing where there was nothing to find."""
    said = shorten(neutral(text.replace("\r\n", "\n")).strip(), MOST)
    if ended.timed_out:
        limit = quantity(seconds, "second")
        return f"diagnostics: `{shown}` did not end within {limit}\n{said}".rstrip()
    if ended.code == 0:
        return ""
    how = "was ended" if ended.code is None else f"exit code {ended.code}"
    return f"diagnostics: `{shown}`: {how}\n{said}".rstrip()
