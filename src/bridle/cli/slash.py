"""The REPL's own commands: `/new`, `/model`, `/cost` and the rest."""

import os
from collections.abc import Awaitable, Callable
from difflib import get_close_matches

import click

from bridle.cli.render import one_line, usage_line
from bridle.cli.room import Room
from bridle.cli.sessions import listed
from bridle.config import state_folder
from bridle.policy import MODES
from bridle.stores.glance import glance

HELP = {
    "/help": "this list",
    "/new": "a new session",
    "/sessions": "the newest sessions",
    "/resume ID": "take that session up again; the beginning of its id will do",
    "/model NAME": "another model from here on; without a name, which one it is",
    "/mode MODE": f"what may run without asking: {', '.join(MODES)}",
    "/cost": "what this session has used",
    "/quit": "leave",
}


async def obey(room: Room, line: str) -> bool:
    """Do what the line says; False to leave."""
    word, _, rest = line.strip().partition(" ")
    if word in ("/quit", "/exit", "/q"):
        return False
    act = _ACTS.get(word)
    if act is None:
        near = get_close_matches(word, _ACTS, 1)
        advice = f"Did you mean {near[0]}?" if near else "/help lists them."
        raise click.UsageError(
            f"there is no command {word}\n{advice} A space before the slash sends it as a prompt."
        )
    await act(room, rest.strip())
    return True


async def _help(room: Room, rest: str) -> None:
    for name, meaning in HELP.items():
        room.screen.line(f"  {name:12} {room.screen.paint.dim(meaning)}")


async def _new(room: Room, rest: str) -> None:
    await room.renew()
    room.screen.line(room.screen.paint.dim("a new session"))


async def _sessions(room: Room, rest: str) -> None:
    found = glance(state_folder(os.environ))[:10]
    if not found:
        room.screen.line("There are no sessions yet.")
        return
    for line in listed(found, room.screen.paint, room.screen.width):
        room.screen.line(line)


async def _resume(room: Room, rest: str) -> None:
    if not rest:
        raise click.UsageError("/resume needs the id of a session\n/sessions lists them.")
    await room.resume(rest)
    title = room.session.title or room.session.id
    room.screen.line(room.screen.paint.dim(f"taken up again: {one_line(title)}"))


async def _model(room: Room, rest: str) -> None:
    if rest:
        await room.change_model(rest)
    room.screen.line(one_line(room.model))


async def _mode(room: Room, rest: str) -> None:
    if rest and rest not in MODES:
        raise click.UsageError(f"there is no mode {rest}\nThere are {', '.join(MODES)}.")
    if rest:
        room.change_mode(rest)
    room.screen.line(room.mode)


async def _cost(room: Room, rest: str) -> None:
    room.screen.line(usage_line(room.session.metrics))


_ACTS: dict[str, Callable[[Room, str], Awaitable[None]]] = {
    "/help": _help,
    "/new": _new,
    "/sessions": _sessions,
    "/resume": _resume,
    "/model": _model,
    "/mode": _mode,
    "/cost": _cost,
}
