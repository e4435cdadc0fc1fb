"""Put a chat together: a profile, its tools and a database become a service that answers.

```python
app = ChatApp(profile, toolbox, "expenses.db", tables=[Expense])
async with app:
    reply = await app.service.reply("ana", "I spent 12 on lunch")
```

Without a profile and a toolbox it is the task assistant. Whoever serves the app (HTTP, a test, a
script) opens and closes it; nothing here listens on a port.
"""

import asyncio
import logging
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bridle.chat.db import Database
from bridle.chat.runner import AgentRunner
from bridle.chat.service import ChatService
from bridle.chat.tools.mcp_server import ToolServer
from bridle.chat.tools.source import ToolSource
from bridle.chat.tools.toolbox import Toolbox
from bridle.chat.turn_queue import warm_up
from bridle.errors import AgentError, ConfigError, ToolError
from bridle.usage import format_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridle.chat.db import OwnedRow
    from bridle.chat.limits import RunLimits
    from bridle.chat.profile import Profile
    from bridle.chat.values import ServiceLimits
    from bridle.protocols.provider import Provider


_log = logging.getLogger(__name__)


class ChatApp:
    """A chat application. `service` answers, using `database`, `tools` and `runner`.

    `tools` is a toolbox, which is served in this process, or another source of tools (such as
    `RemoteTools`). `tables` are the application's own; they are created when it starts.
    """

    def __init__(
        self,
        profile: "Profile | None" = None,
        tools: Toolbox | ToolSource | None = None,
        database: Database | str = "chat.db",
        *,
        tables: "Sequence[type[OwnedRow]]" = (),
        provider: "Provider | str | None" = None,
        run_limits: "RunLimits | None" = None,
        service_limits: "ServiceLimits | None" = None,
    ) -> None:
        self._owns = isinstance(database, str)
        self._tables = tuple(tables)
        self.database = Database(database) if isinstance(database, str) else database
        self.tools = _tool_source(tools, self.database)
        self.runner = AgentRunner(
            self.database.session_factory,
            self.tools,
            profile=profile,
            provider=provider,
            limits=run_limits,
        )
        self.service = ChatService(self.database, self.runner, service_limits)

    async def start(self) -> None:
        """Migrate the database, and load what the first message would otherwise wait for."""
        try:
            await asyncio.to_thread(self._prepare)
            await self._warm_up()
            self._check_price()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop everything. A database that was passed in stays open."""
        await self.service.close()
        await self.runner.close()
        await self.tools.close()
        if self._owns:
            await asyncio.to_thread(self.database.close)

    async def __aenter__(self) -> "ChatApp":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _warm_up(self) -> None:
        warm: Any = getattr(self.tools, "warm", None)
        try:
            if warm is not None:
                await warm()
            await self.runner.warm_up()
        except ToolError as error:  # they are asked again with every message
            _log.warning("the chat starts without its tools: %s", error.message)

    def _check_price(self) -> None:
        """Raise `ConfigError` if a limit in dollars is set but the model's price is unknown."""
        most, model = self.service.limits.dollars_a_day, self.runner.model
        limited = most or self.runner.limits.max_cost
        if limited and model is not None and model.price is None:
            of_what = "a day" if most else "a message"
            raise ConfigError(
                f"the price of {model.label} is unknown, "
                f"so a limit of {format_cost(limited)} {of_what} cannot be enforced",
                hint="Use a model with a known price, or remove the limit.",
            )

    def _prepare(self) -> None:
        self.database.migrate()
        if self._tables:
            self.database.install(*self._tables)
        warm_up(self.database, self.service.limits)


def _tool_source(tools: Toolbox | ToolSource | None, database: Database) -> ToolSource:
    if tools is None:
        from bridle.chat.tasks.tools import MCPToolServer

        return MCPToolServer(database.session_factory)
    if isinstance(tools, Toolbox):
        return ToolServer(tools, database.session_factory)
    return tools


def load_app(name: str, database: str = "", provider: str = "") -> ChatApp:
    """Load a chat application by name, `module:name`, from the current folder. Raise `ConfigError`.

    The name stands for a `ChatApp`, or for a function that returns one. A function is given the
    `database` and `provider` if it has parameters of these names.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{name!r} is not the name of a chat", hint="Write MODULE:NAME.")
    if (place := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, place)
    found = getattr(_import_module(module), attribute or "app", None)
    if callable(found) and not isinstance(found, ChatApp):
        found = _make_app(found, name, {"database": database, "provider": provider})
    if not isinstance(found, ChatApp):
        raise ConfigError(
            f"{name} is not a chat",
            hint="It must be a ChatApp, or a function that returns one.",
        )
    return found


def _import_module(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ConfigError(
                f"there is no module {module}",
                error,
                hint="Write MODULE:NAME, and run it in the folder of your project.",
            ) from error
        raise ConfigError(f"{module} imports a module that does not exist: {error.name}") from error
    except AgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{module} cannot be loaded: {_describe_error(error)}", error) from error


def _make_app(make: Any, name: str, given: dict[str, str]) -> Any:
    takes = signature(make).parameters
    if given["database"] and "database" not in takes:
        raise ConfigError(
            f"{name} has no parameter `database`", hint="Add one, or leave out the database."
        )
    try:
        return make(**{key: value for key, value in given.items() if value and key in takes})
    except AgentError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} failed: {_describe_error(error)}", error) from error


def _describe_error(error: Exception) -> str:
    """Return what happened, in which line of which file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {error}{where}"
