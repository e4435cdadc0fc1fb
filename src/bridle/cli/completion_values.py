"""What can stand for a parameter on the command line: sessions, models, agents, topics, choices.

Knows parameters by their type, their metavar and their name, so that a new command is completed
without a word here. Starts nothing, asks no server, and reads no more than names and heads of logs.
A candidate that a shell would have to quote is not offered: what is inserted is what was meant.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import click

FILES, FOLDERS = ":files", ":folders"  # the shell knows these better
_SAFE = re.compile(r"[A-Za-z0-9_@%+=,./:-]+")
_MOST = 50  # sessions, the newest first
_ABOUT = 60  # characters of a description
_IDS = re.compile(r"\b(ID|SESSION)\b")
_AGENTS = {
    "loop": "bridle's own",
    "claude-code": "Claude Code, by its library",
    "acp:": "a program that speaks ACP: acp:COMMAND",
}
_OTHER_MODELS = {
    "offline": "rules, no language model",
    "ollama/": "a model of a local server",
    "llamacpp/": "a model of a local server",
    "lmstudio/": "a model of a local server",
    "openai-chat/": "whatever speaks Chat Completions",
    "openrouter/": "a model of OpenRouter",
    "scripted:": "replies from a JSON file",
}


class Candidate(NamedTuple):
    """What may be inserted, and a word on it for the shells that show one."""

    value: str
    about: str = ""


def candidates(param: click.Parameter, start: str) -> list[Candidate]:
    """What this parameter may be, as far as it begins so; one `FILES` or `FOLDERS` for a path."""
    if where := _paths(param):
        return [Candidate(where)]
    found = _choices(param) or _named(param, start)
    return fitting(found, start)


def fitting(found: "Iterator[Candidate] | list[Candidate]", start: str) -> list[Candidate]:
    """Those that begin so and need no quotes, with descriptions that are harmless to look at."""
    from bridle.cli.style import cut, plain

    return [
        Candidate(one.value, cut(plain(one.about[: 4 * _ABOUT]), _ABOUT))
        for one in found
        if one.value.startswith(start) and _SAFE.fullmatch(one.value)
    ]


def _paths(param: click.Parameter) -> str:
    kind = param.type
    if isinstance(kind, click.Path) and not kind.file_okay:
        return FOLDERS
    if isinstance(kind, (click.Path, click.File)):
        return FILES
    return {"DIR": FOLDERS, "FILE": FILES}.get(param.metavar or "", "")


def _choices(param: click.Parameter) -> list[Candidate]:
    if isinstance(param.type, click.Choice):
        return [Candidate(str(one)) for one in param.type.choices]
    return []


def _named(param: click.Parameter, start: str) -> Iterator[Candidate]:
    name = param.name or ""
    if name in ("model", "fallback"):
        yield from _models()
    elif name == "provider":
        yield from (Candidate(one) for one in (*_catalogue(), "openai-chat", "ollama"))
    elif "agent" in name:
        yield from (Candidate(one, about) for one, about in _AGENTS.items())
        from bridle.runtime.agents import installed_agents

        for agent, point in installed_agents().items():
            yield Candidate(agent, f"from {point.value}")
    elif name == "topic":
        yield from topics()
    elif name == "tag":
        yield from _tags()
    elif name in ("resume", "session") or _IDS.search(param.metavar or ""):
        yield from _sessions(start)


def _sessions(start: str) -> Iterator[Candidate]:
    from bridle.config.paths import state_folder_str
    from bridle.stores.session_index import log_entries, read_entries

    found = [one for one in log_entries(state_folder_str(os.environ)) if one.id.startswith(start)]
    for one in read_entries(found[:_MOST]):
        yield Candidate(one.id, one.title or "(no prompt)")


def _tags() -> Iterator[Candidate]:
    from bridle.config.paths import state_folder_str
    from bridle.stores.session_index import list_sessions

    found = list_sessions(state_folder_str(os.environ), 4 * _MOST)
    yield from (Candidate(tag) for tag in sorted({tag for one in found for tag in one.tags}))


def _catalogue() -> dict[str, dict[str, object]]:
    """The vendors and their models. The catalogue's own reader would import the codec."""
    import json
    from pathlib import Path

    import bridle

    file = Path(bridle.__path__[0], "providers/catalogue.json")
    found: dict[str, dict[str, object]] = json.loads(file.read_bytes())
    return found


def _models() -> Iterator[Candidate]:
    for vendor, models in _catalogue().items():
        yield from (Candidate(f"{vendor}/{model}") for model in models)
    yield from (Candidate(one, about) for one, about in _OTHER_MODELS.items())


def topics() -> Iterator[Candidate]:
    """The pages of `bridle help`."""
    from bridle.cli.commands.help import page_names, title_of

    yield from (Candidate(one, title_of(one)) for one in page_names())
