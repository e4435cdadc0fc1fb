"""Options and parameter types that commands share, and the settings that the options stand for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bridle.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])

MODES = ("plan", "ask", "edits", "auto")  # the policy's own, without its imports
THEMES = ("auto", "dark", "light", "plain")  # of the settings, likewise


class Name(click.ParamType[str]):
    """The name of something that shell completion knows: a session, a tag, a model …"""

    def __init__(self, name: str) -> None:
        self.name = name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        """Return the names that begin so."""
        from bridle.cli.completion import candidates

        return candidates(self.name, incomplete)


SESSION, TAG, TOPIC = Name("session"), Name("tag"), Name("topic")
MODEL, PROVIDER, AGENT = Name("model"), Name("provider"), Name("agent")

CHOOSE = ""  # `--resume` without an id: the person chooses from a list

_KEYS = {
    "provider": "provider",
    "model": "model",
    "agent": "agent",
    "base_url": "base_url",
    "mode": "mode",
    "sandbox": "sandbox",
    "fallback": "fallback_model",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "effort": "effort",
    "retries": "retries",
    "retry_seconds": "retry_seconds",
    "max_steps": "limits.max_steps",
    "max_tool_calls": "limits.max_tool_calls",
    "max_seconds": "limits.max_seconds",
    "max_turn_tokens": "limits.max_turn_tokens",
    "max_cost": "limits.max_cost",
    "max_session_tokens": "limits.max_session_tokens",
    "max_session_cost": "limits.max_session_cost",
    "max_day_tokens": "limits.max_day_tokens",
    "max_day_cost": "limits.max_day_cost",
}

WORKSPACE = click.Path(exists=True, file_okay=False, resolve_path=True)

_OPTIONS = [
    click.option(
        "--model",
        "-m",
        metavar="NAME",
        type=MODEL,
        help="Model to use: anthropic/NAME, openai/NAME, ollama/NAME, offline, …",
    ),
    click.option(
        "--provider",
        metavar="NAME",
        type=PROVIDER,
        help="Use the default model of this provider: anthropic, openai, …",
    ),
    click.option(
        "--agent",
        metavar="NAME",
        type=AGENT,
        help='Agent to use: loop (built in), claude-code, acp:"COMMAND", MODULE:CLASS, FILE:CLASS.',
    ),
    click.option(
        "--mode",
        type=click.Choice(MODES),
        help="Permission mode: which calls run without approval. See `bridle help modes`.",
    ),
    click.option("--yes", "-y", is_flag=True, help="Same as --mode auto."),
    click.option(
        "--workspace",
        "-w",
        metavar="DIR",
        type=WORKSPACE,
        help="Folder to work in. Default: the current folder.",
    ),
    click.option(
        "--add-dir",
        metavar="DIR",
        multiple=True,
        type=WORKSPACE,
        help="Another folder to work in; can be repeated.",
    ),
    click.option(
        "--worktree",
        metavar="[NAME]",
        is_flag=False,
        flag_value="",
        help="Work in a separate git worktree, created if needed. Put the prompt first, or write "
        "--worktree=NAME.",
    ),
    click.option(
        "--rule",
        "rules",
        metavar="RULE",
        multiple=True,
        help='Add a permission rule, such as "allow: shell(make test)"; can be repeated.',
    ),
    click.option(
        "--sandbox",
        type=click.Choice(("auto", "bubblewrap", "landlock", "none")),
        help="Sandbox for commands. Default: the strongest one that works here.",
    ),
    click.option(
        "--continue",
        "go_on",
        is_flag=True,
        help="Continue the most recent session in this workspace.",
    ),
    click.option(
        "--resume",
        metavar="[ID]",
        type=SESSION,
        is_flag=False,
        flag_value=CHOOSE,
        help="Continue this session; the beginning of its ID is enough. On the full screen, you "
        "can leave out ID and choose from a list.",
    ),
    click.option("--thinking", is_flag=True, help="Show the model's thinking."),
    click.option("--base-url", metavar="URL", help="Base URL of the model's API."),
    click.option(
        "--fallback",
        metavar="NAME",
        type=MODEL,
        help="Model to use if the first one is overloaded.",
    ),
    click.option(
        "--effort", metavar="LEVEL", help="How hard the model thinks, if it supports that."
    ),
    click.option(
        "--temperature", type=float, metavar="N", help="Sampling temperature, from 0 to 2."
    ),
    click.option("--max-tokens", type=int, metavar="N", help="Token limit per reply."),
    click.option(
        "--retries", type=int, metavar="N", help="How often to retry a failed model request."
    ),
    click.option(
        "--retry-seconds", type=float, metavar="N", help="How long to keep retrying. Default: 300."
    ),
    click.option("--max-steps", type=int, metavar="N", help="Limit of model requests per turn."),
    click.option("--max-tool-calls", type=int, metavar="N", help="Limit of tool calls per turn."),
    click.option("--max-seconds", type=float, metavar="N", help="Time limit per turn."),
    click.option(
        "--max-turn-tokens",
        type=int,
        metavar="N",
        help="Token limit per turn, input and output together.",
    ),
    click.option("--max-cost", type=float, metavar="USD", help="Cost limit per turn, in dollars."),
    click.option(
        "--max-session-tokens", type=int, metavar="N", help="Token limit for the session."
    ),
    click.option(
        "--max-session-cost", type=float, metavar="USD", help="Cost limit for the session."
    ),
    click.option(
        "--max-day-tokens", type=int, metavar="N", help="Token limit per day, for all sessions."
    ),
    click.option(
        "--max-day-cost", type=float, metavar="USD", help="Cost limit per day, for all sessions."
    ),
]


def turn_options(command: Command) -> Command:
    """Add these options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that are settings, by the settings' keys. Raise `UsageError`."""
    if flags.get("yes") and flags.get("mode") not in (None, "auto"):
        raise UsageError(
            "--yes means --mode auto, but --mode names another mode", hint="Leave out one of them."
        )
    if flags.get("go_on") and flags.get("resume") is not None:
        raise UsageError(
            "--continue and --resume cannot be combined",
            hint="--continue takes the most recent session, --resume the one that you name.",
        )
    if flags.get("resume") == CHOOSE:
        raise UsageError(
            "--resume needs the ID of a session here",
            hint="`bridle sessions list` prints them; in a terminal, `bridle --resume` shows a "
            "list.",
        )
    if flags.get("worktree") is not None and flags.get("resume") is not None:
        raise UsageError(
            "--resume and --worktree cannot be combined",
            hint="A resumed session continues in its own workspace.",
        )
    settings = {key: flags.get(flag) for flag, key in _KEYS.items()}
    return settings | {"mode": "auto"} if flags.get("yes") else settings
