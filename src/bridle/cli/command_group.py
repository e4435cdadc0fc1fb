"""A group of commands whose modules are imported when the command is run."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_BRIDLE_COMPLETE"  # in which a shell asks what could come next
# command: where it is ("module:attribute", relative to the group's package), a line of help
Table = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group that finds its commands in a table and imports only the one that is run."""

    def __init__(
        self,
        *args: Any,
        table: Table,
        package: str = "bridle.cli",
        advice: str = "",
        usual: tuple[str, Sequence[tuple[str, str]]] = ("", ()),
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._usual = usual  # options that need no command, and a heading for them
        self.table = table
        self._package = package
        self._advice = advice

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f".{module}", self._package), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        heading, options = self._usual
        if options:
            with formatter.section(heading):
                formatter.write_dl(options)
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """Return the commands and options that begin so, without importing the commands."""
        from bridle.cli.completion import safe_items

        commands = ((name, text) for name, (_, text) in self.table.items())
        return safe_items(commands, incomplete) + click.Command.shell_complete(
            self, ctx, incomplete
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            from bridle.cli.exit_codes import unknown_command

            raise unknown_command(args[0], ctx, self._advice)
        return super().resolve_command(ctx, args)
