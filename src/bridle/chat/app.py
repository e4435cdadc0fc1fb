"""One chat, put together: a profile, its tools and a database become a service that answers.

```python
app = ChatApp(profile, toolbox, "expenses.db", tables=[Expense])
async with app:
    reply = await app.service.reply("ana", "I spent 12 on lunch")
```

Without a profile and a toolbox it is the task assistant. Whoever serves it (HTTP, a test, a
script) opens it and closes it; nothing here listens anywhere.
"""

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bridle.chat.data import Database
from bridle.chat.runner import AgentRunner
from bridle.chat.service import ChatService
from bridle.chat.toolbox import Toolbox
from bridle.chat.toolbox_server import ToolServer
from bridle.chat.tools import ToolSource
from bridle.chat.warm import warm_up
from bridle.errors import ConfigError, ToolError
from bridle.usage import format_cost

if TYPE_CHECKING:
    from bridle.chat.data import Owned
    from bridle.chat.limits import RunLimits
    from bridle.chat.profile import Profile
    from bridle.chat.service_values import ServiceLimits
    from bridle.protocols.provider import Provider

log = logging.getLogger(__name__)


class ChatApp:
    """`service` answers; `database`, `tools` and `runner` are what it stands on.

    `tools` is a toolbox, which is served in this process, or any other source of tools (such as
    `RemoteTools`). `tables` are the application's own; they are made when it starts. `limits` are
    those of a run and of the service, in any order.
    """

    def __init__(
        self,
        profile: "Profile | None" = None,
        tools: Toolbox | ToolSource | None = None,
        database: Database | str = "chat.db",
        *,
        tables: "Sequence[type[Owned]]" = (),
        provider: "Provider | str | None" = None,
        limits: "tuple[RunLimits | ServiceLimits, ...]" = (),
    ) -> None:
        from bridle.chat.limits import RunLimits
        from bridle.chat.service_values import ServiceLimits

        self._owns = isinstance(database, str)
        self._tables = tuple(tables)
        self.database = Database(database) if isinstance(database, str) else database
        self.tools = _source(tools, self.database)
        runs = next((one for one in limits if isinstance(one, RunLimits)), None)
        serves = next((one for one in limits if isinstance(one, ServiceLimits)), None)
        self.runner = AgentRunner(
            self.database.session_factory,
            self.tools,
            profile=profile,
            provider=provider,
            limits=runs,
        )
        self.service = ChatService(self.database, self.runner, serves)

    async def start(self) -> None:
        """Bring the database up to date, and load what the first message would wait for."""
        try:
            await asyncio.to_thread(self._prepare)
            await self._warm_up()
            self._check_price()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave nothing running. A database that was handed in stays open."""
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
            log.warning("the chat starts without its tools: %s", error.message)

    def _check_price(self) -> None:
        """A limit of money can only be kept where the price is known."""
        most, model = self.service.limits.dollars_a_day, self.runner.model
        limited = most or self.runner.limits.max_cost
        if limited and model is not None and model.price is None:
            of_what = "a day" if most else "a message"
            raise ConfigError(
                f"the price of {model.label} is unknown, "
                f"so {format_cost(limited)} {of_what} cannot be kept",
                hint="Use a model with a known price, or drop the limit of money.",
            )

    def _prepare(self) -> None:
        self.database.migrate()
        if self._tables:
            self.database.install(*self._tables)
        warm_up(self.database, self.service.limits)


def _source(tools: Toolbox | ToolSource | None, database: Database) -> ToolSource:
    if tools is None:
        from bridle.chat.tasks.server import MCPToolServer

        return MCPToolServer(database.session_factory)
    if isinstance(tools, Toolbox):
        return ToolServer(tools, database.session_factory)
    return tools
