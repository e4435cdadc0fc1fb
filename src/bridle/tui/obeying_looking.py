"""Commands that only show something: help, tools, MCP servers, rules, questions, use, doctor."""

from collections.abc import Iterable, Sequence

from bridle.errors import SessionError
from bridle.presentation.amounts import cost_text
from bridle.presentation.commands import TABLE, Command, command_of
from bridle.tui.dialogs import TextPage
from bridle.tui.house import Named
from bridle.tui.keys import help_lines
from bridle.tui.obeying_stage import Act, Stage
from bridle.workspace.text import one_line

Lines = list[tuple[str, str]]


async def _help(stage: Stage, rest: str) -> None:
    if not rest:
        await stage.ask(TextPage("Help", help_text(stage.own())))
        return
    command = command_of(rest, stage.own())
    if command is None:
        raise SessionError(f"there is no command {one_line(rest, 40)}", hint="/help lists them.")
    also = f" Also: {', '.join(f'/{one}' for one in command.also)}." if command.also else ""
    stage.tell(f"{command.spelled}: {command.meaning}.{also}")


def help_text(own: Sequence[Command] = ()) -> Lines:
    """Every command with what it means, the user's own, and the keys."""
    lines: Lines = [("Commands", "head"), *_told(TABLE)]
    if own:
        lines += [("", ""), ("Your own", "head"), *_told(own)]
    lines += [("", ""), ("Keys", "head")]
    return lines + [
        (f"  {key:20} {meaning}", "") if key else ("", "") for key, meaning in help_lines()
    ]


def _told(commands: Iterable[Command]) -> Lines:
    return [(f"  {one.spelled:20} {one_line(one.meaning)}", "") for one in commands]


def named_lines(found: Iterable[Named], empty: str) -> Lines:
    """One of several a line, with a word on it and why it does not count."""
    lines: Lines = []
    for one in found:
        sign = "•" if one.chosen else " "
        about = f"  {one_line(one.about, 200)}" if one.about else ""
        lines.append((f"{sign} {one_line(one.name, 200)}{about}", ""))
        if one.why_not:
            lines.append((f"    {one_line(one.why_not, 300)}", "warning"))
    return lines or [(empty, "muted")]


async def _tools(stage: Stage, rest: str) -> None:
    found = await stage.lodging.tools()
    lines = named_lines(found, "The model has no tools here.")
    await stage.ask(TextPage(f"Tools ({len(found)})", lines))


async def _mcp(stage: Stage, rest: str) -> None:
    found = await stage.lodging.mcp()
    empty = "No MCP server is set up here. `bridle mcp add` adds one."
    await stage.ask(TextPage("MCP servers", named_lines(found, empty)))


async def _policy(stage: Stage, rest: str) -> None:
    found = await stage.lodging.rules()
    empty = "There are no rules here: what changes something is asked about."
    await stage.ask(TextPage("Policy", named_lines(found, empty)))


async def _approvals(stage: Stage, rest: str) -> None:
    if await stage.lodging.pending():
        stage.open_questions()
    else:
        stage.tell("No session waits for an answer.")


async def _cost(stage: Stage, rest: str) -> None:
    used = stage.lodging.session.metrics
    rows = [
        ("model requests", f"{used.invocations:,}"),
        ("tool calls", f"{used.tool_calls:,}"),
        ("tokens in", f"{used.total_input_tokens:,}"),
        ("  read from a cache", f"{used.cache_read_tokens:,}"),
        ("  written to a cache", f"{used.cache_write_tokens:,}"),
        ("tokens out", f"{used.total_output_tokens:,}"),
        ("cost", cost_text(used).removeprefix("cost ")),
    ]
    await stage.ask(
        TextPage("What this session has used", [(f"{n:22} {v:>12}", "") for n, v in rows])
    )


async def _compact(stage: Stage, rest: str) -> None:
    house = stage.lodging
    if not house.is_begun:
        stage.tell("There is nothing to shorten.")
        return
    stage.hint("shortening …")
    if not await house.session.compact():  # where it is shorter, the log says so
        stage.tell("There is nothing to shorten.")


async def _doctor(stage: Stage, rest: str) -> None:
    stage.hint("looking …")
    house = stage.lodging
    lines = (f"This session uses {one_line(house.model, 80)}.", "", *await house.doctor())
    await stage.ask(TextPage("Doctor", [(line, "") for line in lines]))


LOOKING: dict[str, Act] = {
    "help": _help,
    "tools": _tools,
    "mcp": _mcp,
    "policy": _policy,
    "approvals": _approvals,
    "cost": _cost,
    "compact": _compact,
    "doctor": _doctor,
}
