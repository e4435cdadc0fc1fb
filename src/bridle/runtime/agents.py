"""Which agent carries the turns: by its name, and whether it could, here.

`loop` is our own and needs nobody. The others are made when they are asked for; what they need is
looked for only then, and `bridle doctor` asks without starting anything. What names a class of
somebody's own is in custom_agents.py.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from bridle.config.settings import PROVIDERS, vendor_of
from bridle.distribution import install_hint
from bridle.errors import ConfigError, MissingExtra
from bridle.promises.agent import BaseAgent
from bridle.runtime.custom_agents import (
    checked_custom,
    checked_object,
    found,
    installed,
    is_custom,
    made,
    names_code,
)
from bridle.workspace.lookup import find_program, here

LOOP = "loop"
CLAUDE = "claude-code"
ACP = "acp:"
_CHOICES = (
    'Use loop, claude-code, acp:COMMAND (such as acp:"gemini --acp"), MODULE:CLASS of an '
    "installed package, or PATH.py:CLASS."
)
_OF_A_COMMAND = {"description", "dangerouslyDisableSandbox", "timeout", "run_in_background"}
_CLAUDE_EXTRA = install_hint("claude")
_ACP_EXTRA = install_hint("acp")
_KNOWN_ACP = (  # programs that are known to speak ACP, and how
    *("gemini --acp", "opencode acp", "goose acp"),
    *("codex-acp", "qwen --acp", "claude-agent-acp", "vibe-acp"),
)


class Usable(Struct, frozen=True):
    """An agent, and whether it could carry a turn here; `lacks` says what to do where not."""

    name: str
    found: str
    good: bool
    lacks: str = ""


def is_agent(name: str) -> bool:
    """Is it the name of an agent other than our loop, as the log has it?"""
    return name == CLAUDE or name.startswith(ACP) or is_custom(name)


def check_agent(name: str, folder: str = "") -> str:
    """The name as it is meant; empty is our loop. Raise `ConfigError`.

    A path of a file is taken from that folder; without one it has to be the whole path.
    """
    name = name.strip()
    if name in ("", LOOP, CLAUDE):
        return name or LOOP
    if is_custom(name):
        return checked_custom(name, folder)
    if not name.startswith(ACP):
        raise ConfigError(f"there is no agent {name!r}", hint=_CHOICES)
    _words(name)
    return name


def check_ready(name: str, *roots: str) -> None:
    """Is there what it needs? Nothing is started. Raise `MissingExtra` or `ConfigError`."""
    if name == CLAUDE and find_spec("claude_agent_sdk") is None:
        raise MissingExtra(
            "claude-code needs the library claude-agent-sdk, and it is not there; "
            "nothing was started",
            hint=_CLAUDE_EXTRA,
        )
    if is_custom(name):
        found(name)
    if not name.startswith(ACP):
        return
    if find_spec("acp") is None:
        raise MissingExtra(
            f"{name} needs the library agent-client-protocol, and it is not there; "
            "nothing was started",
            hint=_ACP_EXTRA,
        )
    program = _words(name)[0]
    if "/" not in program and find_program(program, roots) is None:
        raise ConfigError(
            f"the program {program!r} of the agent {name} was not found; nothing was started",
            hint="Install it, or name the whole path; `bridle doctor` lists what is usable.",
        )


def check_model(name: str, model: str, *, asked: bool) -> str:
    """The model that the agent of that name is to use; empty where it chooses. `asked`: by a flag.

    A model of the settings is for our loop, unless it is one that the agent has, too. Raise
    `ConfigError` where one was asked for that the agent cannot have.
    """
    ours = vendor_of(model)
    if name == CLAUDE and (ours == "anthropic" or (asked and ours not in PROVIDERS)):
        return model.removeprefix("anthropic/")
    if name == LOOP or not asked:
        return ""
    if name == CLAUDE:
        raise ConfigError(
            f"claude-code runs Claude's models, and {model} is none",
            hint="Name one as Claude Code does (opus, claude-sonnet-5-5), or use --agent loop.",
        )
    raise ConfigError(
        f"{name} chooses its model itself, and cannot be told {model}",
        hint="Name the model in the agent's own settings.",
    )


def agent_of(name: str, *, model: str = "", inherit: Sequence[str] = ()) -> BaseAgent | None:
    """The agent of that name; None is our own loop. Raise `ConfigError`.

    `inherit` are variables of ours that an ACP program may have beside its own vendor's.
    """
    name = check_agent(name)
    if name == LOOP:
        return None
    if is_custom(name):
        return made(name)
    if name == CLAUDE:
        from bridle.agents.claude_code import ClaudeCodeAgent, ClaudeCodeConfig

        return ClaudeCodeAgent(ClaudeCodeConfig(model=model or None))
    from bridle.agents.acp import AcpAgent

    return AcpAgent(_words(name), inherit=inherit)


def child_agent_of(name: str) -> BaseAgent | None:
    """The agent of a child session, whose name a model wrote: it may name no code to import."""
    if names_code(name.strip()):
        raise ConfigError(
            f"a task cannot be given to {name}: only a person may name code to import",
            hint="Leave the agent out, or write `same` for the agent of this session.",
        )
    return agent_of(name)


def resolved(agent: BaseAgent | str | None) -> BaseAgent | None:
    """An agent as it was handed in, or by its name. Raise `ConfigError`."""
    if agent is None or isinstance(agent, str):
        name = check_agent(agent or LOOP, str(Path.cwd()))
        check_ready(name, *here())
        return agent_of(name)
    if isinstance(agent, type):
        raise ConfigError(
            f"{agent.__name__} is the class of an agent, and not an agent",
            hint=f"Hand in one of it: agent={agent.__name__}(…).",
        )
    return checked_object(agent, type(agent).__name__)


def translated(
    name: str, arguments: dict[str, Any], root: str
) -> tuple[str, dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]] | None:
    """A call by the name of one of Claude Code's tools, which many agents use, as one of ours.

    With the way back for arguments; None where it is no such name, or says more than ours can.
    """
    from bridle.agents.claude_code.tool_mapping import to_claude, to_ours

    found = to_ours(name, arguments, (root,))
    if found.name == name or (found.name == "shell" and found.rest.keys() - _OF_A_COMMAND):
        return None  # a command with a folder, say, of its own would not be judged in it
    return found.name, found.arguments, lambda new: to_claude(name, arguments, new, (root,))


def usable_agents() -> Iterator[Usable]:
    """Every agent that could be named, the usable ones and what the others lack."""
    yield Usable(LOOP, "bridle's own", True)
    yield _claude()
    yield from _acp()
    for name, point in installed().items():
        yield Usable(name, f"from {point.value}", True)


def _claude() -> Usable:
    if find_spec("claude_agent_sdk") is None:
        return Usable(CLAUDE, "its library is not installed", False, _CLAUDE_EXTRA)
    from bridle.agents.claude_code.process import find_program as find_claude

    found = find_claude()
    if not found:
        return Usable(CLAUDE, "the program `claude` is missing", False, _CLAUDE_EXTRA)
    return Usable(CLAUDE, f"at {found}", True)


def _acp() -> Iterator[Usable]:
    """The programs that are known to speak ACP and lie on the path."""
    if find_spec("acp") is None:
        yield Usable(f"{ACP}COMMAND", "its library is not installed", False, _ACP_EXTRA)
        return
    places = {command: find_program(command.split()[0], here()) for command in _KNOWN_ACP}
    found = {command: place for command, place in places.items() if place}
    for command, place in found.items():
        yield Usable(f"{ACP}{command}", f"at {place}", True)
    if not found:
        names = ", ".join(command.split()[0] for command in _KNOWN_ACP)
        yield Usable(f"{ACP}COMMAND", f"ready for any program that speaks it; no {names}", True)


def _words(name: str) -> list[str]:
    """The command of an ACP agent. Raise `ConfigError`."""
    try:
        words = shlex.split(name.removeprefix(ACP))
    except ValueError as error:
        said = f"the command of {name!r} cannot be read: {error}"
        raise ConfigError(said, hint=_CHOICES) from None
    if not words or not words[0].strip():
        raise ConfigError("acp: needs a command", hint=_CHOICES)
    return words
