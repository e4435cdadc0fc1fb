"""Run slash commands. One dispatcher and one set of handlers, for the full screen and the REPL.

What the session's log says itself (a fork, a rewind, an undo, a new mode) is not said again.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bridle.errors import SessionBusy, SessionError
from bridle.policy import MODES, Mode
from bridle.presentation.amounts import budget_text, cost_text
from bridle.presentation.calls import diff_lines
from bridle.presentation.commands import TABLE, Command, command_of, command_prompt, nearest, split
from bridle.presentation.modes import MODE_TEXTS
from bridle.protocols.session_values import Choice, UndoPreview
from bridle.tui.slash.interaction import Handler, Interaction, Item, Lines
from bridle.tui.user_settings import THEMES, save_setting, settings_path
from bridle.usage import format_cost
from bridle.workspace.text import one_line, quantity, size_of

_ASKED_FOR = ("resume", "rename")  # a screen asks for what is left out
_LARGEST_NUMBER = 999_999_999
_EXAMPLES = {
    "search": "/search the words",
    "export": "/export talk.md",
    "resume": "/resume ID; /sessions lists them",
    "rename": "/rename a title",
}


async def run_command(
    ui: Interaction, line: str, screen_commands: Mapping[str, Handler] | None = None
) -> None:
    """Run the command of a line. Raise `AgentError`.

    `screen_commands` are those that need the full screen.
    """
    name, rest = split(line)
    own = ui.user_commands()
    command = command_of(name, own)
    if command is None:
        near = nearest(name, own)
        advice = f"Did you mean /{near}?" if near else "/help lists them."
        raise SessionError(
            f"there is no command /{name}",
            hint=f"{advice} A space before the slash sends it as a prompt.",
        )
    handlers = {**COMMANDS, **(screen_commands or {})}
    if command.own:
        await _run_user_command(ui, command, rest)
    elif command.name not in handlers:
        raise SessionError(
            f"/{command.name} works only on the full screen", hint="Open it with: bridle chat"
        )
    elif command.is_needy and not rest and not (ui.is_screen and command.name in _ASKED_FOR):
        example = _EXAMPLES.get(command.name, command.spelled)
        raise SessionError(
            f"/{command.name} needs {command.argument}", hint=f"For example: {example}"
        )
    else:
        await handlers[command.name](ui, rest)


async def _run_user_command(ui: Interaction, command: Command, rest: str) -> None:
    """Send the prompt that the file of a user's own command holds."""
    text = command_prompt(command, rest)
    if not text.strip():
        raise SessionError(f"/{command.name} is empty", hint=f"Look at {command.own}.")
    if not ui.is_screen:  # the screen shows the prompt
        ui.show(one_line(f"› {text}", 200))
    await ui.send(text)


async def _help(ui: Interaction, rest: str) -> None:
    own = ui.user_commands()
    if not rest:
        await ui.show_lines("Help", help_lines(own, ui))
        return
    command = command_of(rest, own)
    if command is None:
        raise SessionError(f"there is no command {one_line(rest, 40)}", hint="/help lists them.")
    also = f" Also: {', '.join(f'/{name}' for name in command.also)}." if command.also else ""
    ui.show(f"{command.spelled}: {command.meaning}.{also}")


def help_lines(own: Sequence[Command], ui: Interaction) -> list[tuple[str, str]]:
    """Return every command with its meaning, the user's own, and the keys."""
    builtin = [command for command in TABLE if ui.is_screen or command.where != "screen"]
    lines = [("Commands", "head"), *_command_lines(builtin)]
    if own:
        lines += [("", ""), ("Your own", "head"), *_command_lines(own)]
    if keys := ui.keys():
        lines += [("", ""), ("Keys", "head"), *keys]
    return lines


def _command_lines(commands: Iterable[Command]) -> list[tuple[str, str]]:
    return [(f"  {command.spelled:20} {one_line(command.meaning)}", "") for command in commands]


async def _quit(ui: Interaction, rest: str) -> None:
    ui.leave()


# Sessions


async def _new(ui: Interaction, rest: str) -> None:
    await ui.switch(ui.backend.renew())
    ui.show(f"A new session, mode {ui.backend.mode}.")


async def _sessions(ui: Interaction, rest: str) -> None:
    if session_id := await ui.choose_session(rest):
        await _go(ui, session_id)


async def _resume(ui: Interaction, rest: str) -> None:
    if rest:
        await _go(ui, rest)
    else:
        await _sessions(ui, "")


async def _go(ui: Interaction, session_id: str) -> None:
    if not await _enter(ui, session_id):
        ui.show("You are in that session already.")
    elif not ui.is_screen:
        session = ui.backend.session
        ui.show(f"Resumed: {one_line(session.title or session.id, 200)}")
    await ui.resume()


async def _enter(ui: Interaction, session_id: str) -> bool:
    """Go to a session; return False if it is the current one."""
    before = ui.backend.session.id
    await ui.switch(ui.backend.resume(session_id))
    return ui.backend.session.id != before


async def _fork(ui: Interaction, rest: str) -> None:
    before = ui.backend.session.id
    await ui.switch(ui.backend.fork(_number(rest, "/fork") if rest else None))
    if not ui.is_screen:  # the screen shows the record that says so
        ui.show(f"Now in {ui.backend.session.id}; {before} is unchanged.")


async def _rewind(ui: Interaction, rest: str) -> None:
    turns = _number(rest or "1", "/rewind")
    prompt = ui.prompt_of_turn(turns)
    await ui.backend.rewind(turns)
    ui.restore_input(prompt)


def _number(text: str, command: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:10]) <= _LARGEST_NUMBER:
        raise SessionError(
            f"{command} takes a number from 1 to {_LARGEST_NUMBER}, not “{one_line(text, 40)}”",
            hint=f"For example: {command} 2",
        )
    return int(text[:10])


async def _undo(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    preview = await backend.undo_preview(_number(rest, "/undo") if rest else 0)
    if not preview.files and not preview.clashes:
        few = ", ".join(one_line(path, 60) for path in preview.uncovered[:3])
        ui.show("There is nothing to restore." + (f" Not covered: {few}." if few else ""))
        return
    files = quantity(len(preview.files) + len(preview.clashes), "file")
    question = f"Undo turn {preview.turn}? This restores {files}."
    if preview.clashes:
        clashes = quantity(len(preview.clashes), "file")
        was = "was" if len(preview.clashes) == 1 else "were"
        question += f"\n{clashes} {was} changed after that turn: those changes will be lost."
    if preview.clashes and not ui.is_screen:  # a line of input is too easily a yes
        names = ", ".join(one_line(clash.path, 60) for clash in preview.clashes[:3])
        raise SessionBusy(
            f"nothing was changed: {names} changed since",
            hint="Undo the later turns first, or restore those files by hand.",
        )
    title, is_danger = f"Undo turn {preview.turn}", bool(preview.clashes)
    if await ui.confirm(title, question, undo_lines(preview), danger=is_danger):
        await backend.undo(preview)
    else:
        ui.show("Nothing was restored.")


_EFFECTS = {  # what an undo does with a file, by how the undo changes it
    "added": "will be created again",
    "changed": "will be restored",
    "deleted": "will be deleted",
}


def undo_lines(preview: UndoPreview) -> list[tuple[str, str]]:
    """Return each file with what becomes of it and its diff, then what is not covered."""
    lines: list[tuple[str, str]] = []
    for file in preview.files:
        if lines:
            lines.append(("", ""))
        effect = _EFFECTS.get(file.how, one_line(file.how))
        lines.append((f"{one_line(file.path, 200)}  {effect}", "head"))
        if file.diff.strip():
            lines += [line for line in diff_lines(file.diff) if line[1] != "muted"]
    for clash in preview.clashes:
        if lines:
            lines.append(("", ""))
        reason = one_line(clash.why) or "it was changed since"
        lines.append((f"{one_line(clash.path, 200)}  {reason}", "warning"))
        if clash.diff.strip():
            lines.append(("what would be lost:", ""))
            lines += [line for line in diff_lines(clash.diff) if line[1] != "muted"]
    if preview.uncovered:
        lines += [("", ""), ("Not covered, and left as it is:", "warning")]
        lines += [(f"  {one_line(path, 200)}", "") for path in preview.uncovered]
    return lines


async def _rename(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    title = rest or await ui.ask_text("A title for this session", backend.session.title)
    if title and title.strip():
        await backend.rename(backend.session.id, title.strip())
        ui.update()
        ui.show(f"Renamed: {one_line(title)}")


async def _search(ui: Interaction, rest: str) -> None:
    hits = await ui.backend.search(rest)

    async def items() -> list[Item]:
        return [
            Item(
                f"{hit.session_id} {hit.seq} {hit.kind}",
                hit.title or hit.session_id,
                f"#{hit.seq} {hit.kind}  {one_line(hit.text, 100)}",
            )
            for hit in hits
        ]

    title = f"Where “{one_line(rest, 40)}” was said"
    if chosen := await ui.choose(title, items, empty="Nothing was found."):
        session_id, seq, kind = chosen.split(" ", 2)
        await _enter(ui, session_id)
        ui.go_to(int(seq), kind)


async def _export(ui: Interaction, rest: str) -> None:
    path = Path(rest)
    form = "markdown" if rest.endswith((".md", ".markdown")) else "jsonl"
    is_forced = False
    if ui.is_screen and _is_file(path):
        question = f"{rest} exists already. Overwrite it?"
        if not await ui.confirm("Export", question, danger=True):
            ui.show("Nothing was written.")
            return
        is_forced = True
    place, size = await ui.backend.export(path, form, force=is_forced)
    ui.show(f"{size_of(size)} written to {place}")


def _is_file(path: Path) -> bool:
    try:
        return path.expanduser().is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise SessionError(f"{one_line(str(path))} is not a valid file name", error) from error


async def _compact(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    if backend.is_begun:
        ui.show_progress("shortening …")
    if not (backend.is_begun and await backend.session.compact(by=backend.me)):
        ui.show("There is nothing to shorten.")


# Settings


async def _pick(
    ui: Interaction, title: str, now: str, named: Callable[[], Awaitable[tuple[Choice, ...]]]
) -> str | None:
    async def items() -> list[Item]:
        return [
            Item(one.name, one.name, one.label, one.default, one.why_not) for one in await named()
        ]

    return await ui.choose(title, items, now=now)


async def _model(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    if name := rest or await _pick(ui, "Model", backend.model, backend.models):
        await ui.switch(backend.change_model(name))
        ui.show(f"Model: {one_line(backend.model)}")


async def _agent(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    if name := rest or await _pick(ui, "Agent", backend.agent, backend.agents):
        await ui.switch(backend.change_agent(name))
        ui.show(f"Agent: {one_line(backend.agent)}")


async def _mode(ui: Interaction, rest: str) -> None:
    now = ui.backend.mode

    async def items() -> list[Item]:
        return [Item(mode, mode, MODE_TEXTS[mode].meaning, mode == now) for mode in MODES]

    name = rest or await ui.choose("Mode", items, now=now)
    if not name:
        return
    mode = next((mode for mode in MODES if mode == name), None)
    if mode is None:
        raise SessionError(
            f"there is no mode {one_line(name, 40)}", hint=f"There are {', '.join(MODES)}."
        )
    await _change_mode(ui, mode)


async def _change_mode(ui: Interaction, mode: Mode) -> None:
    backend = ui.backend
    before = backend.mode
    await backend.change_mode(mode)
    ui.update()
    if not backend.is_begun or before == mode:  # else a record says so
        ui.show(f"Mode {backend.mode}: {MODE_TEXTS[backend.mode].meaning}.")


async def _plan(ui: Interaction, rest: str) -> None:
    await _change_mode(ui, "plan")
    if rest:
        await ui.send(rest)


async def _budget(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    if rest:
        amount = _amount(rest)
        await backend.set_budget(amount)
        limit = format_cost(amount)
        ui.show(f"From the next turn on this session may spend {limit} in all.")
        return
    rows = [
        (f"{name:22} {budget_text(used, most)}", "") for name, used, most in await backend.budget()
    ]
    await ui.show_lines("Budget", rows)


def _amount(text: str) -> float:
    try:
        amount = float(text.removeprefix("$").replace(",", "."))
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount) or amount <= 0:
        raise SessionError(
            f"{one_line(text, 40)} is not an amount of money",
            hint="Enter an amount in dollars, for example 2.50.",
        )
    return amount


async def _theme(ui: Interaction, rest: str) -> None:
    async def items() -> list[Item]:
        return [Item(name, name, THEMES[name]) for name in THEMES]

    name = rest or await ui.choose("Theme", items)
    if not name:
        return
    if name not in THEMES:
        raise SessionError(
            f"there is no theme {one_line(name, 40)}", hint=f"There are {', '.join(THEMES)}."
        )
    ui.set_theme(name)
    if not ui.is_screen:
        ui.show(f"Theme {name}, until you leave; `bridle config` explains how to keep it.")
        return
    place = settings_path()
    question = f"Use it from now on, and write “theme: {name}” to {place}?\nn keeps it for now."
    if await ui.confirm("Theme", question):
        save_setting("theme", name)
        ui.show(f"Theme {name}, written to {place}.")
    else:
        ui.show(f"Theme {name}, for now.")


# What there is, and what was used


def _named_lines(named: Iterable[Choice], empty: str) -> Lines:
    """Return a line for each: its name, what it is, and why it is not used."""
    lines: list[tuple[str, str]] = []
    for one in named:
        mark = "•" if one.default else " "
        about = f"  {one_line(one.label, 200)}" if one.label else ""
        lines.append((f"{mark} {one_line(one.name, 200)}{about}", ""))
        if one.why_not:
            lines.append((f"    {one_line(one.why_not, 300)}", "warning"))
    return lines or [(empty, "muted")]


async def _tools(ui: Interaction, rest: str) -> None:
    tools = await ui.backend.tools()
    lines = _named_lines(tools, "The model has no tools.")
    await ui.show_lines(f"Tools ({len(tools)})", lines)


async def _mcp(ui: Interaction, rest: str) -> None:
    empty = "No MCP server is set up here. `bridle mcp add` adds one."
    await ui.show_lines("MCP servers", _named_lines(await ui.backend.mcp(), empty))


async def _policy(ui: Interaction, rest: str) -> None:
    empty = "There are no rules here: every change needs approval."
    await ui.show_lines("Policy", _named_lines(await ui.backend.rules(), empty))


async def _approvals(ui: Interaction, rest: str) -> None:
    if await ui.backend.pending():
        await ui.answer_approvals()
    else:
        ui.show("No session needs approval.")


async def _cost(ui: Interaction, rest: str) -> None:
    used = ui.backend.session.metrics
    rows = [
        ("model requests", f"{used.invocations:,}"),
        ("tool calls", f"{used.tool_calls:,}"),
        ("tokens in", f"{used.total_input_tokens:,}"),
        ("  read from a cache", f"{used.cache_read_tokens:,}"),
        ("  written to a cache", f"{used.cache_write_tokens:,}"),
        ("tokens out", f"{used.total_output_tokens:,}"),
        ("cost", cost_text(used).removeprefix("cost ")),
    ]
    lines = [(f"{name:22} {figure:>12}", "") for name, figure in rows]
    await ui.show_lines("What this session has used", lines)


async def _doctor(ui: Interaction, rest: str) -> None:
    backend = ui.backend
    ui.show_progress("checking …")
    lines = (f"This session uses {one_line(backend.model, 80)}.", "", *await backend.doctor())
    await ui.show_lines("Doctor", [(line, "") for line in lines])


COMMANDS: dict[str, Handler] = {
    "help": _help,
    "new": _new,
    "sessions": _sessions,
    "resume": _resume,
    "fork": _fork,
    "rewind": _rewind,
    "undo": _undo,
    "model": _model,
    "agent": _agent,
    "mode": _mode,
    "plan": _plan,
    "tools": _tools,
    "mcp": _mcp,
    "policy": _policy,
    "approvals": _approvals,
    "budget": _budget,
    "cost": _cost,
    "compact": _compact,
    "rename": _rename,
    "search": _search,
    "export": _export,
    "theme": _theme,
    "doctor": _doctor,
    "quit": _quit,
}
