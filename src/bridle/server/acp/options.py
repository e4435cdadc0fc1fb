"""What can be chosen for a session at the editor: its mode, its model, and commands. Pure.

Modes are offered twice: as such, and as a setting, because an editor that knows settings does not
look at modes.
"""

from collections.abc import Iterable, Sequence

from acp import schema

from bridle.policy import Mode

Setting = schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean

MODE, MODEL = "mode", "model"
_MODES: dict[Mode, tuple[str, str]] = {
    "plan": ("Plan", "Looks and plans; changes nothing until you agree to the plan."),
    "ask": ("Ask", "Asks before everything that is more than looking."),
    "edits": ("Edits", "Edits files of the folder without asking; asks before commands."),
    "auto": ("Auto", "Asks nothing. What is denied stays denied."),
}
COMMANDS = {
    "compact": ("Shorten the conversation: the model writes down what matters of it.", ""),
    "rename": ("Give this session a title.", "the title"),
    "revoke": ("Take back everything that was allowed for this session.", ""),
}


def mode_state(current: Mode, modes: Iterable[Mode]) -> schema.SessionModeState:
    """The modes, and the one that holds."""
    found = [
        schema.SessionMode(id=one, name=_MODES[one][0], description=_MODES[one][1]) for one in modes
    ]
    return schema.SessionModeState(current_mode_id=current, available_modes=found)


def settings(mode: Mode, modes: Iterable[Mode], model: str, models: Sequence[str]) -> list[Setting]:
    """Mode and model as settings; a model that nobody can change is not among them."""
    found: list[Setting] = [
        schema.SessionConfigOptionSelect(
            id=MODE,
            name="Mode",
            category="mode",
            description="What may run without asking.",
            type="select",
            current_value=mode,
            options=[
                schema.SessionConfigSelectOption(
                    value=one, name=_MODES[one][0], description=_MODES[one][1]
                )
                for one in modes
            ],
        )
    ]
    if models:
        names = dict.fromkeys((model, *models))
        found.append(
            schema.SessionConfigOptionSelect(
                id=MODEL,
                name="Model",
                category="model",
                type="select",
                current_value=model,
                options=[schema.SessionConfigSelectOption(value=one, name=one) for one in names],
            )
        )
    return found


def commands() -> schema.AvailableCommandsUpdate:
    """The commands that a prompt may be."""
    found = [
        schema.AvailableCommand(
            name=name,
            description=words,
            input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint))
            if hint
            else None,
        )
        for name, (words, hint) in COMMANDS.items()
    ]
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update", available_commands=found
    )
