"""A chat application found by its name, `module:name`, in the folder that a command is run in.

The name stands for a `ChatApp`, or for a function that makes one; such a function may take a
`database`. Whatever is wrong with somebody's own module is said in a sentence, with its place.
"""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from bridle.chat.app import ChatApp
from bridle.errors import AgentError, ConfigError


def named_app(name: str, *, database: str = "", folder: str | Path = ".") -> ChatApp:
    """The application of that name, over that database if one is given. Raise `ConfigError`."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{name!r} is no name of an application", hint="Write it as module:name.")
    if (place := str(Path(folder).resolve())) not in sys.path:
        sys.path.insert(0, place)
    found = getattr(_imported(module), attribute or "app", None)
    if found is None:
        raise ConfigError(f"there is no {attribute or 'app'} in the module {module}")
    if callable(found) and not isinstance(found, ChatApp):
        found = _made(found, name, database)
    elif database:
        raise ConfigError(
            f"{name} has its database already",
            hint="Make it a function that takes `database` and returns a ChatApp.",
        )
    if not isinstance(found, ChatApp):
        raise ConfigError(f"{name} is no ChatApp", hint="Name one, or a function that makes one.")
    return found


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            hint = "Run it in the folder where the module is."
            raise ConfigError(f"there is no module {module}", error, hint=hint) from error
        raise ConfigError(f"{module} needs a module that is not there: {error.name}") from error
    except AgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{module} cannot be loaded: {_told(error)}", error) from error


def _made(make: Any, name: str, database: str) -> Any:
    if database and "database" not in signature(make).parameters:
        raise ConfigError(f"{name} takes no database", hint="Give it a parameter `database`.")
    try:
        return make(**({"database": database} if database else {}))
    except AgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} could not be made: {_told(error)}", error) from error


def _told(error: Exception) -> str:
    """What happened and in which line of whose file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {error}{where}"
