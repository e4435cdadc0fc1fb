"""The table of commands, and the entry point.

A command's module is imported when the command is run, not before. `main` is the one place where
errors become lines and exit codes; no traceback gets past it.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence

import click

try:
    from bridle import __version__
    from bridle.cli.command_group import VARIABLE, LazyGroup
    from bridle.startup import exit_on_next_interrupt, restore_interrupts
except ImportError as error:  # another distribution may have replaced files of this package
    from bridle.cli.installation import stop

    stop(error)

COMMANDS = {
    "chat": ("chat:command", "Chat on a full screen. `bridle` alone does this in a terminal."),
    "run": ("run:command", "Send one prompt and print the answer."),
    "repl": ("repl:command", "Chat line by line."),
    "serve": ("serve:command", "Serve sessions over HTTP, with a web page."),
    "attach": ("attach:command", "Connect to a session on a server or in the background."),
    "ps": ("background:ps", "List running sessions, here and in the background."),
    "stop": ("background:stop", "Stop a session that is running in the background."),
    "sessions": ("sessions:command", "List, show, search, fork, rewind and export sessions."),
    "approvals": ("approvals:command", "List and answer pending approvals."),
    "trace": ("trace:command", "Show where the time and money of a session went."),
    "undo": ("undo:command", "Undo what a turn changed in this folder."),
    "policy": ("policy:command", "Check rules, and explain what they decide about a command."),
    "trust": ("trust:command", "Trust this folder's rules, hooks and instructions."),
    "mcp": ("mcp:command", "Set up MCP servers, whose tools the model can use, or run as one."),
    "chat-server": ("chat_server:command", "Serve the task chat to many users, with a web page."),
    "chat-tools": ("chat_tools:command", "Serve the tools of the task chat over MCP."),
    "new": ("new:command", "Create a small project: a chat of your own."),
    "acp": ("acp:command", "Run as an editor's agent (Agent Client Protocol)."),
    "doctor": ("doctor:command", "Check what is set up, and which model is used."),
    "config": ("config:command", "Show the settings, and where each of them comes from."),
    "demo": ("demo:command", "Watch a scripted model fix a small project. Needs no API key."),
    "completion": ("completion:command", "Print a script for your shell that completes commands."),
    "help": ("help:command", "Show help about a command or a topic."),
}

_OWN = ("-h", "--help", "--version")
_SCREEN = (  # of `bridle chat`: those that a person needs first
    ("--continue", "Continue the most recent session in this workspace."),
    ("--resume [ID]", "Continue session ID, or choose a session from a list."),
    ("-m, --model NAME", "Model: anthropic/NAME, openai/NAME, ollama/NAME, offline, …"),
    ("--mode MODE", "Permission mode: plan, ask, edits or auto."),
    ("", "All options: bridle chat --help"),
)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    package="bridle.cli.commands",
    advice='To send a prompt: bridle run "…"',
    usual=("Options of `bridle` without a command", _SCREEN),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="bridle", message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """An agent runtime: any model or agent works on your files, and you decide what it may do."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
            click.echo(
                "\nThis terminal cannot show the full screen. To chat line by line: bridle repl"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Does what click's own `main` does, which would make an error of a broken pipe.
    """
    gc.set_threshold(150_000)  # loading modules makes many objects and no garbage
    atexit.register(gc.freeze)  # at the very end, looking for cycles is 10 ms for nothing
    _prepare_output()
    try:
        restore_interrupts()
        if instruction := os.environ.get(VARIABLE):
            from bridle.cli.completion import complete

            return complete(commands, instruction)
        words = sys.argv[1:] if arguments is None else list(arguments)
        if _is_for_chat(words):
            words = ["chat", *words]
        try:
            with commands.make_context("bridle", words) as context:
                code = commands.invoke(context)
        except click.exceptions.Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            exit_on_next_interrupt()
        from bridle.cli.exit_codes import report

        return report(error)
    return code if isinstance(code, int) else 0


def _prepare_output() -> None:
    """Make writing safe: in any locale, and if a stream was closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, click.open_file(os.devnull, "w"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _is_for_chat(arguments: list[str]) -> bool:
    """Return whether this is `bridle chat` without its name: only options, or nothing at all."""
    if arguments:
        return arguments[0].startswith("-") and arguments[0] not in _OWN
    from bridle.cli.commands.chat import is_screen

    return is_screen()
