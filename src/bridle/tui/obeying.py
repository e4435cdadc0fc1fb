"""The `/` commands on the screen: which act a line means, and what is said where it fails.

What each does is in `obeying_sessions.py`, `obeying_settings.py` and `obeying_looking.py`; the
screen is known by the promise `Stage` alone. A command that fails is one notice, and its line goes
back into the composer: nothing is lost.
"""

from bridle.errors import AgentError, SessionError
from bridle.presentation.commands import Command, command_of, nearest, split
from bridle.tui.obeying_looking import LOOKING
from bridle.tui.obeying_sessions import SESSIONS
from bridle.tui.obeying_settings import SETTINGS
from bridle.tui.obeying_stage import Act, Stage
from bridle.tui.own_commands import prompt_of


async def obey(stage: Stage, line: str) -> None:
    """Do what the line says; what goes wrong is told."""
    try:
        await _obey(stage, line)
    except AgentError as error:
        stage.give_back(line)
        stage.tell(told(error), "error")


def told(error: AgentError) -> str:
    """What happened, and what to do next."""
    said = error.message.rstrip(".")
    return f"{said}. {error.hint}" if error.hint else said


async def _obey(stage: Stage, line: str) -> None:
    name, rest = split(line)
    command = command_of(name, stage.own())
    if command is None:
        near = nearest(name, stage.own())
        advice = f"Did you mean /{near}?" if near else "/help lists them."
        raise SessionError(
            f"there is no command /{name}",
            hint=f"{advice} A space before the slash sends it as a prompt.",
        )
    if command.own:
        await _play(stage, command, rest)
    elif command.is_needy and not rest and command.name not in _ASKING:
        raise SessionError(f"/{command.name} needs {command.argument}", hint=_example(command))
    else:
        await ACTS[command.name](stage, rest)


async def _play(stage: Stage, command: Command, rest: str) -> None:
    """A user's own command is a prompt."""
    text = prompt_of(command, rest)
    if not text.strip():
        raise SessionError(f"/{command.name} says nothing", hint=f"Look at {command.own}.")
    await stage.say(text)


def _example(command: Command) -> str:
    examples = {"search": "/search the words", "export": "/export talk.md"}
    return f"For example: {examples.get(command.name, command.spelled)}"


async def _quit(stage: Stage, rest: str) -> None:
    stage.leave()


async def _editor(stage: Stage, rest: str) -> None:
    await stage.edit(rest)


async def _copy(stage: Stage, rest: str) -> None:
    await stage.copy(rest)


async def _find(stage: Stage, rest: str) -> None:
    await stage.find(rest)


_ASKING = ("resume", "rename")  # they ask for what is left out
ACTS: dict[str, Act] = {
    **SESSIONS,
    **SETTINGS,
    **LOOKING,
    "copy": _copy,
    "editor": _editor,
    "find": _find,
    "quit": _quit,
}
