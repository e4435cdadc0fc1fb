"""Which agent carries the turns: by its name, and whether it could, here.

`loop` is our own and needs nobody. The others are made when they are asked for; what they need is
looked for only then, and `bridle doctor` asks without starting anything.
"""

import shlex
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from bridle.errors import ConfigError
from bridle.promises.agent import BaseAgent

LOOP = "loop"
CLAUDE = "claude-code"
ACP = "acp:"
_CHOICES = 'It is loop, claude-code, or acp:COMMAND, such as acp:"gemini --acp".'
_KNOWN_ACP = ("gemini --acp", "opencode acp", "goose acp", "codex-acp", "qwen --acp")


class Usable(Struct, frozen=True):
    """An agent, and whether it could carry a turn here; `lacks` says what to do where not."""

    name: str
    found: str
    good: bool
    lacks: str = ""


def is_agent(name: str) -> bool:
    """Is it the name of an agent other than our loop, as the log has it?"""
    return name == CLAUDE or name.startswith(ACP)


def check_agent(name: str) -> str:
    """The name as it is meant; empty is our loop. Raise `ConfigError`."""
    name = name.strip()
    if name in ("", LOOP, CLAUDE):
        return name or LOOP
    if not name.startswith(ACP):
        raise ConfigError(f"there is no agent {name!r}", hint=_CHOICES)
    try:
        words = shlex.split(name.removeprefix(ACP))
    except ValueError as error:
        raise ConfigError(
            f"the command of {name!r} cannot be read: {error}", hint=_CHOICES
        ) from None
    if not words:
        raise ConfigError("acp: needs a command", hint=_CHOICES)
    return name


def agent_of(name: str, **options: Any) -> BaseAgent | None:
    """The agent of that name; None is our own loop. Raise `ConfigError`."""
    name = check_agent(name)
    if name == LOOP:
        return None
    if name == CLAUDE:
        from bridle.agents.claude_code import ClaudeCodeAgent

        return ClaudeCodeAgent(**options)
    from bridle.agents.acp import AcpAgent

    return AcpAgent(name.removeprefix(ACP), **options)


def resolved(agent: BaseAgent | str | None) -> BaseAgent | None:
    """An agent as it was handed in, or by its name. Raise `ConfigError`."""
    if agent is None or isinstance(agent, str):
        return agent_of(agent or LOOP)
    lacking = [one for one in ("execute", "cancel", "shutdown") if not hasattr(agent, one)]
    if lacking:
        raise ConfigError(
            f"{type(agent).__name__} is no agent: it has no {', '.join(lacking)}",
            hint="An agent has execute, cancel and shutdown, as in bridle.agents.base.",
        )
    return agent


def usable_agents() -> Iterator[Usable]:
    """Every agent that could be named, the usable ones and what the others lack."""
    yield Usable(LOOP, "bridle's own", True)
    yield _claude()
    yield from _acp()


def _claude() -> Usable:
    if find_spec("claude_agent_sdk") is None:
        return Usable(CLAUDE, "not installed", False, "pip install 'bridle[claude]'")
    from bridle.agents.claude_process import find_program

    found = find_program()
    if not found:
        return Usable(CLAUDE, "the program is missing", False, "Install Claude Code, or its SDK.")
    return Usable(CLAUDE, f"at {found}", True)


def _acp() -> Iterator[Usable]:
    """The programs that are known to speak ACP and lie on the path."""
    if find_spec("acp") is None:
        yield Usable(f"{ACP}COMMAND", "not installed", False, "pip install 'bridle[acp]'")
        return
    found = [one for one in _KNOWN_ACP if shutil.which(one.split()[0])]
    if not found:
        yield Usable(f"{ACP}COMMAND", "ready; no program that is known to speak it was found", True)
    for one in found:
        yield Usable(f"{ACP}{one}", f"at {shutil.which(one.split()[0])}", True)
