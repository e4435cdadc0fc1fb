"""Agents by name: our loop, Claude Code, programs that speak ACP, and custom agents.

A custom agent is `MODULE:CLASS`, `PATH.py:CLASS` or an entry point. `MODULE:CLASS` is in an
installed package: modules of the current folder are not imported by that name. `PATH.py:CLASS`
names a file. A package can give its agents short names in the entry-point group `bridle.agents`.
The name may stand for a class that takes no arguments, a function that returns an agent, or an
agent object.
"""

import importlib
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from bridle.config.settings import PROVIDERS, vendor_of
from bridle.distribution import install_hint
from bridle.errors import AgentError, ConfigError, MissingExtra
from bridle.protocols.agent import AgentResponse, BaseAgent
from bridle.workspace.programs import find_program, working_folder

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bridle.agents"
_RESERVED = ("", "loop", "claude-code", "offline", "scripted")
_IN_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_IN_FILE = re.compile(r"(.+\.py):([A-Za-z_]\w*)", re.ASCII)
_METHODS = ("execute", "cancel", "shutdown")


class NamedAgent:
    """An agent with the name it was started by, so that a resumed session finds it again."""

    def __init__(self, name: str, agent: BaseAgent) -> None:
        self.name = name
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    async def execute(self, prompt: str, session: Any, **callbacks: Any) -> AgentResponse:
        """Run the prompt to its end."""
        return await self._agent.execute(prompt, session, **callbacks)

    async def cancel(self, session_id: str) -> None:
        """Cancel the turn of that session."""
        await self._agent.cancel(session_id)

    async def shutdown(self) -> None:
        """Stop everything that it has started."""
        await self._agent.shutdown()


def is_custom(name: str) -> bool:
    """Is it the name of a custom agent?"""
    if name in _RESERVED or name.startswith(("acp:", "scripted:")):
        return False
    return is_import_name(name) or ("/" not in name and name in installed_agents())


def is_import_name(name: str) -> bool:
    """Is it MODULE:CLASS or PATH.py:CLASS?"""
    return bool(_IN_MODULE.fullmatch(name)) or is_file_name(name)


def is_file_name(name: str) -> bool:
    """Is it PATH.py:CLASS?"""
    return not name.startswith("acp:") and bool(_IN_FILE.fullmatch(name))


@cache
def installed_agents() -> "dict[str, EntryPoint]":
    """Return the agents that installed packages offer, by name."""
    from importlib.metadata import entry_points  # it costs a start 30 ms

    return {
        point.name: point
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)
        if point.name not in _RESERVED and not re.search(r"[/:\s]", point.name)
    }


def complete_name(name: str, folder: str = "") -> str:
    """Return the name, with the absolute path of a file. Raise `ConfigError`."""
    if not (match := _IN_FILE.fullmatch(name)):
        return name
    path = Path(match[1]).expanduser()
    if not (path.is_absolute() or folder):
        raise ConfigError(
            f"the agent {name} is a file, but its path is not absolute",
            hint="Write the absolute path; only a flag may use a relative path.",
        )
    return f"{os.path.normpath(Path(folder) / path)}:{match[2]}"


def load_attribute(name: str) -> Any:
    """Import what the name stands for: a class, a function or an agent. Raise `ConfigError`."""
    if point := installed_agents().get(name):
        return _get_attribute(_import_module(point.module), point.attr, name)
    if match := _IN_FILE.fullmatch(name):
        return _get_attribute(_import_file(match[1]), match[2], name)
    module, _, attribute = name.partition(":")
    return _get_attribute(_import_module(module), attribute, name)


def make_agent(name: str) -> BaseAgent:
    """Make the agent of that name. Raise `ConfigError`."""
    value = load_attribute(name)
    if isinstance(value, type) or not all(hasattr(value, method) for method in _METHODS):
        try:
            value = value()
        except AgentError:
            raise
        except Exception as error:  # it is somebody else's code
            raise ConfigError(
                f"the agent {name} could not be made: {type(error).__name__}: {error}",
                error,
                hint="Name a class that takes no arguments, or a function that makes the agent.",
            ) from error
    return NamedAgent(name, check_object(value, name))


def check_object(value: Any, name: str) -> BaseAgent:
    """Return the object if it has the methods of an agent. Raise `ConfigError`."""
    if lacking := [method for method in _METHODS if not hasattr(value, method)]:
        raise ConfigError(
            f"{name} is not an agent: it has no {', '.join(lacking)}",
            hint="An agent has execute, cancel and shutdown, as in bridle.agents.base.",
        )
    agent: BaseAgent = value
    return agent


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _import_failure(name, error) from error
        raise ConfigError(
            f"there is no module {name!r} in the packages that are installed for {sys.executable}",
            error,
            hint="Install the agent's package there, or name its file: --agent PATH.py:CLASS.",
        ) from error
    except Exception as error:  # it is somebody else's code
        raise _import_failure(name, error) from error


def _import_file(path: str) -> ModuleType:
    """Import the module of a file, once."""
    name = f"bridle_agent_{re.sub(r'[^A-Za-z0-9]', '_', path)}"
    if name in sys.modules:
        return sys.modules[name]
    if not Path(path).is_file():
        raise ConfigError(f"there is no file {path}", hint="Write PATH.py:CLASS.")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # it is somebody else's code
        del sys.modules[name]
        raise _import_failure(path, error) from error
    return module


def _get_attribute(module: ModuleType, attribute: str, name: str) -> Any:
    try:
        value = module
        for part in attribute.split("."):
            value = getattr(value, part)
        return value
    except AttributeError as error:
        agents = [key for key in vars(module) if hasattr(getattr(module, key), "execute")]
        raise ConfigError(
            f"the agent {name} was not found: {module.__name__} has no {attribute!r}",
            error,
            hint=f"It has {', '.join(agents)}." if agents else "Check the name of the class.",
        ) from error


def _import_failure(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{name} could not be imported: {type(error).__name__}: {error}",
        error,
        hint="Fix the agent's code; importing it in Python shows where it fails.",
    )


LOOP = "loop"
CLAUDE = "claude-code"
ACP = "acp:"
_CHOICES = (
    'Use loop, claude-code, acp:COMMAND (such as acp:"gemini --acp"), MODULE:CLASS of an '
    "installed package, or PATH.py:CLASS."
)
_SHELL_ARGUMENTS = {"description", "dangerouslyDisableSandbox", "timeout", "run_in_background"}
_KNOWN_ACP = (  # programs that are known to speak ACP, and how
    *("gemini --acp", "opencode acp", "goose acp"),
    *("codex-acp", "qwen --acp", "claude-agent-acp", "vibe-acp"),
)


class AgentStatus(Struct, frozen=True):
    """An agent, and whether it can be used here; if not, `lacks` says what to do."""

    name: str
    found: str
    good: bool
    lacks: str = ""


def is_agent(name: str) -> bool:
    """Is it the name of an agent other than our loop, as logs contain it?"""
    return name == CLAUDE or name.startswith(ACP) or is_custom(name)


def check_agent(name: str, folder: str = "") -> str:
    """Return the full name; an empty one is our loop. Raise `ConfigError`.

    A path of a file is relative to `folder`; without one it has to be absolute.
    """
    name = name.strip()
    if name in ("", LOOP, CLAUDE):
        return name or LOOP
    if is_custom(name):
        return complete_name(name, folder)
    if not name.startswith(ACP):
        raise ConfigError(f"there is no agent {name!r}", hint=_CHOICES)
    _acp_command(name)
    return name


def check_ready(name: str, *roots: str) -> None:
    """Check that its library and program are installed. Raise `MissingExtra` or `ConfigError`."""
    if name == CLAUDE and find_spec("claude_agent_sdk") is None:
        raise MissingExtra(
            "claude-code needs the library claude-agent-sdk, and it is not there; "
            "nothing was started",
            hint=install_hint("claude"),
        )
    if is_custom(name):
        load_attribute(name)
    if not name.startswith(ACP):
        return
    if find_spec("acp") is None:
        raise MissingExtra(
            f"{name} needs the library agent-client-protocol, and it is not there; "
            "nothing was started",
            hint=install_hint("acp"),
        )
    program = _acp_command(name)[0]
    if "/" not in program and find_program(program, roots) is None:
        raise ConfigError(
            f"the program {program!r} of the agent {name} was not found; nothing was started",
            hint="Install it, or name the whole path; `bridle doctor` lists what is usable.",
        )


def check_model(name: str, model: str, *, asked: bool) -> str:
    """Return the model that the agent is to use; empty if it chooses. `asked`: by a flag.

    A model in the settings is for our loop, unless the agent has it, too. Raise `ConfigError` if a
    flag names a model that the agent cannot use.
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
    """Return the agent of that name; None is our own loop. Raise `ConfigError`.

    `inherit` are environment variables for an ACP program besides those of its own vendor.
    """
    name = check_agent(name)
    if name == LOOP:
        return None
    if is_custom(name):
        return make_agent(name)
    if name == CLAUDE:
        from bridle.agents.claude_code.agent import ClaudeCodeAgent
        from bridle.agents.claude_code.options import ClaudeCodeConfig

        return ClaudeCodeAgent(ClaudeCodeConfig(model=model or None))
    from bridle.agents.acp.agent import AcpAgent

    return AcpAgent(_acp_command(name), inherit=inherit)


def child_agent_of(name: str) -> BaseAgent | None:
    """Return the agent of a child session. A model wrote the name, so it may not import code."""
    if is_import_name(name.strip()):
        raise ConfigError(
            f"a task cannot be given to {name}: only a person may name code to import",
            hint="Leave the agent out, or write `same` for the agent of this session.",
        )
    return agent_of(name)


def resolve_agent(agent: BaseAgent | str | None) -> BaseAgent | None:
    """Return the agent that was passed in or named; None is our own loop. Raise `ConfigError`."""
    if agent is None:
        return None
    if isinstance(agent, str):
        name = check_agent(agent or LOOP, str(Path.cwd()))
        check_ready(name, *working_folder())
        return agent_of(name)
    if isinstance(agent, type):
        raise ConfigError(
            f"{agent.__name__} is the class of an agent, and not an agent",
            hint=f"Hand in one of it: agent={agent.__name__}(…).",
        )
    return check_object(agent, type(agent).__name__)


def translate_call(
    name: str, arguments: dict[str, Any], root: str
) -> tuple[str, dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]] | None:
    """Return a call of one of Claude Code's tools, whose names many agents use, as one of ours.

    The third value turns arguments of ours back into the agent's. None if it is not such a tool,
    or if the call has arguments that ours cannot express.
    """
    from bridle.agents.claude_code.tool_mapping import to_claude, to_ours

    call = to_ours(name, arguments, (root,))
    if call.name == name or (call.name == "shell" and call.rest.keys() - _SHELL_ARGUMENTS):
        return None  # a command with a folder, say, of its own would not be judged in it
    return call.name, call.arguments, lambda new: to_claude(name, arguments, new, (root,))


def agent_statuses() -> Iterator[AgentStatus]:
    """Yield every agent that could be named, and what it lacks if it cannot be used."""
    yield AgentStatus(LOOP, "bridle's own", True)
    yield _claude_status()
    yield from _acp_statuses()
    for name, point in installed_agents().items():
        yield AgentStatus(name, f"from {point.value}", True)


def _claude_status() -> AgentStatus:
    if find_spec("claude_agent_sdk") is None:
        return AgentStatus(CLAUDE, "its library is not installed", False, install_hint("claude"))
    from bridle.agents.claude_code.process import find_program as find_claude

    program = find_claude()
    if not program:
        return AgentStatus(CLAUDE, "the program `claude` is missing", False, install_hint("claude"))
    return AgentStatus(CLAUDE, f"at {program}", True)


def _acp_statuses() -> Iterator[AgentStatus]:
    """Yield the programs that are known to speak ACP and are on the path."""
    if find_spec("acp") is None:
        yield AgentStatus(
            f"{ACP}COMMAND", "its library is not installed", False, install_hint("acp")
        )
        return
    places = {command: find_program(command.split()[0], working_folder()) for command in _KNOWN_ACP}
    programs = {command: place for command, place in places.items() if place}
    for command, place in programs.items():
        yield AgentStatus(f"{ACP}{command}", f"at {place}", True)
    if not programs:
        names = ", ".join(command.split()[0] for command in _KNOWN_ACP)
        yield AgentStatus(
            f"{ACP}COMMAND", f"ready for any program that speaks it; no {names}", True
        )


def _acp_command(name: str) -> list[str]:
    """Return the command of an ACP agent. Raise `ConfigError`."""
    try:
        words = shlex.split(name.removeprefix(ACP))
    except ValueError as error:
        message = f"the command of {name!r} cannot be read: {error}"
        raise ConfigError(message, hint=_CHOICES) from None
    if not words or not words[0].strip():
        raise ConfigError("acp: needs a command", hint=_CHOICES)
    return words
