"""Commands that choose: model, agent, mode, plan, budget, theme."""

import math
from collections.abc import Awaitable, Callable

from bridle.errors import SessionError
from bridle.policy import MODES, Mode
from bridle.presentation.amounts import budget_text
from bridle.tui.dialogs import Choose, Confirm, Item, TextPage
from bridle.tui.house import Named
from bridle.tui.obeying_stage import Act, Stage
from bridle.tui.theme import CHOICES as THEMES
from bridle.tui.user_settings import MEANINGS, config_place, save_choice
from bridle.usage import format_cost
from bridle.workspace.text import one_line

MODE_MEANINGS: dict[Mode, str] = {
    "plan": "looks and plans; changes nothing",
    "ask": "asks before anything that changes something",
    "edits": "edits files in the workspace; asks before the rest",
    "auto": "asks nothing; what is denied stays denied",
}


async def _one_of(
    stage: Stage, title: str, named: Callable[[], Awaitable[tuple[Named, ...]]]
) -> str | None:
    items = [Item(one.name, one.name, one.about, one.chosen, one.why_not) for one in await named()]
    return await stage.ask(Choose(title, items))


async def _model(stage: Stage, rest: str) -> None:
    house = stage.lodging
    name = rest or await _one_of(stage, "Model", house.models)
    if name:
        await house.change_model(name)
        await stage.moved()
        stage.tell(f"Model: {one_line(house.model)}")


async def _agent(stage: Stage, rest: str) -> None:
    house = stage.lodging
    name = rest or await _one_of(stage, "Agent", house.agents)
    if name:
        await house.change_agent(name)
        await stage.moved()
        stage.tell(f"Agent: {one_line(house.agent)}")


async def _mode(stage: Stage, rest: str) -> None:
    house = stage.lodging
    items = [Item(one, one, MODE_MEANINGS[one], one == house.mode) for one in MODES]
    name = rest if rest else await stage.ask(Choose("Mode", items))
    if not name:
        return
    found = next((one for one in MODES if one == name), None)
    if found is None:
        said = f"there is no mode {one_line(name, 40)}"
        raise SessionError(said, hint=f"There are {', '.join(MODES)}.")
    await _change(stage, found)


async def _change(stage: Stage, mode: Mode) -> None:
    """The log says it itself, once there is one."""
    house = stage.lodging
    before = house.mode
    await house.change_mode(mode)
    stage.changed()
    if not house.is_begun or before == mode:
        stage.tell(f"Mode {house.mode}: {MODE_MEANINGS[house.mode]}.")


async def _plan(stage: Stage, rest: str) -> None:
    await _change(stage, "plan")
    if rest:
        await stage.say(rest)


async def _budget(stage: Stage, rest: str) -> None:
    house = stage.lodging
    if rest:
        await house.set_budget(_money(rest))
    rows = [
        (f"{name:22} {budget_text(used, most)}", "") for name, used, most in await house.budget()
    ]
    if rest:
        stage.tell(
            f"From the next turn on this session may spend {format_cost(_money(rest))} in all."
        )
    else:
        await stage.ask(TextPage("Budget", rows))


def _money(text: str) -> float:
    try:
        found = float(text.removeprefix("$").replace(",", "."))
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found <= 0:
        said = f"{one_line(text, 40)} is not an amount of money"
        raise SessionError(said, hint="Enter an amount in dollars, for example 2.50.")
    return found


async def _theme(stage: Stage, rest: str) -> None:
    items = [Item(one, one, MEANINGS[one]) for one in THEMES]
    name = rest if rest else await stage.ask(Choose("Theme", items))
    if not name:
        return
    if name not in THEMES:
        said = f"there is no theme {one_line(name, 40)}"
        raise SessionError(said, hint=f"There are {', '.join(THEMES)}.")
    stage.paint(name)
    place = config_place()
    said = f"Use it from now on, and write “theme: {name}” into {place}?\nn keeps it for this time."
    if await stage.ask(Confirm("Theme", said)):
        save_choice("theme", name)
        stage.tell(f"Theme {name}, written to {place}.")
    else:
        stage.tell(f"Theme {name}, for this time.")


SETTINGS: dict[str, Act] = {
    "model": _model,
    "agent": _agent,
    "mode": _mode,
    "plan": _plan,
    "budget": _budget,
    "theme": _theme,
}
