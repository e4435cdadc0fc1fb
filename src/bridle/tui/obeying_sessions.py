"""Commands that move among sessions, or change what became of one: new, resume, undo, export …

What the session's log says itself (a fork, a rewind, an undo) is not said here as well.
"""

from pathlib import Path

from bridle.errors import SessionError
from bridle.tui.dialogs import AskText, Choose, Confirm, Item, diff_lines
from bridle.tui.house import Undone
from bridle.tui.obeying_stage import Act, Stage
from bridle.tui.screens.sessions import Picker
from bridle.workspace.text import one_line, quantity, size_of


async def _new(stage: Stage, rest: str) -> None:
    await stage.lodging.renew()
    await stage.moved()
    stage.tell(f"A new session, mode {stage.lodging.mode}.")


async def _sessions(stage: Stage, rest: str) -> None:
    house = stage.lodging
    picker = Picker(house, rest, current=house.session.id, workspace=house.place.workspace)
    chosen = await stage.ask(picker)
    if chosen:
        await _go(stage, chosen)


async def _resume(stage: Stage, rest: str) -> None:
    if rest:
        await _go(stage, rest)
    else:
        await _sessions(stage, "")


async def _go(stage: Stage, start: str) -> None:
    if not await _enter(stage, start):
        stage.tell("You are in that session already.")


async def _enter(stage: Stage, start: str) -> bool:
    """Be in that session; False where that is so already."""
    before = stage.lodging.session.id
    await stage.lodging.resume(start)
    if stage.lodging.session.id == before:
        return False
    await stage.moved()
    return True


async def _fork(stage: Stage, rest: str) -> None:
    at = _number(rest, "/fork") if rest else None
    await stage.lodging.fork(at)
    await stage.moved()


async def _rewind(stage: Stage, rest: str) -> None:
    turns = _number(rest or "1", "/rewind")
    prompt = stage.asked(turns)
    await stage.lodging.rewind(turns)
    stage.give_back(prompt)


def _number(text: str, command: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:10]) <= 999_999_999:
        said = f"{command} takes a number from 1 on, not “{one_line(text, 40)}”"
        raise SessionError(said, hint=f"For example: {command} 2")
    return int(text[:10])


async def _undo(stage: Stage, rest: str) -> None:
    house = stage.lodging
    shown = await house.undo_preview(_number(rest, "/undo") if rest else 0)
    if not shown.files and not shown.clashes:
        stage.tell(f"There is nothing to put back.{_uncovered(shown)}")
        return
    files = quantity(len(shown.files) + len(shown.clashes), "file")
    said = f"Undo turn {shown.turn}? This restores {files}."
    if shown.clashes:
        clashes = quantity(len(shown.clashes), "file")
        was = "was" if len(shown.clashes) == 1 else "were"
        said += f"\n{clashes} {was} changed after that turn: those changes will be lost."
    title = f"Undo turn {shown.turn}"
    if await stage.ask(Confirm(title, said, undo_lines(shown), danger=bool(shown.clashes))):
        await house.undo(shown)
    else:
        stage.tell("Nothing was put back.")


def undo_lines(shown: Undone) -> list[tuple[str, str]]:
    """Each file with what becomes of it and its diff, then what is not covered."""
    lines: list[tuple[str, str]] = []
    for path, how, diff in shown.files:
        if lines:
            lines.append(("", ""))
        lines.append((f"{one_line(path, 200)}  {one_line(how)}", "head"))
        lines += [one for one in diff_lines(diff) if one[1] != "muted"] if diff.strip() else []
    for path, why, diff in shown.clashes:
        if lines:
            lines.append(("", ""))
        lines.append(
            (f"{one_line(path, 200)}  {one_line(why) or 'it was changed since'}", "warning")
        )
        if diff.strip():
            lines.append(("what would be lost:", ""))
            lines += [one for one in diff_lines(diff) if one[1] != "muted"]
    if shown.uncovered:
        lines += [("", ""), ("Not covered, and left as it is:", "warning")]
        lines += [(f"  {one_line(path, 200)}", "") for path in shown.uncovered]
    return lines


def _uncovered(shown: Undone) -> str:
    few = ", ".join(one_line(path, 60) for path in shown.uncovered[:3])
    return f" Not covered: {few}." if few else ""


async def _rename(stage: Stage, rest: str) -> None:
    house = stage.lodging
    asking = AskText("A title for this session", house.session.title)
    title = rest if rest else await stage.ask(asking)
    if title and title.strip():
        await house.rename(house.session.id, title.strip())
        stage.changed()
        stage.tell(f"Renamed: {one_line(title)}")


async def _search(stage: Stage, rest: str) -> None:
    found = await stage.lodging.search(rest)
    items = [
        Item(str(at), one.title or one.session_id, one_line(one.text, 100))
        for at, one in enumerate(found)
    ]
    title = f"Where “{one_line(rest, 40)}” was said"
    chosen = await stage.ask(Choose(title, items, "It was said nowhere."))
    if chosen:
        hit = found[int(chosen)]
        await _enter(stage, hit.session_id)
        stage.go_to(hit.seq, hit.kind)


async def _export(stage: Stage, rest: str) -> None:
    path = Path(rest)
    form = "markdown" if rest.endswith((".md", ".markdown")) else "jsonl"
    force = False
    if _is_there(path):
        asked = Confirm("Export", f"{rest} is there already. Write over it?", danger=True)
        if not await stage.ask(asked):
            stage.tell("Nothing was written.")
            return
        force = True
    place, size = await stage.lodging.export(path, form, force=force)
    stage.tell(f"{size_of(size)} written to {place}")


def _is_there(path: Path) -> bool:
    try:
        return path.expanduser().is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise SessionError(f"{one_line(str(path))} is no name of a file", error) from error


SESSIONS: dict[str, Act] = {
    "new": _new,
    "sessions": _sessions,
    "resume": _resume,
    "fork": _fork,
    "rewind": _rewind,
    "undo": _undo,
    "rename": _rename,
    "search": _search,
    "export": _export,
}
