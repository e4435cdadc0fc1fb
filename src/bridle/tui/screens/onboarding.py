"""Questions before the first prompt: whether to trust the folder, and which model to use.

The caller finds out what to ask and acts on the answers. An API key is never asked for and never
written; instead, the user is shown how to set one.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from bridle.config.settings import KEY_VARIABLES
from bridle.errors import MissingModel
from bridle.tui.dialogs import ChoiceDialog, ConfirmDialog, Dialog, TextDialog
from bridle.tui.model.onboarding import ModelSearch, StartupChecks, UntrustedFolder, trust_lines
from bridle.tui.slash.interaction import Item
from bridle.tui.user_settings import save_setting, settings_path
from bridle.workspace.text import one_line

_OFFLINE = "offline"
_KEY = "key"


class Asking(Protocol):
    """Show a dialog and wait for its result."""

    async def __call__(self, dialog: Dialog[Any]) -> Any: ...


async def ask_trust(checks: StartupChecks, found: UntrustedFolder, ask: Asking) -> str:
    """Ask whether to trust a folder's files; return a remark, or nothing. Raise `AgentError`."""
    new = [one_line(one.name) for one in found.files if not one.trusted and not one.problem]
    said = (
        f"Trust these files in {one_line(str(found.root), 300)}?\n"
        "They were written by the author of this folder. Rules, hooks and servers can run "
        "programs, and the model follows the instructions. They are ignored unless you trust "
        "them, and you are asked again if one changes."
    )
    answer = await ask(
        ConfirmDialog("Trust this folder?", said, trust_lines(found.files), read=True)
    )
    if answer:
        await asyncio.to_thread(checks.trust, found)
        return f"Trusted as shown: {', '.join(new)}."
    if answer is not None:  # without an answer, it is asked again next time
        await asyncio.to_thread(checks.decline, found)
    return ""  # what is ignored is reported when the session is opened


async def ask_model(checks: StartupChecks, lacking: ModelSearch, ask: Asking) -> str:
    """Ask which model to use; return a remark, or nothing.

    Raise `MissingModel` if none is chosen, and `AgentError` if the choice cannot be saved.
    """
    chosen = await _choice(lacking, ask)
    if chosen is None:
        raise MissingModel(
            "no model was chosen",
            hint="Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as Ollama, or "
            "try bridle without a language model: bridle -m offline",
        )
    checks.use(chosen)
    place = settings_path()
    said = (
        f"Use {one_line(chosen)} from now on?\n"
        f"y saves it to {place}; n uses it for this session only."
    )
    if await ask(ConfirmDialog("Keep this choice?", said)):
        await asyncio.to_thread(save_setting, "model", chosen)
        return f"Saved to {place}: model {chosen}."
    return ""


async def _choice(lacking: ModelSearch, ask: Asking) -> str | None:
    """Return the chosen model, or None; how to set a key is shown as often as wanted."""
    said = "No API key was found, and the settings name no model."
    if lacking.looked:
        said += f"\nLooked for: {', '.join(lacking.looked)}."
    while True:
        items = _items(lacking)
        dialog = ChoiceDialog(
            "Which model would you like to use?", items, said=said, escape="quit bridle"
        )
        chosen = await ask(dialog)
        if chosen != _KEY:
            return None if chosen is None else str(chosen)
        await ask(TextDialog("How to set a key", key_lines()))


def _items(lacking: ModelSearch) -> list[Item]:
    local = [Item(name, name, "runs on this machine") for name in lacking.local]
    offline = "built-in rules, no language model; needs no key or network"
    return [
        *local,
        Item(_OFFLINE, "offline", offline),
        Item(_KEY, "Claude, GPT, …", "needs an API key; shows how to set one"),
    ]


def key_lines() -> Sequence[tuple[str, str]]:
    """Return how to set a key, for each vendor."""
    rows = {variable: vendor for vendor, variable in KEY_VARIABLES.items() if "-" not in vendor}
    from_environment = (
        "bridle reads it from the environment and never stores it. You can also add it as "
        f"`api_key:` to {settings_path()}; make that file readable only by you."
    )
    local = (
        "Local servers need no key: Ollama, llama.cpp and LM Studio are found if they run on "
        "their usual ports."
    )
    return [
        ("Quit with Ctrl+C, set one of these in your shell, and start bridle again:", ""),
        ("", ""),
        *(
            (f"  export {variable + '=…':24} for {vendor}", "head")
            for variable, vendor in rows.items()
        ),
        ("", ""),
        (from_environment, ""),
        ("", ""),
        (local, ""),
    ]
