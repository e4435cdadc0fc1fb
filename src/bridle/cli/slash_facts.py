"""The REPL's commands that look: tools, mcp, policy, budget, cost, theme, doctor."""

import sys
from collections.abc import Iterable

import click

from bridle.cli.event_lines import usage_line
from bridle.cli.room import Room
from bridle.cli.slash_sessions import Act, say
from bridle.cli.style import Paint, cut, paint_for, plain
from bridle.tui.house import Named
from bridle.tui.house_budget import budget_words
from bridle.workspace.text import flat

_THEMES = ("auto", "dark", "light", "plain")


async def _tools(room: Room, rest: str) -> None:
    _show(room, await room.house.tools(), "The model has no tools.")


async def _mcp(room: Room, rest: str) -> None:
    _show(room, await room.house.mcp(), "No MCP server is set up. See: bridle mcp --help")


async def _policy(room: Room, rest: str) -> None:
    _show(room, await room.house.rules(), "No rules hold here.")


def _show(room: Room, found: Iterable[Named], none: str) -> None:
    """A line each: the name, what it is, and why it does not count."""
    paint, width = room.screen.paint, room.screen.width
    found = list(found)
    widest = min(28, max((len(flat(one.name)) for one in found), default=0))
    for one in found:
        name = flat(one.name)
        about = cut(flat(one.about), max(20, width - max(widest, len(name)) - 4))
        room.screen.line(f"  {name.ljust(widest)}  {paint.dim(about)}".rstrip())
        if one.why_not:
            room.screen.line(f"    {paint.yellow(flat(one.why_not))}")
    if not found:
        room.screen.line(none)


async def _budget(room: Room, rest: str) -> None:
    if rest:
        await room.house.set_budget(_sum(rest))
    for name, used, most in await room.house.budget():
        said = flat(budget_words(used, most))
        room.screen.line(f"  {name:22} {room.screen.paint.dim(said)}")


def _sum(text: str) -> float:
    try:
        return float(text.removeprefix("$"))
    except ValueError:
        raise click.UsageError(
            f"/budget takes a sum of money, and not {flat(text[:40])}\nFor example: /budget 2.50"
        ) from None


async def _cost(room: Room, rest: str) -> None:
    room.screen.line(usage_line(room.session.metrics))


async def _theme(room: Room, rest: str) -> None:
    """Lines have no colours of their own: they are there, or they are not."""
    if rest and rest not in _THEMES:
        raise click.UsageError(f"there is no theme {flat(rest)}\nThere are {', '.join(_THEMES)}.")
    if rest:
        room.screen.paint = Paint(False) if rest == "plain" else paint_for(sys.stderr)
        said = "no colours" if rest == "plain" else "the terminal's own colours"
        say(room, f"{said}, until you leave; `bridle config` says how to keep it")
    else:
        say(room, f"there are {', '.join(_THEMES)}; in plain lines all but plain look the same")


async def _doctor(room: Room, rest: str) -> None:
    room.screen.line(f"This session uses {flat(room.house.model)}.")
    for line in await room.house.doctor():
        room.screen.line(cut(plain(line), max(20, room.screen.width)))


FACTS: dict[str, Act] = {
    "tools": _tools,
    "mcp": _mcp,
    "policy": _policy,
    "budget": _budget,
    "cost": _cost,
    "theme": _theme,
    "doctor": _doctor,
}
