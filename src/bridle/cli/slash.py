"""The REPL's own commands: `/new`, `/model`, `/cost` and the rest."""

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from pathlib import Path

import click

from bridle.cli.progress import size_of
from bridle.cli.render import one_line, usage_line
from bridle.cli.room import Room
from bridle.cli.words import check_text, person
from bridle.policy import MODES

HELP = {
    "/help": "this list",
    "/new": "a new session",
    "/sessions": "the newest sessions",
    "/resume ID": "take that session up again; the beginning of its id will do",
    "/model NAME": "another model from here on; without a name, which one it is",
    "/agent NAME": "who carries the turns from here on: loop, claude-code, acp:COMMAND",
    "/mode MODE": f"what may run without asking: {', '.join(MODES)}",
    "/plan [WORDS]": "plan mode: look and plan, change nothing until you agree",
    "/cost": "what this session has used",
    "/fork [SEQ]": "go on in a copy of this session, from its end or from a record",
    "/rewind N": "take the conversation back by N turns; files stay as they are",
    "/compact": "shorten the conversation now: the model writes down what matters of it",
    "/rename TITLE": "give this session a title",
    "/search WORDS": "where that was said, in all sessions",
    "/export FILE": "write this session to FILE, as Markdown if its name ends in .md",
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
        room.screen.line(f"  {name:14} {room.screen.paint.dim(meaning)}")


async def _new(room: Room, rest: str) -> None:
    await room.renew()
    room.screen.line(room.screen.paint.dim("a new session"))


async def _sessions(room: Room, rest: str) -> None:
    for line in await room.listed():
        room.screen.line(line)


async def _resume(room: Room, rest: str) -> None:
    if not rest:
        raise click.UsageError("/resume needs the id of a session\n/sessions lists them.")
    await room.resume(rest)
    title = room.session.title or room.session.id
    room.screen.line(room.screen.paint.dim(f"taken up again: {one_line(title)}"))
    await room.carry_on()


async def _model(room: Room, rest: str) -> None:
    if rest:
        await room.change_model(rest)
    room.screen.line(one_line(room.model))


async def _agent(room: Room, rest: str) -> None:
    if rest:
        await room.change_agent(rest)
    room.screen.line(one_line(room.agent))


async def _mode(room: Room, rest: str) -> None:
    if rest and rest not in MODES:
        raise click.UsageError(f"there is no mode {rest}\nThere are {', '.join(MODES)}.")
    if rest:
        await room.change_mode(rest)
    room.screen.line(room.mode)


async def _plan(room: Room, rest: str) -> None:
    await room.change_mode("plan")
    room.screen.line(room.screen.paint.dim("plan mode: nothing is changed until you agree"))
    if rest:
        await room.play(check_text(rest, "the line"))


async def _cost(room: Room, rest: str) -> None:
    room.screen.line(usage_line(room.session.metrics))


async def _fork(room: Room, rest: str) -> None:
    before = room.session.id
    await room.fork(_number(rest, "/fork") if rest else None)
    said = f"now in {room.session.id}; {before} stays as it is"
    room.screen.line(room.screen.paint.dim(said))


async def _rewind(room: Room, rest: str) -> None:
    place = await room.rewind(_number(rest or "1", "/rewind"))
    where = f"to #{place}" if place else "to its beginning"
    said = f"taken back {where}; files and what commands did stay as they are"
    room.screen.line(room.screen.paint.dim(said))


def _number(text: str, command: str) -> int:
    if not text.isdecimal() or not 0 < int(text[:9]) == int(text):
        example = f"{command} 2"
        raise click.UsageError(
            f"{command} takes a whole number from 1 to 999999999, and not {one_line(text[:40])}"
            f"\nFor example: {example}"
        )
    return int(text)


async def _compact(room: Room, rest: str) -> None:
    shortened = room.is_begun and await room.session.compact(by=person())
    said = "the conversation is shorter now" if shortened else "there is nothing to shorten"
    room.screen.line(room.screen.paint.dim(said))


async def _rename(room: Room, rest: str) -> None:
    if not rest:
        raise click.UsageError("/rename needs a title")
    await room.session.rename(rest)
    room.screen.line(room.screen.paint.dim(f"renamed: {one_line(rest)}"))


async def _search(room: Room, rest: str) -> None:
    if not rest:
        raise click.UsageError("/search needs words to look for")
    lines = list(await room.searched(rest))
    for line in lines or ["nothing was found"]:
        room.screen.line(line)


async def _export(room: Room, rest: str) -> None:
    if not rest:
        raise click.UsageError("/export needs the name of a file")
    form = "markdown" if rest.endswith((".md", ".markdown")) else "jsonl"
    size = await room.export(Path(rest), form)
    room.screen.line(room.screen.paint.dim(one_line(f"{size_of(size)} written to {rest}")))


_ACTS: dict[str, Callable[[Room, str], Awaitable[None]]] = {
    "/help": _help,
    "/new": _new,
    "/sessions": _sessions,
    "/resume": _resume,
    "/model": _model,
    "/agent": _agent,
    "/mode": _mode,
    "/plan": _plan,
    "/cost": _cost,
    "/fork": _fork,
    "/rewind": _rewind,
    "/compact": _compact,
    "/rename": _rename,
    "/search": _search,
    "/export": _export,
}
