"""What a session has to work with, a line each: its tools, its MCP servers, the rules that hold.

Reads what is there; starts nothing, so that a server's tools are those that are known by now.
"""

import asyncio
import re
from collections.abc import Iterable

from bridle.engine.engine import Engine
from bridle.errors import ConfigError
from bridle.events import Grant
from bridle.policy import Rule
from bridle.protocols.session_values import Choice, Choices
from bridle.service.engine_pool import EnginePool, EngineSpec
from bridle.service.open_sessions import OpenSessions
from bridle.service.session_info import granted, summarize_log
from bridle.service.workspace_scope import WorkspaceScope
from bridle.workspace.text import one_line

_ABOUT = 200  # characters of a description
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|\n\s*\n")  # not after "e.g. this"


class Inventory:
    """What the sessions of a server have to work with."""

    def __init__(self, ground: WorkspaceScope, holding: OpenSessions, engines: EnginePool) -> None:
        self._ground = ground
        self._holding = holding
        self._engines = engines

    async def tools(self, session_id: str) -> Choices:
        """The tools that its model has, or would have if it were taken up."""
        return tools_of(await self._engine(session_id))

    async def servers(self, session_id: str) -> Choices:
        """The MCP servers of its folder."""
        _, head = await asyncio.to_thread(self._ground.known, session_id)
        root = self._ground.workspace(head.workspace)
        return await asyncio.to_thread(servers_of, root)

    async def rules(self, session_id: str) -> Choices:
        """The rules that hold in it, its mode, and what was allowed."""
        engine = await self._engine(session_id)
        if (session := self._holding.get_open(session_id)) is not None:
            return rules_of(engine.parts.rules, session.mode, session.grants())
        seen = await asyncio.to_thread(summarize_log, self._ground.folder, session_id)
        grants = granted(seen.history, engine.parts.ask_grant_seconds)
        return rules_of(engine.parts.rules, seen.history.mode or engine.parts.mode, grants)

    async def _engine(self, session_id: str) -> Engine:
        """The one that carries it, or that sessions of its folder usually have."""
        _, head = await asyncio.to_thread(self._ground.known, session_id)
        for engine in self._engines.open():
            if engine.get_open(session_id) is not None:
                return engine
        return await self._engines.engine(EngineSpec(self._ground.workspace(head.workspace)))


def tools_of(engine: Engine) -> Choices:
    """Our own first, in the order in which the model sees them; then those of MCP servers."""
    parts = engine.parts
    known = [*parts.offered, *(tool for source in parts.sources for tool in source.tools())]
    return Choices(tuple(Choice(one.name, _first(one.description)) for one in known))


def _first(description: str) -> str:
    """Its first sentence: the rest is for the model."""
    return one_line(_SENTENCE.split(description.strip(), 1)[0], _ABOUT)


def servers_of(workspace: str) -> Choices:
    """The MCP servers of a folder. One that does not count says why."""
    from bridle.config.folder import load_servers

    try:
        config = load_servers(workspace)
    except ConfigError as error:
        return Choices((Choice("mcp.yaml", why_not=f"{error.message}. {error.hint}".strip()),))
    counting = [
        Choice(
            one.name,
            "of this folder" if one.here else "yours",
            default=one.enabled,
            why_not="" if one.enabled else "It is switched off.",
        )
        for one in config.items
    ]
    refused = [Choice(".bridle/mcp.yaml", why_not=f"{what}. {hint}") for what, hint in config.notes]
    return Choices((*counting, *refused))


def rules_of(rules: Iterable[Rule], mode: str, grants: Iterable[Grant]) -> Choices:
    """The mode, what was allowed for the session, and the rules, as they are written."""
    known = [Choice(f"mode: {mode}", _MODES.get(mode, ""), default=True)]
    for one in grants:
        if one.rule:
            known.append(Choice(one.rule, f"always: written into the rules, by {one.by}"))
            continue
        until = f", until {one.until}" if one.until else ""
        known.append(Choice(f"allowed: {one.what}", f"for this session, by {one.by}{until}"))
    for rule in rules:
        about = " · ".join(filter(None, (rule.reason, rule.origin)))
        known.append(Choice(str(rule), about))
    return Choices(tuple(known))


_MODES = {
    "plan": "only reads, until a plan is agreed to",
    "ask": "asks before what no rule allows",
    "edits": "edits files of the workspace unasked",
    "auto": "asks nothing; what is denied stays denied",
}
