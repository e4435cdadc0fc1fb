"""Shell completion: the values that a parameter can have, and the scripts for the shells.

click reads the command line and finds the parameter. Here are the sessions, models and other names
that it may stand for; they come from file names and the beginnings of logs, and nothing is started.
A value that a shell would have to quote is not offered.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

import bridle
from bridle.cli.command_group import VARIABLE
from bridle.cli.style import cut, plain
from bridle.config.paths import state_folder_str
from bridle.errors import UsageError
from bridle.stores.session_index import list_sessions, log_entries, read_entries

SHELLS = ("bash", "zsh", "fish")
_SAFE = re.compile(r"[A-Za-z0-9_@%+=,./:-]+")
_MAX_SESSIONS = 50  # the newest
_MAX_HELP = 60  # characters
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
    "openai-chat/": "any server that speaks Chat Completions",
    "openrouter/": "a model of OpenRouter",
    "scripted:": "replies from a JSON file",
}

# click's own script would run the program as it was typed: `./bridle` of any folder.
_BASH = """\
%(complete_func)s() {
    local type value help width=0 at
    local -a values=() helps=()
    COMPREPLY=()
    while IFS=$'\\t' read -r type value help; do
        if [[ $type == file || $type == dir ]]; then
            local kind=-f
            [[ $type == dir ]] && kind=-d
            while IFS= read -r value; do COMPREPLY+=("$value"); done \\
                < <(compgen "$kind" -- "${COMP_WORDS[COMP_CWORD]}")
            compopt -o filenames 2>/dev/null
            return
        fi
        values+=("$value")
        helps+=("$help")
        ((${#value} > width)) && width=${#value}
    done < <(IFS=$'\\n'; COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        %(complete_var)s=bash_complete command %(prog_name)s </dev/null 2>/dev/null)
    for at in "${!values[@]}"; do
        # A description is shown beside several candidates, and never inserted: not if there is
        # only one, nor if they are inserted one after the other (menu-complete).
        if ((${#values[@]} == 1)) || [[ ${COMP_TYPE:-9} == 37 || ${COMP_TYPE:-9} == 42 \\
            || -z ${helps[at]} ]]; then
            COMPREPLY+=("${values[at]}")
        else
            COMPREPLY+=("$(printf '%%-*s  (%%s)' "$width" "${values[at]}" "${helps[at]}")")
        fi
    done
    if ((${#values[@]} == 1)) && [[ ${values[0]} == *[/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null \\
    || complete -F %(complete_func)s %(prog_name)s
"""


def complete(root: click.Group, instruction: str) -> int:
    """Do what a shell asks of us in an environment variable; return the exit code.

    Errors are not shown: somebody is typing. A damaged log then just offers nothing.
    """
    try:
        return shell_complete(root, {}, "bridle", VARIABLE, instruction)
    except Exception:
        return 1


def script_of(root: click.Group, shell: str) -> str:
    """Return the script that teaches a shell to complete our commands."""
    kind = get_completion_class(shell)
    assert kind is not None
    return ShellComplete.source(kind(root, {}, "bridle", VARIABLE))  # no check of bash's version


class _Completion(ShellComplete):
    """Options without a command are those of `bridle chat`; only safe values are offered."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        option, is_joined, _ = incomplete.partition("=")
        if args and args[0].startswith("-"):
            args = ["chat", *args]
        try:
            items = super().get_completions(list(args), incomplete)
            if not args and incomplete.startswith("-"):
                items += super().get_completions(["chat"], incomplete)
        except UsageError:  # there is no such command
            return []
        items = list({item.value: item for item in items}.values())
        if is_joined and option.startswith("--"):  # the shell replaces the whole word
            items = [_with_value(item, f"{option}={item.value}") for item in items]
        return items


def _with_value(item: CompletionItem[str], value: str) -> CompletionItem[str]:
    return CompletionItem(value, item.type, item.help)


@add_completion_class
class _Bash(_Completion, BashComplete):
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at the cursor.

        bash splits `--mode=plan` into three words.
        """
        args, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in (*args, incomplete):
            if word == "=" and joined and joined[-1].startswith("--"):
                continue
            joined.append(word)
        if incomplete == "=" and args and args[-1].startswith("--"):
            joined.append("")
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type}\t{item.value}\t{item.help or ''}"


@add_completion_class
class _Zsh(_Completion, ZshComplete):
    pass


@add_completion_class
class _Fish(_Completion, FishComplete):
    # click's script cuts a description at its first comma
    source_template = FishComplete.source_template.replace('split ","', 'split -m 1 ","')


def safe_items(items: Iterable[tuple[str, str]], start: str) -> list[CompletionItem[str]]:
    """Return those (value, help) that begin so and need no quotes, with harmless descriptions."""
    return [
        CompletionItem(value, help=cut(plain(text[: 4 * _MAX_HELP]), _MAX_HELP) or None)
        for value, text in items
        if value.startswith(start) and _SAFE.fullmatch(value)
    ]


def candidates(kind: str, start: str) -> list[CompletionItem[str]]:
    """Return what a parameter of that kind (see `options.Name`) may be, if it begins so."""
    return safe_items(_SOURCES[kind](start), start)


def _sessions(start: str) -> Iterator[tuple[str, str]]:
    logs = log_entries(state_folder_str(os.environ))
    matching = [entry for entry in logs if entry.id.startswith(start)]
    for entry in read_entries(matching[:_MAX_SESSIONS]):
        yield entry.id, entry.title or "(no prompt)"


def _tags(start: str) -> Iterator[tuple[str, str]]:
    sessions = list_sessions(state_folder_str(os.environ), 4 * _MAX_SESSIONS)
    yield from ((tag, "") for tag in sorted({tag for entry in sessions for tag in entry.tags}))


def _catalogue() -> dict[str, dict[str, object]]:
    """Return the vendors and their models. The catalogue's own reader would import the codec."""
    file = Path(bridle.__path__[0], "providers/catalogue.json")
    vendors: dict[str, dict[str, object]] = json.loads(file.read_bytes())
    return vendors


def _models(start: str) -> Iterator[tuple[str, str]]:
    for vendor, models in _catalogue().items():
        yield from ((f"{vendor}/{model}", "") for model in models)
    yield from _OTHER_MODELS.items()


def _providers(start: str) -> Iterator[tuple[str, str]]:
    yield from ((name, "") for name in (*_catalogue(), "openai-chat", "ollama"))


def _agents(start: str) -> Iterator[tuple[str, str]]:
    from bridle.runtime.agents import installed_agents

    yield from _AGENTS.items()
    for agent, point in installed_agents().items():
        yield agent, f"from {point.value}"


def _topics(start: str) -> Iterator[tuple[str, str]]:
    from bridle.cli.commands.help import page_names, title_of

    yield from ((name, title_of(name)) for name in page_names())


_SOURCES: dict[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "session": _sessions,
    "tag": _tags,
    "model": _models,
    "provider": _providers,
    "agent": _agents,
    "topic": _topics,
}
