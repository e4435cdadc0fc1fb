"""What hooks say, and how it reaches those it is for: the log, the model, whoever sent a prompt.

A hook is somebody else's code: one that raises, or says what is no remark, has denied.
"""

import logging
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from bridle.engine.redaction import Redactor
from bridle.errors import HookDenied
from bridle.events import TraceEvent
from bridle.messages import Part, Text
from bridle.promises.hooks import Hooks, Occasion, Remark
from bridle.workspace.text import shorten

log = logging.getLogger(__name__)

_LONGEST = 10_000  # characters of a word for the model


def line(who: str, word: str) -> str:
    """A word for the model, marked as one: it is not what the tool or the person has said."""
    return f"\n[{who}: {shorten(word.strip(), _LONGEST)}]"


def from_hook(word: str) -> str:
    """A hook's word for the model, as a line of its own."""
    return line("a hook says", word) if word.strip() else ""


async def hear(hooks: Hooks, occasion: Occasion, redactor: Redactor | None = None) -> Remark:
    """What the hooks say, without secrets: nothing is cut before. One that breaks has said no."""
    said = await _said(hooks, occasion)
    if redactor is None or not (said.deny or said.word):
        return said
    return replace(said, deny=redactor.text(said.deny), word=redactor.text(said.word))


async def _said(hooks: Hooks, occasion: Occasion) -> Remark:
    try:
        said: Any = await hooks.hear(occasion)
    except Exception as error:  # it stands before an effect, and it is somebody else's code
        log.debug("a hook broke", exc_info=True)
        return Remark(deny=f"a hook broke: {error!r}")
    return said if _is_sound(said) else Remark(deny="a hook said what nobody understands")


def _is_sound(said: object) -> bool:
    if not isinstance(said, Remark):
        return False
    words = isinstance(said.deny, str) and isinstance(said.word, str)
    prompt = said.prompt is None or isinstance(said.prompt, str)
    return words and prompt and (said.arguments is None or isinstance(said.arguments, dict))


def trace(occasion: Occasion, remark: Remark) -> TraceEvent | None:
    """What was said, for the log; None where nothing was."""
    said = {
        "deny": remark.deny,
        "word": remark.word,
        "arguments": remark.arguments,
        "prompt": remark.prompt,
    }
    said = {key: deepcopy(value) for key, value in said.items() if value not in ("", None)}
    if not said:
        return None
    about = {"moment": occasion.moment, "callId": occasion.call_id, "tool": occasion.tool}
    return TraceEvent("hook", {key: value for key, value in about.items() if value} | said)


async def before_prompt(
    hooks: Hooks, occasion: Occasion, parts: tuple[Part, ...], redactor: Redactor | None = None
) -> tuple[tuple[Part, ...], TraceEvent | None]:
    """A prompt as the hooks leave it, and what they said. Raise `HookDenied`."""
    remark = await hear(hooks, occasion, redactor)
    if remark.deny:
        raise HookDenied(f"a hook refused the prompt, and nothing was sent: {remark.deny}")
    if remark.prompt is not None:
        kept = tuple(part for part in parts if not isinstance(part, Text))
        parts = (Text(remark.prompt), *kept)
    if said := from_hook(remark.word):
        parts = (*parts, Text(said))
    return parts, trace(occasion, remark)
