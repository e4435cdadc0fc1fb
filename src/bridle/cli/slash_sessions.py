"""The REPL's commands about sessions: new, resume, fork, rewind, model, agent, mode and so on."""

from collections.abc import Awaitable, Callable
from itertools import groupby
from pathlib import Path

import click

from bridle.cli.progress import size_of
from bridle.cli.room import Room
from bridle.cli.screen import Screen
from bridle.cli.sessions import when
from bridle.cli.style import cut
from bridle.cli.user_input import check_text, user_name
from bridle.policy import MODES
from bridle.tui.house import Listed
from bridle.workspace.text import flat

Act = Callable[[Room, str], Awaitable[None]]
_NEWEST = 10
_MODELS = 15  # others that are named


async def _new(room: Room, rest: str) -> None:
    before = room.house.mode
    await room.moving(room.house.renew())
    say(room, "a new session")
    if room.house.mode != before:
        say(room, f"its mode is {room.house.mode}")


async def _sessions(room: Room, rest: str) -> None:
    found = await room.house.sessions(rest, _NEWEST)
    for one in found:
        room.screen.line(line_of(one, room.screen))
    if not found:
        room.screen.line("No session fits." if rest else "There are no sessions yet.")


def line_of(one: Listed, screen: Screen) -> str:
    """A session as a list shows it: id, when, what it does, title."""
    paint = screen.paint
    state = f"asks {one.waiting}" if one.waiting else "" if one.state == "done" else one.state
    room = max(10, screen.width - len(one.id) - 30)
    below = "↳ " if one.parent else ""  # a task of another session
    title = cut(below + (flat(one.title) or "(no prompt)"), room)
    known = f"{paint.cyan(flat(one.id))}  {when(one.updated_at)}"
    return f"{known}  {paint.yellow(flat(state).ljust(7))}  {title}"


async def _resume(room: Room, rest: str) -> None:
    await room.moving(room.house.resume(rest))
    title = room.session.title or room.session.id
    say(room, f"taken up again: {flat(title)}")
    await room.carry_on()


async def _model(room: Room, rest: str) -> None:
    if rest:
        await room.moving(room.house.change_model(rest))
    room.screen.line(flat(room.house.model))
    if not rest and room.approver.lines.is_terminal:
        others = [one for one in await room.house.models() if not one.chosen and not one.why_not]
        for one in others[:_MODELS]:
            say(room, f"  {one.name}  {one.about}".rstrip())


async def _agent(room: Room, rest: str) -> None:
    if rest:
        await room.moving(room.house.change_agent(rest))
    room.screen.line(flat(room.house.agent))


async def _mode(room: Room, rest: str) -> None:
    if rest and rest not in MODES:
        raise click.UsageError(f"there is no mode {rest}\nThere are {', '.join(MODES)}.")
    if rest:
        await room.house.change_mode(rest)
    room.screen.line(room.house.mode)


async def _plan(room: Room, rest: str) -> None:
    await room.house.change_mode("plan")
    say(room, "plan mode: nothing is changed until you agree")
    if rest:
        await room.play(check_text(rest, "the line"))


async def _fork(room: Room, rest: str) -> None:
    before = room.session.id
    await room.moving(room.house.fork(number(rest, "/fork") if rest else None))
    say(room, f"now in {room.session.id}; {before} stays as it is")


async def _rewind(room: Room, rest: str) -> None:
    await room.house.rewind(number(rest or "1", "/rewind"))  # its record says so, as everywhere


async def _compact(room: Room, rest: str) -> None:
    if not (room.house.is_begun and await room.session.compact(by=user_name())):
        say(room, "there is nothing to shorten")


async def _rename(room: Room, rest: str) -> None:
    await room.house.rename(room.session.id, check_text(rest, "the title"))
    say(room, f"renamed: {flat(rest)}")


async def _search(room: Room, rest: str) -> None:
    paint, width = room.screen.paint, room.screen.width
    found = await room.house.search(check_text(rest, "the words"))
    for session_id, hits in groupby(found, lambda one: one.session_id):
        several = list(hits)
        title = cut(flat(several[0].title) or "(no prompt)", max(10, width - 40))
        room.screen.line(f"{paint.bold(title)}  {paint.cyan(flat(session_id))}")
        for one in several:
            mark = f"#{one.seq} {flat(one.kind)}".rstrip()
            text = cut(flat(one.text), max(20, width - len(mark) - 4))
            room.screen.line(f"  {paint.dim(mark)}  {text}")
    if not found:
        room.screen.line("nothing was found")


async def _export(room: Room, rest: str) -> None:
    form = "markdown" if rest.endswith((".md", ".markdown")) else "jsonl"
    _, size = await room.house.export(Path(check_text(rest, "the name")), form)
    say(room, f"{size_of(size)} written to {rest}")


def say(room: Room, text: str) -> None:
    """A line of our own."""
    room.screen.line(room.screen.paint.dim(flat(text)))


def number(text: str, command: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or not 0 < int(text[:9]) == int(text):
        raise click.UsageError(
            f"{command} takes a whole number from 1 to 999999999, and not {flat(text[:40])}"
            f"\nFor example: {command} 2"
        )
    return int(text)


SESSIONS: dict[str, Act] = {
    "new": _new,
    "sessions": _sessions,
    "resume": _resume,
    "model": _model,
    "agent": _agent,
    "mode": _mode,
    "plan": _plan,
    "fork": _fork,
    "rewind": _rewind,
    "compact": _compact,
    "rename": _rename,
    "search": _search,
    "export": _export,
}
