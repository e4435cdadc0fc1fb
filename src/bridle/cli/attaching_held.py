"""Attaching to a session that another process of this user holds: a screen, a REPL, an editor.

Nothing is taken from who holds it: its log is followed, and what is said here goes there as a
letter. It is the house that does so; here it is found out that it is to be done, and begun.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from bridle.cli.find import find_session, session_folder
from bridle.events import PromptReceived
from bridle.stores.locks import owner_pid
from bridle.stores.reader import SessionFolder

if TYPE_CHECKING:
    from bridle.cli.local_backend import LocalBackend


def held_elsewhere(start: str) -> str:
    """The id of that session, where a process holds it that is no carrier of background sessions.

    Else empty. Raise `UnknownSession`.
    """
    folder = session_folder()
    found = find_session(folder, start)
    pid = owner_pid(folder.path(found.id))
    if pid is None:
        return ""
    from bridle.cli.supervising import supervisors

    return "" if any(one.pid == pid for one in supervisors()) else found.id


def flags_for(command: click.Command, session_id: str, given: dict[str, Any]) -> dict[str, Any]:
    """What that command is called with to go on with the session, and what was asked for here."""
    params = command.make_context(command.name, ["--resume", session_id]).params
    return {**params, **{key: value for key, value in given.items() if key in params}}


async def talk_to_held(session_id: str, flags: dict[str, Any]) -> int:
    """Line by line, from the beginning of its newest turn on."""
    from bridle.cli.commands.repl import command
    from bridle.cli.repl_loop import open_repl

    seen = await asyncio.to_thread(newest_turn, session_folder(), session_id)
    return await open_repl(flags_for(command, session_id, flags), seen).run()


@asynccontextmanager
async def entered(session_id: str) -> AsyncIterator[tuple["LocalBackend", int]]:
    """A house in which the session is looked at, and the record before its newest turn."""
    from bridle.cli.commands.repl import command
    from bridle.cli.local_backend import local_backend

    began = await asyncio.to_thread(newest_turn, session_folder(), session_id)
    house = local_backend(flags_for(command, session_id, {}), "repl")
    try:
        await house.enter()
        yield house, began
    finally:
        await house.leave()


def newest_turn(folder: SessionFolder, session_id: str) -> int:
    """The record before the prompt of its newest turn."""
    begun, turn = 0, 0
    for record in folder.read(session_id):
        event = record.event
        if isinstance(event, PromptReceived) and event.turn != turn:
            begun, turn = record.seq - 1, event.turn
    return begun
