"""Before the first prompt: which model answers where none was found, and whether a folder counts.

What there is to ask was found out by whoever opens the screen, and is done by them; here it is
shown and asked. A key is never asked for and never written: it is said how to set one.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from bridle.config.settings import KEY_VARIABLES
from bridle.errors import MissingModel
from bridle.tui.dialogs import Choose, Confirm, Dialog, TextPage
from bridle.tui.model.onboarding import Lacking, Preface, Untrusted, trust_lines
from bridle.tui.slash.interaction import Item
from bridle.tui.user_settings import config_place, save_choice
from bridle.workspace.text import one_line

_OFFLINE = "offline"
_KEY = "key"


class Asking(Protocol):
    """How a dialog is shown and waited for."""

    async def __call__(self, dialog: Dialog[Any]) -> Any: ...


async def about_folder(preface: Preface, found: Untrusted, ask: Asking) -> str:
    """Ask about a folder's own files; gives back what is worth a line. Raise `AgentError`."""
    new = [one_line(one.name) for one in found.files if not one.trusted and not one.problem]
    said = (
        f"Trust these files in {one_line(str(found.root), 300)}?\n"
        "They come from whoever wrote this folder: rules, hooks and servers can run programs, "
        "and the model follows instructions. They are ignored unless you trust them; if one "
        "changes, you are asked again."
    )
    answer = await ask(Confirm("Trust this folder?", said, trust_lines(found.files), read=True))
    if answer:
        await asyncio.to_thread(preface.trust, found)
        return f"Trusted as shown: {', '.join(new)}."
    if answer is not None:  # left without an answer, it is asked again the next time
        await asyncio.to_thread(preface.decline, found)
    return ""  # what does not count is told when the session is opened


async def about_model(preface: Preface, lacking: Lacking, ask: Asking) -> str:
    """Ask which model is to answer; return what is worth a line.

    Raise `MissingModel` if none is chosen, and `AgentError` if the choice cannot be saved.
    """
    chosen = await _choice(lacking, ask)
    if chosen is None:
        raise MissingModel(
            "no model was chosen",
            hint="Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as Ollama, or "
            "look around without a language model: bridle -m offline",
        )
    preface.use(chosen)
    place = config_place()
    said = (
        f"Use {one_line(chosen)} from now on?\n"
        f"y writes it into {place}; n uses it for this session only."
    )
    if await ask(Confirm("Keep this choice?", said)):
        await asyncio.to_thread(save_choice, "model", chosen)
        return f"{chosen} is written to {place}."
    return ""


async def _choice(lacking: Lacking, ask: Asking) -> str | None:
    """One of the models there are, or None; how to set a key is shown as often as one likes."""
    said = "No key for a model was found, and none is named in the settings."
    if lacking.looked:
        said += f"\nLooked for: {', '.join(lacking.looked)}."
    while True:
        items = _items(lacking)
        dialog = Choose("Which model should answer?", items, said=said, escape="leaves bridle")
        chosen = await ask(dialog)
        if chosen != _KEY:
            return None if chosen is None else str(chosen)
        await ask(TextPage("How to set a key", key_lines()))


def _items(lacking: Lacking) -> list[Item]:
    local = [Item(name, name, "answers on this machine") for name in lacking.local]
    offline = "a few rules, no language model; needs no key or network"
    return [
        *local,
        Item(_OFFLINE, "offline", offline),
        Item(_KEY, "Claude, GPT, …", "needs a vendor's API key: shows how to set one"),
    ]


def key_lines() -> Sequence[tuple[str, str]]:
    """How to set a key, for each vendor; bridle writes none."""
    rows = {variable: vendor for vendor, variable in KEY_VARIABLES.items() if "-" not in vendor}
    from_environment = (
        "bridle reads it from the environment and writes it nowhere. You can also write it as "
        f"`api_key:` into {config_place()}; make that file readable only by you."
    )
    local = (
        "A local server needs no key: Ollama, llama.cpp and LM Studio are found if they answer "
        "on their usual ports."
    )
    return [
        ("Leave with Ctrl+C, set one of these in your shell, and start bridle again:", ""),
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
