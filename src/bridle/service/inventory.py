"""What a session has to work with: its tools, its MCP servers, the rules that hold.

Nothing is started, so the tools of an MCP server are those that are known by now.
"""

import re
from collections.abc import Iterable

from bridle.engine.engine import Engine
from bridle.errors import ConfigError
from bridle.events import Grant
from bridle.policy import Rule
from bridle.presentation.modes import MODE_TEXTS
from bridle.protocols.session_values import Choice, Choices
from bridle.workspace.text import one_line

_ABOUT = 200  # characters of a description
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|\n\s*\n")  # not after "e.g. this"


def tools_of(engine: Engine) -> Choices:
    """Return our own tools in the order in which the model sees them, then those of MCP servers."""
    parts = engine.parts
    known = [*parts.offered, *(tool for source in parts.sources for tool in source.tools())]
    return Choices(tuple(Choice(one.name, _first(one.description)) for one in known))


def _first(description: str) -> str:
    """Return its first sentence: the rest is for the model."""
    return one_line(_SENTENCE.split(description.strip(), 1)[0], _ABOUT)


def servers_of(workspace: str) -> Choices:
    """Return the MCP servers of a folder; for one that is not used, why."""
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
    """Return the mode, the grants of the session, and the rules as they are written."""
    known = [Choice(f"mode: {mode}", _meaning(mode), default=True)]
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


def _meaning(mode: str) -> str:
    return next((text.meaning for name, text in MODE_TEXTS.items() if name == mode), "")
