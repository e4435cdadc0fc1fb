"""The command line. A command's module is imported when the command is asked for, not before.

`main` is the one place where errors become lines and exit codes; no traceback gets past it.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from bridle import __version__

COMMANDS = {
    "run": "Send one prompt and print the answer.",
    "repl": "Talk line by line.",
    "sessions": "List the sessions, or show one.",
    "doctor": "Say what was found on this machine, and which model would be used.",
    "config": "Show the settings and where each of them came from.",
    "demo": "Watch a scripted model mend a small project. Needs no key.",
}


class Lazy(click.Group):
    """Knows its commands by name and a line of help; `bridle.cli.NAME` has `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"bridle.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(_unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1)
    advice = f"Did you mean `bridle {near[0]}`?" if near else 'To send a prompt: bridle run "…"'
    return f"there is no command {name!r}\n{advice}"


@click.group(
    cls=Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="bridle", message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """An agent runtime: any model works on your files and commands, and you hold the reins."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    gc.set_threshold(50_000)  # loading modules makes many objects and no garbage
    atexit.register(gc.freeze)  # at the very end, looking for cycles is 10 ms for nothing
    _prepare_output()
    try:
        code = _obey(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BaseException as error:
        from bridle.cli.failure import report

        return report(error)
    return code if isinstance(code, int) else 0


def _prepare_output() -> None:
    """Neither an odd locale nor a stream that was closed is a reason to fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, click.open_file(os.devnull, "w"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _obey(arguments: list[str]) -> object:
    """What click's own `main` does, but for a broken pipe, of which it would make an error."""
    if "_BRIDLE_COMPLETE" in os.environ:  # a shell asks for completions
        return commands.main(arguments, prog_name="bridle")
    try:
        with commands.make_context("bridle", arguments) as ctx:
            return commands.invoke(ctx)
    except click.exceptions.Exit as leave:
        return leave.exit_code
