"""Custom agents, started by name: `MODULE:CLASS`, `PATH.py:CLASS`, or an entry point.

`MODULE:CLASS` is a class in an installed package; modules of the current folder are not imported by
that name. `PATH.py:CLASS` names a file. A package can give its agents short names in the
entry-point group `bridle.agents`. The name may stand for a class that takes no
arguments, a function that makes an agent, or an agent object.
"""

import importlib
import importlib.util
import os
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bridle.errors import AgentError, ConfigError
from bridle.promises.agent import AgentResponse, BaseAgent

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bridle.agents"
_RESERVED = ("", "loop", "claude-code", "offline", "scripted")
_IN_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_IN_FILE = re.compile(r"(.+\.py):([A-Za-z_]\w*)", re.ASCII)
_SHAPE = ("execute", "cancel", "shutdown")


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
        """End what runs for that session."""
        await self._agent.cancel(session_id)

    async def shutdown(self) -> None:
        """Leave nothing behind."""
        await self._agent.shutdown()


def is_custom(name: str) -> bool:
    """Whether this is the name of a custom agent."""
    if name in _RESERVED or name.startswith(("acp:", "scripted:")):
        return False
    return names_code(name) or ("/" not in name and name in installed())


def names_code(name: str) -> bool:
    """Whether the name is MODULE:CLASS or PATH.py:CLASS."""
    return bool(_IN_MODULE.fullmatch(name)) or names_file(name)


def names_file(name: str) -> bool:
    """Whether the name is PATH.py:CLASS."""
    return not name.startswith("acp:") and bool(_IN_FILE.fullmatch(name))


@cache
def installed() -> "dict[str, EntryPoint]":
    """The agents that installed packages offer, by name."""
    from importlib.metadata import entry_points  # it costs a start 30 ms

    return {
        one.name: one
        for one in sorted(entry_points(group=GROUP), key=lambda one: one.name)
        if one.name not in _RESERVED and not re.search(r"[/:\s]", one.name)
    }


def checked_custom(name: str, folder: str = "") -> str:
    """The name, with the whole path of a file. Raise `ConfigError`."""
    if not (named := _IN_FILE.fullmatch(name)):
        return name
    path = Path(named[1]).expanduser()
    if not (path.is_absolute() or folder):
        raise ConfigError(
            f"the agent {name} is a file, but its path is not absolute",
            hint="Write the absolute path; only a flag may use a relative path.",
        )
    return f"{os.path.normpath(Path(folder) / path)}:{named[2]}"


def found(name: str) -> Any:
    """What the name stands for: a class, a function or an agent. Raise `ConfigError`."""
    if point := installed().get(name):
        return _attribute(_module(point.module), point.attr, name)
    if named := _IN_FILE.fullmatch(name):
        return _attribute(_file(named[1]), named[2], name)
    module, _, attribute = name.partition(":")
    return _attribute(_module(module), attribute, name)


def made(name: str) -> BaseAgent:
    """An agent of that name. Raise `ConfigError`."""
    value = found(name)
    if isinstance(value, type) or not all(hasattr(value, one) for one in _SHAPE):
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
    return NamedAgent(name, checked_object(value, name))


def checked_object(value: Any, name: str) -> BaseAgent:
    """The object, if it has the shape of an agent. Raise `ConfigError`."""
    if lacking := [one for one in _SHAPE if not hasattr(value, one)]:
        raise ConfigError(
            f"{name} is not an agent: it has no {', '.join(lacking)}",
            hint="An agent has execute, cancel and shutdown, as in bridle.agents.base.",
        )
    agent: BaseAgent = value
    return agent


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise ConfigError(
            f"there is no module {name!r} in the packages that are installed for {sys.executable}",
            error,
            hint="Install the agent's package there, or name its file: --agent PATH.py:CLASS.",
        ) from error
    except Exception as error:  # it is somebody else's code
        raise _broken(name, error) from error


def _file(path: str) -> ModuleType:
    """The module of a file, read once."""
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
        raise _broken(path, error) from error
    return module


def _attribute(module: ModuleType, attribute: str, name: str) -> Any:
    try:
        value = module
        for one in attribute.split("."):
            value = getattr(value, one)
        return value
    except AttributeError as error:
        there = [one for one in vars(module) if hasattr(getattr(module, one), "execute")]
        raise ConfigError(
            f"the agent {name} was not found: {module.__name__} has no {attribute!r}",
            error,
            hint=f"It has {', '.join(there)}." if there else "Check the name of the class.",
        ) from error


def _broken(name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{name} could not be imported: {type(error).__name__}: {error}",
        error,
        hint="Fix the agent's code; importing it in Python shows where it fails.",
    )
