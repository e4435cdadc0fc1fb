"""The options that commands which run turns have in common, and their way into the settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

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

CHOOSE = ""  # `--resume` without an id: a person chooses

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

_OPTIONS = [
    click.option(
        "--model",
        "-m",
        metavar="NAME",
        type=MODEL,
        help="anthropic/…, openai/…, ollama/…, offline.",
    ),
    click.option(
        "--provider",
        metavar="NAME",
        type=PROVIDER,
        help="anthropic, openai, …; its usual model.",
    ),
    click.option(
        "--agent",
        metavar="NAME",
        type=AGENT,
        help='Agent to use: loop (built in), claude-code, acp:"COMMAND", MODULE:CLASS, FILE:CLASS.',
    ),
    click.option("--mode", type=click.Choice(MODES), help="What may run without asking."),
    click.option("--yes", "-y", is_flag=True, help="The same as --mode auto."),
    click.option(
        "--workspace",
        "-w",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, resolve_path=True),
        help="The folder to work on. Default: the current one.",
    ),
    click.option(
        "--add-dir",
        metavar="DIR",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, resolve_path=True),
        help="Another folder to work on; may be given again.",
    ),
    click.option(
        "--worktree",
        metavar="[NAME]",
        is_flag=False,
        flag_value="",
        help="Work in a git worktree of its own, made where there is none of that name. "
        "The prompt stands before it, or NAME is given.",
    ),
    click.option(
        "--rule",
        "rules",
        metavar="RULE",
        multiple=True,
        help='One more rule, such as "allow: shell(make test)"; may be given again.',
    ),
    click.option(
        "--sandbox",
        type=click.Choice(("auto", "bubblewrap", "landlock", "none")),
        help="What commands run in. Default: the strongest that works here.",
    ),
    click.option("--continue", "go_on", is_flag=True, help="The newest session of this workspace."),
    click.option(
        "--resume",
        metavar="[ID]",
        type=SESSION,
        is_flag=False,
        flag_value=CHOOSE,
        help="That session; the beginning of its id is enough. On the full screen, without ID: "
        "choose from a list.",
    ),
    click.option("--thinking", is_flag=True, help="Show what the model thinks."),
    click.option("--base-url", metavar="URL", help="Where the model's API is."),
    click.option(
        "--fallback",
        metavar="NAME",
        type=MODEL,
        help="A model to ask when the first is overloaded.",
    ),
    click.option("--effort", metavar="LEVEL", help="How long to think, for models that can."),
    click.option("--temperature", type=float, metavar="N", help="Between 0 and 2."),
    click.option("--max-tokens", type=int, metavar="N", help="Length of one reply."),
    click.option(
        "--retries", type=int, metavar="N", help="Retries of a failed model request; 0: none."
    ),
    click.option(
        "--retry-seconds", type=float, metavar="N", help="Seconds to keep retrying. Default: 300."
    ),
    click.option("--max-steps", type=int, metavar="N", help="Model requests in a turn."),
    click.option("--max-tool-calls", type=int, metavar="N", help="Tool calls in a turn."),
    click.option("--max-seconds", type=float, metavar="N", help="Time for a turn."),
    click.option("--max-turn-tokens", type=int, metavar="N", help="Tokens of a turn, all told."),
    click.option("--max-cost", type=float, metavar="USD", help="Money for a turn, in dollars."),
    click.option("--max-session-tokens", type=int, metavar="N", help="Tokens of the session."),
    click.option("--max-session-cost", type=float, metavar="USD", help="Money for the session."),
    click.option("--max-day-tokens", type=int, metavar="N", help="Tokens of all sessions today."),
    click.option("--max-day-cost", type=float, metavar="USD", help="Money for all sessions today."),
]


def turn_options(command: Command) -> Command:
    """Add these options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def to_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that are settings, by the settings' keys. Raise `UsageError`."""
    if flags.get("yes") and flags.get("mode") not in (None, "auto"):
        raise click.UsageError("--yes is --mode auto, and another mode was asked for as well")
    if flags.get("go_on") and flags.get("resume") is not None:
        raise click.UsageError("--continue and --resume exclude each other")
    if flags.get("resume") == CHOOSE:
        raise click.UsageError(
            "--resume needs the id of a session here\n"
            "`bridle sessions list` lists them; `bridle --resume` in a terminal lets you choose."
        )
    if flags.get("worktree") is not None and flags.get("resume") is not None:
        raise click.UsageError(
            "--resume goes on where the session was, and --worktree is for another place"
        )
    settings = {key: flags.get(flag) for flag, key in _KEYS.items()}
    return settings | {"mode": "auto"} if flags.get("yes") else settings
