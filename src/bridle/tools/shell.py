"""The tool `shell`: a command in a fixed shell, in the workspace, with a clean environment.

Output is said as it comes, and bounded: the beginning and the end are kept. Whether a command may
run is the gate's to say, not this module's.
"""

import asyncio
import codecs
import signal
from collections import deque
from pathlib import Path
from typing import Any

from bridle.policy import ToolPolicy
from bridle.promises.tool import ToolContext, ToolResult
from bridle.tools.process import Ended, Program, clean_environment
from bridle.tools.prose import Prose

TIMEOUT = 120.0  # seconds, when the model names none
LONGEST = 3600.0
OUTPUT = 30_000  # characters that are kept, and that are said while it runs
_SHELLS = ("/bin/bash", "/bin/sh")


class Output:
    """The beginning and the end of what a program says, in bounded memory."""

    def __init__(self, say: Any, limit: int = OUTPUT) -> None:
        self._say = say
        self._head_room = limit * 2 // 3
        self._tail_most = limit - self._head_room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._left_out = 0
        self._said = 0
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes, final: bool = False) -> bool:
        """Take some more; there is never enough."""
        text = self._decode(data, final)
        self._speak(text)
        head, rest = text[: self._head_room], text[self._head_room :]
        if head:
            self._head.append(head)
            self._head_room -= len(head)
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            self._trim()
        return True

    def _speak(self, text: str) -> None:
        room = self._limit - self._said
        if not text or room < 0:
            return
        self._said += len(text)
        fits = len(text) <= room
        self._say(text if fits else f"{text[:room]}\n[… more output, not shown here]\n")

    def _trim(self) -> None:
        while self._tail_size > self._tail_most:
            over = self._tail_size - self._tail_most
            first = self._tail[0]
            if len(first) <= over:
                self._tail.popleft()
            else:
                self._tail[0] = first[over:]
            gone = min(len(first), over)
            self._tail_size -= gone
            self._left_out += gone

    @property
    def text(self) -> str:
        """What is kept, with a line that says how much is not."""
        gap = f"\n[… {self._left_out:,} characters are left out here …]\n" if self._left_out else ""
        return "".join(self._head) + gap + "".join(self._tail)


class Shell:
    """Runs a command."""

    name = "shell"
    description = Prose("shell")
    policy = ToolPolicy(risk="high")
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The command line."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": LONGEST,
                "description": "Seconds after which it is ended. Default: 120.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    }

    async def execute(self, arguments: dict[str, Any], context: ToolContext[Any]) -> ToolResult:
        """Run it to its end, or to the end of its time."""
        output = Output(context.say)
        program = Program(
            [_shell(), "-c", arguments["command"]], context.workspace.root, output.take
        )
        timeout = _seconds(arguments, context)
        ended = await program.run(timeout, clean_environment())
        output.take(b"", final=True)
        return _result(output.text, ended, timeout)


def _shell() -> str:
    return next((path for path in _SHELLS if Path(path).exists()), _SHELLS[-1])


def _seconds(arguments: dict[str, Any], context: ToolContext[Any]) -> float:
    asked = min(float(arguments.get("timeout", TIMEOUT)), LONGEST)
    if context.deadline is None:
        return asked
    return max(min(asked, context.deadline - asyncio.get_running_loop().time()), 0.0)


def _result(output: str, ended: Ended, timeout: float) -> ToolResult:
    if ended.timed_out:
        how = f"timed out after {timeout:g} s; the command and its children were ended"
    elif ended.code is not None and ended.code < 0:
        how = f"ended by signal {_signal_name(-ended.code)}"
    else:
        how = f"exit code {ended.code}"
    if ended.left_behind:
        how += "; a process that left the group still runs"
    separator = "" if output.endswith("\n") or not output else "\n"
    text = f"{output or '(no output)' + chr(10)}{separator}[{how}]"
    data = {"exit_code": ended.code, "output": output, "timed_out": ended.timed_out}
    return ToolResult(ended.code == 0, text, data)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
