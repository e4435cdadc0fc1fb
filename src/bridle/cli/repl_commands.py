"""The REPL's `/` commands. The table of them is `presentation/commands.py`.

A command of the user's own is a prompt.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable
from itertools import groupby
from pathlib import Path

from bridle.cli.approver import choices_of, full_text, parse_answer
from bridle.cli.commands.sessions.list import local_time
from bridle.cli.event_lines import usage_line
from bridle.cli.exit_codes import complain
from bridle.cli.repl_session import ReplSession
from bridle.cli.screen import Screen
from bridle.cli.style import Paint, cut, paint_for, plain, wrapped
from bridle.cli.user_input import check_text, user_name
from bridle.errors import AgentError, SessionBusy, SessionError, UsageError
from bridle.policy import MODES
from bridle.presentation.amounts import budget_text
from bridle.presentation.commands import TABLE, Command, command_of, nearest, split
from bridle.protocols.session import Answer
from bridle.tui.house import HOW_RESTORED, Asked, Listed, Named, Undone
from bridle.tui.own_commands import prompt_of
from bridle.workspace.text import flat, neutral, one_line, quantity, size_of

Action = Callable[[ReplSession, str], Awaitable[None]]
_ARGUMENTS = {  # what each needs, and a hint
    "resume": ("/resume needs the id of a session", "/sessions lists them."),
    "rename": ("/rename needs a title", ""),
    "search": ("/search needs a text to search for", ""),
    "export": ("/export needs the name of a file", ""),
}
_WIDTH = 18  # of the names of commands
_NEWEST = 10  # sessions that are listed
_MODELS = 15  # other models that are listed
_THEMES = ("auto", "dark", "light", "plain")
_SIGNS = {HOW_RESTORED["added"]: "+", HOW_RESTORED["deleted"]: "-"}


async def run_command(repl: ReplSession, line: str) -> bool:
    """Run the command of a line; return False to leave."""
    name, rest = split(line)
    own = repl.house.commands()
    command = command_of(name, own)
    if command is None:
        near = nearest(name, own)
        advice = f"Did you mean /{near}?" if near else "/help lists them."
        raise UsageError(
            f"there is no command /{name}",
            hint=f"{advice} A space before the slash sends it as a prompt.",
        )
    if command.name == "quit":
        return False
    if command.is_needy and not rest:
        needs = (f"/{name} needs {command.argument}", "")
        message, hint = _ARGUMENTS.get(command.name, needs)
        raise UsageError(message, hint=hint)
    if command.own:
        await _run_own(repl, command, rest)
    elif command.where == "screen":
        raise UsageError(
            f"/{command.name} works only on the full screen", hint="Open it with: bridle chat"
        )
    else:
        await ACTIONS[command.name](repl, rest)
    return True


async def _run_own(repl: ReplSession, command: Command, rest: str) -> None:
    """Send the prompt that the file of a user's own command says."""
    text = prompt_of(command, rest)
    if not text.strip():
        raise SessionError(f"/{command.name} is empty", hint=f"Edit {command.own}.")
    repl.screen.line(repl.screen.paint.dim(one_line(f"› {text}", repl.screen.width)))
    await repl.send(check_text(text, "the command"))


async def _help(repl: ReplSession, rest: str) -> None:
    own = repl.house.commands()
    if rest:
        command = command_of(rest, own)
        if command is None:
            raise UsageError(f"there is no command {one_line(rest)}", hint="/help lists them.")
        commands = [command]
    else:
        commands = [*(command for command in TABLE if command.where != "screen"), *own]
    for command in commands:
        head = f"  {one_line(command.spelled):{_WIDTH}} "
        room = max(20, repl.screen.width - len(head))
        for line in wrapped(one_line(command.meaning), room).split("\n"):
            repl.screen.line(head + repl.screen.paint.dim(line))
            head = " " * len(head)


# Sessions


async def _new(repl: ReplSession, rest: str) -> None:
    before = repl.house.mode
    await repl.switch(repl.house.renew())
    _say(repl, "a new session")
    if repl.house.mode != before:
        _say(repl, f"its mode is {repl.house.mode}")


async def _sessions(repl: ReplSession, rest: str) -> None:
    sessions = await repl.house.sessions(rest, _NEWEST)
    for session in sessions:
        repl.screen.line(_session_line(session, repl.screen))
    if not sessions:
        repl.screen.line("No session matches." if rest else "There are no sessions yet.")


def _session_line(session: Listed, screen: Screen) -> str:
    """Return a session's id, time, state and title."""
    paint = screen.paint
    state = "" if session.state == "done" else session.state
    if session.waiting:
        state = f"asks {session.waiting}"
    mark = "↳ " if session.parent else ""  # a subagent's
    title = mark + (flat(session.title) or "(no prompt)")
    title = cut(title, max(10, screen.width - len(session.id) - 30))
    start = f"{paint.cyan(flat(session.id))}  {local_time(session.updated_at)}"
    return f"{start}  {paint.yellow(flat(state).ljust(7))}  {title}"


async def _resume(repl: ReplSession, rest: str) -> None:
    await repl.switch(repl.house.resume(rest))
    title = repl.session.title or repl.session.id
    _say(repl, f"taken up again: {flat(title)}")
    await repl.resume()


async def _model(repl: ReplSession, rest: str) -> None:
    if rest:
        await repl.switch(repl.house.change_model(rest))
    repl.screen.line(flat(repl.house.model))
    if not rest and repl.approver.lines.is_terminal:
        models = await repl.house.models()
        others = [model for model in models if not model.chosen and not model.why_not]
        for model in others[:_MODELS]:
            _say(repl, f"  {model.name}  {model.about}".rstrip())


async def _agent(repl: ReplSession, rest: str) -> None:
    if rest:
        await repl.switch(repl.house.change_agent(rest))
    repl.screen.line(flat(repl.house.agent))


async def _mode(repl: ReplSession, rest: str) -> None:
    if rest and rest not in MODES:
        raise UsageError(f"there is no mode {rest}", hint=f"Choose one of {', '.join(MODES)}.")
    if rest:
        await repl.house.change_mode(rest)
    repl.screen.line(repl.house.mode)


async def _plan(repl: ReplSession, rest: str) -> None:
    await repl.house.change_mode("plan")
    _say(repl, "plan mode: nothing is changed until you agree")
    if rest:
        await repl.send(check_text(rest, "the line"))


async def _fork(repl: ReplSession, rest: str) -> None:
    before = repl.session.id
    await repl.switch(repl.house.fork(_number(rest, "/fork") if rest else None))
    _say(repl, f"now in {repl.session.id}; {before} stays as it is")


async def _rewind(repl: ReplSession, rest: str) -> None:
    # the line of its record says what was done
    await repl.house.rewind(_number(rest or "1", "/rewind"))


async def _compact(repl: ReplSession, rest: str) -> None:
    if not (repl.house.is_begun and await repl.session.compact(by=user_name())):
        _say(repl, "there is nothing to shorten")


async def _rename(repl: ReplSession, rest: str) -> None:
    await repl.house.rename(repl.session.id, check_text(rest, "the title"))
    _say(repl, f"renamed: {flat(rest)}")


async def _search(repl: ReplSession, rest: str) -> None:
    paint, width = repl.screen.paint, repl.screen.width
    hits = await repl.house.search(check_text(rest, "the words"))
    for session_id, group in groupby(hits, lambda hit: hit.session_id):
        of_session = list(group)
        title = cut(flat(of_session[0].title) or "(no prompt)", max(10, width - 40))
        repl.screen.line(f"{paint.bold(title)}  {paint.cyan(flat(session_id))}")
        for hit in of_session:
            mark = f"#{hit.seq} {flat(hit.kind)}".rstrip()
            text = cut(flat(hit.text), max(20, width - len(mark) - 4))
            repl.screen.line(f"  {paint.dim(mark)}  {text}")
    if not hits:
        repl.screen.line("nothing was found")


async def _export(repl: ReplSession, rest: str) -> None:
    form = "markdown" if rest.endswith((".md", ".markdown")) else "jsonl"
    _, size = await repl.house.export(Path(check_text(rest, "the name")), form)
    _say(repl, f"{size_of(size)} written to {rest}")


# What there is, and what it cost


async def _tools(repl: ReplSession, rest: str) -> None:
    _list(repl, await repl.house.tools(), "The model has no tools.")


async def _mcp(repl: ReplSession, rest: str) -> None:
    _list(repl, await repl.house.mcp(), "No MCP server is set up. See: bridle mcp --help")


async def _policy(repl: ReplSession, rest: str) -> None:
    _list(repl, await repl.house.rules(), "No rules hold here.")


async def _budget(repl: ReplSession, rest: str) -> None:
    if rest:
        try:
            amount = float(rest.removeprefix("$"))
        except ValueError:
            raise UsageError(
                f"not an amount of money: {flat(rest[:40])}",
                hint="For example: /budget 2.50",
            ) from None
        await repl.house.set_budget(amount)
    for name, used, most in await repl.house.budget():
        text = flat(budget_text(used, most))
        repl.screen.line(f"  {name:22} {repl.screen.paint.dim(text)}")


async def _cost(repl: ReplSession, rest: str) -> None:
    repl.screen.line(usage_line(repl.session.metrics))


async def _theme(repl: ReplSession, rest: str) -> None:
    """Switch colours on or off: lines have those of the terminal, or none."""
    if rest and rest not in _THEMES:
        raise UsageError(
            f"there is no theme {flat(rest)}", hint=f"Choose one of {', '.join(_THEMES)}."
        )
    if rest:
        repl.screen.paint = Paint(False) if rest == "plain" else paint_for(sys.stderr)
        colours = "no colours" if rest == "plain" else "the terminal's own colours"
        _say(repl, f"{colours}, until you leave; `bridle config` says how to keep it")
    else:
        _say(repl, f"there are {', '.join(_THEMES)}; in plain lines all but plain look the same")


async def _doctor(repl: ReplSession, rest: str) -> None:
    repl.screen.line(f"This session uses {flat(repl.house.model)}.")
    for line in await repl.house.doctor():
        repl.screen.line(cut(plain(line), max(20, repl.screen.width)))


# Undo and approvals


async def _undo(repl: ReplSession, rest: str) -> None:
    preview = await repl.house.undo_preview(_number(rest, "/undo") if rest else 0)
    for line in _undo_lines(preview, repl.screen.paint):
        repl.screen.line(line)
    if preview.clashes:
        files = ", ".join(flat(path) for path, _, _ in preview.clashes[:3])
        raise SessionBusy(
            f"nothing was changed: {files} changed since",
            hint="Undo the later turns first, or restore these files yourself.",
        )
    if not preview.files:
        return
    count = quantity(len(preview.files), "file")
    answer = await repl.approver.line(f"  restore {count}? [y/N] ")
    if answer is None or answer.strip().lower() not in ("y", "yes"):
        _say(repl, "nothing was changed")
        return
    await repl.house.undo(preview)  # the line of its record says what was done


def _undo_lines(preview: Undone, paint: Paint) -> list[str]:
    """Return what would be put back, with how each file differs, and what is not covered."""
    colours = {"+": paint.green, "-": paint.red, "~": paint.yellow}
    lines = [paint.bold(f"undo turn {preview.turn}")]
    for path, how, diff in preview.files:
        sign = _SIGNS.get(how, "~")
        lines.append(f"  {colours[sign](sign)} {flat(path)}" + paint.dim(f"  {flat(how)}"))
        for line in diff.splitlines()[:40]:
            colour = {"+": paint.green, "-": paint.red}.get(line[:1], paint.dim)
            lines.append("      " + colour(cut(neutral(line, keep="\t"), 200)))
    if not preview.files and not preview.clashes:
        lines.append("  everything stands as it would be put back")
    lines += [paint.dim(f"  not covered: {flat(reason)}") for reason in preview.uncovered]
    return lines


async def _approvals(repl: ReplSession, rest: str) -> None:
    """Ask for the approvals of all sessions; an empty line leaves one open."""
    requests = await repl.house.pending()
    if not requests:
        repl.screen.line("No approvals are pending.")
    for number, request in enumerate(requests, 1):
        title = flat(request.title) or "(no prompt)"
        head = f"{number} of {len(requests)} · {title} · {flat(request.session_id)}"
        repl.screen.line(repl.screen.paint.cyan(head))
        answer = await _ask_approval(repl, request)
        if answer is None:
            _say(repl, "  left open")
            continue
        try:
            await repl.house.answer(request.session_id, request.asked, answer)
            _say(repl, f"  answered {'yes' if answer.allowed else 'no'}")
        except AgentError as error:
            complain(error.message, error.hint)


async def _ask_approval(repl: ReplSession, request: Asked) -> Answer | None:
    """Return the answer that is typed; None if the request is left open."""
    screen, asked = repl.screen, request.asked
    shown = full_text([asked], screen.paint, screen.width, repl.house.current)
    text = f"{shown}\n  (an empty line leaves it open)\n{choices_of(asked, screen.width)}"
    while True:
        line = await repl.approver.line(text)
        if line is None or not line.strip():
            return None
        answer = parse_answer(asked, line)
        if answer.scope != "rule":
            return answer
        for preview in await repl.house.preview_rule(request.session_id, asked):
            screen.line(f"  {flat(preview)}")
        line = await repl.approver.line("  add this rule? [y/N] ")
        if line is not None and line.strip().lower() in ("y", "yes"):
            return Answer(True, "rule", rule=asked.proposal)
        text = choices_of(asked, screen.width)


def _say(repl: ReplSession, text: str) -> None:
    repl.screen.line(repl.screen.paint.dim(flat(text)))


def _number(text: str, command: str) -> int:
    """Return a whole number from 1 on. Raise `UsageError`."""
    if not text.isdecimal() or not 0 < int(text[:9]) == int(text):
        raise UsageError(
            f"{command} needs a whole number from 1 to 999999999, not {flat(text[:40])}",
            hint=f"For example: {command} 2",
        )
    return int(text)


def _list(repl: ReplSession, entries: Iterable[Named], none: str) -> None:
    """Write a line for each: its name, what it is, and why it does not count."""
    paint, width = repl.screen.paint, repl.screen.width
    entries = list(entries)
    widest = min(28, max((len(flat(entry.name)) for entry in entries), default=0))
    for entry in entries:
        name = flat(entry.name)
        about = cut(flat(entry.about), max(20, width - max(widest, len(name)) - 4))
        repl.screen.line(f"  {name.ljust(widest)}  {paint.dim(about)}".rstrip())
        if entry.why_not:
            repl.screen.line(f"    {paint.yellow(flat(entry.why_not))}")
    if not entries:
        repl.screen.line(none)


ACTIONS: dict[str, Action] = {
    "help": _help,
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
    "tools": _tools,
    "mcp": _mcp,
    "policy": _policy,
    "budget": _budget,
    "cost": _cost,
    "theme": _theme,
    "doctor": _doctor,
    "undo": _undo,
    "approvals": _approvals,
}
