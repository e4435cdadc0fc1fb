"""A chat application found by its name, `module:name`, in the folder that a command is run in.

The name stands for a `ChatApp`, or for a function that makes one; such a function may take a
`database` and a `provider`. Whatever is wrong with somebody's own module is said in a sentence,
with its place.
"""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from bridle.chat.app import ChatApp
from bridle.errors import AgentError, ConfigError


def named_app(name: str, database: str = "", provider: str = "") -> ChatApp:
    """The application of that name. Raise `ConfigError`.

    One that is made by a function is given the database and the provider that are named here, as
    far as it takes them; one that is there already has its own.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{name!r} is no name of a chat", hint="Write it as module:name.")
    if (place := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, place)
    found = getattr(_imported(module), attribute or "app", None)
    if callable(found) and not isinstance(found, ChatApp):
        found = _made(found, name, {"database": database, "provider": provider})
    if not isinstance(found, ChatApp):
        raise ConfigError(
            f"{name} is no chat",
            hint="It has to be a ChatApp, or a function of a database's URL that returns one.",
        )
    return found


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(
                f"there is no module {module} with a chat in it",
                error,
                hint="Name it as module:name, in the folder of your project.",
            ) from error
        raise ConfigError(f"{module} needs a module that is not there: {error.name}") from error
    except AgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{module} cannot be loaded: {_told(error)}", error) from error


def _made(make: Any, name: str, given: dict[str, str]) -> Any:
    takes = signature(make).parameters
    if given["database"] and "database" not in takes:
        raise ConfigError(f"{name} takes no database", hint="Give it a parameter `database`.")
    try:
        return make(**{key: value for key, value in given.items() if value and key in takes})
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
