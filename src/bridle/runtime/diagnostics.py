"""Diagnostics: run the project's own linter on a file, right after the model has changed it.

This is a hook that runs after `write`, `edit` and `apply_patch`. The commands come from the
person's settings, or from a folder that they trust. They are judged by the same rules as the
model's commands and run in the same sandbox, but nobody is asked: in a sandbox, everything runs
that mode `auto` allows, and without one only what would run without asking. The output is a note
for the model, with the result of its edit, and a record in the log. A linter that finds nothing
prints nothing. Diagnostics never deny a call or make it fail.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bridle.config.diagnostics import Check, parse_check
from bridle.engine.call_middleware import apply_policy_engine
from bridle.engine.gate import Gate
from bridle.errors import AgentError, ToolError
from bridle.messages import ToolCall
from bridle.policy import Decision, Mode, Rule
from bridle.protocols.hooks import HookEvent, HookResult, Moment
from bridle.tools.apply_patch import ApplyPatch
from bridle.tools.shell.state import ShellState
from bridle.tools.shell.tool import Shell, find_bash
from bridle.tools.thread_pool import in_thread
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
MAX_OUTPUT = 8000  # characters of one command's output for the model
_MAX_FILES = 50
_MAX_READ = 1 << 20  # bytes of its output that are read
_MAX_COMMAND = 200  # characters of a command in a message


class Diagnostics:
    """The commands, and what they are judged by. Implements `runtime.hooks.HookRunner`."""

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

    async def run(self, event: HookEvent) -> HookResult:
        """Run the commands on the changed files, and return what they print."""
        if not event.ok:
            return HookResult()
        files = self._changed_files(event)
        reports = []
        for check in self._checks:
            if matching := check.matching(files)[:_MAX_FILES]:
                reports.append(await self._check_files(check, matching))
        return HookResult(word="\n".join(filter(None, reports)))

    def _changed_files(self, event: HookEvent) -> tuple[str, ...]:
        """Return the files of the workspace that the call named and that exist."""
        try:
            paths = _paths_of_edit(event)
        except (ToolError, TypeError):
            return ()
        root, files = self._workspace.root, []
        for path in paths:
            place = self._workspace.resolve_path(path)
            if place is not None and os.path.isfile(place):  # noqa: PTH113 - never raises
                files.append(os.path.relpath(place, root) if is_below(place, root) else place)
        return tuple(dict.fromkeys(files))

    async def _check_files(self, check: Check, files: tuple[str, ...]) -> str:
        """Return a report of one check; empty if it has nothing to say."""
        line = check.command(files)
        shown = one_line(line, _MAX_COMMAND)
        try:
            decision = await self._decide(line)
            if decision.verdict != "allow":
                return f"diagnostics: `{shown}` was not run: {decision.reason}"
            status, text = await self._run_command(line)
        except AgentError as error:
            return f"diagnostics: `{shown}` could not be run: {error.message}"
        return _report(shown, status, text, self._seconds)

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
        """In a sandbox everything runs that nothing denies; without one, what needs no approval."""
        return "auto" if self._level != "none" else "edits"

    async def _run_command(self, line: str) -> tuple[ExitStatus, str]:
        """Run it as the shell tool does, until all its processes have ended."""
        output = bytearray()

        def take(data: bytes) -> bool:
            output.extend(data[: _MAX_READ - len(output)])
            return len(output) < _MAX_READ

        root, shell = self._workspace.root, self._shell
        words = [find_bash(), "--noprofile", "--norc", "-c", 'eval -- "$1"', "bash", line]
        held = await shell.begin(level=self._level)
        command = Command(words, root, take, starter=self._starter(root, held))
        try:
            environment = shell.environment(is_confined=self._level != "none")
            status = await command.run(self._seconds, environment)
        finally:
            await in_thread(shell.end, held)
        return status, output.decode("utf-8", "replace")

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
    """Return checks of command lines. Raise `ConfigError`."""
    return tuple(
        check if isinstance(check, Check) else parse_check(check, "diagnostics") for check in given
    )


def _paths_of_edit(event: HookEvent) -> tuple[str, ...]:
    """Return the paths that an edit names. Raise `ToolError` or `TypeError`."""
    if event.tool == "apply_patch":
        return ApplyPatch().touched(event.arguments)
    path = event.arguments.get("path")
    if not isinstance(path, str):
        raise TypeError("no path")
    return (path,)


def _report(shown: str, status: ExitStatus, text: str, seconds: float) -> str:
    """Return what to tell the model about a run; nothing if the command found nothing."""
    output = shorten(neutral(text.replace("\r\n", "\n")).strip(), MAX_OUTPUT)
    if status.timed_out:
        limit = quantity(seconds, "second")
        return f"diagnostics: `{shown}` did not end within {limit}\n{output}".rstrip()
    if status.code == 0:
        return ""
    how = "was ended" if status.code is None else f"exit code {status.code}"
    return f"diagnostics: `{shown}`: {how}\n{output}".rstrip()
