"""What can be chosen for a session at the editor: its mode, its model, and commands. Pure.

Modes are offered twice: as such, and as a setting, because an editor that knows settings does not
look at modes.
"""

from collections.abc import Iterable, Sequence

from acp import schema

from bridle.policy import Mode
from bridle.presentation.modes import MODE_TEXTS, mode_sentence

Setting = schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean

MODE, MODEL = "mode", "model"
COMMANDS = {
    "compact": ("Shorten the conversation: the model writes a summary.", ""),
    "rename": ("Give this session a title.", "the title"),
    "revoke": ("Revoke everything that was allowed for this session.", ""),
}


def mode_state(current: Mode, modes: Iterable[Mode]) -> schema.SessionModeState:
    """The modes, and the one that holds."""
    found = [
        schema.SessionMode(id=one, name=MODE_TEXTS[one].name, description=mode_sentence(one))
        for one in modes
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
                    value=one, name=MODE_TEXTS[one].name, description=mode_sentence(one)
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
