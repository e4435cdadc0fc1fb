"""The REPL's `/` commands: which act a line means. The table of them is `tui/commands.py`.

What each does is in `slash_sessions.py`, `slash_facts.py` and `slash_reins.py`, in plain lines. A
user's own command is a prompt.
"""

import click

from bridle.cli.room import Room
from bridle.cli.slash_facts import FACTS
from bridle.cli.slash_reins import REINS
from bridle.cli.slash_sessions import SESSIONS, Act
from bridle.cli.user_input import check_text
from bridle.errors import SessionError
from bridle.tui.commands import TABLE, Command, command_of, nearest, split
from bridle.tui.own_commands import prompt_of
from bridle.workspace.text import one_line

_WIDTH = 18
_NEEDS = {
    "resume": "/resume needs the id of a session\n/sessions lists them.",
    "rename": "/rename needs a title",
    "search": "/search needs words to look for",
    "export": "/export needs the name of a file",
}


async def obey(room: Room, line: str) -> bool:
    """Do what the line says; False to leave."""
    name, rest = split(line)
    own = room.house.commands()
    command = command_of(name, own)
    if command is None:
        near = nearest(name, own)
        advice = f"Did you mean /{near}?" if near else "/help lists them."
        raise click.UsageError(
            f"there is no command /{name}\n{advice} A space before the slash sends it as a prompt."
        )
    if command.name == "quit":
        return False
    if command.is_needy and not rest:
        raise click.UsageError(_NEEDS.get(command.name, f"/{name} needs {command.argument}"))
    if command.own:
        await _play(room, command, rest)
    elif command.where == "screen":
        raise click.UsageError(
            f"/{command.name} works on the screen alone\nOpen it with: bridle chat"
        )
    else:
        await ACTS[command.name](room, rest)
    return True


async def _play(room: Room, command: Command, rest: str) -> None:
    """A user's own command: the prompt that its file says."""
    text = prompt_of(command, rest)
    if not text.strip():
        raise SessionError(f"/{command.name} says nothing", hint=f"Look at {command.own}.")
    room.screen.line(room.screen.paint.dim(one_line(f"› {text}", room.screen.width)))
    await room.play(check_text(text, "the command"))


async def _help(room: Room, rest: str) -> None:
    own = room.house.commands()
    if rest:
        found = command_of(rest, own)
        if found is None:
            raise click.UsageError(f"there is no command {one_line(rest)}\n/help lists them.")
        every = [found]
    else:
        every = [*(one for one in TABLE if one.where != "screen"), *own]
    for one in every:
        meaning = room.screen.paint.dim(one_line(one.meaning))
        room.screen.line(f"  {one_line(one.spelled):{_WIDTH}} {meaning}")


ACTS: dict[str, Act] = {"help": _help, **SESSIONS, **FACTS, **REINS}
